//! The phases of vectors, which a decomposition leaves open: each vector gets the one that makes a certain
//! component of it real and positive. For real vectors that is a sign.
//!
//! The component is one of the largest modulus; of those whose moduli are within 1e-3 of it, the first one:
//! many vectors have several that are equal but for rounding errors, and these must not decide.
//!
//! Derivative: of the tangent x of a vector v, with any phase, the part `i v Im(x_m) / v_m` is taken off, where
//! m is the row of the component, so that it stays real. Signs are locally constant, and real vectors have
//! nothing to take off.

use crate::{
    batch::{Element, Matrices, Results, count, expect_matrix, unlisted},
    matrix::over_columns,
};
use smallvec::smallvec;
use tenferro_core_ops::{
    Aval, Extent, Fresh, Kernels, Operand, Outs, Primitive, Saves, Tangent, Var, apply1, build,
    ops::{FLOATS, expect},
};
use tenferro_cpu::CpuBackend;
use tenferro_internal_dense::{Field, Real};
use tenferro_tensor::{C64, DType, Result, Tensor, dispatch_float};

/// Of the largest squared modulus, what counts as large, too.
const TIE: f64 = 0.999 * 0.999;

/// For each column of a matrix the row, an i64, of the component that its phase is chosen by: the first one whose
/// modulus is within 1e-3 of the largest.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PhaseRows;

impl Primitive for PhaseRows {
    const NAME: &'static str = "phase_rows";
    fn infer<D: Extent>(&self, x: &[&Aval<D>], _: Fresh) -> Result<Outs<Aval<D>>> {
        expect(Self::NAME, x, 1, FLOATS)?;
        expect_matrix(Self::NAME, x, 0)?;
        Ok(smallvec![Aval::new(DType::I64, x[0].shape[1..].iter().cloned())])
    }
    fn jvp(&self, _: &[Var], _: &[Var], _: &[Tangent]) -> Outs<Tangent> {
        smallvec![None]
    }
    fn saves(&self) -> Saves {
        Saves::NONE
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
    let (read, rows) = (Matrices::<T>::new(&v)?, Results::<i64>::new(&y[0].shape, 1)?);
    for b in 0..count(v.shape(), 2, y) {
        let v = read.at(b);
        for j in 0..n {
            let column = v.ptr.wrapping_offset(j as isize * v.col);
            // SAFETY: column j of matrix b has m readable elements, and there is one row for each column.
            unsafe { *rows.at(b).add(j) = row::<T>(m, column, v.row) as i64 };
        }
    }
    // SAFETY: the loops have written every element.
    Ok(smallvec![unsafe { rows.finish() }])
}

/// The row of [`PhaseRows`] for one vector.
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

/// # Safety
/// The vector has n elements, each `step` after the last, and is ours to write.
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

/// Gives the first k columns of the m x p matrix U, both column-major, their phases, and turns the rows of the
/// q x n matrix Vh so that U diag(s) Vh does not change; other columns of U and other rows of Vh, those of V as
/// columns, get phases of their own.
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

/// What a tangent x, or a part of one, of vectors v turns their phases by: `Im(x_m) / v_m` for each column, with
/// m of `rows`.
pub(crate) fn turn(v: &Var, rows: &Var, x: &Var) -> Var {
    let at = build::iota(DType::I64, &v.shape(), 0).equal(&over_columns(rows));
    let component = |x: &Var| at.select(x, &x.like(0.0)).reduce_sum(Some(&[0]));
    &component(&x.imag()) / &component(&v.real())
}

/// As [`turn`], with the rows of [`PhaseRows`].
pub(crate) fn turn_of(v: &Var, x: &Var) -> Var {
    turn(v, &apply1(&PhaseRows, &[v]), x)
}

/// `i x` of a real x.
pub(crate) fn imaginary(x: &Var) -> Var {
    let x = x.complex();
    &x * &Var::scalar(x.dtype(), C64::new(0.0, 1.0))
}
