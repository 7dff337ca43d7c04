//! Eigenvalues and eigenvectors of a Hermitian matrix, `A = V diag(w) V^H`.
//!
//! Derivative: with `E = V^H dA V`, of which the Hermitian part H counts,
//!
//! ```text
//! dw      = diag(H)
//! V^H dV  = F o H        F_ij = 1 / (w_j - w_i), 0 on the diagonal and inside a multiplet
//! ```
//!
//! but for the phases, which are those that [`phase`](crate::phase) chooses.
//!
//! Inside a multiplet the vectors are arbitrary up to a rotation, and 0 makes the first derivative of a loss
//! that does not see it, even when the multiplet splits, right and finite; it is not that of `V f(w) V^H`,
//! nor are second derivatives right there: see [`svd`](crate::ops::svd), and
//! [`EigenvalueGaps`](crate::EigenvalueGaps) for where a multiplet begins.
//!
//! The matrix is that of the lower triangle; the derivative is that of a function of a Hermitian matrix: a
//! tangent counts by its Hermitian part, and a cotangent is Hermitian. The sum of both triangles of a
//! cotangent is what a function of one triangle would get.

use crate::{
    batch::{Element, Matrices, Results, count, expect_square, for_each, unlisted, vector_of_each, work},
    checked::checked,
    cholesky::cholesky,
    gaps::EigenvalueGaps,
    hermitian::{hermitian, hermitian_part},
    matrix::{checked_square, diagonal, floating, scale_columns},
    named::{Named, called, outputs},
    phase,
    system::{Kind, aligned},
    triangular::{Triangular, triangle_solve},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::Field;
use tenferro_tensor::{Result, Tensor, dispatch_float};

/// `A = V diag(w) V^H` of the Hermitian matrix that has the lower triangle of an `n x n` matrix and the real
/// parts of its diagonal. Outputs: w, of length n, real and ascending; V, `n x n` and unitary, with the
/// phases of [`PhaseWeights`](crate::PhaseWeights).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Eigh;

impl Primitive for Eigh {
    const NAME: &'static str = "eigh";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        let w = x[0].shape[1..].iter().cloned();
        Ok(smallvec![Aval::new(x[0].dtype.real(), w), x[0].clone()])
    }
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None, None] };
        let (w, v) = (&y[0], &y[1]);
        let e = v.adjoint().matmul(&da.matmul(v));
        let gaps = apply1(&EigenvalueGaps, &[w, v]);
        let mut dv = v.matmul(&(&hermitian_part(&e) * &gaps));
        if v.dtype().is_complex() {
            dv = &dv - &scale_columns(v, &phase::turn(v, &dv));
        }
        smallvec![Some(diagonal(&e).real()), Some(dv)]
    }
    // A loss of the eigenvalues alone needs no gaps.
    fn vjp(&self, ct: &[Tangent], _: &[Var], y: &[Var], _: &[bool]) -> Option<Outs<Tangent>> {
        let (Some(dw), None) = (&ct[0], &ct[1]) else { return None };
        Some(smallvec![Some(scale_columns(&y[1], dw).matmul(&y[1].adjoint()))])
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            let dtype = y[1].dtype;
            dispatch_float!(dtype, T => run::<T>(cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

/// The eigenvalues of [`Eigh`] without vectors, which the derivative computes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct HermitianEigenvalues;

impl HermitianEigenvalues {
    /// w and V, with errors of this operation.
    fn decomposed(a: &Var) -> [Var; 2] {
        outputs::<2>(&Eigh, &[a]).map(|y| y.of(Self::NAME))
    }
}

impl Primitive for HermitianEigenvalues {
    const NAME: &'static str = "eigvalsh";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        Ok(smallvec![Aval::new(x[0].dtype.real(), x[0].shape[1..].iter().cloned())])
    }
    fn decompose(&self, x: &[Var]) -> Option<Outs<Var>> {
        let [w, _] = Self::decomposed(&x[0]);
        Some(smallvec![w])
    }
    fn jvp(&self, x: &[Var], _: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|da| {
            let [_, v] = Self::decomposed(&x[0]);
            diagonal(&v.adjoint().matmul(&da.matmul(&v))).real()
        })]
    }
    fn vjp(&self, ct: &[Tangent], x: &[Var], _: &[Var], _: &[bool]) -> Option<Outs<Tangent>> {
        let dw = ct[0].as_ref()?;
        let [_, v] = Self::decomposed(&x[0]);
        Some(smallvec![Some(scale_columns(&v, dw).matmul(&v.adjoint()))])
    }
    fn saves(&self) -> Saves {
        Saves::INPUTS
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
    let work = work([2, n, n, n]);
    // SAFETY: `eigvalsh` writes the n values of an n x n matrix.
    unsafe {
        vector_of_each(HermitianEigenvalues::NAME, cpu, &x[0], y, work, |a, w, par| T::eigvalsh(n, a, w, par))
    }
}

fn run<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let n = a.shape()[0];
    let read = Matrices::<T>::new(&a)?;
    let w = Results::<<T as Field>::Real>::new(&y[0].shape, 1)?;
    let v = Results::<T>::new(&y[1].shape, 2)?;
    for_each(cpu, count(a.shape(), 2, y), work([9, n, n, n]), |b, par| {
        // SAFETY: matrix b of the operand is readable; the arrays b of the outputs are new memory of the sizes
        // that the shape rule gave, written by this call alone.
        unsafe {
            T::eigh(n, read.at(b), w.at(b), v.at(b), par)?;
            phase::fix_columns(n, v.at(b));
        }
        Ok(())
    })
    .map_err(|e| e.error(Eigh::NAME, a.shape()))?;
    // SAFETY: every matrix succeeded, and then its factors are written in full.
    Ok(unsafe { smallvec![w.finish(), v.finish()] })
}

