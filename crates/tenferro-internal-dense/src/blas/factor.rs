//! Factorizations by LAPACK, of compact column-major matrices.

use num_complex::Complex;
use smallvec::SmallVec;

use super::{ComplexGesdd, Library, RealGesdd, ints, routines, work::with_work};
use crate::{DenseError, Vectors, workspace::filled};

/// Whether [`lu`] is there for a matrix whose largest extent is `order`.
#[inline]
pub(crate) fn has_lu<T: Library>(order: usize) -> bool {
    routines::<T>(order).is_some_and(|routines| routines.getrf.is_some())
}

/// P A = L U in place, `perm` as of [`lu`](crate::Dense::lu); false if it was not done, or failed.
///
/// # Errors
/// `Memory`.
///
/// # Safety
/// `a` is an m x n matrix, `perm` has room for m numbers.
pub(crate) unsafe fn lu<T: Library>(
    (m, n): (usize, usize),
    a: *mut T,
    perm: *mut i32,
) -> Result<bool, DenseError> {
    let (Some(getrf), Some([rows, columns, lda])) =
        (routines::<T>(m.max(n)).and_then(|routines| routines.getrf), ints([m, n, m.max(1)]))
    else {
        return Ok(false);
    };
    let mut pivots = filled([m.min(n)], 0i32)?;
    let mut info = 0;
    // SAFETY: the caller's promise; there are min(m, n) pivots, and they are used where they are rows.
    unsafe {
        getrf(&rows, &columns, a, &lda, pivots.as_mut_ptr(), &mut info);
        if info < 0 || pivots.iter().zip(1..).any(|(&pivot, row)| pivot < row || pivot > rows) {
            return Ok(false);
        }
        for i in 0..m {
            perm.add(i).write(i as i32);
        }
        for (i, &pivot) in pivots.iter().enumerate() {
            std::ptr::swap(perm.add(i), perm.add(pivot as usize - 1));
        }
    }
    Ok(true)
}

/// A = L L^H in place of the lower triangle, the other is not touched: the index of the pivot that is not positive
/// in case of error, `None` if it was not done.
///
/// # Safety
/// `a` is an n x n matrix.
pub(crate) unsafe fn cholesky<T: Library>(n: usize, a: *mut T) -> Option<Result<(), usize>> {
    let potrf = routines::<T>(n)?.potrf?;
    let (order, mut info) = (i32::try_from(n).ok()?, 0);
    // SAFETY: the caller's promise.
    unsafe { potrf(&b'L', &order, a, &order.max(1), &mut info) };
    // Some libraries take NaN for a positive pivot.
    // SAFETY: the diagonal lies in the matrix.
    let bad = (0..n).find(|&i| unsafe { !(*a.add(i + i * n)).finite() });
    match info {
        0 => Some(bad.map_or(Ok(()), Err)),
        1.. => Some(Err(info as usize - 1)),
        _ => None,
    }
}

/// Whether [`reflectors`] and [`reflections`] are there for a matrix whose largest extent is `order`.
#[inline]
pub(crate) fn has_qr<T: Library>(order: usize) -> bool {
    routines::<T>(order).is_some_and(|routines| routines.geqrf.is_some() && routines.orgqr.is_some())
}

/// R on and above the diagonal of A, in its place, and the reflectors below it; false if it was not done.
///
/// # Safety
/// `a` is an m x n matrix; `tau` has min(m, n) elements, which is not 0.
pub(crate) unsafe fn reflectors<T: Library>(
    (m, n): (usize, usize),
    a: *mut T,
    tau: &mut [T],
) -> Result<bool, DenseError> {
    let mut call = || {
        let geqrf = routines::<T>(m.max(n))?.geqrf?;
        let [m, n] = ints([m, n])?;
        Some(with_work(|work, lwork, info| {
            // SAFETY: the caller's promise, and the workspace is of the length asked for.
            unsafe { geqrf(&m, &n, a, &m, tau.as_mut_ptr(), work, lwork, info) }
        }))
    };
    call().unwrap_or(Ok(false))
}

