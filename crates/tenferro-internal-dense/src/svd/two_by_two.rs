//! Real 2 x 2 matrices.

use super::{Job, balance, negligible};
use crate::{Field, Real};

/// Real 2 x 2 in closed form. With A = R(alpha) diag(s0, +-s1) R(beta)^T, the vectors (a + d, c - b) and
/// (a - d, c + b) have the angles alpha -+ beta and the lengths s0 +- s1. Their components are exact up to
/// one rounding, and s1 = |det A| / s0 with Kahan's determinant, so both singular values are accurate to a
/// few units in the last place whatever their ratio.
///
/// # Safety
/// The promise of [`svd`](super::svd), or of [`svdvals`](super::svdvals), for m = n = 2.
#[inline]
pub(super) unsafe fn svd_2x2<T: Field>(job: &Job<T>) {
    let (zero, one, half) = (T::Real::ZERO, T::Real::ONE, T::Real::of(0.5));
    let (factor, inverse) = balance(job.largest, 0);
    // SAFETY: indices are below 2.
    let at = |i: usize, j: usize| unsafe { job.at(i, j, false) }.re() * factor;
    let (a, b, c, d) = (at(0, 0), at(0, 1), at(1, 0), at(1, 1));
    let (x, y) = ((a + d, c - b), (a - d, c + b));
    let length = |v: (T::Real, T::Real)| {
        let size = v.0 * v.0 + v.1 * v.1;
        if negligible(size) { zero } else { size.sqrt() }
    };
    let (p, q) = (length(x), length(y));
    let s0 = (p + q) * half;
    // a d - b c with the rounding error of b c added back.
    let bc = b * c;
    let det = a.mul_add(d, -bc) + (-b).mul_add(c, bc);
    let s1 = if s0 > zero { det.abs() / s0 } else { zero };
    // SAFETY: the caller's promise on the outputs.
    unsafe {
        job.s.write(s0 * inverse);
        // Rounding must not break the order.
        job.s.add(1).write((if s1 > s0 { s0 } else { s1 }) * inverse);
    }
    if job.vectors.is_none() {
        return;
    }
    let unit = |v: (T::Real, T::Real), l: T::Real| if l > zero { (v.0 / l, v.1 / l) } else { (one, zero) };
    let (e, f) = (unit(x, p), unit(y, q));
    // exp(2 i alpha) = e f; half the angle on the side without cancellation.
    let (cos, sin) = (e.0 * f.0 - e.1 * f.1, e.0 * f.1 + e.1 * f.0);
    let (ca, sa) = if cos >= zero {
        let ca = ((one + cos) * half).sqrt();
        (ca, half * sin / ca)
    } else {
        let sa = ((one - cos) * half).sqrt();
        (half * sin / sa, sa)
    };
    // beta = alpha - (alpha - beta).
    let (cb, sb) = (ca * e.0 + sa * e.1, sa * e.0 - ca * e.1);
    let sign = one.copysign(det);
    // SAFETY: the caller's promise on the outputs.
    unsafe {
        for (i, z) in [ca, sa, -sa, ca].into_iter().enumerate() {
            job.u.add(i).write(T::real(z));
        }
        for (i, z) in [cb, -sb * sign, sb, cb * sign].into_iter().enumerate() {
            job.vh.add(i).write(T::real(z));
        }
    }
}
