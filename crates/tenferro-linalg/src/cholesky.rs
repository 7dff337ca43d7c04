//! Cholesky factorization, `A = L L^H`.
//!
//! Derivative: `dL = L phi(L^-1 dH L^-H)` with `dH = (dA + dA^H) / 2` and phi the lower triangle with half
//! the diagonal. The factor is that of the Hermitian part of A, as far as the derivative is concerned, and a
//! cotangent of A is Hermitian.

use crate::{
    batch::{Element, Matrices, Results, count, expect_square, for_each, unlisted, work},
    matrix::floating,
    named::called,
    system::{Kind, System, posed},
    triangular::{Triangular, triangle_solve},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_tensor::{Result, Tensor, dispatch_float};

/// The lower triangular L, with positive diagonal, of `A = L L^H` for a Hermitian positive definite A. Of A,
/// the lower triangle is read, and the real part alone of its diagonal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Cholesky;

impl Primitive for Cholesky {
    const NAME: &'static str = "cholesky";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|da| {
            let l = &y[0];
            let divided = |b: &Var| triangle_solve(l, b, Triangular::lower());
            let x = divided(&divided(&(da + &da.adjoint())).adjoint());
            // phi, and the 1/2 of the Hermitian part.
            l.matmul(&((x.tril(0) + x.tril(-1)) * 0.25))
        })]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, cpu, x, y, _| {
            let dtype = y[0].dtype;
            dispatch_float!(dtype, T => run::<T>(cpu, x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn run<T: Element>(cpu: &CpuBackend, x: &mut [Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let a = x[0].read();
    let n = a.shape()[0];
    let (read, l) = (Matrices::<T>::new(&a)?, Results::<T>::new(&y[0].shape, 2)?);
    for_each(cpu, count(a.shape(), 2, y), work([1, n, n, n.div_ceil(3)]), |b, par| {
        // SAFETY: matrix b of the operand is readable; array b of the output is new memory of n n elements.
        unsafe { T::cholesky(n, read.at(b), l.at(b), par) }
    })
    .map_err(|e| e.error(Cholesky::NAME, a.shape()))?;
    // SAFETY: every matrix was factored.
    Ok(smallvec![unsafe { l.finish() }])
}

/// The lower triangular L, with positive diagonal, of `A = L L^H` for a Hermitian positive definite A. Only
/// the lower triangle of A is read, but the derivative is that of the factor of `(A + A^H) / 2`, and a
/// cotangent of A is Hermitian. Axes from 2 on are batch axes.
///
/// # Errors
/// A matrix that is not square, or not positive definite (the order of the first leading minor that is not
/// positive is named), or has an element in its lower triangle that is NaN or infinite.
pub fn cholesky(a: &Var) -> Var {
    called(Cholesky::NAME, [a], || Ok(apply1(&Cholesky, &[&floating(a)])))
}

/// The solution of `A X = B`, or of another form of the system, from the factor of [`cholesky`], `A = L L^H`.
/// What is above the diagonal of L is not read. Vectors, batch axes and dtypes are as for
/// [`solve`](crate::ops::solve). NaN and infinities propagate; a quotient by an infinite pivot is 0.
///
/// # Errors
/// A factor that is not square, or has a zero on its diagonal; a number of rows, or columns from the right,
/// that does not fit.
pub fn cholesky_solve(l: &Var, b: &Var, system: System) -> Var {
    posed("cholesky_solve", &[(l, Kind::Matrix)], b, system.is_right(), |l, b| {
        let (l, lower) = (&l[0], Triangular::lower());
        // A is its own adjoint.
        system.on_left(b, |_, b| triangle_solve(l, &triangle_solve(l, b, lower), lower.adjoint()))
    })
}
