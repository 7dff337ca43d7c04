//! The core operation set: one file per kind, each with shape rule, derivative and transpose.

mod binary;
mod cast;
mod compare;
pub(crate) mod concatenate;
mod copy;
mod diagonal;
mod dot_general;
mod dynamic_slice;
mod fused;
mod gather;
pub(crate) mod iota;
mod layout;
mod linear;
mod pad;
mod reduce;
mod select;
mod triangle;
mod unary;

pub use binary::{Add, Div, Maximum, Minimum, Mul, Pow, Sub};
pub use cast::Cast;
pub use compare::{Compare, Relation};
pub use concatenate::Concatenate;
pub use copy::Copy;
pub use diagonal::{EmbedDiag, ExtractDiag};
pub use dot_general::DotGeneral;
pub use dynamic_slice::{DynamicSlice, DynamicUpdateSlice};
pub use fused::{Fused, Step, Translated};
pub use gather::{Gather, IndexAdd, IndexSelect, ScatterAdd};
pub use iota::Iota;
pub use layout::{BroadcastInDim, Reshape, Reverse, Slice, Transpose};
pub use linear::{Conj, Imag, Neg, RealPart};
pub use pad::Pad;
pub use reduce::{ExclusiveProd, ReduceMax, ReduceMin, ReduceProd, ReduceSum};
pub use select::{Clamp, Select};
pub use triangle::Triangle;
pub use unary::{Abs, Cos, Exp, Expm1, Log, Log1p, Rsqrt, Sign, Sin, Sqrt, Tan, Tanh};

use crate::{
    aval::Aval,
    dim::Extent,
    op::{Outs, Tangent},
    var::Var,
};
use smallvec::{SmallVec, smallvec};
use tenferro_tensor::{DType, Error, Result};

/// Axes of a tensor.
pub type Axes = SmallVec<[usize; 6]>;

/// Every dtype.
pub const ALL: &[DType] =
    &[DType::F32, DType::F64, DType::C32, DType::C64, DType::I32, DType::I64, DType::Bool];
/// Dtypes with arithmetic.
pub const NUMBERS: &[DType] = &[DType::F32, DType::F64, DType::C32, DType::C64, DType::I32, DType::I64];
/// Real and complex floating point.
pub const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::C32, DType::C64];
/// Dtypes with an order.
pub const ORDERED: &[DType] = &[DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool];

/// Checks the number of inputs and the dtype of the first.
pub fn expect<D: Extent>(op: &'static str, x: &[&Aval<D>], inputs: usize, dtypes: &[DType]) -> Result<()> {
    if x.len() != inputs {
        return Err(Error::argument(op, "number of inputs", x.len(), inputs));
    }
    match x.first() {
        Some(a) if !dtypes.contains(&a.dtype) => Err(Error::dtype(op, "operand", a.dtype, one_of(dtypes))),
        _ => Ok(()),
    }
}

fn one_of(dtypes: &[DType]) -> String {
    dtypes.iter().map(|d| d.to_string()).collect::<Vec<_>>().join(" | ")
}

/// Checks that all inputs have the dtype and shape of the first.
pub fn expect_same<D: Extent>(op: &'static str, x: &[&Aval<D>]) -> Result<()> {
    for b in &x[1..] {
        if b.dtype != x[0].dtype {
            return Err(Error::dtype(op, "operands", b.dtype, x[0].dtype));
        }
        expect_shape(op, "operands", b, x[0])?;
    }
    Ok(())
}

/// Checks that `a` has the shape of `b`.
pub fn expect_shape<D: Extent>(op: &'static str, what: &str, a: &Aval<D>, b: &Aval<D>) -> Result<()> {
    if a.rank() != b.rank() {
        return Err(Error::shape(op, what, a, b));
    }
    a.shape
        .iter()
        .zip(&b.shape)
        .try_for_each(|(x, y)| D::equal(op, what, x, y))
        .map_err(|_| Error::shape(op, what, a, b))
}

/// Checks that axes are distinct and exist.
pub fn expect_axes(op: &'static str, axes: &[usize], rank: usize) -> Result<()> {
    for (i, &a) in axes.iter().enumerate() {
        if a >= rank {
            return Err(Error::axis(op, "axis out of range", a, format_args!("an axis below {rank}")));
        }
        if axes[..i].contains(&a) {
            return Err(Error::axis(op, "repeated axis", a, "distinct axes"));
        }
    }
    Ok(())
}

/// The tangent of a linear operation: the operation on the tangent.
fn linear(op: &dyn crate::op::Op, t: &[Tangent]) -> Outs<Tangent> {
    smallvec![t[0].as_ref().map(|t| crate::var::apply1(op, &[t]))]
}

/// The sum of two terms, either of which may be zero.
fn sum(a: Tangent, b: Tangent) -> Tangent {
    match (a, b) {
        (Some(a), Some(b)) => Some(&a + &b),
        (a, b) => a.or(b),
    }
}

/// The first cotangent; rules of operations with one output are only called when it is there.
fn first(ct: &[Tangent]) -> Var {
    ct[0].clone().unwrap_or_else(|| Var::Failed(Error::runtime_state("transpose", "no cotangent arrived")))
}
