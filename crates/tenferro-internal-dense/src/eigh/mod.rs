//! Eigenvalues and eigenvectors of a Hermitian matrix, A = V diag(w) V^H.
//!
//! Small matrices are reduced to tridiagonal form by reflections and then diagonalised by the implicit QL
//! iteration, in loops over whole columns that start at once. Larger ones take faer, whose result is checked
//! on one vector; if it did not converge or fails the check, the own loops do the work. Iterations are
//! counted, so every path ends.
//!
//! The input is scaled by a power of two, so neither tiny nor huge elements lose digits.

mod tridiagonal;
mod two_by_two;

use faer::linalg::evd::{
    ComputeEigenvectors, SelfAdjointEvdParams, self_adjoint_evd, self_adjoint_evd_scratch,
};
use faer::traits::ComplexField;
use faer::{ColMut, MatMut, MatRef, Par, Spec};
use num_complex::Complex;

use crate::svd::balance;
use crate::workspace::{with_stack, with_zeros};
use crate::{DenseError, Field, Real, Strided, blas};
use two_by_two::eigh_2x2;

/// Eigenvalues and eigenvectors of Hermitian matrices.
pub trait Eigh: Field {
    /// A = V diag(w) V^H of the Hermitian matrix that has the lower triangle of the n x n matrix A and the
    /// real parts of its diagonal; nothing else is read. w is ascending, V is unitary and column-major.
    ///
    /// |A - V diag(w) V^H| and the departure of V from a unitary matrix are a modest multiple of n eps, the
    /// first relative to |A|.
    ///
    /// # Errors
    /// `NonFinite` with the first such element of the triangle in column-major order; nothing is then
    /// written. `NoConvergence` is not known to occur.
    ///
    /// # Safety
    /// The triangle is readable; w (n numbers) and V (n x n) are writable and overlap neither A nor each other;
    /// they may be uninitialised.
    unsafe fn eigh(
        n: usize,
        a: Strided<*const Self>,
        w: *mut Self::Real,
        v: *mut Self,
        par: Par,
    ) -> Result<(), DenseError>;
}

macro_rules! eigh {
    ($($t:ty)*) => {$(
        impl Eigh for $t {
            unsafe fn eigh(
                n: usize,
                a: Strided<*const Self>,
                w: *mut Self::Real,
                v: *mut Self,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { eigh(n, a, w, v, par) }
            }
        }
    )*};
}

eigh!(f32 f64 Complex<f32> Complex<f64>);

/// Largest order for which the own loops beat faer, for real and for complex elements.
const OWN: [usize; 2] = [64, 64];

/// See [`Eigh::eigh`].
///
/// # Safety
/// Stated there.
unsafe fn eigh<T: Provider>(
    n: usize,
    a: Strided<*const T>,
    w: *mut T::Real,
    v: *mut T,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise.
    unsafe {
        let job = Job { n, a, largest: half_of_largest(n, a)?, w, v };
        if blas::has_eigh::<T>(n) && job.by_lapack() {
            return Ok(());
        }
        if n == 2 {
            eigh_2x2(&job);
            return Ok(());
        }
        let small = n <= OWN[usize::from(T::COMPLEX)];
        let done = (small && job.by_tridiagonal())
            || job.by_faer(true, par)
            || job.by_faer(false, par)
            || (!small && job.by_tridiagonal());
        if done { Ok(()) } else { Err(DenseError::NoConvergence) }
    }
}

/// Half of the sum of absolute parts of the triangle's largest element; see
/// [`svd`](crate::svd::half_of_largest).
///
/// # Errors
/// `NonFinite`.
///
/// # Safety
/// The triangle is readable.
#[inline(always)]
unsafe fn half_of_largest<T: Field>(n: usize, a: Strided<*const T>) -> Result<T::Real, DenseError> {
    let mut largest = T::Real::ZERO;
    let mut first = None;
    for j in 0..n {
        for i in j..n {
            // SAFETY: (i, j) lies in the triangle.
            let x = unsafe { element(a, i, j) };
            let size = x.scale(T::Real::of(0.5)).abs1();
            largest = if size > largest { size } else { largest };
            if !x.finite() && first.is_none() {
                first = Some((i, j));
            }
        }
    }
    first.map_or(Ok(largest), |(row, col)| Err(DenseError::NonFinite { row, col }))
}

/// The element (i, j) of the triangle; of the diagonal, the real part.
///
/// # Safety
/// It exists.
#[inline(always)]
unsafe fn element<T: Field>(a: Strided<*const T>, i: usize, j: usize) -> T {
    // SAFETY: the caller's promise.
    let x = unsafe { *a.ptr.offset(i as isize * a.row + j as isize * a.col) };
    if i == j { T::real(x.re()) } else { x }
}

/// The arguments of [`eigh`], checked.
struct Job<T: Field> {
    n: usize,
    a: Strided<*const T>,
    largest: T::Real,
    w: *mut T::Real,
    v: *mut T,
}

