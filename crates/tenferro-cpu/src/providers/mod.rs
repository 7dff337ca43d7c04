//! Who multiplies matrices: tenferro-internal-dense for floating point, plain loops for the rest.

#[cfg(any(feature = "cpu-faer", feature = "cpu-blas"))]
pub(crate) mod dense;
pub(crate) mod naive;

pub(crate) use tenferro_internal_dense::{Factor, Target};
