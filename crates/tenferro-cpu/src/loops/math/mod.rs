//! Elementary functions of real numbers, as formulas without branches that the compiler vectorises.
//!
//! A [`Function`] is a formula for common arguments and the test that finds the others, which go to the
//! scalar formula of [`Element`] one by one. [`tile`] gives the loop over a run of elements, compiled by
//! [`vectorized`] for the processor at hand. The formulas reduce the argument to a small interval (Cody and
//! Waite, "Software Manual for the Elementary Functions", 1980), evaluate a polynomial there and carry the
//! rounding errors that matter in a second word (Muller, "Elementary Functions", 3rd ed., chapters 3 and 11).
//! Exponentials and logarithms of f32 do so too; the other functions of f32 go by f64, where no rounding
//! error matters and large arguments need no care. `coefficients.py` makes the polynomials and `reference.py`
//! the values to test against.
//!
//! Invariant: the result for an element depends on that element alone: neither on its place, nor on the
//! length of the run, nor on the instruction set. So there are no fused operations here, which the baseline
//! lacks.

mod compensated;
mod exp;
mod log;
mod tanh;
#[cfg(test)]
mod tests;
mod trig;

use super::{elementwise::Tile, simd::vectorized};
use std::ops::{Add, Mul};
use tenferro_core_ops::Element;
use tenferro_tensor::DType;

/// A function of one real number.
trait Function<T> {
    /// Whether [`common`](Function::common) holds for this argument.
    #[inline(always)]
    fn is_common(_: T) -> bool {
        true
    }
    /// The value, by a formula without branches.
    fn common(x: T) -> T;
    /// The value of a rare argument.
    fn rare(x: T) -> T {
        Self::common(x)
    }
}

/// The loop of the elementwise function of this name, where one is written for the dtype.
#[inline]
pub(crate) fn tile(name: &str, dtype: DType) -> Option<Tile> {
    macro_rules! of {
        ($F:ty) => {
            match dtype {
                DType::F32 => run::<f32, $F>,
                DType::F64 => run::<f64, $F>,
                _ => return None,
            }
        };
    }
    Some(match name {
        "exp" => of!(exp::Exp),
        "expm1" => of!(exp::Expm1),
        "log" => of!(log::Log),
        "log1p" => of!(log::Log1p),
        "sin" => of!(trig::Sin),
        "cos" => of!(trig::Cos),
        "tan" => of!(trig::Tan),
        "tanh" => of!(tanh::Tanh),
        _ => return None,
    })
}

/// Elements that are computed together, and tested together for rare arguments: enough of them for the
/// compiler to see a loop.
const BLOCK: usize = 16;

/// `y[i] = F(x[i])`.
///
/// # Safety
/// As for a [`Tile`] with one operand and a result of type `T`.
unsafe fn run<T: Element, F: Function<T>>(_: *const (), x: &[*const u8], y: *mut u8, n: usize) {
    let (x, y) = (x[0].cast::<T>(), y.cast::<T>());
    if n < 5 {
        for i in 0..n {
            // SAFETY: the caller's.
            unsafe { y.add(i).write(one::<T, F>(*x.add(i))) }
        }
        return;
    }
    vectorized(
        n.max(BLOCK),
        #[inline(always)]
        move || {
            // SAFETY: the caller's; a block lies within the run, or is read at its elements and stored apart.
            unsafe {
                if n < BLOCK {
                    let from: [T; BLOCK] = std::array::from_fn(|i| *x.add(i.min(n - 1)));
                    let mut results = from;
                    if !block::<T, F>(from.as_ptr(), results.as_mut_ptr()) {
                        correct::<T, F>(x, results.as_mut_ptr(), n);
                    }
                    y.copy_from_nonoverlapping(results.as_ptr(), n);
                    return;
                }
                let mut start = 0;
                while start < n {
                    // The last block may overlap the one before.
                    let at = start.min(n - BLOCK);
                    let (x, y) = (x.add(at), y.add(at));
                    if !block::<T, F>(x, y) {
                        correct::<T, F>(x, y, BLOCK);
                    }
                    start += BLOCK;
                }
            }
        },
    );
}

/// The function of one element.
#[inline(always)]
fn one<T: Element, F: Function<T>>(x: T) -> T {
    if F::is_common(x) { F::common(x) } else { F::rare(x) }
}

/// Stores the common formula of a block of elements; whether it holds for all of them.
///
/// # Safety
/// `x` and `y` must be valid for as many elements and not overlap.
#[inline(always)]
unsafe fn block<T: Element, F: Function<T>>(x: *const T, y: *mut T) -> bool {
    let mut all = true;
    for i in 0..BLOCK {
        // SAFETY: the caller's.
        unsafe {
            let v = *x.add(i);
            all &= F::is_common(v);
            y.add(i).write(F::common(v));
        }
    }
    all
}

/// Rewrites the results of rare arguments.
///
/// # Safety
/// As for [`run`].
#[cold]
#[inline(never)]
unsafe fn correct<T: Element, F: Function<T>>(x: *const T, y: *mut T, n: usize) {
    for i in 0..n {
        // SAFETY: the caller's.
        unsafe {
            let v = *x.add(i);
            if !F::is_common(v) {
                y.add(i).write(F::rare(v));
            }
        }
    }
}

/// `c[0] + c[1] x + c[2] x^2 + ..`: even and odd powers by Horner's rule each, which halves the chain of
/// dependent operations.
#[inline(always)]
fn polynomial<T, const N: usize>(x: T, c: &[T; N]) -> T
where
    T: Copy + Add<Output = T> + Mul<Output = T>,
{
    let x2 = x * x;
    let (mut a, mut b) = (c[N - 1], c[N - 2]);
    let mut i = N - 2;
    while i >= 2 {
        (a, b) = (c[i - 1] + a * x2, c[i - 2] + b * x2);
        i -= 2;
    }
    if i == 1 { c[0] + x * (b + a * x) } else { b + a * x }
}

/// `1.5 * 2^52`: `x + ROUND - ROUND` is the integer nearest to `x`, which the low bits of the sum hold in
/// two's complement.
const ROUND: f64 = 6755399441055744.0;

/// `2^k`, given `k + ROUND`; `k` is the exponent of a normal number.
#[inline(always)]
fn exp2(rounded: f64) -> f64 {
    f64::from_bits(rounded.to_bits().wrapping_add(1023) << 52)
}

/// [`ROUND`] of f32, `1.5 * 2^23`.
const ROUND_SINGLE: f32 = 12582912.0;

/// [`exp2`] of f32.
#[inline(always)]
fn exp2_single(rounded: f32) -> f32 {
    f32::from_bits(rounded.to_bits().wrapping_add(127) << 23)
}
