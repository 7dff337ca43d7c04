//! The phases of vectors, which a decomposition leaves open: each vector gets the one that makes a certain
//! component of it real and positive. For real vectors that is a sign.
//!
//! The component is one of the largest modulus; of those whose moduli are within 1e-3 of it, the first one:
//! many vectors have several that are equal but for rounding errors, and these must not decide.
//!
//! Derivative: of the tangent x of a vector v, with any phase, the part `i v Im(x_m) / v_m` is taken off,
//! where m is the row of the component, so that it stays real. Signs are locally constant, and real vectors
//! have nothing to take off.

use crate::batch::{Element, Matrices, Results, count, expect_matrix, unlisted};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real};
use tenferro_tensor::{C64, Result, Tensor, dispatch_float};

/// Of the largest squared modulus, what counts as large, too.
const TIE: f64 = 0.999 * 0.999;

/// Of each column v of a matrix, `1 / Re v_m` in row m, and zeros elsewhere, where m is that of the component
/// which phases are chosen by: the first one whose modulus is within 1e-3 of the largest. 0 where the
/// reciprocal may be infinite.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PhaseWeights;

impl Primitive for PhaseWeights {
    const NAME: &'static str = "phase_weights";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_matrix(Self::NAME, x, 0)?;
        Ok(smallvec![Aval::new(x[0].dtype.real(), x[0].shape.iter().cloned())])
    }
    // The derivative of 1/z is -1/z^2 dz; the row does not change.
    fn jvp(&self, _: &[Var], y: &[Var], t: &[Tangent]) -> Outs<Tangent> {
        smallvec![t[0].as_ref().map(|dv| &-&(&y[0] * &y[0]) * &dv.real())]
    }
    fn saves(&self) -> Saves {
        Saves::OUTPUTS
    }
    fn kernels(table: &mut dyn Kernels) {
        table.on::<CpuBackend, Self>(FLOATS, |_, _, x, y, _| {
            let dtype = x[0].dtype();
            dispatch_float!(dtype, T => tabulate::<T>(x, y), else Err(unlisted(Self::NAME, dtype)))
        });
    }
}

fn tabulate<T: Element>(x: &[Operand<'_>], y: &[Aval]) -> Result<Outs<Tensor>> {
    let v = x[0].read();
    let (m, n) = (v.shape()[0], v.shape()[1]);
    let (read, weights) = (Matrices::<T>::new(&v)?, Results::<<T as Field>::Real>::new(&y[0].shape, 2)?);
    let none = <<T as Field>::Real as Field>::ZERO;
    for b in 0..count(v.shape(), 2, y) {
        let (v, to) = (read.at(b), weights.at(b));
        for j in 0..n {
            let column = v.ptr.wrapping_offset(j as isize * v.col);
            // SAFETY: column j of matrix b, which is not empty, has m readable elements; the table is as large.
            unsafe {
                let held = fixed::<T>(m, column, v.row);
                for i in 0..m {
                    to.add(i + j * m).write(none);
                }
                let x = (*column.offset(held as isize * v.row)).re();
                if x.abs() >= Real::TINY {
                    to.add(held + j * m).write(<<T as Field>::Real as Field>::ONE / x);
                }
            }
        }
    }
    // SAFETY: the loops have written every element.
    Ok(smallvec![unsafe { weights.finish() }])
}

/// The row of the component that the phase of a vector is chosen by, see [`PhaseWeights`].
///
/// # Safety
/// It has n readable elements, each `step` after the last.
#[inline(always)]
unsafe fn row<T: Field>(n: usize, v: *const T, step: isize) -> usize {
    // SAFETY: i is below n.
    let size = |i: usize| unsafe { *v.offset(i as isize * step) }.abs2();
    let largest = (0..n).map(size).fold(T::Real::ZERO, |m, x| if x > m { x } else { m });
    let large = largest * T::Real::of(TIE);
    (0..n).find(|&i| size(i) >= large).unwrap_or(0)
}

/// The same of a vector that has its phase: the moduli have been rounded since, but the component is exactly real
/// and positive.
///
/// # Safety
/// As for [`row`].
#[inline(always)]
unsafe fn fixed<T: Field>(n: usize, v: *const T, step: isize) -> usize {
    // SAFETY: the caller's promise; i is below n.
    unsafe {
        let chosen = row(n, v, step);
        let at = |i: usize| *v.offset(i as isize * step);
        let least = at(chosen).abs() * T::Real::of(1.0 - 1e-5);
        let real = |i: &usize| at(*i).im() == T::Real::ZERO && at(*i).re() >= least;
        if at(chosen).im() == T::Real::ZERO { chosen } else { (0..n).find(real).unwrap_or(chosen) }
    }
}

/// Gives a vector its phase, and returns the factor for that.
///
/// # Safety
/// It has n elements, at least one, each `step` after the last, and is ours to write.
#[inline(always)]
unsafe fn fix<T: Field>(n: usize, v: *mut T, step: isize) -> T {
    // SAFETY: the caller's promise; the row is below n.
    unsafe {
        let held = v.offset(row(n, v.cast_const(), step) as isize * step);
        let x = *held;
        let zero = T::Real::ZERO;
        // Signs are exact.
        let factor = if x.im() != zero {
            x.conj().scale(T::Real::ONE / x.abs())
        } else if x.re() < zero {
            -T::ONE
        } else {
            return T::ONE;
        };
        multiply(n, v, step, factor);
        *held = T::real(x.abs());
        factor
    }
}

/// Multiplies a vector by a factor.
///
/// # Safety
/// It has n elements, each `step` after the last, and is ours to write.
#[inline(always)]
unsafe fn multiply<T: Field>(n: usize, v: *mut T, step: isize, factor: T) {
    for i in 0..n as isize {
        // SAFETY: i is below n.
        unsafe {
            let x = v.offset(i * step);
            // Of a real vector the factor is -1.
            *x = if T::COMPLEX { *x * factor } else { -*x };
        }
    }
}

/// Gives the columns of a column-major n x n matrix their phases.
///
/// # Safety
/// The matrix is ours to write.
#[inline]
pub(crate) unsafe fn fix_columns<T: Field>(n: usize, v: *mut T) {
    for j in 0..n {
        // SAFETY: column j has n elements.
        unsafe { fix(n, v.add(j * n), 1) };
    }
}

/// Gives the first k columns of the m x p matrix U, both column-major, their phases, and turns the rows of
/// the q x n matrix Vh so that U diag(s) Vh does not change; other columns of U and other rows of Vh, those
/// of V as columns, get phases of their own.
///
/// # Safety
/// The matrices are ours to write; k is not larger than p or q.
#[inline]
pub(crate) unsafe fn fix_pairs<T: Field>(
    (m, p): (usize, usize),
    u: *mut T,
    (q, n): (usize, usize),
    vh: *mut T,
    k: usize,
) {
    // SAFETY: j is below the number of columns or rows.
    unsafe {
        for j in 0..p {
            let factor = fix(m, u.add(j * m), 1);
            if j < k && factor != T::ONE {
                multiply(n, vh.add(j), q as isize, factor.conj());
            }
        }
        for j in k..q {
            fix(n, vh.add(j), q as isize);
        }
    }
}

/// `i Im(x_m) / v_m` for each column v of a matrix with fixed phases: the rate at which a tangent x turns its
/// phase, which times v is to be taken off.
pub(crate) fn turn(v: &Var, x: &Var) -> Var {
    let rate = (&apply1(&PhaseWeights, &[v]) * &x.imag()).reduce_sum(Some(&[0])).complex();
    &rate * &Var::scalar(rate.dtype(), C64::new(0.0, 1.0))
}
