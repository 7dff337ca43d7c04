//! Singular value decomposition A = U diag(s) V^H.
//!
//! Small matrices take one-sided Jacobi after a pivoted QR factorization (Drmac and Veselic, SIAM J. Matrix
//! Anal. Appl. 29 (2008)): small singular values of graded matrices keep their relative accuracy. Middle ones
//! are reduced to bidiagonal form and then diagonalised by the implicit QR iteration, in loops over whole
//! columns that start at once. Large ones take faer, whose result is checked on one vector; if it did not
//! converge or fails the check, Jacobi does the work. Iterations are counted, so every path ends.
//!
//! The input is scaled by a power of two, so neither tiny nor huge elements lose digits.

mod bidiagonal;
pub(crate) mod jacobi;
mod lines;
mod sweeps;
mod two_by_two;

use faer::Par;

use crate::provider::Provider;
use crate::workspace::with_zeros;
use crate::{DenseError, Field, Real, Strided, blas};
use two_by_two::svd_2x2;

/// How many singular vectors to compute for an m x n matrix with k = min(m, n).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vectors {
    /// U is m x k, Vh is k x n.
    Thin,
    /// U is m x m, Vh is n x n: unitary.
    Full,
}

/// Largest min(m, n) for which Jacobi is about as fast as bidiagonal form.
const JACOBI: usize = 8;

/// Largest min(m, n) for which own loops beat faer.
const OWN: usize = 96;

/// Largest number of elements for which the one-vector loops of Jacobi's QR beat the others.
const JACOBI_ELEMENTS: usize = 1024;

/// Largest number of elements for which the one-vector loops of the own QR beat faer's blocks.
const OWN_ELEMENTS: usize = 1 << 15;

/// See [`Dense::svd`](crate::Dense::svd).
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
pub(crate) unsafe fn svd<T: Provider>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    u: *mut T,
    s: *mut T::Real,
    vh: *mut T,
    vectors: Vectors,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise.
    unsafe {
        let largest = half_of_largest((m, n), a)?;
        let job = Job { m, n, a, largest, u, s, vh, full: vectors == Vectors::Full };
        if blas::has_svd::<T>(m.max(n)) && job.by_lapack(vectors) {
            return Ok(());
        }
        if (m, n) == (2, 2) && !T::COMPLEX {
            svd_2x2(a, largest, u, s, vh);
            return Ok(());
        }
        let small = m.min(n) <= JACOBI && m * n <= JACOBI_ELEMENTS;
        let done = !small
            && (m.min(n) <= OWN && m * n <= OWN_ELEMENTS && job.by_bidiagonal()
                || job.by_faer(true, par)
                || job.by_faer(false, par));
        if !done {
            job.by_jacobi();
        }
    }
    Ok(())
}

/// See [`Dense::svd_by_jacobi`](crate::Dense::svd_by_jacobi).
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
pub(crate) unsafe fn svd_by_jacobi<T: Field>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    u: *mut T,
    s: *mut T::Real,
    vh: *mut T,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise.
    unsafe {
        let largest = half_of_largest((m, n), a)?;
        Job { m, n, a, largest, u, s, vh, full: false }.by_jacobi();
    }
    Ok(())
}

/// Half of the largest element's sum of absolute parts: abs1 may overflow where the parts do not; its half
/// cannot.
///
/// # Errors
/// `NonFinite`.
///
/// # Safety
/// A is readable.
#[inline(always)]
pub(crate) unsafe fn half_of_largest<T: Field>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
) -> Result<T::Real, DenseError> {
    let mut largest = T::Real::ZERO;
    let mut finite = true;
    for j in 0..n {
        for i in 0..m {
            // SAFETY: i < m and j < n.
            let x = unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
            let size = x.scale(T::Real::of(0.5)).abs1();
            largest = if size > largest { size } else { largest };
            finite &= x.finite();
        }
    }
    // SAFETY: the caller's promise.
    if finite { Ok(largest) } else { Err(unsafe { first_non_finite((m, n), a) }) }
}

