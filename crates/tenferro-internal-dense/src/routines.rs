//! The routines, compiled here.

use faer::Par;
use num_complex::Complex;

use crate::{
    Cholesky, Eig, Eigh, Factor, LuFullPivot, Qr, Strided, Target, Triangle, Vectors, gemm, lu, solve, svd,
    triangular,
};

/// Why a matrix could not be factored or solved with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenseError {
    /// The pivot `index` (from zero) is exactly zero.
    Singular {
        /// Position on the diagonal.
        index: usize,
    },
    /// The element (`row`, `col`) is infinite or not a number.
    NonFinite {
        /// Row from zero.
        row: usize,
        /// Column from zero.
        col: usize,
    },
    /// An iteration did not come to its end.
    NoConvergence,
    /// Numbers on the way are larger than the type holds, though those given are not.
    Overflow,
    /// There is no memory for a workspace.
    Memory {
        /// Its size, or the largest number if that is larger.
        bytes: usize,
    },
    /// The leading minor of this order is not positive.
    NotPositiveDefinite {
        /// Number of its rows, from one.
        order: usize,
    },
}

/// Products and factorizations of matrices of `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
///
/// Methods of four types, and not generic functions, which each crate that calls them would compile again.
pub trait Dense: Cholesky + Eig + Eigh + LuFullPivot + Qr {
    /// C <- alpha op(A) op(B) + beta C with A of m x k, B of k x n, C of m x n.
    ///
    /// With beta = 0, C is written without being read; with k = 0 or alpha = 0, A and B are not read and C
    /// becomes beta C; with m = 0 or n = 0 nothing happens.
    ///
    /// # Safety
    /// Every addressed element of A and B is valid for reads and every one of C for writes (and for reads and
    /// initialised if beta is not zero). The elements of C are distinct and overlap neither A nor B.
    #[allow(clippy::too_many_arguments)]
    unsafe fn gemm(
        shape: (usize, usize, usize),
        alpha: Self,
        a: Factor<Self>,
        b: Factor<Self>,
        beta: Self,
        c: Target<Self>,
        par: Par,
    );

    /// [`gemm`](Dense::gemm) by the method for middle sizes whatever the shape, with the registers of AVX-512
    /// if `wide`, else of AVX2; tells whether the processor has them. Tests reach those of AVX2 on every
    /// machine by no other way.
    ///
    /// # Safety
    /// As for [`gemm`](Dense::gemm), and no extent is zero.
    #[doc(hidden)]
    #[allow(clippy::too_many_arguments)]
    unsafe fn gemm_by_tiles(
        wide: bool,
        shape: (usize, usize, usize),
        alpha: Self,
        a: Factor<Self>,
        b: Factor<Self>,
        beta: Self,
        c: Target<Self>,
    ) -> bool;

    /// B <- T^-1 B, or conj(T)^-1 B if `conj`, with T the given triangle of an n x n matrix, taken with a unit
    /// diagonal if the flag beside it says so, and B of n x nrhs.
    ///
    /// A transposed system is the other triangle with exchanged strides. A zero on the diagonal gives infinities.
    ///
    /// # Safety
    /// The triangle is readable, B is readable and writable, and they do not overlap.
    unsafe fn triangular_solve(
        shape: (usize, usize),
        tri: (Triangle, bool),
        a: Strided<*const Self>,
        conj: bool,
        b: Strided<*mut Self>,
        par: Par,
    );

    /// P A = L U of an m x n matrix: `packed` (m x n, column-major) receives U on and above the diagonal and the
    /// unit lower L below it, `perm` (length m) the permutation: row i of P A is row `perm[i]` of A.
    ///
    /// A singular matrix has factors all the same. NaN and infinities propagate.
    ///
    /// # Errors
    /// `Memory`; the outputs are then arbitrary.
    ///
    /// # Safety
    /// A is readable, `packed` and `perm` are writable and overlap neither A nor each other; they need not be
    /// initialised. m <= i32::MAX. A may be `packed` itself when its strides are (1, m).
    unsafe fn lu(
        shape: (usize, usize),
        a: Strided<*const Self>,
        packed: *mut Self,
        perm: *mut i32,
        par: Par,
    ) -> Result<(), DenseError>;

    /// B <- A^-1 B, or A^-H B if `adjoint`, from the factors of [`lu`](Dense::lu): A = P^T L U with `packed`
    /// n x n, B n x nrhs.
    ///
    /// # Errors
    /// `Singular` if a diagonal element of U is exactly zero, and `Memory`; B is then unchanged.
    ///
    /// # Safety
    /// The factors are readable (n numbers in `perm`), B is readable and writable and overlaps neither.
    unsafe fn solve_lu(
        shape: (usize, usize),
        packed: Strided<*const Self>,
        perm: *const i32,
        adjoint: bool,
        b: Strided<*mut Self>,
        par: Par,
    ) -> Result<(), DenseError>;

