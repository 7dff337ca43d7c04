//! Matrix products of floating-point elements, compiled once in tenferro-internal-dense.

use super::{Factor, Target};
use tenferro_internal_dense::{Dense, Par};

/// C <- alpha op(A) op(B) + beta C, as [`Dense::gemm`].
///
/// # Safety
/// Stated there.
#[inline]
pub(crate) unsafe fn gemm<T: Dense>(
    mnk: (usize, usize, usize),
    alpha: T,
    a: Factor<T>,
    b: Factor<T>,
    beta: T,
    c: Target<T>,
    par: Par,
) {
    // SAFETY: the caller's.
    unsafe { T::gemm(mnk, alpha, a, b, beta, c, par) }
}
