//! The CPU backend: sessions, a thread budget, loops that walk memory, and the kernels of the core operations.

#[cfg(feature = "cpu-blas")]
compile_error!("tenferro-cpu: there is no BLAS provider behind the feature cpu-blas; use cpu-faer");

mod backend;
mod kernels;
mod loops;
mod providers;
pub mod threads;

#[cfg(feature = "cpu-faer")]
pub use backend::FaerParallelismExt;
pub use backend::{CpuBackend, CpuExecSession, runtime_engine_registration, with_cpu_exec_session};
pub use kernels::{Destination, with_outputs};
pub use threads::Par;
