//! Differentiable dense linear algebra: one file per decomposition, each with shape rule, derivative of any order
//! and kernels.
//!
//! Axes 0 and 1 are a matrix; every further axis counts matrices.

mod batch;
mod dense;
mod divided;
mod lu;
mod matrix;
mod solve;
mod spectral;
mod split;
mod stop_gradient;
mod svd;
mod truncate;
mod triangular;

pub use divided::SpectralFunction;
pub use lu::LuFactor;
pub use solve::LuSolve;
pub use spectral::{SpectralCore, SpectralDerivative};
pub use split::{Couple, GramSolve, Split};
pub use stop_gradient::StopGradient;
pub use svd::{Gaps, Svd};
pub use triangular::TriangularSolve;
pub use truncate::{Limits, Rank, Truncation};

/// The operations as functions of values of any tier's kind, for rules and other crates.
pub mod ops {
    pub use crate::{
        lu::lu,
        solve::solve,
        spectral::spectral,
        split::split,
        stop_gradient::stop_gradient,
        svd::{svd, svd_full, svdvals},
        truncate::svd_truncated,
    };
}
