//! Eigenvalues and eigenvectors of a square matrix, `A V = V diag(w)`.
//!
//! Derivative: with `G = V^-1 dA V` and `X = V (F o G)`, where `F_ij = 1 / (w_j - w_i)` and 0 where that is
//! of no use (see [`EigenvalueGaps`](crate::EigenvalueGaps)),
//!
//! ```text
//! dw = diag(G)        dv_j = x_j - (Re(v_j^H x_j) + i Im(x_kj) / v_kj) v_j
//! ```
//!
//! where k is the row of the component of `v_j` that is kept real (C. Boeddeker, P. Hanebrink, L. Drude, J.
//! Heymann and R. Haeb-Umbach, arXiv:1701.00392, with the phase fixed too). A matrix without a basis of
//! eigenvectors, a defective one, has no derivative: V has no inverse, or one that is only rounding errors,
//! which [`IndependentVectors`] tells.

use crate::{
    batch::{
        Element, Matrices, Results, count, expect_square, failed, for_each, unlisted, vector_of_each, work,
    },
    gaps::EigenvalueGaps,
    independent::IndependentVectors,
    inverse::inv,
    matrix::{diagonal, floating, scale_columns},
    named::{Named, called, outputs},
    permute::permuted,
    phase,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect, expect_same},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Strided, allocated, filled};
use tenferro_tensor::{DType, Error, Result, Tensor, dispatch_float};

/// `A V = V diag(w)` of an `n x n` matrix. Outputs: w, of length n, complex, in no order; V, `n x n` and
/// complex, with columns of length 1 and the phases of [`PhaseWeights`](crate::PhaseWeights).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Eig;

