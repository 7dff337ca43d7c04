//! The conformance suite: every operation has every property.
//!
//! An operation states once, in an [`OpInfo`], sample inputs, an independent reference, the errors of bad
//! input and how often it can be differentiated. [`LOOPS`] are the properties, each checked on every
//! operation that it applies to. The test `OPERATION::LOOP` is one of these checks.
//!
//! Invariant: references share no code with the operations. They are scalar loops over index tuples
//! ([`Array`]), or over the rows and columns of matrices.

mod array;
mod difference;
#[cfg(doctest)]
mod documents;
mod info;
mod loops;
mod matrix;
pub mod run;
mod samples;
mod table;

pub use array::{Array, Elem};
pub use difference::central;
pub use info::{Closed, Failure, Observe, OnBackend, OpInfo, Outputs, Reference, Sample, Surface, Symbolic};
pub use loops::{COMPLETENESS, Completeness, LOOPS, Loop, Outcome};
pub use run::{Calls, Pulled};
pub use table::table;

/// Every operation, family by family. A further family is a further list.
pub fn all() -> Vec<OpInfo> {
    samples::FAMILIES.iter().flat_map(|family| family()).collect()
}
