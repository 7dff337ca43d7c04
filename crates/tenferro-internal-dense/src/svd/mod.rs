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

use crate::plausible::{Factors, image};
use crate::provider::Provider;
use crate::workspace::{expect_room, total, with_zeros};
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
        let largest = half_of_largest_of((m, n), a)?;
        Job { m, n, a, largest, u, s, vh, vectors: Some(vectors) }.run(par)
    }
}

/// See [`Dense::svdvals`](crate::Dense::svdvals).
///
/// # Errors
/// Stated there.
///
/// # Safety
/// Stated there.
pub(crate) unsafe fn svdvals<T: Provider>(
    (m, n): (usize, usize),
    a: Strided<*const T>,
    s: *mut T::Real,
    par: Par,
) -> Result<(), DenseError> {
    expect_room::<T>(m, n)?;
    let none = std::ptr::null_mut();
    // SAFETY: the caller's promise; without vectors, U and V are not written.
    unsafe {
        let largest = half_of_largest_of((m, n), a)?;
        Job { m, n, a, largest, u: none, s, vh: none, vectors: None }.run(par)
    }
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
        let largest = half_of_largest_of((m, n), a)?;
        Job { m, n, a, largest, u, s, vh, vectors: Some(Vectors::Thin) }.by_jacobi()
    }
}

/// Half of the largest sum of absolute parts of the elements `at` in rows from `first` of their column on:
/// abs1 may overflow where the parts do not; its half cannot.
///
/// # Errors
/// `NonFinite` with the first such element in column-major order.
#[inline(always)]
pub(crate) fn half_of_largest<T: Field>(
    (m, n): (usize, usize),
    first: impl Fn(usize) -> usize,
    at: impl Fn(usize, usize) -> T,
) -> Result<T::Real, DenseError> {
    let mut largest = T::Real::ZERO;
    let mut finite = true;
    for j in 0..n {
        for i in first(j)..m {
            let x = at(i, j);
            let size = x.scale(T::Real::of(0.5)).abs1();
            largest = if size > largest { size } else { largest };
            finite &= x.finite();
        }
    }
    if finite { Ok(largest) } else { Err(first_non_finite((m, n), first, at)) }
}

#[cold]
fn first_non_finite<T: Field>(
    (m, n): (usize, usize),
    first: impl Fn(usize) -> usize,
    at: impl Fn(usize, usize) -> T,
) -> DenseError {
    let mut elements = (0..n).flat_map(|j| (first(j)..m).map(move |i| (i, j)));
    let (row, col) =
        elements.find(|&(i, j)| !at(i, j).finite()).expect("the caller has met a non-finite element");
    DenseError::NonFinite { row, col }
}