impl Primitive for Eig {
    const NAME: &'static str = "eig";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        let dtype = x[0].dtype.complex();
        let w = x[0].shape[1..].iter().cloned();
        Ok(smallvec![Aval::new(dtype, w), Aval::new(dtype, x[0].shape.iter().cloned())])
    }
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None, None] };
        let (w, v) = (&y[0], &y[1]);
        let g = inverse_of(v, Self::NAME).matmul(&da.convert(v.dtype()).matmul(v));
        let x = v.matmul(&(&g * &apply1(&EigenvalueGaps, &[w, v])));
        let along = (&v.conj() * &x).real().reduce_sum(Some(&[0]));
        let gauge = &along.complex() + &phase::turn(v, &x);
        smallvec![Some(diagonal(&g)), Some(&x - &scale_columns(v, &gauge))]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            let dtype = x[0].dtype();
            dispatch_float!(dtype, T => run::<T>(cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

/// The eigenvalues of [`Eig`] without vectors, which the derivative computes; they may come in another order.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Eigenvalues;

impl Primitive for Eigenvalues {
    const NAME: &'static str = "eigvals";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        Ok(smallvec![Aval::new(x[0].dtype.complex(), x[0].shape[1..].iter().cloned())])
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None] };
        let [w, v] = outputs::<2>(&Eig, &[&x[0]]).map(|y| y.of(Self::NAME));
        let v = permuted(&v, &apply1(&EigenvalueOrder, &[&y[0], &w]), 1);
        smallvec![Some(diagonal(&inverse_of(&v, Self::NAME).matmul(&da.convert(v.dtype()).matmul(&v))))]
    }
    fn saves(&self) -> Saves {
        Saves::ALL
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            let dtype = x[0].dtype();
            dispatch_float!(dtype, T => run_values::<T>(cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn run_values<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let n = x[0].shape()[0];
    let work = work([10, n, n, n]);
    // SAFETY: `eigvals` writes the n values of an n x n matrix.
    unsafe { vector_of_each(Eigenvalues::NAME, cpu, &x[0], y, work, |a, w, par| T::eigvals(n, a, w, par)) }
}

/// Which eigenvalue is which of the same matrix, computed in two ways: the permutation p, i64, that makes `w[p]`
/// as near to y as rounding errors let it. Inputs: y and w. It has no derivative.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EigenvalueOrder;

impl Primitive for EigenvalueOrder {
    const NAME: &'static str = "eigenvalue_order";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 2, FLOATS)?;
        expect_same(Self::NAME, x)?;
        if x[0].shape.is_empty() {
            return Err(Error::rank(Self::NAME, "rank of the eigenvalues", 0, "at least 1"));
        }
        Ok(smallvec![Aval::new(DType::I64, x[0].shape.iter().cloned())])
    }
    // Its results are hints.
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        smallvec![None]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, _, x, y, _| {
            let dtype = x[0].dtype();
            dispatch_float!(dtype, T => pair::<T>(x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

/// Each y takes the nearest w that is left. Values that are apart find their own; which of those that coincide to
/// rounding is which has no answer.
fn pair<T: Element>(x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let (values, others) = (x[0].read(), x[1].read());
    let n = values.shape()[0];
    let (to, from) = (Matrices::<T>::vectors(&values)?, Matrices::<T>::vectors(&others)?);
    let orders = Results::<i64>::new(&y[0].shape, 1)?;
    let failed = |why| failed(EigenvalueOrder::NAME, why);
    for b in 0..count(values.shape(), 1, y) {
        let (to, from) = (to.at(b), from.at(b));
        // SAFETY: i is below the length of vector b of both.
        let at = |x: Strided<*const T>, i: usize| unsafe { *x.ptr.offset(i as isize * x.row) };
        let mut left = allocated([n], 0).map_err(failed)?;
        left.iter_mut().zip(0..).for_each(|(l, i)| *l = i);
        for k in 0..n {
            let distance = |i: usize| (at(to, k) - at(from, i)).abs();
            let nearest =
                (0..left.len()).reduce(|p, q| if distance(left[q]) < distance(left[p]) { q } else { p });
            let place = left.remove(nearest.unwrap_or(0));
            // SAFETY: the output has n numbers for each vector.
            unsafe { orders.at(b).add(k).write(place as i64) };
        }
    }
    // SAFETY: the loops have written every element.
    Ok(smallvec![unsafe { orders.finish() }])
}

/// The inverse of a matrix of eigenvectors, for the derivative of `op`.
fn inverse_of(v: &Var, op: &'static str) -> Var {
    apply1(&IndependentVectors { op }, &[&inv(v).of(op)])
}

fn run<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let n = a.shape()[0];
    let read = Matrices::<T>::new(&a)?;
    let w = Results::<<T as Field>::Complex>::new(&y[0].shape, 1)?;
    let v = Results::<<T as Field>::Complex>::new(&y[1].shape, 2)?;
    for_each(cpu, count(a.shape(), 2, y), work([25, n, n, n]), |b, par| {
        // SAFETY: matrix b of the operand is readable; the arrays b of the outputs are new memory of the sizes
        // that the shape rule gave, written by this call alone.
        unsafe {
            // It chooses phases, too, but by the largest component even of nearly equal ones.
            let mut rows = filled([n], 0)?;
            T::eig(n, read.at(b), w.at(b), v.at(b), rows.as_mut_ptr(), par)?;
            phase::fix_columns(n, v.at(b));
        }
        Ok(())
    })
    .map_err(|e| e.error(Eig::NAME, a.shape()))?;
    // SAFETY: every matrix succeeded, and then its factors are written in full.
    Ok(unsafe { smallvec![w.finish(), v.finish()] })
}

/// `(w, V)` with `A V = V diag(w)`, both complex: the columns of V have length 1, and their component of the
/// largest modulus (the first one of several within 1e-3 of it) is real and positive. The eigenvalues are in
/// no order; those of a real matrix that are not real come in pairs of conjugates, the one with positive
/// imaginary part first. Axes from 2 on are batch axes.
///
/// The derivative keeps lengths and phases. It needs a basis of eigenvectors and distinct eigenvalues; a
/// defective matrix has none. With an eigenvalue of condition c, the length of its row of `V^-1`,
/// derivatives have rounding errors of about c^2 eps; they are an error from `0.1 / sqrt(eps)` on.
/// Eigenvalues are distinct if they differ by more than sqrt(eps) of the mean of their moduli, 3.5e-4 in
/// single and 1.5e-8 in double precision, and by more than `10 n eps` of the largest modulus; or if their
/// vectors have one component each, as those of a diagonal matrix. All others are members of a multiplet,
/// even where rounding tells them apart, and what couples their vectors counts as 0: first derivatives are
/// right for losses that do not depend on the basis of their vectors even when the multiplet splits, such as
/// those of projectors on it and of sums over it. The first derivative of `V diag(f(w)) V^-1` is not, nor is
/// any second derivative: use [`matrix_exp`](crate::ops::matrix_exp), [`inv`](crate::ops::inv) or products.
///
/// # Errors
/// Matrices that are not square; an element that is NaN or infinite; iterations that do not converge. In the
/// derivative: vectors without an inverse, or dependent to rounding.
pub fn eig(a: &Var) -> (Var, Var) {
    called(Eig::NAME, [a], || Ok(outputs(&Eig, &[&floating(a)]).into()))
}

/// The eigenvalues of [`eig`], complex and in no order, which may be another one than that of `eig`; those of a
/// real matrix that are not real come in pairs of conjugates. They are those of a matrix that differs from A by a
/// modest multiple of `n eps |A|`. No vectors are computed: about `10 n^3` operations of the `25 n^3` of `eig` are
/// left. (A matrix with a row or column that vanishes beside its largest element is decomposed with vectors, which
/// tell whether its values are right.) A derivative computes them, by `eig`, beside the values.
///
/// The first derivative, `dw = diag(V^-1 dA V)`, needs
/// no gaps between them, but independent vectors, as that of `eig` does.
///
/// The second one does: inside a multiplet what couples its members counts as 0, which is wrong even for
/// symmetric functions such as the sum of `f(w)`. There, differentiate a trace, such as that of a power or of
/// [`matrix_exp`](crate::ops::matrix_exp).
pub fn eigvals(a: &Var) -> Var {
    called(Eigenvalues::NAME, [a], || Ok(apply1(&Eigenvalues, &[&floating(a)])))
}
