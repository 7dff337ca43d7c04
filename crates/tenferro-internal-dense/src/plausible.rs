//! What a library has computed, checked on one vector.

use smallvec::SmallVec;

use crate::workspace::filled;
use crate::{DenseError, Field, Real, Strided};

/// A vector that a wrong factor is not likely to be right for: of signs that look random.
#[inline(always)]
pub(crate) fn probe<R: Real>(i: usize) -> R {
    R::of(if (i.wrapping_mul(0x9E37_79B9) >> 7) & 1 == 0 { 1.0 } else { -1.0 })
}

/// A x for the m x n matrix A with these elements and the vector x of [`probe`].
///
/// # Errors
/// `Memory`.
pub(crate) fn image<T: Field>(
    (m, n): (usize, usize),
    at: impl Fn(usize, usize) -> T,
) -> Result<SmallVec<[T; 64]>, DenseError> {
    let mut image = filled([m], T::ZERO)?;
    for j in 0..n {
        let x = probe(j);
        for (i, y) in image.iter_mut().enumerate() {
            *y = *y + at(i, j).scale(x);
        }
    }
    Ok(image)
}

/// The factors of A = U diag(s) V^H of an m x n matrix, with as many values as `s` has. Real values may have
/// any sign.
pub(crate) struct Factors<'a, T: Field> {
    pub(crate) u: Strided<*const T>,
    pub(crate) s: &'a dyn Fn(usize) -> T::Real,
    pub(crate) count: usize,
    /// V, or its conjugate.
    pub(crate) v: Strided<*const T>,
    pub(crate) conj: bool,
}

impl<T: Field> Factors<'_, T> {
    /// Whether |A x - U s V^H x| is small and |V^H x| = |x|, |U y| = |y| hold for one vector x and y = V^H x,
    /// which costs O(mn) and exposes a wrong factor almost surely. A is given by its [`image`] and the
    /// largest modulus of the values, `largest`.
    ///
    /// # Errors
    /// `Memory`.
    ///
    /// # Safety
    /// U has `count` readable columns of m elements, V of n.
    pub(crate) unsafe fn plausible(
        &self,
        (m, n): (usize, usize),
        mut residual: SmallVec<[T; 64]>,
        largest: T::Real,
    ) -> Result<bool, DenseError> {
        let mut turned = filled([m], T::ZERO)?;
        let mut y2 = T::Real::ZERO;
        for k in 0..self.count {
            let mut y = T::ZERO;
            for i in 0..n {
                // SAFETY: V has a column k of n elements.
                let v = unsafe { *self.v.ptr.offset(i as isize * self.v.row + k as isize * self.v.col) };
                y = y + if self.conj { v } else { v.conj() }.scale(probe(i));
            }
            y2 = y2 + y.abs2();
            let weight = y.scale((self.s)(k));
            for (i, (r, t)) in residual.iter_mut().zip(&mut turned).enumerate() {
                // SAFETY: U has a column k of m elements.
                let u = unsafe { *self.u.ptr.offset(i as isize * self.u.row + k as isize * self.u.col) };
                *r = *r - u * weight;
                *t = *t + u * y;
            }
        }
        let norm2 = |x: &[T]| x.iter().fold(T::Real::ZERO, |sum, x| sum + x.abs2());
        let size = T::Real::of(n as f64);
        let eps = T::Real::of(20.0 * m.max(n) as f64) * T::Real::EPS;
        let close = |a: T::Real, b: T::Real| a - b <= eps * size && b - a <= eps * size;
        // V^H x is as long as x only if V is square.
        Ok((self.count < n && y2 <= size * (T::Real::ONE + eps) || close(y2, size))
            && close(norm2(&turned), y2)
            && norm2(&residual).sqrt() <= eps * largest * size.sqrt())
    }
}
