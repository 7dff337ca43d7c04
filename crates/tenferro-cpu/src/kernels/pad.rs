//! Padding: fill, then copy the operand into the inside.

use super::{
    copy::{strides_of, strides_to},
    destination::with_outputs,
};
use crate::{CpuBackend, loops};
use tenferro_core_ops::{
    Aval, Kernels, Operand, Out, Outs,
    ops::{ALL, Pad},
};
use tenferro_tensor::{Result, Tensor};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on::<CpuBackend, Pad>(ALL, pad);
}

fn pad(
    op: &Pad,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let (x, value) = (x[0].read(), x[1].read());
    let (shape, size) = (&y[0].shape, y[0].dtype.size());
    // SAFETY: the fill writes every element.
    unsafe {
        with_outputs(y, out, |to| {
            let mut ys = strides_to(&to[0], shape);
            // SAFETY: the destination has this shape, and the value is a scalar of its dtype.
            loops::copy::fill(cpu.domain(), size, shape, value.host_byte_ptr()?, (to[0].ptr(), &ys));
            let mut offset = 0isize;
            for (i, low) in op.low().iter().enumerate() {
                offset += low.as_lit().expect("a running operation has no symbols") as isize * ys[i];
                ys[i] *= op.interior()[i] as isize + 1;
            }
            if !x.is_empty() {
                let inside = to[0].ptr().offset(offset * size as isize);
                // SAFETY: by the shape rule the operand, spread by the gaps, ends before the high edge.
                loops::copy::copy(
                    cpu.domain(),
                    size,
                    x.shape(),
                    (x.host_byte_ptr()?, &strides_of(&x)),
                    (inside, &ys),
                );
            }
            Ok(())
        })
    }
}
