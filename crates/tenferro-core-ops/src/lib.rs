//! What tensor operations mean.
//!
//! An operation is one implementation of [`Primitive`]: its shape rule over known or symbolic extents
//! ([`Dim`]), its derivative in forward mode or its decomposition, and its transpose where it is linear.
//! [`apply`] is the only way one ever happens: on present values it runs, on a [`Backend`]; on traced values
//! it is recorded. Rules and programs are written with methods of [`Var`].
//!
//! This crate knows no backend: kernels are found in a [`KernelTable`] by the type of the operation.

mod aval;
mod backend;
mod differentiate;
mod digest;
mod dim;
mod element;
mod execute;
mod kernels;
mod op;
pub mod ops;
mod ready;
mod simplify;
mod surface;
mod tape;
mod var;

pub use aval::{Aval, Extents, ShapeOf, elements};
pub use backend::{Backend, EngineRegistration, Operand, Out, Session, Target, with_backend};
pub use differentiate::{backward, jvp_traced, or_zero, unit_cotangent, vjp, vjp_present, vjp_traced};
pub use digest::Digest;
pub use dim::{Atom, Dim, Env, Extent, Fresh};
pub use element::{Element, Number, Ordered};
pub use execute::{aval_of, contiguous, execute, execute_into, into_tensor};
pub use kernels::{Alike, Coming, Kernel, KernelFn, KernelTable, Kernels, Prepare, Prepared, Shortcuts};
pub use op::{Arg, KeptOp, Op, Outs, Primitive, Real, Saves, Tangent};
pub use ready::Ready;
pub use simplify::{Calls, Ref, Rewrite, Term, Terms};
pub use surface::{align, align_batch, broadcast_all, broadcast_shape, broadcast_to};
pub use tape::{Node, argument, is_recording, leaf, no_grad, with_grad};
pub use var::{
    Call, Now, Source, Var, apply, apply_n, apply1, constant, hash_value, input, program, reachable,
};

/// Operations on lists of values and tensors made of their positions.
pub mod build {
    pub use crate::ops::{
        concatenate::{concatenate, stack},
        iota::{eye, iota, linspace},
    };
}
