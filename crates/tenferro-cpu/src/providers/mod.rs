//! Who multiplies matrices: faer for floating point, plain loops for the rest.

#[cfg(feature = "cpu-faer")]
pub(crate) mod faer;
pub(crate) mod naive;

pub(crate) use tenferro_internal_dense::{Factor, Target};
