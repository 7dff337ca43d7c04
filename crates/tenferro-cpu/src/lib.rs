//! The CPU backend: it runs operations on tensors in host memory.
//!
//! A [`CpuBackend`] is a handle to a table of kernels and a budget of threads; its clones share both. Direct
//! calls are given it with each call, runtimes and programs are made on it or run on it. An operation of any
//! crate finds its kernels here by its type, and one that has none is decomposed into operations that do.
//!
//! ```
//! use tenferro_cpu::CpuBackend;
//! use tenferro_runtime::{EagerRuntime, prelude::*};
//!
//! let mut cpu = CpuBackend::new();
//! let a = TypedTensor::<f64>::from_vec_col_major([2, 2], vec![1.0, 2.0, 3.0, 4.0])?;
//! assert_eq!(a.matmul(&a, &mut cpu)?.as_slice()?, [7.0, 10.0, 15.0, 22.0]);
//!
//! let runtime = EagerRuntime::new(&cpu);
//! let x = runtime.from_vec_col_major([2], vec![3.0, 4.0])?;
//! assert_eq!((&x * &x)?.reduce_sum(None)?.item::<f64>()?, 25.0);
//!
//! // Where a NaN comes from.
//! cpu.set_nan_check(true);
//! let root = TypedTensor::from_vec_col_major([1], vec![-1.0])?.sqrt(&mut cpu);
//! assert_eq!(root.unwrap_err().op(), "sqrt");
//! # Ok::<(), tenferro_tensor::Error>(())
//! ```
//!
//! # Features
//!
//! | feature | who multiplies and factors matrices |
//! |---|---|
//! | `cpu-faer` (default) | own loops where matrices are small, faer where they are large |
//! | `cpu-blas` | the same, but a BLAS and LAPACK that the program is linked with from order 32 on |
//! | `blas-openblas` | `cpu-blas` with OpenBLAS, built from source |
//! | `blas-mkl` | `cpu-blas` with Intel oneAPI MKL |
//! | `blas-accelerate` | `cpu-blas` with Apple's Accelerate framework |
//!
//! One of the three libraries at most. With `cpu-faer` alone a library can be [installed](blas::install)
//! while the program runs. Without any feature all core operations are there, with plain loops for products
//! of matrices, but no factorization: for a build in seconds.
//!
//! # Threads
//!
//! A backend uses at most [`threads`](CpuBackend::threads) threads, in a pool of its own that the first large
//! call makes. Small work stays on the caller's thread, and so does work that is in a rayon worker already.
//! Results repeat bit by bit for a fixed number of threads, as long as no BLAS is in use: its threads and its
//! order of summation are its own.
//!
//! # Environment
//!
//! `RAYON_NUM_THREADS` is the budget of [`CpuBackend::new`]; without it, it is the number of cores that the
//! process may use. A BLAS has variables of its own, such as `OPENBLAS_NUM_THREADS`.
//!
//! # Kernels of your own
//!
//! An operation lists its kernels for this backend in
//! [`Primitive::kernels`](tenferro_core_ops::Primitive::kernels); [`with_outputs`] gives one the places where
//! its results go, and [`CpuBackend::parallel`] threads. [`CpuBackend::replace_kernels`] exchanges any
//! kernel. [`with_cpu_exec_session`] and `FaerParallelismExt` are for calls of other libraries inside a
//! session.

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
/// A library that the program has already, or finds while it runs, is used by all backends once it is
/// installed (here found by the crate `libloading` 0.9):
///
/// ```no_run
/// use std::ffi::c_void;
/// use tenferro_cpu::blas::{self, Blas};
///
/// // SAFETY: loading OpenBLAS runs no code of consequence.
/// let library = unsafe { libloading::Library::new("libopenblas.so.0") }.expect("it is installed");
/// // Never unloaded.
/// let library: &'static libloading::Library = Box::leak(Box::new(library));
/// let find = |name: &'static str| {
///     // SAFETY: only the address is taken.
///     let symbol = unsafe { library.get::<*const c_void>(name.as_bytes()) };
///     symbol.map_or(std::ptr::null(), |address| *address)
/// };
/// // SAFETY: these are the Fortran routines of their names, with 32-bit integers.
/// unsafe { blas::install(Some(Blas::resolve("OpenBLAS", find))) };
/// assert!(blas::installed().is_some_and(|library| library.d.gemm.is_some()));
/// ```
///
/// To link one instead, see the features of this crate.
#[cfg(any(feature = "cpu-faer", feature = "cpu-blas"))]
#[doc(inline)]
pub use tenferro_internal_dense::blas;
pub use threads::Par;
/// The threads of a backend.
pub use threads::Threads as CpuContext;
