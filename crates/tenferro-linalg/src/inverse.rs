//! The inverse of a matrix. Derivative: `dY = -Y dA Y` with `Y = A^-1`.

use crate::{
    batch::{Element, Matrices, Results, count, expect_positions, expect_square, for_each, unlisted, work},
    lu::factor_in_range,
    matrix::floating,
    named::called,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real, Strided, filled};
use tenferro_tensor::{Result, Tensor, dispatch_float};

/// `A^-1`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Inverse;

impl Primitive for Inverse {
    const NAME: &'static str = "inv";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        Ok(smallvec![x[0].clone()])
    }
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|da| -&y[0].matmul(da).matmul(&y[0]))]
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
    let count = count(a.shape(), 2, y);
    expect_positions(Inverse::NAME, count, [("rows", n)])?;
    let (read, inverse) = (Matrices::<T>::new(&a)?, Results::<T>::new(&y[0].shape, 2)?);
    for_each(cpu, count, work([3, n, n, n]), |b, par| {
        let (mut packed, mut p) = (filled([n, n], <T as Field>::ZERO)?, filled([n], 0i32)?);
        let to = inverse.at(b);
        // SAFETY: matrix b of the operand is readable; array b of the output is new memory of n n elements.
        unsafe {
            let exponent = factor_in_range(n, read.at(b), &mut packed, &mut p, par)?;
            for i in 0..n * n {
                to.add(i).write(<T as Field>::ZERO);
            }
            for i in 0..n {
                to.add(i + i * n).write(<T as Field>::ONE);
            }
            let x = Strided { ptr: to, row: 1, col: n as isize };
            let factors = Strided { ptr: packed.as_ptr(), row: 1, col: n as isize };
            T::solve_lu((n, n), factors, p.as_ptr(), false, x, par)?;
            if exponent != 0 {
                for i in 0..n * n {
                    *to.add(i) = (*to.add(i)).scale(<T as Field>::Real::power(exponent));
                }
            }
            Ok(())
        }
    })
    .map_err(|e| e.error(Inverse::NAME, a.shape()))?;
    // SAFETY: every inverse was written.
    Ok(smallvec![unsafe { inverse.finish() }])
}

/// `A^-1` for a square A. Axes from 2 on are batch axes. To solve a system, [`solve`](crate::ops::solve) is
/// faster and more accurate.
///
/// # Errors
/// A matrix that is not square, or singular (elimination met a pivot that is exactly zero), or has an element
/// that is NaN or infinite.
pub fn inv(a: &Var) -> Var {
    called(Inverse::NAME, [a], || Ok(apply1(&Inverse, &[&floating(a)])))
}
