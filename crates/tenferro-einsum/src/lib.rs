//! Einstein summation over any number of operands: notation, contraction order, and the contractions.
//!
//! `einsum("ij,jk->ik", ..)` on typed, dynamic, eager and traced tensors ([`EinsumTensor`],
//! [`EinsumRecorded`]); prepared for given extents as a [`PreparedEinsum`], with its plan and cost, into new
//! tensors or given ones; in rules, as [`einsum`](einsum()). What the text may be is said at
//! [`Expression::parse`]; labels may also be numbers, or those of ncon ([`Einsum::ncon`]).
//!
//! An einsum is bound to its operands, which gives the ellipsis its axes and drops axes of extent 1 that are
//! repeated; it is then labels alone ([`Notation`], [`EinsumOp`]), is planned once for each set of extents,
//! becomes contractions of two tensors, and has derivatives of any order, which are einsums.
//!
//! Two choices are NumPy's, so that text means the same: ellipses of different rank are aligned at their last
//! axis, as elementwise operations align shapes, wherever the ellipsis stands; and an output that is not
//! given has the ellipsis first. An extent 1 against another extent of one label is repeated if it is known
//! to be 1 and belongs to another operand; a symbol is never repeated, and a run that binds it to 1 against
//! another extent is an error. Labels that are numbers mean what letters do; the networks of ncon repeat nothing.
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
    pub use crate::{Einsum, EinsumRecorded, EinsumTensor, Optimize, PreparedEinsum};
}