/// The first n columns of the product of the reflectors in the first columns of `q`, in its place; false if it was
/// not done.
///
/// # Safety
/// `q` is m x n, with reflectors in its first `tau.len()` <= n <= m columns; there is one at least.
pub(crate) unsafe fn reflections<T: Library>(
    (m, n): (usize, usize),
    q: *mut T,
    tau: &[T],
) -> Result<bool, DenseError> {
    let call = || {
        let orgqr = routines::<T>(m.max(n))?.orgqr?;
        let [m, n, k] = ints([m, n, tau.len()])?;
        Some(with_work(|work, lwork, info| {
            // SAFETY: the caller's promise, and the workspace is of the length asked for.
            unsafe { orgqr(&m, &n, &k, q, &m, tau.as_ptr(), work, lwork, info) }
        }))
    };
    call().unwrap_or(Ok(false))
}

/// Whether [`svd`] is there for a matrix whose largest extent is `order`.
#[inline]
pub(crate) fn has_svd<T: Library>(order: usize) -> bool {
    routines::<T>(order).is_some_and(|routines| routines.gesdd.is_some())
}

/// A = U diag(s) Vh, destroying A, or the values alone; false if it was not done.
///
/// # Safety
/// `a` is an m x n matrix; the outputs have the shapes of [`svd`](crate::Dense::svd), and are not written where
/// no vectors are asked for.
pub(crate) unsafe fn svd<T: Svd>(
    (m, n): (usize, usize),
    a: *mut T,
    u: *mut T,
    s: *mut T::Real,
    vh: *mut T,
    vectors: Option<Vectors>,
) -> Result<bool, DenseError> {
    let call = || {
        let gesdd = routines::<T>(m.max(n))?.gesdd?;
        let (job, ldvt) = match vectors {
            None => (b'N', 1),
            Some(Vectors::Thin) => (b'S', m.min(n)),
            Some(Vectors::Full) => (b'A', n),
        };
        let [rows, columns, ldvt] = ints([m, n, ldvt])?;
        // SAFETY: the caller's promise.
        Some(unsafe { T::gesdd(gesdd, job, [rows, columns, ldvt.max(1)], a, s, u, vh) })
    };
    call().unwrap_or(Ok(false))
}

/// The part of the singular value decomposition that differs between real and complex numbers.
pub(crate) trait Svd: Library {
    /// False without convergence.
    ///
    /// # Errors
    /// `Memory`.
    ///
    /// # Safety
    /// As for [`svd`]; the shape is m, n and the leading dimension of Vh, none of them 0.
    unsafe fn gesdd(
        routine: Self::Gesdd,
        job: u8,
        shape: [i32; 3],
        a: *mut Self,
        s: *mut Self::Real,
        u: *mut Self,
        vh: *mut Self,
    ) -> Result<bool, DenseError>;
}

macro_rules! svd {
    ($($r:ty)*) => {$(
        impl Svd for $r {
            unsafe fn gesdd(
                routine: RealGesdd<$r>,
                job: u8,
                [m, n, ldvt]: [i32; 3],
                a: *mut $r,
                s: *mut $r,
                u: *mut $r,
                vh: *mut $r,
            ) -> Result<bool, DenseError> {
                let mut iwork = filled([8, m.min(n) as usize], 0)?;
                with_work(|work, lwork, info| {
                    // SAFETY: the caller's promise, and the workspace is of the length asked for.
                    unsafe {
                        routine(&job, &m, &n, a, &m, s, u, &m, vh, &ldvt, work, lwork, iwork.as_mut_ptr(), info);
                    }
                })
            }
        }

        impl Svd for Complex<$r> {
            unsafe fn gesdd(
                routine: ComplexGesdd<$r>,
                job: u8,
                [m, n, ldvt]: [i32; 3],
                a: *mut Self,
                s: *mut $r,
                u: *mut Self,
                vh: *mut Self,
            ) -> Result<bool, DenseError> {
                let (least, most) = (m.min(n) as usize, m.max(n) as usize);
                let mut iwork = filled([8, least], 0)?;
                // The length that the documentation of CGESDD asks for.
                let lrwork = least * (5 * least + 7).max(2 * most + 2 * least + 1);
                let mut rwork: SmallVec<[$r; 64]> = filled([lrwork], 0.0)?;
                with_work(|work, lwork, info| {
                    // SAFETY: the caller's promise, and the workspaces are of the lengths asked for.
                    unsafe {
                        routine(
                            &job, &m, &n, a, &m, s, u, &m, vh, &ldvt, work, lwork, rwork.as_mut_ptr(),
                            iwork.as_mut_ptr(), info,
                        );
                    }
                })
            }
        }
    )*};
}

svd!(f32 f64);
