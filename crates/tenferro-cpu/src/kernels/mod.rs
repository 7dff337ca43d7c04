//! The kernels of the core operations; file names mirror those of the operations.

pub(crate) mod accumulate;
mod binary;
mod cast;
mod compare;
mod concatenate;
pub(crate) mod copy;
mod destination;
mod diagonal;
mod dot_general;
mod dynamic_slice;
mod elementwise;
mod fused;
mod gather;
mod iota;
mod linear;
pub(crate) mod nan;
mod pad;
mod reduce;
mod select;
mod triangle;
mod unary;

pub use destination::{Destination, with_outputs};

use tenferro_core_ops::Kernels;

/// Up to this many elements, or multiplications, a kernel is prepared for programs, or a loop of its own.
const SMALL: usize = 128;

/// Lists the kernels of every core operation.
pub(crate) fn core(table: &mut dyn Kernels) {
    elementwise::list(table);
    copy::list(table);
    concatenate::list(table);
    diagonal::list(table);
    dot_general::list(table);
    dynamic_slice::list(table);
    fused::list(table);
    gather::list(table);
    iota::list(table);
    pad::list(table);
    reduce::list(table);
    triangle::list(table);
}