/// # Safety
/// A is readable.
#[cold]
unsafe fn first_non_finite<T: Field>((m, n): (usize, usize), a: Strided<*const T>) -> DenseError {
    let mut elements = (0..n).flat_map(|j| (0..m).map(move |i| (i, j)));
    let (row, col) = elements
        // SAFETY: i < m and j < n.
        .find(|&(i, j)| !unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) }.finite())
        .expect("the caller has met a non-finite element");
    DenseError::NonFinite { row, col }
}

/// The factor 2^-e that brings numbers near `largest` close to 2^`target`, and its reciprocal. Both are
/// normal numbers, so for the extreme magnitudes they stop short of the target.
pub(crate) fn balance<R: Real>(largest: R, target: i32) -> (R, R) {
    let limit = -R::TINY.exponent() - 2;
    let e = (largest.exponent() - target).clamp(-limit, limit);
    (R::power(-e), R::power(e))
}

/// Squared lengths below this have lost digits to underflow; such vectors count as zero. At the scale that
/// the input is brought to, they are smaller than its largest element by a factor of at least 1e250 (1e28 in
/// single precision).
#[inline(always)]
pub(crate) fn negligible<R: Real>(norm2: R) -> bool {
    norm2 < R::TINY / R::EPS
}

/// The arguments of [`svd`], checked.
struct Job<T: Field> {
    m: usize,
    n: usize,
    a: Strided<*const T>,
    largest: T::Real,
    u: *mut T,
    s: *mut T::Real,
    vh: *mut T,
    full: bool,
}

impl<T: Field> Job<T> {
    /// The element (i, j) of A, or of A^H if `wide`.
    ///
    /// # Safety
    /// It exists.
    #[inline(always)]
    unsafe fn at(&self, i: usize, j: usize, wide: bool) -> T {
        let (row, col) = if wide { (j, i) } else { (i, j) };
        // SAFETY: the caller's promise.
        let x = unsafe { *self.a.ptr.offset(row as isize * self.a.row + col as isize * self.a.col) };
        if wide { x.conj() } else { x }
    }
}

impl<T: Provider> Job<T> {
    /// By faer, with divide and conquer (for min(m, n) >= 128) or by QR iterations only; false if the result
    /// is unusable. Divide and conquer gives NaN or false factors for some matrices with many equal or zero
    /// singular values.
    ///
    /// # Safety
    /// The promise of [`svd`].
    unsafe fn by_faer(&self, divide: bool, par: Par) -> bool {
        let &Job { m, n, u, s, vh, full, .. } = self;
        let k = m.min(n);
        let cols = if full { n } else { k };
        let (factor, inverse) = balance(self.largest, 0);
        with_zeros::<T, _>(m * n + n * cols + k, |buffer| {
            let (scaled, buffer) = buffer.split_at_mut(m * n);
            let (v, values) = buffer.split_at_mut(n * cols);
            // SAFETY: the sizes of the outputs are those that the caller promised.
            unsafe {
                for j in 0..n {
                    for i in 0..m {
                        scaled[i + j * m] = self.at(i, j, false).scale(factor);
                    }
                }
                let a = Strided { ptr: scaled.as_ptr(), row: 1, col: m as isize };
                // faer leaves the upper right block of a square U or V untouched when it reduces by QR first.
                if full {
                    u.write_bytes(0, m * m);
                }
                let to_u = Strided { ptr: u, row: 1, col: m as isize };
                let to_v = Strided { ptr: v.as_mut_ptr(), row: 1, col: n as isize };
                if !T::bidiagonal_svd((m, n), a, values.as_mut_ptr(), to_u, to_v, (full, divide), par) {
                    return false;
                }
                let ordered = values.windows(2).all(|w| w[0].re() >= w[1].re());
                if !ordered || values[k - 1].re() < T::Real::ZERO || !self.plausible(scaled, values, v) {
                    return false;
                }
                for (i, x) in values.iter().enumerate() {
                    s.add(i).write(x.re() * inverse);
                }
                for (j, v) in v.chunks_exact(n).enumerate() {
                    for (i, x) in v.iter().enumerate() {
                        vh.add(j + i * cols).write(x.conj());
                    }
                }
                true
            }
        })
    }

