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
    batch::{Element, Matrices, Results, count, expect_square, for_each, unlisted, work},
    gaps::EigenvalueGaps,
    independent::IndependentVectors,
    inverse::inv,
    matrix::{diagonal, floating, scale_columns},
    named::{Named, called, outputs},
    phase,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, filled};
use tenferro_tensor::{Result, Tensor, dispatch_float};

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
        let inverse = apply1(&IndependentVectors { op: Self::NAME }, &[&Named::of(inv(v), Self::NAME)]);
        let g = inverse.matmul(&da.convert(v.dtype()).matmul(v));
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
    decomposed(Eig::NAME, a)
}

/// The eigenvalues of [`eig`], complex and in no order. Their first derivative, `dw = diag(V^-1 dA V)`, needs
/// no gaps between them, but independent vectors, as that of `eig` does.
///
/// The second one does: inside a multiplet what couples its members counts as 0, which is wrong even for
/// symmetric functions such as the sum of `f(w)`. There, differentiate a trace, such as that of a power or of
/// [`matrix_exp`](crate::ops::matrix_exp).
pub fn eigvals(a: &Var) -> Var {
    decomposed("eigvals", a).0
}

fn decomposed(op: &'static str, a: &Var) -> (Var, Var) {
    called(op, [a], || Ok(outputs(&Eig, &[&floating(a)]).into()))
}
