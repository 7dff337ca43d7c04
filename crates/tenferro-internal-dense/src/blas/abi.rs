//! What the routines of BLAS and LAPACK look like: the Fortran interface with 32-bit integers (LP64), arguments by
//! address, and no hidden lengths of characters, which no routine here looks at.
//!
//! Source: the reference implementation, <https://www.netlib.org/lapack/>.

use num_complex::Complex;

use crate::Field;

/// `xGEMM(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)`.
pub type Gemm<T> = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *const i32,
    *const i32,
    *const i32,
    *const T,
    *const T,
    *const i32,
    *const T,
    *const i32,
    *const T,
    *mut T,
    *const i32,
);

/// `xTRSM(side, uplo, transa, diag, m, n, alpha, a, lda, b, ldb)`.
pub type Trsm<T> = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *const u8,
    *const u8,
    *const i32,
    *const i32,
    *const T,
    *const T,
    *const i32,
    *mut T,
    *const i32,
);

/// `xGETRF(m, n, a, lda, ipiv, info)`.
pub type Getrf<T> = unsafe extern "C" fn(*const i32, *const i32, *mut T, *const i32, *mut i32, *mut i32);

/// `xPOTRF(uplo, n, a, lda, info)`.
pub type Potrf<T> = unsafe extern "C" fn(*const u8, *const i32, *mut T, *const i32, *mut i32);

/// `xGEQRF(m, n, a, lda, tau, work, lwork, info)`.
pub type Geqrf<T> =
    unsafe extern "C" fn(*const i32, *const i32, *mut T, *const i32, *mut T, *mut T, *const i32, *mut i32);

/// `xORGQR(m, n, k, a, lda, tau, work, lwork, info)`, of complex numbers `xUNGQR`.
pub type Orgqr<T> = unsafe extern "C" fn(
    *const i32,
    *const i32,
    *const i32,
    *mut T,
    *const i32,
    *const T,
    *mut T,
    *const i32,
    *mut i32,
);

/// `xGESDD(jobz, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, iwork, info)` of real numbers.
pub type RealGesdd<T> = unsafe extern "C" fn(
    *const u8,
    *const i32,
    *const i32,
    *mut T,
    *const i32,
    *mut T,
    *mut T,
    *const i32,
    *mut T,
    *const i32,
    *mut T,
    *const i32,
    *mut i32,
    *mut i32,
);

/// `xGESDD(jobz, m, n, a, lda, s, u, ldu, vt, ldvt, work, lwork, rwork, iwork, info)` of complex numbers.
pub type ComplexGesdd<R> = unsafe extern "C" fn(
    *const u8,
    *const i32,
    *const i32,
    *mut Complex<R>,
    *const i32,
    *mut R,
    *mut Complex<R>,
    *const i32,
    *mut Complex<R>,
    *const i32,
    *mut Complex<R>,
    *const i32,
    *mut R,
    *mut i32,
    *mut i32,
);

/// `xSYEVD(jobz, uplo, n, a, lda, w, work, lwork, iwork, liwork, info)` of real numbers.
pub type RealHeevd<T> = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *const i32,
    *mut T,
    *const i32,
    *mut T,
    *mut T,
    *const i32,
    *mut i32,
    *const i32,
    *mut i32,
);

/// `xHEEVD(jobz, uplo, n, a, lda, w, work, lwork, rwork, lrwork, iwork, liwork, info)` of complex numbers.
pub type ComplexHeevd<R> = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *const i32,
    *mut Complex<R>,
    *const i32,
    *mut R,
    *mut Complex<R>,
    *const i32,
    *mut R,
    *const i32,
    *mut i32,
    *const i32,
    *mut i32,
);

/// `xGEEV(jobvl, jobvr, n, a, lda, wr, wi, vl, ldvl, vr, ldvr, work, lwork, info)` of real numbers.
pub type RealGeev<T> = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *const i32,
    *mut T,
    *const i32,
    *mut T,
    *mut T,
    *mut T,
    *const i32,
    *mut T,
    *const i32,
    *mut T,
    *const i32,
    *mut i32,
);

/// `xGEEV(jobvl, jobvr, n, a, lda, w, vl, ldvl, vr, ldvr, work, lwork, rwork, info)` of complex numbers.
pub type ComplexGeev<R> = unsafe extern "C" fn(
    *const u8,
    *const u8,
    *const i32,
    *mut Complex<R>,
    *const i32,
    *mut Complex<R>,
    *mut Complex<R>,
    *const i32,
    *mut Complex<R>,
    *const i32,
    *mut Complex<R>,
    *const i32,
    *mut R,
    *mut i32,
);

/// An element type with the routines whose interface differs between real and complex numbers.
pub trait Abi: Field {
    /// Singular values and vectors.
    type Gesdd: Copy + Send + Sync + 'static;
    /// Eigenvalues and vectors of a Hermitian matrix.
    type Heevd: Copy + Send + Sync + 'static;
    /// Eigenvalues and right vectors.
    type Geev: Copy + Send + Sync + 'static;
}

macro_rules! abi {
    ($($r:ty)*) => {$(
        impl Abi for $r {
            type Gesdd = RealGesdd<$r>;
            type Heevd = RealHeevd<$r>;
            type Geev = RealGeev<$r>;
        }
        impl Abi for Complex<$r> {
            type Gesdd = ComplexGesdd<$r>;
            type Heevd = ComplexHeevd<$r>;
            type Geev = ComplexGeev<$r>;
        }
    )*};
}

abi!(f32 f64);