    /// By LAPACK; false if there is none or its result is unusable.
    ///
    /// # Safety
    /// The promise of [`svd`].
    #[cold]
    unsafe fn by_lapack(&self, vectors: Vectors) -> bool {
        let &Job { m, n, u, s, vh, .. } = self;
        let k = m.min(n);
        let (factor, inverse) = balance(self.largest, 0);
        let done = k > 0
            && with_zeros::<T, _>(m * n, |scaled| {
                // SAFETY: the sizes of the outputs are those that the caller promised.
                unsafe {
                    for j in 0..n {
                        for i in 0..m {
                            scaled[i + j * m] = self.at(i, j, false).scale(factor);
                        }
                    }
                    blas::svd((m, n), scaled.as_mut_ptr(), u, s, vh, vectors)
                }
            });
        if !done {
            return false;
        }
        // SAFETY: the values have been written.
        let values = unsafe { std::slice::from_raw_parts_mut(s, k) };
        let ordered = values.is_sorted_by(|a, b| a >= b) && values[k - 1] >= T::Real::ZERO;
        values.iter_mut().for_each(|s| *s = *s * inverse);
        ordered
    }

    /// Whether |A x - U s V^H x| and |V^H x| = |x|, |U y| = |y| hold for one vector x and y = V^H x, which
    /// costs O(mn) and exposes a wrong factor almost surely.
    ///
    /// # Safety
    /// U has been written.
    unsafe fn plausible(&self, a: &[T], values: &[T], v: &[T]) -> bool {
        let &Job { m, n, u, .. } = self;
        let k = values.len();
        // SAFETY: U has at least k columns of m elements.
        let u = unsafe { std::slice::from_raw_parts(u, m * k) };
        let x = |i: usize| T::Real::of(if (i.wrapping_mul(0x9E37_79B9) >> 7) & 1 == 0 { 1.0 } else { -1.0 });
        let mut y = smallvec::SmallVec::<[T; 64]>::new();
        for v in v.chunks_exact(n).take(k) {
            y.push(v.iter().enumerate().fold(T::ZERO, |sum, (i, v)| sum + v.conj().scale(x(i))));
        }
        let mut residual = smallvec::SmallVec::<[T; 64]>::new();
        residual.resize(m, T::ZERO);
        let mut image = residual.clone();
        for (j, a) in a.chunks_exact(m).enumerate() {
            for (r, &a) in residual.iter_mut().zip(a) {
                *r = *r + a.scale(x(j));
            }
        }
        for ((u, &y), s) in u.chunks_exact(m).zip(&y).zip(values) {
            let weight = y.scale(s.re());
            for ((r, i), &u) in residual.iter_mut().zip(&mut image).zip(u) {
                *r = *r - u * weight;
                *i = *i + u * y;
            }
        }
        let norm2 = |x: &[T]| x.iter().fold(T::Real::ZERO, |sum, x| sum + x.abs2());
        let size = T::Real::of(n as f64);
        let (y2, image2) = (norm2(&y), norm2(&image));
        let eps = T::Real::of(20.0 * m.max(n) as f64) * T::Real::EPS;
        let close = |a: T::Real, b: T::Real| a - b <= eps * size && b - a <= eps * size;
        let sigma = values[0].re();
        // V^H x is as long as x only if V is square.
        (m < n && y2 <= size * (T::Real::ONE + eps) || close(y2, size))
            && close(image2, y2)
            && norm2(&residual).sqrt() <= eps * sigma * size.sqrt()
    }
}
