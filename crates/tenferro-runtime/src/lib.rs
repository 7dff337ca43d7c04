//! Running tensor operations: directly, eagerly with a tape, or traced into programs.
//!
//! Four tiers share one set of operations. [`TypedTensor`] and [`Tensor`] methods take a backend with each call;
//! [`EagerTensor`]s belong to an [`EagerRuntime`] and remember how they came about while a gradient is wanted;
//! [`TracedTensor`]s stand for a computation that a [`GraphCompiler`] turns into a [`Program`], which runs at
//! any extents. All methods come from one table, [`surfaces!`].

#[macro_use]
mod surfaces;
mod core_surface;
mod create;
mod direct;
mod eager;
mod program;
mod runtime;
pub mod tier;
mod traced;

pub use core_surface::{TensorOps, TypedTensorOps};
pub use direct::{SelectExt, TensorExt, TypedTensorExt, execute};
pub use eager::{EagerRuntime, EagerTensor};
pub use program::Program;
pub use runtime::{Runtime, RuntimeBuilder};
pub use tenferro_core_ops::{Dim, EngineRegistration, Out, Session, Target, no_grad};
pub use tenferro_tensor::{
    C32, C64, DType, Error, ErrorPhase, Placement, Result, Scalar, Shape, Tensor, TensorRead, TensorView,
    TypedTensor, TypedTensorView,
};
pub use traced::{GraphCompiler, TracedTensor};

/// The types and methods most programs use.
pub mod prelude {
    pub use crate::{
        DType, Dim, EagerRuntime, EagerTensor, GraphCompiler, Program, Runtime, SelectExt, Tensor, TensorExt,
        TensorOps, TracedTensor, TypedTensor, TypedTensorExt, TypedTensorOps, TypedTensorView,
    };
    pub use tenferro_tensor::{NewAxis, s};
}
