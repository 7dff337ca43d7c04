//! 2 x 2 matrices.

use super::{Job, element};
use crate::svd::balance;
use crate::{Field, Real};

/// The eigenvalues and eigenvectors of [a, conj(b); b, c] in closed form. A phase in the second component makes
/// b positive; of the real matrix that is left, the eigenvalue of larger modulus is a sum without
/// cancellation, the other one the determinant divided by it, and the vector has the component without
/// cancellation as its larger one (LAPACK xLAEV2; the determinant is Kahan's).
///
/// # Safety
/// The promise of [`eigh`](super::eigh) for n = 2.
#[inline]
pub(super) unsafe fn eigh_2x2<T: Field>(job: &Job<T>) {
    let (zero, one, half) = (T::Real::ZERO, T::Real::ONE, T::Real::of(0.5));
    let (factor, inverse) = balance(job.largest, T::Real::HEADROOM);
    // SAFETY: the elements lie in the triangle.
    let [a, below, c] = [(0, 0), (1, 0), (1, 1)].map(|(i, j)| unsafe { element(job.a, i, j) }.scale(factor));
    let (a, c, b) = (a.re(), c.re(), below.abs());
    // The reciprocal of a smaller number could overflow, and the largest element is far from it.
    if b < T::Real::TINY {
        // The coordinate vectors, in the order of the diagonal.
        let (w, low, high) =
            if a <= c { ([a, c], [one, zero], [zero, one]) } else { ([c, a], [zero, one], [one, zero]) };
        // SAFETY: the caller's promise on the outputs.
        return unsafe { job.write(w.map(|w| w * inverse), [low, high], T::ONE) };
    }
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let root = hypot(difference, twice);
    // a c - b^2 with the rounding error of b^2 taken off.
    let square = b * b;
    let determinant = a.mul_add(c, -square) - b.mul_add(b, -square);
    let large = half * (sum + root.copysign(sum));
    let small = determinant / large;
    // A vector of the eigenvalue (sum + root) / 2 is (difference + root, 2 b), or (2 b, root - difference).
    let (x, y) = if difference >= zero { (difference + root, twice) } else { (twice, root - difference) };
    let length = hypot(x, y);
    let (x, y) = (x / length, y / length);
    let w = if sum >= zero { [small, large] } else { [large, small] };
    let w = if w[0] <= w[1] { w } else { [w[1], w[0]] };
    // SAFETY: the caller's promise on the outputs.
    unsafe { job.write(w.map(|w| w * inverse), [[y, -x], [x, y]], below.scale(one / b)) }
}

impl<T: Field> Job<T> {
    /// Writes the eigenvalues and, if asked for, the vectors, whose second components get the phase.
    ///
    /// # Safety
    /// The promise of [`eigh`](super::eigh) for n = 2.
    #[inline(always)]
    unsafe fn write(&self, w: [T::Real; 2], v: [[T::Real; 2]; 2], phase: T) {
        // SAFETY: the caller's promise.
        unsafe {
            for j in 0..2 {
                self.w.add(j).write(w[j]);
                if let Some(to) = self.v {
                    to.add(2 * j).write(T::real(v[j][0]));
                    to.add(2 * j + 1).write(phase.scale(v[j][1]));
                }
            }
        }
    }
}

/// sqrt(x^2 + y^2) without losing a small one to underflow.
#[inline(always)]
fn hypot<R: Real>(x: R, y: R) -> R {
    let (x, y) = (x.abs(), y.abs());
    let (low, high) = if x < y { (x, y) } else { (y, x) };
    if high == R::ZERO {
        return high;
    }
    let ratio = low / high;
    high * (R::ONE + ratio * ratio).sqrt()
}
