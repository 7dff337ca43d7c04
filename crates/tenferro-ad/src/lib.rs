//! Automatic differentiation of eager and traced tensors.
//!
//! For a function y = f(x) with Jacobian J, `vjp` gives the cotangent `J^H ct`, `jvp` the tangent `J t`, `grad` the
//! gradient of a real scalar and `hvp` the product of its Hessian with a vector. Complex numbers follow one
//! convention: the adjoint is that of the inner product `Re sum(conj(a) b)`, so the gradient of a real loss L satisfies
//! `dL = Re sum(conj(grad) dx)`, and gradient descent moves along `-grad`.

mod eager;
mod traced;

pub use eager::{EagerRuntimeAdExt, EagerTensorAdExt};
pub use tenferro_core_ops::no_grad;
pub use traced::TracedTensorAdExt;

/// The traits of this crate.
pub mod prelude {
    pub use crate::{EagerRuntimeAdExt, EagerTensorAdExt, TracedTensorAdExt};
}
