//! Dense column-major tensors: values, typed tensors, views, storage and placement.
//!
//! - [`Tensor`] owns compact column-major storage of a dtype known at run time; [`TypedTensor`] is
//!   the same owner with the element type (and, if wanted, the rank) in its type. Neither is `Clone`:
//!   a copy is asked for by `duplicate()`.
//! - [`TypedTensorView`], [`TensorView`] and their mutable forms are an owner, a shape, signed strides
//!   and an offset ([`Layout`]); transposing, slicing, reversing, broadcasting never copies.
//! - [`Value`] is a cheaply cloned handle on a tensor and a layout, for interpreters.
//! - [`Error`] is the one error of the whole stack.
//!
//! Invariants: axis 0 varies fastest; an owner's storage is exactly its elements, in order; views stay
//! inside their owner. This crate knows no operation and no backend, and holds the unsafe memory
//! code, so that other crates need little.
//!
//! ```
//! use tenferro_tensor::{TypedTensor, s};
//!
//! let a = TypedTensor::<f64>::from_vec_col_major([2, 3], vec![1.0, 4.0, 2.0, 5.0, 3.0, 6.0])?;
//! assert_eq!(a[[1, 2]], 6.0);
//! let row = a.slice(s![1, ..])?;
//! assert_eq!(row.shape(), &[3]);
//! assert_eq!(row.iter()?.copied().collect::<Vec<_>>(), [4.0, 5.0, 6.0]);
//! assert!(row.as_slice().is_err()); // stride 2: never copied behind your back
//! # Ok::<(), tenferro_tensor::Error>(())
//! ```

#[macro_use]
mod dtype;
mod compare;
mod dims;
mod display;
mod erased;
mod error;
mod iter;
mod layout;
pub mod pool;
mod random;
mod scalar;
mod shape;
mod shared;
mod slice;
mod storage;
mod tensor;
mod tensor_ref;
mod typed;
mod uninit;
mod value;
mod view;
mod view_mut;

pub use dtype::DType;
pub use erased::{TensorRead, TensorView, TensorViewMut};
pub use error::{BackendFailure, Error, ErrorPhase, Mismatch, Result, StateFailure, UnsupportedCall};
pub use iter::Iter;
pub use layout::{Layout, Strides};
pub use scalar::{C32, C64, Scalar};
pub use shape::{DynRank, Rank, Ranked, Shape, checked_len, same_shape};
pub use slice::{NewAxis, SliceItem, SliceSpec};
pub use storage::{
    BackendStorage, BackendStorageHandle, CpuAffinity, DeviceId, DeviceKind, MemoryKind, Placement,
    StorageBuffer,
};
pub use tensor::Tensor;
pub use tensor_ref::TensorRef;
pub use typed::TypedTensor;
pub use uninit::UninitTensor;
pub use value::Value;
pub use view::TypedTensorView;
pub use view_mut::TypedTensorViewMut;
