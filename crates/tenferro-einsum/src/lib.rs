//! Einstein summation over any number of operands: notation, contraction order, and the contractions.
//!
//! `einsum("ij,jk->ik", ..)` on typed, dynamic, eager and traced tensors ([`EinsumTensor`],
//! [`EinsumRecorded`]); prepared, with its plan and cost, as an [`Einsum`]; in rules, as
//! [`einsum`](einsum()). An einsum is planned once for each set of extents, becomes contractions of two
//! tensors, and has derivatives of any order, which are einsums.
//!
//! Invariant: the order of contraction depends on labels and extents alone (but for annealing), not on which
//! thread or which call comes first, so that results repeat bit by bit.

mod binding;
mod cache;
mod einsum;
mod expression;
mod letters;
mod lower;
mod ncon;
mod notation;
mod op;
mod order;
mod parse;
mod plan;
mod prepared;
mod rearrange;
mod surface;

pub use cache::PlanCache;
pub use einsum::{Einsum, Subscripts, einsum};
pub use expression::Expression;
pub use notation::{Extents, Labels, Notation, Transpose};
pub use op::EinsumOp;
pub use order::{Optimize, Positions};
pub use plan::{Axes, Kind, Operand, Plan, Step};
pub use prepared::PreparedEinsum;
pub use rearrange::Rearrange;
pub use surface::{EinsumRecorded, EinsumTensor};

/// The methods.
pub mod prelude {
    pub use crate::{Einsum, EinsumRecorded, EinsumTensor, PreparedEinsum};
}
