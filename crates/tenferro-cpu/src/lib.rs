//! The CPU backend: sessions, a thread budget, loops that walk memory, and the kernels of the core operations.

// Named so that the linker gets the library.
#[cfg(feature = "blas-src")]
use blas_src as _;
#[cfg(feature = "lapack-src")]
use lapack_src as _;

mod backend;
mod kernels;
mod loops;
mod providers;
pub mod threads;

#[cfg(feature = "cpu-faer")]
pub use backend::FaerParallelismExt;
pub use backend::{CpuBackend, CpuExecSession, runtime_engine_registration, with_cpu_exec_session};
pub use kernels::{Destination, with_outputs};
#[cfg(any(feature = "cpu-faer", feature = "cpu-blas"))]
pub use tenferro_internal_dense::blas;
pub use threads::Par;
