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

use crate::plausible::{Factors, image};
use crate::svd::{balance, half_of_largest};
use crate::workspace::{expect_room, total, with_stack, with_zeros};
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
    /// `NonFinite` with the first such element of the triangle in column-major order; `Memory`. The outputs
    /// are then arbitrary. `NoConvergence` is not known to occur.
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

    /// The w of [`eigh`](Eigh::eigh) without V: as accurate, and the same inputs are errors.
    ///
    /// # Errors
    /// As for [`eigh`](Eigh::eigh).
    ///
    /// # Safety
    /// As for [`eigh`](Eigh::eigh), without V.
    unsafe fn eigvalsh(
        n: usize,
        a: Strided<*const Self>,
        w: *mut Self::Real,
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
                unsafe { eigh(n, a, w, Some(v), par) }
            }

            unsafe fn eigvalsh(
                n: usize,
                a: Strided<*const Self>,
                w: *mut Self::Real,
                par: Par,
            ) -> Result<(), DenseError> {
                expect_room::<$t>(n, n)?;
                // SAFETY: the caller's.
                unsafe { eigh(n, a, w, None, par) }
            }
        }
    )*};
}

eigh!(f32 f64 Complex<f32> Complex<f64>);

/// Largest order for which the own loops beat faer, for real and for complex elements.
const OWN: [usize; 2] = [64, 64];

/// See [`Eigh::eigh`], and [`Eigh::eigvalsh`] where there is no room for V.
///
/// # Safety
/// Stated there.
unsafe fn eigh<T: Provider>(
    n: usize,
    a: Strided<*const T>,
    w: *mut T::Real,
    v: Option<*mut T>,
    par: Par,
) -> Result<(), DenseError> {
    // SAFETY: the caller's promise.
    unsafe {
        let largest = half_of_largest((n, n), |j| j, |i, j| element(a, i, j))?;
        let job = Job { n, a, largest, w, v };
        if blas::has_eigh::<T>(n) && job.by_lapack()? {
            return Ok(());
        }
        if n == 2 {
            eigh_2x2(&job);
            return Ok(());
        }
        let small = n <= OWN[usize::from(T::COMPLEX)];
        let done = (small && job.by_tridiagonal()?)
            || job.by_faer(true, par)?
            || (v.is_some() && job.by_faer(false, par)?)
            || (!small && job.by_tridiagonal()?);
        if done { Ok(()) } else { Err(DenseError::NoConvergence) }
    }
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
    v: Option<*mut T>,
}

impl<T: Provider> Job<T> {
    /// By LAPACK; false if there is none or its result is unusable.
    ///
    /// # Safety
    /// The promise of [`eigh`].
    #[cold]
    unsafe fn by_lapack(&self) -> Result<bool, DenseError> {
        let &Job { n, a, w, v, .. } = self;
        let (factor, inverse) = balance(self.largest, 0);
        let own = if v.is_some() { 0 } else { total([(n, n)]) };
        with_zeros::<T, _>(own, |buffer| {
            let to = v.unwrap_or(buffer.as_mut_ptr());
            // SAFETY: the sizes of the outputs are those that the caller promised, and that of the buffer is that
            // of V.
            unsafe {
                for j in 0..n {
                    for i in 0..n {
                        let x = if i < j { T::ZERO } else { element(a, i, j).scale(factor) };
                        to.add(i + j * n).write(x);
                    }
                }
                w.write_bytes(0, n);
                let values = std::slice::from_raw_parts_mut(w, n);
                let done = n > 0 && blas::eigh(n, to, w, v.is_some())?;
                let good = done && values.is_sorted() && self.plausible(factor, &|k| values[k])?;
                values.iter_mut().for_each(|w| *w = *w * inverse);
                Ok(good)
            }
        })?
    }

