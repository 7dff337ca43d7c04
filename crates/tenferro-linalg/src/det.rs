//! The determinant, with a derivative that needs no inverse.
//!
//! A determinant is a polynomial in the elements: its derivatives of any order are sums of minors, whatever
//! the rank. With the factors of full pivoting, `P A Q = L D U` with unit triangles L and U, and
//! `F = L^-1 P E Q U^-1`,
//!
//! ```text
//! det(A + sum_p t_p E_p) = sign(P Q) det(D + sum_p t_p F_p)
//! ```
//!
//! and the derivatives of the right-hand side at a diagonal matrix are short: that of order n has a term for
//! every n different rows, every order of them, which says in which columns they meet, times the product of
//! the rest of the diagonal.

use crate::{
    batch::{
        Element, Matrices, Results, count, expect_finite, expect_positions, expect_square, for_each,
        unlisted, work,
    },
    lu::factor_in_range,
    matrix::floating,
    named::called,
    scaled_product::{Product, sign_of_permutation},
};
use smallvec::{SmallVec, smallvec};
use tenferro_core_ops::{
    Arg, Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect, expect_same},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{DenseError, Field, Par, Strided, Triangle, filled};
use tenferro_tensor::{Error, Result, Tensor, dispatch_float};

/// The determinant of square matrices.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Det;

impl Primitive for Det {
    const NAME: &'static str = "det";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        Ok(smallvec![Aval::new(x[0].dtype, x[0].shape[2..].iter().cloned())])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|da| (&apply1(&DetDerivative, &[&x[0]]) * da).reduce_sum(Some(&[0, 1])))]
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

/// The determinant of the n x n matrix at `a`, as a product.
///
/// # Safety
/// `a` has n n readable elements; n fits an i32.
pub(crate) unsafe fn determinant<T: Element>(
    n: usize,
    a: Strided<*const T>,
    par: Par,
) -> Result<Product<T>, DenseError> {
    let (mut packed, mut p) = (filled([n, n], <T as Field>::ZERO)?, filled([n], 0i32)?);
    // SAFETY: the caller's promise; the buffers have the sizes that are asked for.
    let exponent = unsafe { factor_in_range(n, a, &mut packed, &mut p, par)? };
    let sign = Product::of(sign_of_permutation::<T>(&mut p));
    let d = (0..n).fold(sign, |d, i| d.times(Product::of(packed[i + i * n])));
    Ok(d.times_power(-i64::from(exponent) * n as i64))
}

fn run<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let n = a.shape()[0];
    let count = count(a.shape(), 2, y);
    expect_positions(Det::NAME, count, [("rows", n)])?;
    let (read, d) = (Matrices::<T>::new(&a)?, Results::<T>::new(&y[0].shape, 0)?);
    for_each(cpu, count, work([1, n, n, n]), |b, par| {
        // SAFETY: matrix b of the operand is readable; the output has a number for it.
        unsafe { d.at(b).write(determinant(n, read.at(b), par)?.number()) };
        Ok(())
    })
    .map_err(|e| e.error(Det::NAME, a.shape()))?;
    // SAFETY: every determinant was written.
    Ok(smallvec![unsafe { d.finish() }])
}

/// The matrix G with `sum_ij G_ij (E_0)_ij = D^(n+1) det(A)[E_0, E_1, .., E_n]`: without directions, the
/// cofactors. Inputs: A and the directions `E_1, .., E_n`. The work beyond elimination grows with the power
/// n + 2 of the order of the matrix.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct DetDerivative;

/// The largest number of directions: a derivative of it takes far longer than anyone waits for.
const ORDER: usize = 8;

