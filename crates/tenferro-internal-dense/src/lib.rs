//! Dense matrix products and factorizations of one matrix in raw memory: no tensor, batch or derivative.
//!
//! An internal crate of tenferro: its interface may change in any version.
//!
//! `Dense` lists the routines. Each picks between own loops, which win for small matrices because they start
//! at once, and faer. The kernels of tenferro-cpu and tenferro-linalg loop over the batch and call down here.
//!
//! Invariants: everything that instantiates faer is compiled in this crate, once per element type, and this
//! crate depends on no other of the project, so that an edit elsewhere does not compile it again; small matrices
//! allocate nothing in the steady state; every routine terminates on every input, finite or not.
//!
//! ```
//! # #[cfg(feature = "faer")] {
//! use tenferro_internal_dense::{Dense, Factor, Par, Target};
//!
//! let (a, b, mut c) = ([1.0, 3.0, 2.0, 4.0], [5.0, 6.0], [0.0; 2]);
//! // SAFETY: A is 2 x 2, B and C are 2 x 1, all column-major.
//! unsafe {
//!     let a = Factor { ptr: a.as_ptr(), row: 1, col: 2, conj: false };
//!     let b = Factor { ptr: b.as_ptr(), row: 1, col: 2, conj: false };
//!     let c = Target { ptr: c.as_mut_ptr(), row: 1, col: 2 };
//!     f64::gemm((2, 1, 2), 1.0, a, b, 0.0, c, Par::Seq);
//! }
//! assert_eq!(c, [17.0, 39.0]);
//! # }
//! ```

#[cfg(feature = "faer")]
pub mod blas;
#[cfg(feature = "faer")]
mod cholesky;
#[cfg(feature = "faer")]
mod eig;
#[cfg(feature = "faer")]
mod eigh;
#[cfg(feature = "faer")]
mod field;
#[cfg(feature = "faer")]
mod gemm;
#[cfg(feature = "faer")]
mod householder;
#[cfg(feature = "faer")]
mod lu;
#[cfg(feature = "faer")]
mod lu_full_pivot;
#[cfg(feature = "faer")]
mod plausible;
#[cfg(feature = "faer")]
mod provider;
#[cfg(feature = "faer")]
mod qr;
#[cfg(feature = "faer")]
mod routines;
#[cfg(feature = "faer")]
mod simd;
#[cfg(feature = "faer")]
mod solve;
mod strided;
#[cfg(feature = "faer")]
mod svd;
#[cfg(feature = "faer")]
mod triangular;
#[cfg(feature = "faer")]
mod workspace;

pub use strided::{Factor, Strided, Target};

#[cfg(feature = "faer")]
pub use {
    ::faer::Par,
    cholesky::Cholesky,
    eig::Eig,
    eigh::Eigh,
    field::{Field, Real},
    lu_full_pivot::LuFullPivot,
    qr::{Qr, QrForm},
    routines::{Dense, DenseError},
    svd::Vectors,
    triangular::Triangle,
    workspace::{allocated, filled},
};
