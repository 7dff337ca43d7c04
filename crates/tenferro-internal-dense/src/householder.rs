//! The numbers of a Householder reflection (LAPACK xLARFG), whatever its vector is stored in.

use crate::svd::negligible;
use crate::{Field, Real};

/// `H = I - tau v v^H` with `H^H (alpha, tail) = (beta, 0)` and v = (1, `scale` tail).
pub(crate) struct Reflection<T: Field> {
    /// Real, of modulus |(alpha, tail)|, and of the sign that makes alpha - beta a sum.
    pub(crate) beta: T::Real,
    pub(crate) tau: T,
    pub(crate) scale: T,
}

impl<T: Field> Reflection<T> {
    /// For a column of length `norm`, which is not zero, with `alpha` in its first row.
    #[inline(always)]
    pub(crate) fn new(alpha: T, norm: T::Real) -> Self {
        let beta = -norm.copysign(alpha.re());
        let tau = (T::real(beta) - alpha).scale(T::Real::ONE / beta);
        Reflection { beta, tau, scale: T::ONE.divide(alpha - T::real(beta)) }
    }

    /// beta and tau for a column that is zero, or as good as that, below `alpha`: at most a phase is turned.
    #[inline(always)]
    pub(crate) fn of_head(alpha: T) -> (T::Real, T) {
        if alpha == T::real(alpha.re()) {
            (alpha.re(), T::ZERO)
        } else if negligible(alpha.abs2()) {
            // The reciprocal of its modulus could overflow.
            (T::Real::ZERO, T::ZERO)
        } else {
            let beta = -alpha.abs().copysign(alpha.re());
            (beta, (T::real(beta) - alpha).scale(T::Real::ONE / beta))
        }
    }
}