    /// Whether V, which is written, and these eigenvalues are those of A times `factor`; see [`Factors`]. Without
    /// V, whether their sum and that of their squares are the trace of this matrix and that of its square.
    ///
    /// # Errors
    /// `Memory`.
    ///
    /// # Safety
    /// The promise of [`eigh`]; n is not 0.
    unsafe fn plausible(&self, factor: T::Real, w: &dyn Fn(usize) -> T::Real) -> Result<bool, DenseError> {
        let &Job { n, a, .. } = self;
        let Some(v) = self.v else {
            let mut off = [T::Real::ZERO; 2];
            let mut size = T::Real::ZERO;
            for j in 0..n {
                // SAFETY: (i, j) lies in the triangle.
                let at = |i: usize| unsafe { element(a, i, j) }.scale(factor);
                // By columns: the error of a sum grows as the number of its terms does.
                let below = (j + 1..n).fold(T::Real::ZERO, |sum, i| sum + at(i).abs2());
                size = size + (at(j).abs2() + below + below);
                off[0] = off[0] + at(j).re() - w(j);
                off[1] = off[1] + w(j) * w(j);
            }
            off[1] = off[1] - size;
            let unit = T::Real::of(40.0 * n as f64) * T::Real::EPS;
            return Ok(off[0].abs() <= unit * size.sqrt() && off[1].abs() <= unit * size);
        };
        let at = |i: usize, j: usize| {
            // SAFETY: (i, j), or (j, i), lies in the triangle.
            let x = unsafe { if i < j { element(a, j, i).conj() } else { element(a, i, j) } };
            x.scale(factor)
        };
        let (low, high) = (w(0).abs(), w(n - 1).abs());
        let largest = if low > high { low } else { high };
        let columns = Strided { ptr: v.cast_const(), row: 1, col: n as isize };
        let factors = Factors { u: columns, s: w, count: n, v: columns, conj: false };
        // SAFETY: the caller's promise.
        unsafe { factors.plausible((n, n), image((n, n), at)?, largest) }
    }

    /// By faer, with divide and conquer (for n >= 128) or, as always without V, by QR iterations only; false if the
    /// result is unusable.
    ///
    /// # Safety
    /// The promise of [`eigh`].
    unsafe fn by_faer(&self, divide: bool, par: Par) -> Result<bool, DenseError> {
        let &Job { n, a, w, v, .. } = self;
        let (factor, inverse) = balance(self.largest, 0);
        with_zeros::<T, _>(total([(n, n), (1, n)]), |buffer| {
            let (scaled, values) = buffer.split_at_mut(n * n);
            // SAFETY: the sizes of the outputs are those that the caller promised.
            unsafe {
                for j in 0..n {
                    for i in j..n {
                        scaled[i + j * n] = element(a, i, j).scale(factor);
                    }
                }
                if !T::hermitian_evd(n, scaled.as_ptr(), values.as_mut_ptr(), v, divide, par)? {
                    return Ok(false);
                }
                let ordered = values.windows(2).all(|w| w[0].re() <= w[1].re());
                if !ordered || !self.plausible(factor, &|k| values[k].re())? {
                    return Ok(false);
                }
                for (i, x) in values.iter().enumerate() {
                    w.add(i).write(x.re() * inverse);
                }
            }
            Ok(true)
        })?
    }
}

/// A number of ours that is one of faer's.
trait Provider: blas::Eigen {
    /// A = V diag(w) V^H, w ascending, of the lower triangle; all column-major. False without convergence.
    /// With `divide`, large tridiagonal matrices are divided and conquered. V may be left out.
    ///
    /// # Safety
    /// A and V are n x n, w has n elements.
    unsafe fn hermitian_evd(
        n: usize,
        a: *const Self,
        w: *mut Self,
        v: Option<*mut Self>,
        divide: bool,
        par: Par,
    ) -> Result<bool, DenseError>;
}

impl<T: blas::Eigen + ComplexField> Provider for T {
    #[inline(never)]
    unsafe fn hermitian_evd(
        n: usize,
        a: *const Self,
        w: *mut Self,
        v: Option<*mut Self>,
        divide: bool,
        par: Par,
    ) -> Result<bool, DenseError> {
        let ld = n as isize;
        // SAFETY: the caller's promise.
        let (a, w, v) = unsafe {
            (
                MatRef::from_raw_parts(a, n, n, 1, ld),
                ColMut::from_raw_parts_mut(w, n, 1),
                v.map(|v| MatMut::from_raw_parts_mut(v, n, n, 1, ld)),
            )
        };
        let vectors = if v.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
        let mut params = Spec::<SelfAdjointEvdParams, T>::default();
        if !divide {
            params.config.recursion_threshold = usize::MAX;
        }
        let request = self_adjoint_evd_scratch::<T>(n, vectors, par, params);
        with_stack(request, |stack| self_adjoint_evd(a, w.as_diagonal_mut(), v, par, stack, params).is_ok())
    }
}
