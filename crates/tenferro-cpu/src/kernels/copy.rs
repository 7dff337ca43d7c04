//! Making an operand compact.

use super::destination::with_outputs;
use crate::{CpuBackend, loops};
use smallvec::SmallVec;
use tenferro_core_ops::{
    Aval, Coming, Kernels, Operand, Out, Outs,
    ops::{ALL, Copy},
};
use tenferro_tensor::{Result, Tensor, TensorRef};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on::<CpuBackend, Copy>(ALL, copy);
}

/// Strides in elements.
pub(super) type Strides = SmallVec<[isize; 6]>;

/// The strides of a compact tensor.
pub(super) fn compact(shape: &[usize]) -> Strides {
    let (mut strides, mut next) = (Strides::new(), 1isize);
    for &n in shape {
        strides.push(next);
        next = next.wrapping_mul(n as isize);
    }
    strides
}

/// The strides of an operand.
pub(super) fn strides_of(x: &TensorRef<'_>) -> Strides {
    x.strides().map_or_else(|| compact(x.shape()), SmallVec::from_slice)
}

/// The strides of an operand that is to come.
pub(super) fn strides_coming(x: &Coming<'_>) -> Strides {
    x.strides.map_or_else(|| compact(&x.aval.shape), SmallVec::from_slice)
}

/// The strides of a destination of this shape.
pub(super) fn strides_to(to: &super::Destination, shape: &[usize]) -> Strides {
    to.strides().map_or_else(|| compact(shape), SmallVec::from_slice)
}

pub(crate) fn copy(
    _: &Copy,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let x = x[0].read();
    // SAFETY: the copy writes every element.
    unsafe {
        with_outputs(y, out, |to| {
            let (from, shape) = (x.host_byte_ptr()?, &y[0].shape);
            let (xs, ys) = (strides_of(&x), strides_to(&to[0], shape));
            // SAFETY: both have the shape of the output and are within their buffers; the destination is new or
            // borrowed mutably.
            loops::copy::copy(cpu.domain(), y[0].dtype.size(), shape, (from, &xs), (to[0].ptr(), &ys));
            Ok(())
        })
    }
}
