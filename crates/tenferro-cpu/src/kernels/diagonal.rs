//! A vector as the diagonal of two axes: fill with zeros, then copy along the diagonal.

use super::{
    copy::{Strides, strides_of, strides_to},
    destination::with_outputs,
};
use crate::{CpuBackend, loops};
use tenferro_core_ops::{
    Aval, Kernels, Operand, Out, Outs,
    ops::{ALL, EmbedDiag},
};
use tenferro_tensor::{Result, Tensor};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on::<CpuBackend, EmbedDiag>(ALL, embed_diag);
}

fn embed_diag(
    op: &EmbedDiag,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let x = x[0].read();
    let (shape, size) = (&y[0].shape, y[0].dtype.size());
    // SAFETY: the fill writes every element.
    unsafe {
        with_outputs(y, out, |to| {
            let ys = strides_to(&to[0], shape);
            // SAFETY: the destination has this shape; all bits zero are the zero of every dtype.
            loops::copy::fill(cpu.domain(), size, shape, [0u8; 16].as_ptr(), (to[0].ptr(), &ys));
            let (a, b) = op.axes;
            let mut along: Strides = (0..shape.len()).filter(|&i| i != a && i != b).map(|i| ys[i]).collect();
            along.push(ys[a] + ys[b]);
            // SAFETY: stepping both axes at once stays inside, for both have the extent of the last axis.
            loops::copy::copy(
                cpu.domain(),
                size,
                x.shape(),
                (x.host_byte_ptr()?, &strides_of(&x)),
                (to[0].ptr(), &along),
            );
            Ok(())
        })
    }
}
