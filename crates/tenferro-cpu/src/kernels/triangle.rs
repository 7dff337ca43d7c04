//! Triangles: the kept part of each column is copied, the rest is set to zero.

use super::{
    copy::{strides_of, strides_to},
    destination::with_outputs,
};
use crate::{CpuBackend, loops};
use tenferro_core_ops::{
    Aval, Kernels, Operand, Out, Outs,
    ops::{NUMBERS, Triangle},
};
use tenferro_tensor::{Result, Tensor};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on::<CpuBackend, Triangle>(NUMBERS, triangle);
}

fn triangle(
    op: &Triangle,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let x = x[0].read();
    let (shape, size) = (&y[0].shape, y[0].dtype.size());
    // SAFETY: the kept rows and the others are all rows of each column.
    unsafe {
        with_outputs(y, out, |to| {
            let (from, xs, ys) = (x.host_byte_ptr()?, strides_of(&x), strides_to(&to[0], shape));
            let (rows, columns) = (shape[0], shape[1]);
            for j in 0..columns {
                // Row i is on diagonal j - i.
                let edge = (j as isize).saturating_sub(op.diagonal);
                let (zero, kept) = if op.lower {
                    let first = edge.clamp(0, rows as isize) as usize;
                    (0..first, first..rows)
                } else {
                    let end = edge.saturating_add(1).clamp(0, rows as isize) as usize;
                    (end..rows, 0..end)
                };
                let part = |r: &std::ops::Range<usize>| {
                    let mut s: smallvec::SmallVec<[usize; 6]> = shape.as_slice().into();
                    s[0] = r.len();
                    s[1] = 1;
                    s
                };
                let at = |s: &[isize], i: usize| (s[0] * i as isize + s[1] * j as isize) * size as isize;
                // SAFETY: both parts are rows of column `j` of operands of this shape.
                loops::copy::fill(
                    cpu.domain(),
                    size,
                    &part(&zero),
                    [0u8; 16].as_ptr(),
                    (to[0].ptr().wrapping_offset(at(&ys, zero.start)), &ys),
                );
                // SAFETY: as above.
                loops::copy::copy(
                    cpu.domain(),
                    size,
                    &part(&kept),
                    (from.wrapping_offset(at(&xs, kept.start)), &xs),
                    (to[0].ptr().wrapping_offset(at(&ys, kept.start)), &ys),
                );
            }
            Ok(())
        })
    }
}