/// [`half_of_largest`] of a whole matrix.
///
/// # Errors
/// `NonFinite`.
///
/// # Safety
/// A is readable.
#[inline(always)]
pub(crate) unsafe fn half_of_largest_of<T: Field>(
    shape: (usize, usize),
    a: Strided<*const T>,
) -> Result<T::Real, DenseError> {
    // SAFETY: the caller's promise, and (i, j) lies in the matrix.
    let at = |i: usize, j: usize| unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
    half_of_largest(shape, |_| 0, at)
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

/// The arguments of [`svd`], checked; without vectors, U and Vh may not be written.
struct Job<T: Field> {
    m: usize,
    n: usize,
    a: Strided<*const T>,
    largest: T::Real,
    u: *mut T,
    s: *mut T::Real,
    vh: *mut T,
    vectors: Option<Vectors>,
}

impl<T: Field> Job<T> {
    /// Whether U and V are to be square.
    #[inline(always)]
    fn full(&self) -> bool {
        self.vectors == Some(Vectors::Full)
    }

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
    /// # Safety
    /// The promise of [`svd`], or of [`svdvals`].
    unsafe fn run(&self, par: Par) -> Result<(), DenseError> {
        let &Job { m, n, .. } = self;
        let elements = m.saturating_mul(n);
        let small = m.min(n) <= JACOBI && elements <= JACOBI_ELEMENTS;
        let own = m.min(n) <= OWN && elements <= OWN_ELEMENTS;
        // SAFETY: the caller's promise.
        unsafe {
            if blas::has_svd::<T>(m.max(n)) && self.by_lapack()? {
                return Ok(());
            }
            if (m, n) == (2, 2) && !T::COMPLEX {
                svd_2x2(self);
                return Ok(());
            }
            let done = !small
                && (own && self.by_bidiagonal()?
                    || match self.vectors {
                        Some(_) => self.by_faer(true, par)? || self.by_faer(false, par)?,
                        // Without vectors, an own loop has failed already.
                        None => self.values_by_faer(par)? || !own && self.by_bidiagonal()?,
                    });
            if done { Ok(()) } else { self.by_jacobi() }
        }
    }

    /// By faer, with divide and conquer (for min(m, n) >= 128) or by QR iterations only; false if the result
    /// is unusable. Divide and conquer gives NaN or false factors for some matrices with many equal or zero
    /// singular values.
    ///
    /// # Safety
    /// The promise of [`svd`].
    unsafe fn by_faer(&self, divide: bool, par: Par) -> Result<bool, DenseError> {
        let (&Job { m, n, u, s, vh, .. }, full) = (self, self.full());
        let k = m.min(n);
        let cols = if full { n } else { k };
        let (factor, inverse) = balance(self.largest, 0);
        with_zeros::<T, _>(total([(m, n), (n, cols), (1, k)]), |buffer| {
            let (scaled, buffer) = buffer.split_at_mut(m * n);
            let (v, values) = buffer.split_at_mut(n * cols);
            // SAFETY: the sizes of the outputs are those that the caller promised.
            unsafe {
                self.copy(scaled, factor);
                let a = Strided { ptr: scaled.as_ptr(), row: 1, col: m as isize };
                // faer leaves the upper right block of a square U or V untouched when it reduces by QR first.
                if full {
                    u.write_bytes(0, m * m);
                }
                let to_u = Strided { ptr: u, row: 1, col: m as isize };
                let to_v = Strided { ptr: v.as_mut_ptr(), row: 1, col: n as isize };
                if !T::bidiagonal_svd((m, n), a, values.as_mut_ptr(), Some((to_u, to_v, full)), divide, par)?
                {
                    return Ok(false);
                }
                let ordered = values.windows(2).all(|w| w[0].re() >= w[1].re());
                let right = (Strided { ptr: v.as_ptr(), row: 1, col: n as isize }, false);
                let good = ordered && values[k - 1].re() >= T::Real::ZERO;
                if !good || !self.plausible(factor, &|k| values[k].re(), right)? {
                    return Ok(false);
                }
                for (i, x) in values.iter().enumerate() {
                    s.add(i).write(x.re() * inverse);
                }
                for (j, v) in v.chunks_exact(n).enumerate() {
                    for (i, x) in v.iter().enumerate() {
                        vh.add(j + i * cols).write(x.conj());
                    }
                }
                Ok(true)
            }
        })?
    }

    /// The values alone, by faer and without dividing and conquering; false if the result is unusable.
    ///
    /// # Safety
    /// The promise of [`svdvals`].
    unsafe fn values_by_faer(&self, par: Par) -> Result<bool, DenseError> {
        let &Job { m, n, s, .. } = self;
        let k = m.min(n);
        let (factor, inverse) = balance(self.largest, 0);
        with_zeros::<T, _>(total([(m, n), (1, k)]), |buffer| {
            let (scaled, values) = buffer.split_at_mut(m * n);
            // SAFETY: the caller's promise; the buffers have the sizes that are asked for.
            unsafe {
                self.copy(scaled, factor);
                let a = Strided { ptr: scaled.as_ptr(), row: 1, col: m as isize };
                if !T::bidiagonal_svd((m, n), a, values.as_mut_ptr(), None, false, par)?
                    || !self.likely(factor, &|k| values[k].re())
                {
                    return Ok(false);
                }
                for (i, x) in values.iter().enumerate() {
                    s.add(i).write(x.re() * inverse);
                }
            }
            Ok(true)
        })?
    }

    /// Copies A times `factor`.
    ///
    /// # Safety
    /// A is readable.
    unsafe fn copy(&self, to: &mut [T], factor: T::Real) {
        for j in 0..self.n {
            for i in 0..self.m {
                // SAFETY: (i, j) lies in the matrix.
                to[i + j * self.m] = unsafe { self.at(i, j, false) }.scale(factor);
            }
        }
    }

    /// Whether these values are in order, and the sum of their squares is that of the elements of A times
    /// `factor`: what can be told without vectors.
    ///
    /// # Safety
    /// A is readable; there is a value.
    unsafe fn likely(&self, factor: T::Real, s: &dyn Fn(usize) -> T::Real) -> bool {
        let &Job { m, n, .. } = self;
        let k = m.min(n);
        // SAFETY: (i, j) lies in the matrix.
        let at = |i: usize, j: usize| unsafe { self.at(i, j, false) }.scale(factor);
        // By columns: the error of a sum grows as the number of its terms does.
        let sum = |n: usize, x: &dyn Fn(usize) -> T::Real| (0..n).fold(T::Real::ZERO, |sum, i| sum + x(i));
        let size = sum(n, &|j| sum(m, &|i| at(i, j).abs2()));
        let of_values = sum(k, &|i| s(i) * s(i));
        (1..k).all(|i| s(i) <= s(i - 1))
            && s(k - 1) >= T::Real::ZERO
            && (of_values - size).abs() <= T::Real::of(40.0 * m.max(n) as f64) * T::Real::EPS * size
    }

    /// By LAPACK; false if there is none or its result is unusable.
    ///
    /// # Safety
    /// The promise of [`svd`], or of [`svdvals`].
    #[cold]
    unsafe fn by_lapack(&self) -> Result<bool, DenseError> {
        let &Job { m, n, u, s, vh, vectors, .. } = self;
        let k = m.min(n);
        let (factor, inverse) = balance(self.largest, 0);
        let done = k > 0
            && with_zeros::<T, _>(total([(m, n)]), |scaled| {
                // SAFETY: the sizes of the outputs are those that the caller promised.
                unsafe {
                    self.copy(scaled, factor);
                    blas::svd((m, n), scaled.as_mut_ptr(), u, s, vh, vectors)
                }
            })??;
        if !done {
            return Ok(false);
        }
        // SAFETY: the values have been written.
        let values = unsafe { std::slice::from_raw_parts_mut(s, k) };
        // SAFETY: what is asked for has been written.
        let mut good = unsafe { self.likely(factor, &|k| values[k]) };
        if vectors.is_some() {
            // V in the rows of its adjoint.
            let rows = if self.full() { n } else { k };
            let right = (Strided { ptr: vh.cast_const(), row: rows as isize, col: 1 }, true);
            // SAFETY: as above.
            good = good && unsafe { self.plausible(factor, &|k| values[k], right) }?;
        }
        values.iter_mut().for_each(|s| *s = *s * inverse);
        Ok(good)
    }

    /// Whether U, which is written, these values, and V, or its conjugate, are factors of A times `factor`;
    /// see [`Factors`].
    ///
    /// # Errors
    /// `Memory`.
    ///
    /// # Safety
    /// The promise of [`svd`]; there is a value. V has as many columns as there are values.
    unsafe fn plausible(
        &self,
        factor: T::Real,
        s: &dyn Fn(usize) -> T::Real,
        (v, conj): (Strided<*const T>, bool),
    ) -> Result<bool, DenseError> {
        let &Job { m, n, u, .. } = self;
        // SAFETY: (i, j) lies in the matrix.
        let at = |i: usize, j: usize| unsafe { self.at(i, j, false) }.scale(factor);
        let u = Strided { ptr: u.cast_const(), row: 1, col: m as isize };
        let factors = Factors { u, s, count: m.min(n), v, conj };
        // SAFETY: the caller's promise.
        unsafe { factors.plausible((m, n), image((m, n), at)?, s(0)) }
    }
}
