//! Reciprocals of the gaps between eigenvalues and between singular values, by one rule, with 0 in place of
//! what cannot be used.
//!
//! A gap is of no use if it is less than sqrt(eps) relative to the mean modulus of the two, or less than 10 n
//! eps of the largest modulus, which is what the values may be wrong by, for a matrix whose larger extent is
//! n. Values whose vectors have one component each belong to 1 x 1 blocks of a matrix: they have no error,
//! and any gap between them counts.

use crate::batch::{Element, Matrices, Results, count, expect_matrix, expect_square, expect_stack, unlisted};
use crate::matrix::{over_columns, over_rows};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real, Strided};
use tenferro_tensor::{Result, Tensor, dispatch_float};

/// The rule of this module for one matrix.
struct Rule<R> {
    relative: R,
    error: R,
}

impl<R: Real> Rule<R> {
    fn new(n: usize, sizes: impl Iterator<Item = R>) -> Self {
        let largest = sizes.fold(R::ZERO, |m, x| if x > m { x } else { m });
        let error = largest * R::of(10.0 * n as f64) * R::EPS;
        Rule { relative: R::EPS.sqrt() * R::of(0.5), error }
    }

    /// 1 / gap, or 0, for two values whose moduli have the sum `sizes`, and that have no error if `exact`.
    fn reciprocal<T: Field<Real = R>>(&self, gap: T, sizes: R, exact: bool) -> T {
        let wide = gap.abs();
        let sound = wide > sizes * self.relative && wide > self.error;
        if sound || exact { finite_reciprocal(gap) } else { T::ZERO }
    }
}

/// 1 / z, and 0 where that may be infinite: below the normal range.
fn finite_reciprocal<T: Field>(z: T) -> T {
    if z.abs() >= T::Real::TINY { T::ONE.divide(z) } else { T::ZERO }
}

/// Whether column j of a matrix with `rows` rows has one component.
///
/// # Safety
/// The column is readable.
unsafe fn single<T: Field>(a: Strided<*const T>, rows: usize, j: usize) -> bool {
    // SAFETY: i is below the number of rows.
    let at = |i: usize| unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
    (0..rows).filter(|&i| at(i) != T::ZERO).count() == 1
}

/// Three tables of singular values s: `1 / (s_j - s_i)` by the rule of the module, that is 0 on the diagonal
/// and inside of a multiplet; `1 / (s_j + s_i)` and `1 / s_i`, which are 0 where they would be infinite.
/// Inputs: s; U and Vh, of which the larger number of columns or rows is the number of singular values: those
/// that one of them has no vectors for are zeros beyond the smaller extent of the matrix.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SingularValueGaps;