impl<T: Provider> Job<T> {
    /// By LAPACK; false if there is none or its result is unusable.
    ///
    /// # Safety
    /// The promise of [`eigh`].
    #[cold]
    unsafe fn by_lapack(&self) -> bool {
        let &Job { n, a, w, v, .. } = self;
        let (factor, inverse) = balance(self.largest, 0);
        // SAFETY: the sizes of the outputs are those that the caller promised.
        unsafe {
            for j in 0..n {
                for i in 0..n {
                    let x = if i < j { T::ZERO } else { element(a, i, j).scale(factor) };
                    v.add(i + j * n).write(x);
                }
            }
            w.write_bytes(0, n);
            let values = std::slice::from_raw_parts_mut(w, n);
            let done = n > 0 && blas::eigh(n, v, w);
            values.iter_mut().for_each(|w| *w = *w * inverse);
            done && values.is_sorted()
        }
    }

    /// By faer, with divide and conquer (for n >= 128) or by QR iterations only; false if the result is
    /// unusable.
    ///
    /// # Safety
    /// The promise of [`eigh`].
    unsafe fn by_faer(&self, divide: bool, par: Par) -> bool {
        let &Job { n, a, w, v, .. } = self;
        let (factor, inverse) = balance(self.largest, 0);
        with_zeros::<T, _>(n * n + n, |buffer| {
            let (scaled, values) = buffer.split_at_mut(n * n);
            // SAFETY: the sizes of the outputs are those that the caller promised.
            unsafe {
                for j in 0..n {
                    for i in j..n {
                        scaled[i + j * n] = element(a, i, j).scale(factor);
                    }
                }
                if !T::hermitian_evd(n, scaled.as_ptr(), values.as_mut_ptr(), v, divide, par) {
                    return false;
                }
                let ordered = values.windows(2).all(|w| w[0].re() <= w[1].re());
                if !ordered || !plausible(scaled, values, std::slice::from_raw_parts(v, n * n)) {
                    return false;
                }
                for (i, x) in values.iter().enumerate() {
                    w.add(i).write(x.re() * inverse);
                }
            }
            true
        })
    }
}

/// Whether |A x - V diag(w) V^H x| and |V^H x| = |x| hold for one vector x, which costs O(n^2) and exposes a
/// wrong factor almost surely. A is given by its lower triangle.
fn plausible<T: Field>(a: &[T], w: &[T], v: &[T]) -> bool {
    let n = w.len();
    let x = |i: usize| T::Real::of(if (i.wrapping_mul(0x9E37_79B9) >> 7) & 1 == 0 { 1.0 } else { -1.0 });
    let mut residual = smallvec::SmallVec::<[T; 64]>::from_elem(T::ZERO, n);
    for (j, a) in a.chunks_exact(n).enumerate() {
        let mut sum = a[j].scale(x(j));
        for i in j + 1..n {
            residual[i] = residual[i] + a[i].scale(x(j));
            sum = sum + a[i].conj().scale(x(i));
        }
        residual[j] = residual[j] + sum;
    }
    let mut length = T::Real::ZERO;
    for (v, w) in v.chunks_exact(n).zip(w) {
        let along = v.iter().enumerate().fold(T::ZERO, |sum, (i, v)| sum + v.conj().scale(x(i)));
        length = length + along.abs2();
        let weight = along.scale(w.re());
        for (r, &v) in residual.iter_mut().zip(v) {
            *r = *r - v * weight;
        }
    }
    let size = T::Real::of(n as f64);
    let eps = T::Real::of(20.0 * n as f64) * T::Real::EPS;
    let (low, high) = (w[0].re().abs(), w[n - 1].re().abs());
    let norm = if low > high { low } else { high };
    let off = residual.iter().fold(T::Real::ZERO, |sum, x| sum + x.abs2()).sqrt();
    (length - size).abs() <= eps * size && off <= eps * norm * size.sqrt()
}

/// A number of ours that is one of faer's.
trait Provider: blas::Eigen {
    /// A = V diag(w) V^H, w ascending, of the lower triangle; all column-major. False without convergence.
    /// With `divide`, large tridiagonal matrices are divided and conquered.
    ///
    /// # Safety
    /// A and V are n x n, w has n elements.
    unsafe fn hermitian_evd(
        n: usize,
        a: *const Self,
        w: *mut Self,
        v: *mut Self,
        divide: bool,
        par: Par,
    ) -> bool;
}

impl<T: blas::Eigen + ComplexField> Provider for T {
    #[inline(never)]
    unsafe fn hermitian_evd(
        n: usize,
        a: *const Self,
        w: *mut Self,
        v: *mut Self,
        divide: bool,
        par: Par,
    ) -> bool {
        let ld = n as isize;
        // SAFETY: the caller's promise.
        let (a, w, v) = unsafe {
            (
                MatRef::from_raw_parts(a, n, n, 1, ld),
                ColMut::from_raw_parts_mut(w, n, 1),
                MatMut::from_raw_parts_mut(v, n, n, 1, ld),
            )
        };
        let mut params = Spec::<SelfAdjointEvdParams, T>::default();
        if !divide {
            params.config.recursion_threshold = usize::MAX;
        }
        let request = self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, par, params);
        with_stack(request, |stack| {
            self_adjoint_evd(a, w.as_diagonal_mut(), Some(v), par, stack, params).is_ok()
        })
    }
}
