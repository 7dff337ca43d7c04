//! Eigenvalues and eigenvectors by LAPACK, of compact column-major matrices.

use num_complex::Complex;
use smallvec::SmallVec;

use super::{ComplexGeev, ComplexHeevd, Library, RealGeev, RealHeevd, routines, work::with_work};
use crate::{DenseError, workspace::filled};

/// The parts that differ between real and complex numbers.
pub(crate) trait Eigen: Library {
    /// False without convergence.
    ///
    /// # Safety
    /// As for [`eigh`]; n is not 0.
    unsafe fn heevd(
        routine: Self::Heevd,
        job: u8,
        n: i32,
        v: *mut Self,
        w: *mut Self::Real,
    ) -> Result<bool, DenseError>;

    /// False without convergence.
    ///
    /// # Safety
    /// As for [`eig`]; n is not 0.
    unsafe fn geev(
        routine: Self::Geev,
        n: i32,
        a: *mut Self,
        w: *mut Self,
        v: Option<*mut Self>,
    ) -> Result<bool, DenseError>;
}

/// Whether [`eigh`] is there for order n.
#[inline]
pub(crate) fn has_eigh<T: Library>(n: usize) -> bool {
    routines::<T>(n).is_some_and(|routines| routines.heevd.is_some())
}

/// The eigenvalues, ascending, of the Hermitian matrix whose lower triangle is in `v`, and in its place the vectors
/// if these are asked for; false if it was not done.
///
/// # Safety
/// `v` is n x n, `w` has room for n numbers.
pub(crate) unsafe fn eigh<T: Eigen>(
    n: usize,
    v: *mut T,
    w: *mut T::Real,
    vectors: bool,
) -> Result<bool, DenseError> {
    let (Some(heevd), Ok(n)) = (routines::<T>(n).and_then(|routines| routines.heevd), i32::try_from(n))
    else {
        return Ok(false);
    };
    // SAFETY: the caller's promise.
    unsafe { T::heevd(heevd, if vectors { b'V' } else { b'N' }, n, v, w) }
}

/// Whether [`eig`] is there for order n.
#[inline]
pub(crate) fn has_eig<T: Library>(n: usize) -> bool {
    routines::<T>(n).is_some_and(|routines| routines.geev.is_some())
}

/// Eigenvalues and, unless left out, vectors of a matrix that is destroyed; false if it was not done. Of a real
/// matrix, `w` has the n real parts and then the n imaginary ones, and for a pair of complex eigenvalues the columns
/// of `v` are the real and the imaginary part of the first one's vector.
///
/// # Safety
/// `a` and `v` are n x n; `w` has room for n complex numbers.
pub(crate) unsafe fn eig<T: Eigen>(
    n: usize,
    a: *mut T,
    w: *mut T,
    v: Option<*mut T>,
) -> Result<bool, DenseError> {
    let (Some(geev), Ok(n)) = (routines::<T>(n).and_then(|routines| routines.geev), i32::try_from(n)) else {
        return Ok(false);
    };
    // SAFETY: the caller's promise.
    unsafe { T::geev(geev, n, a, w, v) }
}

macro_rules! eigen {
    ($($r:ty)*) => {$(
        impl Eigen for $r {
            unsafe fn heevd(
                routine: RealHeevd<$r>,
                job: u8,
                n: i32,
                v: *mut $r,
                w: *mut $r,
            ) -> Result<bool, DenseError> {
                let order = n as usize;
                let mut iwork = filled([3 + 5 * order], 0)?;
                let liwork = iwork.len() as i32;
                with_work(|work, lwork, info| {
                    // SAFETY: the caller's promise, and the workspace is of the length asked for.
                    unsafe { routine(&job, &b'L', &n, v, &n, w, work, lwork, iwork.as_mut_ptr(), &liwork, info) }
                })
            }

            unsafe fn geev(
                routine: RealGeev<$r>,
                n: i32,
                a: *mut $r,
                w: *mut $r,
                v: Option<*mut $r>,
            ) -> Result<bool, DenseError> {
                // SAFETY: there is room for 2 n numbers.
                let imaginary = unsafe { w.add(n as usize) };
                let none = std::ptr::null_mut();
                let (job, v) = v.map_or((b'N', none), |v| (b'V', v));
                with_work(|work, lwork, info| {
                    // SAFETY: the caller's promise, and the workspace is of the length asked for.
                    unsafe {
                        routine(&b'N', &job, &n, a, &n, w, imaginary, none, &1, v, &n, work, lwork, info);
                    }
                })
            }
        }

        impl Eigen for Complex<$r> {
            unsafe fn heevd(
                routine: ComplexHeevd<$r>,
                job: u8,
                n: i32,
                v: *mut Self,
                w: *mut $r,
            ) -> Result<bool, DenseError> {
                let order = n as usize;
                let mut iwork = filled([3 + 5 * order], 0)?;
                // The length that the documentation of CHEEVD asks for.
                let mut rwork: SmallVec<[$r; 64]> = filled([1 + 5 * order + 2 * order * order], 0.0)?;
                let (Ok(lrwork), liwork) = (i32::try_from(rwork.len()), iwork.len() as i32) else { return Ok(false) };
                with_work(|work, lwork, info| {
                    // SAFETY: the caller's promise, and the workspaces are of the lengths asked for.
                    unsafe {
                        routine(
                            &job, &b'L', &n, v, &n, w, work, lwork, rwork.as_mut_ptr(), &lrwork,
                            iwork.as_mut_ptr(), &liwork, info,
                        );
                    }
                })
            }

            unsafe fn geev(
                routine: ComplexGeev<$r>,
                n: i32,
                a: *mut Self,
                w: *mut Self,
                v: Option<*mut Self>,
            ) -> Result<bool, DenseError> {
                let mut rwork: SmallVec<[$r; 64]> = filled([2, n as usize], 0.0)?;
                let none = std::ptr::null_mut();
                let (job, v) = v.map_or((b'N', none), |v| (b'V', v));
                with_work(|work, lwork, info| {
                    // SAFETY: the caller's promise, and the workspaces are of the lengths asked for.
                    unsafe {
                        routine(&b'N', &job, &n, a, &n, w, none, &1, v, &n, work, lwork, rwork.as_mut_ptr(), info);
                    }
                })
            }
        }
    )*};
}

eigen!(f32 f64);