impl Primitive for DetDerivative {
    const NAME: &'static str = "det_derivative";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, x.len().max(1), FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        expect_same(Self::NAME, x)?;
        if x.len() > ORDER + 1 {
            let most = format_args!("at most {ORDER}");
            return Err(Error::argument(Self::NAME, "number of directions", x.len() - 1, most));
        }
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let along = t[0].as_ref().map(|da| apply1(self, &x.iter().chain([da]).collect::<Vec<_>>()));
        let terms = (1..x.len()).filter_map(|i| t[i].as_ref().map(|d| with_direction(x, i, d)));
        smallvec![along.into_iter().chain(terms).reduce(|a, b| a + b)]
    }
    // The form (E_0, E_i) is symmetric and bilinear, so the adjoint is the conjugate of the map of a
    // conjugate.
    fn transpose(&self, ct: &[Tangent], x: &[Arg]) -> Outs<Tangent> {
        let ct = ct[0].as_ref().expect("rules with one output are called with its cotangent").conj();
        let i = (1..x.len()).find(|&i| x[i].is_linear()).expect("only directions are linear");
        let known: Vec<Var> =
            x.iter().enumerate().map(|(j, x)| if i == j { ct.clone() } else { x.known() }).collect();
        let mut pulled: Outs<Tangent> = smallvec![None; x.len()];
        pulled[i] = Some(with_direction(&known, i, &ct).conj());
        pulled
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => derive::<T>(cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn with_direction(x: &[Var], i: usize, e: &Var) -> Var {
    let x: Vec<&Var> = x.iter().enumerate().map(|(j, x)| if i == j { e } else { x }).collect();
    apply1(&DetDerivative, &x)
}

fn derive<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let (n, directions) = (y[0].shape[0], x.len() - 1);
    let count = count(&y[0].shape, 2, y);
    expect_positions(DetDerivative::NAME, count, [("rows", n)])?;
    let views: Vec<_> = x.iter_mut().map(|x| x.read()).collect();
    let read = views.iter().map(Matrices::<T>::new).collect::<Result<Vec<_>>>()?;
    let g = Results::<T>::new(&y[0].shape, 2)?;
    let orders = orders(directions + 1);
    let terms = n.saturating_pow(directions as u32 + 1).saturating_mul(orders.len());
    let each = work([3, n, n, n]).saturating_mul(directions + 1).saturating_add(terms);
    for_each(cpu, count, each, |b, par| {
        let of: SmallVec<[_; 4]> = read.iter().map(|m| m.at(b)).collect();
        // SAFETY: matrices b of the operands are readable, all n x n, by the shape rule; array b of the
        // output is new memory of n n elements.
        unsafe {
            for &a in &of {
                expect_finite((n, n), a)?;
            }
            gradient(n, &of, &orders, g.at(b), par)?;
        }
        Ok(())
    })
    .map_err(|e| e.error(DetDerivative::NAME, &y[0].shape))?;
    // SAFETY: every gradient was written.
    Ok(smallvec![unsafe { g.finish() }])
}

/// The permutations of `0..n`, and whether they are odd.
fn orders(n: usize) -> Vec<(SmallVec<[usize; 4]>, bool)> {
    let mut all = vec![(SmallVec::new(), false)];
    for k in 0..n {
        let longer = |(p, odd): &(SmallVec<[usize; 4]>, bool)| {
            let (p, odd) = (p.clone(), *odd);
            (0..=k).map(move |at| {
                let mut p = p.clone();
                p.insert(at, k);
                (p, odd ^ ((k - at) % 2 == 1))
            })
        };
        all = all.iter().flat_map(longer).collect();
    }
    all
}

/// The gradient G for the matrix `x[0]` and the directions after it.
///
/// # Safety
/// The matrices have n n readable elements, `g` room for as many; n fits an i32.
unsafe fn gradient<T: Element>(
    n: usize,
    x: &[Strided<*const T>],
    orders: &[(SmallVec<[usize; 4]>, bool)],
    g: *mut T,
    par: Par,
) -> Result<(), DenseError> {
    type Buffer<T> = SmallVec<[T; 64]>;
    let zeros = || filled([n, n], <T as Field>::ZERO);
    let mut packed = zeros()?;
    let (mut rows, mut columns) = (filled([n], 0i32)?, filled([n], 0i32)?);
    // SAFETY: the caller's promise; the buffers have the sizes that `lu_full_pivot` documents.
    unsafe { T::lu_full_pivot((n, n), x[0], packed.as_mut_ptr(), rows.as_mut_ptr(), columns.as_mut_ptr()) };
    let diagonal: SmallVec<[T; 8]> = (0..n).map(|i| packed[i + i * n]).collect();
    for (i, d) in diagonal.iter().enumerate().filter(|(_, d)| **d != <T as Field>::ZERO) {
        // Where the pivot is zero, so is the row.
        (i + 1..n).for_each(|j| packed[i + j * n] = packed[i + j * n].divide(*d));
    }
    let (along, across) = (n as isize, 1);
    let factor = |transposed: bool| {
        let (row, col) = if transposed { (along, across) } else { (across, along) };
        Strided { ptr: packed.as_ptr(), row, col }
    };
    // B <- op(L)^-1 B, or B <- B op(U)^-1, which is a system with the transpose.
    let solve = |b: &mut Buffer<T>, triangle: Triangle, transposed: bool, right: bool| {
        let (row, col) = if right { (along, across) } else { (across, along) };
        let b = Strided { ptr: b.as_mut_ptr(), row, col };
        // SAFETY: the triangle and B are n x n and do not overlap.
        unsafe { T::triangular_solve((n, n), (triangle, true), factor(transposed), false, b, par) }
    };
    let turned: SmallVec<[Buffer<T>; 2]> = x[1..]
        .iter()
        .map(|e| {
            let mut f = zeros()?;
            for (j, &q) in columns.iter().enumerate() {
                for (i, &p) in rows.iter().enumerate() {
                    // SAFETY: rows and columns are permutations of 0..n.
                    f[i + j * n] = unsafe { *e.ptr.offset(p as isize * e.row + q as isize * e.col) };
                }
            }
            solve(&mut f, Triangle::Lower, false, false);
            solve(&mut f, Triangle::Lower, true, true);
            Ok(f)
        })
        .collect::<Result<_, DenseError>>()?;
    let mut m = at_diagonal(&diagonal, &turned, orders)?;
    solve(&mut m, Triangle::Upper, true, false);
    solve(&mut m, Triangle::Upper, false, true);
    let places: (Buffer<i32>, Buffer<i32>) = (SmallVec::from_slice(&rows), SmallVec::from_slice(&columns));
    let sign = sign_of_permutation::<T>(&mut rows) * sign_of_permutation::<T>(&mut columns);
    for (j, &q) in places.1.iter().enumerate() {
        for (i, &p) in places.0.iter().enumerate() {
            // SAFETY: rows and columns are permutations of 0..n, so that every element is written.
            unsafe { g.add(p as usize + q as usize * n).write(sign * m[i + j * n]) };
        }
    }
    Ok(())
}

/// The next one of the sequences of numbers below `n`, of which the first counts fastest; false after the
/// last.
fn advance(digits: &mut [usize], n: usize) -> bool {
    for digit in digits {
        *digit += 1;
        if *digit < n {
            return true;
        }
        *digit = 0;
    }
    false
}

/// The gradient at a diagonal matrix for directions `f`. Slot 0 stands for the direction that it is a
/// gradient for, slot p for the direction p: in every term slot p has a row `r[p]` of its own, and the column
/// `r[o[p]]`, for an order o of the slots.
fn at_diagonal<T: Element>(
    d: &[T],
    f: &[SmallVec<[T; 64]>],
    orders: &[(SmallVec<[usize; 4]>, bool)],
) -> Result<SmallVec<[T; 64]>, DenseError> {
    let (n, slots) = (d.len(), f.len() + 1);
    let mut g = filled([n, n], <T as Field>::ZERO)?;
    if n == 0 {
        return Ok(g);
    }
    // The products of d[a..b].
    let mut products = filled([n + 1, n + 1], Product::ONE)?;
    for a in 0..n {
        for b in a..n {
            products[a + (b + 1) * (n + 1)] = products[a + b * (n + 1)].times(Product::of(d[b]));
        }
    }
    let mut r: SmallVec<[usize; 4]> = smallvec![0; slots];
    loop {
        add_terms(&mut g, n, &r, &products, f, orders);
        if !advance(&mut r, n) {
            return Ok(g);
        }
    }
}

/// The terms with the rows `r` of the slots, if these are distinct.
fn add_terms<T: Element>(
    g: &mut [T],
    n: usize,
    r: &[usize],
    products: &[Product<T>],
    f: &[SmallVec<[T; 64]>],
    orders: &[(SmallVec<[usize; 4]>, bool)],
) {
    let mut sorted = SmallVec::<[usize; 4]>::from_slice(r);
    sorted.sort_unstable();
    if sorted.windows(2).any(|w| w[0] == w[1]) {
        return;
    }
    let (mut rest, mut start) = (Product::ONE, 0);
    for &end in sorted.iter().chain([&n]) {
        rest = rest.times(products[start + end * (n + 1)]);
        start = end + 1;
    }
    if rest.parts().0 == <T as Field>::ZERO {
        return;
    }
    for (o, odd) in orders {
        // A product that overflows alone may not with the factors.
        let factors = (1..r.len()).map(|p| Product::of(f[p - 1][r[p] + r[o[p]] * n]));
        let value = factors.fold(rest, Product::times).number();
        let at = r[0] + r[o[0]] * n;
        g[at] = g[at] + if *odd { -value } else { value };
    }
}

/// The determinant of a square A. Its derivatives, up to the ninth, exist everywhere and are right at singular
/// matrices, too: they are sums of minors. Axes from 2 on are batch axes. That of a 0 x 0 matrix is 1.
///
/// # Errors
/// A matrix that is not square, or has an element that is NaN or infinite.
pub fn det(a: &Var) -> Var {
    called(Det::NAME, [a], || Ok(apply1(&Det, &[&floating(a)])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sequence_comes_once() {
        for (n, slots) in [(1, 1), (1, 3), (2, 3), (3, 2)] {
            let mut digits = vec![0; slots];
            let mut all = vec![digits.clone()];
            while advance(&mut digits, n) {
                all.push(digits.clone());
            }
            assert_eq!(digits, vec![0; slots]);
            all.sort();
            all.dedup();
            assert_eq!(all.len(), n.pow(slots as u32));
        }
    }

    #[test]
    fn there_may_be_more_sequences_than_numbers() {
        // 65536 rows and three directions: 2^64 sequences.
        let mut digits = [65535, 65535, 65535, 65534];
        assert!(advance(&mut digits, 65536) && digits == [0, 0, 0, 65535]);
        digits = [65535; 4];
        assert!(!advance(&mut digits, 65536));
    }
}