/// `(w, V)` with `A = V diag(w) V^H`: w real and ascending, V unitary. Axes from 2 on are batch axes.
///
/// A is Hermitian; its lower triangle is read, and the real parts of the diagonal. The derivative is that of
/// a function of a Hermitian matrix: tangents count by their Hermitian parts, and cotangents are Hermitian.
///
/// Phases, of real vectors signs, are fixed: in each column of V the component of the largest modulus is real
/// and positive, the first one if there are several within 1e-3 of it. So the vectors are functions of the
/// matrix, and every loss has a derivative, where the eigenvalues are distinct and the component is not about
/// to change for another one. The vectors themselves are not differentiable at multiplets and where the
/// component changes, the ties of this rule.
///
/// Eigenvalues are distinct if they differ by more than sqrt(eps) of the mean of their moduli, 3.5e-4 in
/// single and 1.5e-8 in double precision, and by more than `10 n eps` of the largest modulus; or if their
/// vectors have one component each, as those of a diagonal matrix. All others are members of a multiplet,
/// even where rounding tells them apart, and a loss that tells them apart gets a derivative without what
/// couples them. Inside a multiplet the basis is arbitrary, and what couples its vectors counts as 0. First
/// derivatives are right there for losses that do not depend on the basis even when the values of the
/// multiplet split, such as those of projectors on it and of sums over it. The first derivative of `V
/// diag(f(w)) V^H` is not, because the limit of `(f(w_i) - f(w_j)) / (w_i - w_j)` is lost, nor is any second
/// derivative: use [`spectral`](crate::ops::spectral) (for odd f; for the moduli of eigenvalues, any f),
/// [`matrix_exp`](crate::ops::matrix_exp), [`inv`](crate::ops::inv) or products.
///
/// # Errors
/// Matrices that are not square; an element of the triangle that is NaN or infinite.
pub fn eigh(a: &Var) -> (Var, Var) {
    called(Eigh::NAME, [a], || Ok(outputs(&Eigh, &[&floating(a)]).into()))
}

/// The eigenvalues of [`eigh`], ascending, to rounding errors of a modest multiple of `n eps |A|`. No vectors are
/// computed, which most of the time of `eigh` goes into: about `4/3 n^3` operations are left. A derivative
/// computes them, by `eigh`, beside the values.
///
/// The first derivative needs no gaps between them: `dw = Re diag(V^H dA V)`.
///
/// The second one does: inside a multiplet what couples its members counts as 0, which is wrong even for
/// symmetric functions such as the sum of `f(w)`. There, differentiate a trace, such as that of a power or of
/// [`matrix_exp`](crate::ops::matrix_exp).
pub fn eigvalsh(a: &Var) -> Var {
    called(HermitianEigenvalues::NAME, [a], || Ok(apply1(&HermitianEigenvalues, &[&floating(a)])))
}

/// `(w, V)` with `A V = B V diag(w)` and `V^H B V = 1` for a positive definite B: w real and ascending. With
/// `B = L L^H`, these are the eigenvalues of `L^-1 A L^-H`, and `L^-H` times its vectors, which have the
/// phases of [`eigh`]; those of V itself follow from them. Axes from 2 on are batch axes, aligned there: a
/// missing one, or one of extent 1, is repeated. Dtypes are promoted.
///
/// Of both, the lower triangle is read, and the real part of the diagonal; tangents count by their Hermitian
/// parts, and cotangents are Hermitian. At multiplets, derivatives have the limits of those of [`eigh`].
///
/// # Errors
/// Those of [`eigh`] and [`cholesky`](crate::ops::cholesky); matrices of different orders.
pub fn eigh_generalized(a: &Var, b: &Var) -> (Var, Var) {
    const NAME: &str = "eigh_generalized";
    called(NAME, [a, b], || {
        let x = aligned(NAME, &[(a, Kind::Matrix), (b, Kind::Matrix)])?;
        let [a, b] = [checked_square(NAME, &x[0])?, checked_square(NAME, &x[1])?];
        let l = cholesky(&checked(NAME, "order of B", &b, [&b.extent(0), &a.extent(0)])?);
        let divided = |x: &Var| triangle_solve(&l, x, Triangular::lower());
        let (w, v) = eigh(&divided(&divided(&hermitian(&a)).adjoint()));
        Ok((w, triangle_solve(&l, &v, Triangular::lower().adjoint())))
    })
}
