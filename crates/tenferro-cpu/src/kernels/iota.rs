//! Positions along an axis.

use super::{destination::with_outputs, elementwise::unlisted};
use crate::{CpuBackend, loops};
use tenferro_core_ops::{
    Aval, Kernels, Out, Outs,
    ops::{Iota, NUMBERS},
};
use tenferro_tensor::{Result, Scalar, Tensor, dispatch_number};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on::<CpuBackend, Iota>(NUMBERS, |op, cpu, _, y, out| {
        dispatch_number!(op.dtype, T => iota::<T>(op, cpu, y, out), else unlisted(op.dtype))
    });
}

fn iota<T: Scalar>(op: &Iota, cpu: &CpuBackend, y: &[Aval], out: &mut Out<'_>) -> Result<Outs<Tensor>> {
    let shape = &y[0].shape;
    let mut repeat = super::copy::Strides::from_elem(0, shape.len());
    repeat[op.axis] = 1;
    // SAFETY: the copy writes every element.
    unsafe {
        with_outputs(y, out, |to| {
            if shape.contains(&0) {
                return Ok(());
            }
            // No longer than the output, for which there was memory.
            let line: Vec<T> = (0..shape[op.axis]).map(|k| T::from_f64(k as f64)).collect();
            let ys = super::copy::strides_to(&to[0], shape);
            // SAFETY: the line has as many elements as the axis and is repeated along the others.
            loops::copy::copy(
                cpu.domain(),
                size_of::<T>(),
                shape,
                (line.as_ptr().cast(), &repeat),
                (to[0].ptr(), &ys),
            );
            Ok(())
        })
    }
}
