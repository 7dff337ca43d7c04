//! Differentiable dense linear algebra: one file per decomposition, each with shape rule, derivative of any
//! order and kernels.
//!
//! Axes 0 and 1 are a matrix; every further axis counts matrices. Results are in the order of SciPy's
//! functions of the same name: `lu` gives `(p, L, U)`, `lu_factor` `(packed, p)`, `qr_pivoted`, whose name
//! there is `qr` with `pivoting`, `(Q, R, p)`. `lu_full_pivot`, which SciPy has not, gives `(L, U, p, q)`. What
//! solves with factors takes them in the order in which they are given. The methods of the [`prelude`] work on
//! typed, dynamic, eager and traced tensors:
//!
//! ```
//! use tenferro_cpu::CpuBackend;
//! use tenferro_linalg::prelude::*;
//! use tenferro_runtime::{EagerRuntime, Tensor, prelude::*};
//!
//! let mut cpu = CpuBackend::new();
//! let a = Tensor::from_vec_col_major([2, 2], vec![3.0, 0.0, 4.0, 5.0])?;
//! let (_, s, _) = a.svd(&mut cpu)?;
//! assert!((s.as_slice::<f64>()?[0] - 45f64.sqrt()).abs() < 1e-14);
//!
//! // Rank one, with a derivative that knows what was discarded.
//! let runtime = EagerRuntime::new(&cpu);
//! let a = runtime.tensor(a)?;
//! let (left, right) = a.split(Truncation::max_rank(1))?;
//! assert_eq!(left.shape(), [2, 1]);
//! assert_eq!(right.shape(), [1, 2]);
//! # Ok::<(), tenferro_tensor::Error>(())
//! ```

mod balance;
mod batch;
mod checked;
mod cholesky;
mod condition;
mod det;
mod divided;
mod eig;
mod eigh;
mod exponential;
mod gaps;
mod hermitian;
mod householder;
mod independent;
mod inverse;
mod lstsq;
mod lu;
mod lu_full_pivot;
mod matrix;
mod named;
mod norm;
mod pade;
mod permute;
mod phase;
mod pinv;
mod polar;
mod products;
mod qr;
mod range;
mod rank;
mod scaled_product;
mod slogdet;
mod solve;
mod spectral;
mod split;
mod stop_gradient;
mod surface;
mod svd;
mod system;
mod triangular;
mod truncate;

pub use checked::EqualExtents;
pub use cholesky::Cholesky;
pub use det::{Det, DetDerivative};
pub use divided::SpectralFunction;
pub use eig::{Eig, EigenvalueOrder, Eigenvalues};
pub use eigh::{Eigh, HermitianEigenvalues};
pub use exponential::MatrixExp;
pub use gaps::{EigenvalueGaps, SingularValueGaps};
pub use hermitian::Hermitian;
pub use householder::{Householder, HouseholderApply, HouseholderProduct};
pub use independent::IndependentVectors;
pub use inverse::Inverse;
pub use lstsq::LeastSquares;
pub use lu::LuFactor;
pub use lu_full_pivot::LuFullPivot;
pub use norm::{MatrixNorm, VectorNorm};
pub use permute::Permute;
pub use phase::PhaseWeights;
pub use pinv::Pinv;
pub use qr::{PivotedQr, Qr, QrOptions};
pub use rank::{NumericalRank, Tolerance};
pub use slogdet::SlogDet;
pub use solve::LuSolve;
pub use spectral::{SpectralCore, SpectralDerivative};
pub use split::{Couple, GramLyapunov, GramSolve, Split};
pub use stop_gradient::StopGradient;
pub use surface::{CpuLinalgExt, LinalgOps, LinalgRecorded, TypedLinalgOps};
pub use svd::{SingularValues, Svd};
pub use system::System;
pub use triangular::{Triangular, TriangularSolve};
pub use truncate::{Limits, Rank, Truncation};

/// The operations as functions of values, for derivative rules and other crates.
pub mod ops {
    pub use crate::{
        cholesky::{cholesky, cholesky_solve},
        condition::cond,
        det::det,
        eig::{eig, eigvals},
        eigh::{eigh, eigh_generalized, eigvalsh},
        exponential::matrix_exp,
        householder::{householder, householder_append, householder_apply, householder_product},
        inverse::inv,
        lstsq::lstsq,
        lu::{lu, lu_factor, lu_solve},
        lu_full_pivot::{lu_full_pivot, lu_full_pivot_solve},
        norm::{matrix_norm, vector_norm},
        pinv::pinv,
        polar::polar,
        products::{kron, matrix_power, trace},
        qr::{qr, qr_full, qr_pivoted, qr_pivoted_with, qr_with},
        rank::matrix_rank,
        slogdet::slogdet,
        solve::{solve, solve_with},
        spectral::spectral,
        split::split,
        stop_gradient::stop_gradient,
        svd::{svd, svd_full, svdvals},
        triangular::triangular_solve,
        truncate::svd_truncated,
    };
}

/// The methods, and the types they take.
pub mod prelude {
    pub use crate::{
        CpuLinalgExt, Limits, LinalgOps, LinalgRecorded, MatrixNorm, QrOptions, SpectralFunction, System,
        Tolerance, Triangular, Truncation, TypedLinalgOps, VectorNorm,
    };
}