impl Primitive for SingularValueGaps {
    const NAME: &'static str = "singular_value_gaps";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 3, FLOATS)?;
        let [m, left] = expect_matrix(Self::NAME, x, 1)?;
        let [right, n] = expect_matrix(Self::NAME, x, 2)?;
        let (dtype, batch, k) = (x[1].dtype, &x[1].shape[2..], D::max(left, right));
        expect_stack(Self::NAME, "singular values", x[0], dtype.real(), &[&k], batch)?;
        expect_stack(Self::NAME, "U", x[1], dtype, &[m, left], batch)?;
        expect_stack(Self::NAME, "Vh", x[2], dtype, &[right, n], batch)?;
        let table = Aval::new(x[0].dtype, [&k, &k].into_iter().chain(batch).cloned());
        Ok(smallvec![table.clone(), table, x[0].clone()])
    }
    // The derivative of 1/z is -1/z^2 dz, and where 1/z was replaced by 0, so is its derivative.
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(ds) = &t[0] else { return smallvec![None, None, None] };
        let (i, j) = (over_rows(ds), over_columns(ds));
        let minus_square = |z: &Var| -&(z * z);
        smallvec![
            Some(&minus_square(&y[0]) * &(&j - &i)),
            Some(&minus_square(&y[1]) * &(&j + &i)),
            Some(&minus_square(&y[2]) * ds),
        ]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, _, x, y, _| {
            let dtype = x[1].dtype();
            dispatch_float!(dtype, T => of_singular_values::<T>(x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn of_singular_values<T: Element>(x: &[Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let [s, u, vh] = [0, 1, 2].map(|i| x[i].read());
    let ([m, left], [right, n]) = ([u.shape()[0], u.shape()[1]], [vh.shape()[0], vh.shape()[1]]);
    let k = y[2].shape[0];
    let values = Matrices::<<T as Field>::Real>::vectors(&s)?;
    let (of_u, of_v) = (Matrices::<T>::new(&u)?, Matrices::<T>::new(&vh)?);
    let tables = [Results::<<T as Field>::Real>::new(&y[0].shape, 2)?, Results::new(&y[1].shape, 2)?];
    let inverses = Results::<<T as Field>::Real>::new(&y[2].shape, 1)?;
    let mut exact = Vec::new();
    for b in 0..count(s.shape(), 1, y) {
        let (s, u, v) = (values.at(b), of_u.at(b), of_v.at(b));
        let ([gaps, sums], inverses) = ([tables[0].at(b), tables[1].at(b)], inverses.at(b));
        let rows = Strided { row: v.col, col: v.row, ..v };
        // SAFETY: i and j are below k, the length of vector b; the tables have k rows and k columns; vectors
        // are only looked at where U and Vh have them.
        unsafe {
            let at = |i: usize| *s.ptr.offset(i as isize * s.row);
            let rule = Rule::new(m.max(n), (0..k).map(at));
            exact.clear();
            let alone = |j: usize| (j >= left || single(u, m, j)) && (j >= right || single(rows, n, j));
            exact.extend((0..k).map(alone));
            for j in 0..k {
                for i in 0..k {
                    let sum = at(j) + at(i);
                    let both = exact[i] && exact[j];
                    *gaps.add(i + j * k) = rule.reciprocal(at(j) - at(i), sum, both);
                    *sums.add(i + j * k) = finite_reciprocal(sum);
                }
                *inverses.add(j) = finite_reciprocal(at(j));
            }
        }
    }
    let [gaps, sums] = tables;
    // SAFETY: the loops have written every element.
    Ok(unsafe { smallvec![gaps.finish(), sums.finish(), inverses.finish()] })
}

/// The table `1 / (w_j - w_i)` of eigenvalues w with vectors V, the second input, by the rule of
/// [`SingularValueGaps`]: 0 on the diagonal; where the gap is less than sqrt(eps) relative to the mean
/// modulus of the two, or less than 10 n eps of the largest modulus, which is what the eigenvalues may be
/// wrong by.
///
/// Two vectors with one component each belong to 1 x 1 blocks of a matrix. Such eigenvalues have no error, and
/// any gap between them counts.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EigenvalueGaps;

impl Primitive for EigenvalueGaps {
    const NAME: &'static str = "eigenvalue_gaps";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, FLOATS)?;
        expect_square(Self::NAME, x, 1)?;
        let (n, batch) = (&x[1].shape[0], &x[1].shape[2..]);
        // Real eigenvalues may have complex vectors.
        let dtype = if x[0].dtype.is_float() { x[1].dtype.real() } else { x[1].dtype };
        expect_stack(Self::NAME, "eigenvalues", x[0], dtype, &[n], batch)?;
        Ok(smallvec![Aval::new(x[0].dtype, x[1].shape.iter().cloned())])
    }
    // The derivative of 1/z is -1/z^2 dz, and where 1/z was replaced by 0, so is its derivative.
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let d = t[0].as_ref().map(|dw| &-&(&y[0] * &y[0]) * &(&over_columns(dw) - &over_rows(dw)));
        smallvec![d]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, _, x, y, _| {
            let dtype = x[1].dtype();
            dispatch_float!(dtype, V => if x[0].dtype() == dtype {
                tabulate::<V, V, _>(x, y)
            } else {
                tabulate::<<V as Field>::Real, V, _>(x, y)
            }, else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn tabulate<T: Element + Field<Real = R>, V: Element, R: Real>(
    x: &[Operand<'_>],
    y: &[Aval],
) -> Result<Outs<Tensor>> {
    let (w, v) = (x[0].read(), x[1].read());
    let n = w.shape()[0];
    let (values, vectors) = (Matrices::<T>::vectors(&w)?, Matrices::<V>::new(&v)?);
    let table = Results::<T>::new(&y[0].shape, 2)?;
    for b in 0..count(v.shape(), 2, y) {
        let (w, v, table) = (values.at(b), vectors.at(b), table.at(b));
        // SAFETY: i is below n, the length of vector b.
        let w: Vec<T> = (0..n).map(|i| unsafe { *w.ptr.offset(i as isize * w.row) }).collect();
        // SAFETY: j is below n, the order of matrix b.
        let exact: Vec<bool> = (0..n).map(|j| unsafe { single(v, n, j) }).collect();
        let size: Vec<R> = w.iter().map(|w| w.abs()).collect();
        let rule = Rule::new(n, size.iter().copied());
        for j in 0..n {
            for i in 0..n {
                let inverse = rule.reciprocal(w[j] - w[i], size[i] + size[j], exact[i] && exact[j]);
                // SAFETY: i and j are below n; the table has n rows and n columns.
                unsafe { *table.add(i + j * n) = inverse };
            }
        }
    }
    // SAFETY: the loops have written every element.
    Ok(smallvec![unsafe { table.finish() }])
}