    /// A = U diag(s) Vh with s descending and non-negative: U is m x k (m x m if full), s has k = min(m, n)
    /// elements, Vh is k x n (n x n if full), all column-major.
    ///
    /// |A - U diag(s) Vh| and the departures of U and Vh from orthonormality are a modest multiple of
    /// max(m, n) eps, the first relative to s(0).
    ///
    /// # Errors
    /// `NonFinite` with the first such element in column-major order; `Memory`. The outputs are then
    /// arbitrary.
    ///
    /// # Safety
    /// A is readable; the outputs are writable and overlap neither A nor each other; they may be
    /// uninitialised.
    unsafe fn svd(
        shape: (usize, usize),
        a: Strided<*const Self>,
        u: *mut Self,
        s: *mut Self::Real,
        vh: *mut Self,
        vectors: Vectors,
        par: Par,
    ) -> Result<(), DenseError>;

    /// The s of [`svd`](Dense::svd) without vectors: as accurate, and the same inputs are errors.
    ///
    /// # Errors
    /// As for [`svd`](Dense::svd).
    ///
    /// # Safety
    /// As for [`svd`](Dense::svd), without U and Vh.
    unsafe fn svdvals(
        shape: (usize, usize),
        a: Strided<*const Self>,
        s: *mut Self::Real,
        par: Par,
    ) -> Result<(), DenseError>;

    /// The thin [`svd`](Dense::svd) by the method that it takes for small matrices and falls back on, which tests
    /// reach for large ones by no other way.
    ///
    /// # Errors
    /// As for [`svd`](Dense::svd).
    ///
    /// # Safety
    /// As for [`svd`](Dense::svd).
    #[doc(hidden)]
    unsafe fn svd_by_jacobi(
        shape: (usize, usize),
        a: Strided<*const Self>,
        u: *mut Self,
        s: *mut Self::Real,
        vh: *mut Self,
    ) -> Result<(), DenseError>;
}

macro_rules! routines {
    ($($t:ty)*) => {$(
        impl Dense for $t {
            unsafe fn gemm(
                shape: (usize, usize, usize),
                alpha: Self,
                a: Factor<Self>,
                b: Factor<Self>,
                beta: Self,
                c: Target<Self>,
                par: Par,
            ) {
                // SAFETY: the caller's.
                unsafe { gemm::gemm(shape, alpha, a, b, beta, c, par) }
            }

            unsafe fn gemm_by_tiles(
                wide: bool,
                shape: (usize, usize, usize),
                alpha: Self,
                a: Factor<Self>,
                b: Factor<Self>,
                beta: Self,
                c: Target<Self>,
            ) -> bool {
                // SAFETY: the caller's.
                unsafe { gemm::gemm_by_tiles(wide, shape, alpha, a, b, beta, c) }
            }

            unsafe fn triangular_solve(
                shape: (usize, usize),
                tri: (Triangle, bool),
                a: Strided<*const Self>,
                conj: bool,
                b: Strided<*mut Self>,
                par: Par,
            ) {
                // SAFETY: the caller's.
                unsafe { triangular::triangular_solve(shape, tri, a, conj, b, par) }
            }

            unsafe fn lu(
                shape: (usize, usize),
                a: Strided<*const Self>,
                packed: *mut Self,
                perm: *mut i32,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { lu::lu(shape, a, packed, perm, par) }
            }

            unsafe fn solve_lu(
                shape: (usize, usize),
                packed: Strided<*const Self>,
                perm: *const i32,
                adjoint: bool,
                b: Strided<*mut Self>,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { solve::solve_lu(shape, packed, perm, adjoint, b, par) }
            }

            unsafe fn svd(
                shape: (usize, usize),
                a: Strided<*const Self>,
                u: *mut Self,
                s: *mut Self::Real,
                vh: *mut Self,
                vectors: Vectors,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { svd::svd(shape, a, u, s, vh, vectors, par) }
            }

            unsafe fn svdvals(
                shape: (usize, usize),
                a: Strided<*const Self>,
                s: *mut Self::Real,
                par: Par,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { svd::svdvals(shape, a, s, par) }
            }

            unsafe fn svd_by_jacobi(
                shape: (usize, usize),
                a: Strided<*const Self>,
                u: *mut Self,
                s: *mut Self::Real,
                vh: *mut Self,
            ) -> Result<(), DenseError> {
                // SAFETY: the caller's.
                unsafe { svd::svd_by_jacobi(shape, a, u, s, vh) }
            }
        }
    )*};
}

routines!(f32 f64 Complex<f32> Complex<f64>);
