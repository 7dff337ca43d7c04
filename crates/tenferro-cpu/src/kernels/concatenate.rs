//! Joining along an axis: each operand is copied to its part of the output.

use super::{
    copy::{strides_of, strides_to},
    destination::with_outputs,
};
use crate::{CpuBackend, loops};
use tenferro_core_ops::{
    Aval, Kernels, Operand, Out, Outs,
    ops::{ALL, Concatenate},
};
use tenferro_tensor::{Result, Tensor};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on::<CpuBackend, Concatenate>(ALL, concatenate);
}

fn concatenate(
    op: &Concatenate,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let size = y[0].dtype.size();
    // SAFETY: the extents of the operands along the axis add up to that of the output.
    unsafe {
        with_outputs(y, out, |to| {
            let ys = strides_to(&to[0], &y[0].shape);
            let mut at = 0_usize;
            for x in x.iter() {
                let x = x.read();
                if !x.is_empty() {
                    let part = to[0].ptr().offset(at as isize * ys[op.axis] * size as isize);
                    // SAFETY: this part of the destination has the shape of the operand.
                    loops::copy::copy(
                        cpu.domain(),
                        size,
                        x.shape(),
                        (x.host_byte_ptr()?, &strides_of(&x)),
                        (part, &ys),
                    );
                }
                at = at.wrapping_add(x.shape()[op.axis]);
            }
            Ok(())
        })
    }
}
