//! The operations, family by family, with samples, references and errors.

mod binary;
mod build;
mod choice;
mod contract;
mod einsum;
mod index;
mod layout;
mod linalg;
mod reduce;
mod unary;

use crate::{array::Array, info::OpInfo};
use tenferro_runtime::{TensorOps, TypedTensorOps};
use tenferro_tensor::DType::{self, *};

/// The lists that [`all`](crate::all) concatenates.
pub(crate) const FAMILIES: &[fn() -> Vec<OpInfo>] = &[
    unary::list,
    binary::list,
    choice::list,
    reduce::list,
    layout::list,
    index::list,
    contract::list,
    build::list,
    einsum::list,
    linalg::list,
];

/// Why an operation has no methods: rules and programs use it.
const IN_RULES: &str = "derivative rules and programs use it, and no method is it alone";
/// Why a listing has no methods: it is made of operations that do.
const COMPOSED: &str = "a function of operations that have methods";
/// Why an operation has no errors.
const ANY_TENSOR: &str = "every tensor is fit for it";

/// Real and complex floating-point dtypes.
const FLOATS: [DType; 4] = [F64, C64, F32, C32];
/// Dtypes with arithmetic.
const NUMBERS: [DType; 6] = [F64, C64, F32, C32, I64, I32];
/// Dtypes with an order.
const ORDERED: [DType; 5] = [F64, F32, I64, I32, Bool];
/// Every dtype.
const EVERY: [DType; 7] = [F64, C64, F32, C32, I64, I32, Bool];

/// Reproducible elements between -1 and 1; integers between -5 and 5.
fn any(dtype: DType, shape: &[usize], seed: u64) -> Array {
    let bound = if dtype.is_integer() { 5.0 } else { 1.0 };
    Array::uniform(dtype, shape, seed, -bound, bound)
}

fn f64s(shape: &[usize], data: &[f64]) -> Array {
    Array::reals(F64, shape, data)
}

fn i64s(data: &[i64]) -> Array {
    Array::ints(I64, &[data.len()], data)
}
