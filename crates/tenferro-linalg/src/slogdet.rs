//! Sign and logarithm of a determinant, `det A = sign exp(log)`.
//!
//! Derivative: with `s = tr(A^-1 dA)`, `dlog = Re s` and `dsign = i sign Im s`, which a real matrix has none
//! of.

use crate::{
    batch::{Element, Matrices, Results, count, expect_positions, expect_square, for_each, unlisted, work},
    det::determinant,
    inverse::inv,
    matrix::floating,
    named::{called, outputs},
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real};
use tenferro_tensor::{Result, Scalar, Tensor, dispatch_float};

/// The sign of the determinant of square matrices, `det / |det|`, and the logarithm of its modulus, which is
/// real. For a singular matrix they are 0 and -infinity.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SlogDet;

impl Primitive for SlogDet {
    const NAME: &'static str = "slogdet";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_square(Self::NAME, x, 0)?;
        let of = |dtype| Aval::new(dtype, x[0].shape[2..].iter().cloned());
        Ok(smallvec![of(x[0].dtype), of(x[0].dtype.real())])
    }
    fn jvp(&self, x: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        let Some(da) = &t[0] else { return smallvec![None, None] };
        let s = (&inv(&x[0]).matrix_transpose() * da).reduce_sum(Some(&[0, 1]));
        let turn = y[0].dtype().is_complex().then(|| &y[0] * &((&s - &s.conj()) * 0.5));
        smallvec![turn, Some(s.real())]
    }
    fn saves(&self) -> Saves {
        Saves::ALL
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
    expect_positions(SlogDet::NAME, count, [("rows", n)])?;
    let read = Matrices::<T>::new(&a)?;
    let sign = Results::<T>::new(&y[0].shape, 0)?;
    let log = Results::<<T as Field>::Real>::new(&y[1].shape, 0)?;
    for_each(cpu, count, work([1, n, n, n]), |b, par| {
        // SAFETY: matrix b of the operand is readable; the outputs have a number for it.
        unsafe {
            let d = determinant(n, read.at(b), par)?;
            let (value, exponent) = d.parts();
            let modulus = value.abs().to_c64().re.ln() + exponent as f64 * std::f64::consts::LN_2;
            sign.at(b).write(d.sign());
            log.at(b).write(<T as Field>::Real::of(modulus));
        }
        Ok(())
    })
    .map_err(|e| e.error(SlogDet::NAME, a.shape()))?;
    // SAFETY: all numbers were written.
    Ok(unsafe { smallvec![sign.finish(), log.finish()] })
}

/// `(sign, log)` with `det A = sign exp(log)` for a square A: the sign is 1 or -1, a phase if A is complex,
/// and the logarithm is real. For a singular matrix they are 0 and -infinity, and the derivative is an error.
/// Axes from 2 on are batch axes.
///
/// # Errors
/// A matrix that is not square, or has an element that is NaN or infinite.
pub fn slogdet(a: &Var) -> (Var, Var) {
    called(SlogDet::NAME, [a], || Ok(outputs(&SlogDet, &[&floating(a)]).into()))
}
