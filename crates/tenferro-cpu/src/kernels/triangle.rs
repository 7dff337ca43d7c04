//! Triangles: the kept part of each column is copied, the rest is set to zero.

use super::{
    copy::{strides_of, strides_to},
    destination::with_outputs,
};
use crate::{CpuBackend, loops};
use smallvec::SmallVec;
use std::ops::Range;
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
    // Rows of column j that become zero, and those that stay. Row i is on diagonal j - i.
    let rows = |j: usize| {
        let edge = (j as isize).saturating_sub(op.diagonal);
        if op.lower {
            let first = edge.clamp(0, shape[0] as isize) as usize;
            (0..first, first..shape[0])
        } else {
            let end = edge.saturating_add(1).clamp(0, shape[0] as isize) as usize;
            (end..shape[0], 0..end)
        }
    };
    // SAFETY: the kept rows and the others are all rows of each column.
    unsafe {
        with_outputs(y, out, |to| {
            let from = x.host_byte_ptr()?;
            if x.is_contiguous() && to[0].strides().is_none() {
                dense(cpu, (from, to[0].ptr()), shape, size, rows);
                return Ok(());
            }
            let (xs, ys) = (strides_of(&x), strides_to(&to[0], shape));
            for j in 0..shape[1] {
                let (zero, kept) = rows(j);
                let part = |r: &Range<usize>| {
                    let mut s: SmallVec<[usize; 6]> = shape.as_slice().into();
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

/// Triangles of compact matrices, column after column.
///
/// # Safety
/// The addresses are those of compact tensors of this shape and size of an element.
unsafe fn dense(
    cpu: &CpuBackend,
    pointers: (*const u8, *mut u8),
    shape: &[usize],
    size: usize,
    rows: impl Fn(usize) -> (Range<usize>, Range<usize>) + Sync,
) {
    let columns: usize = shape[1..].iter().product();
    let bytes = shape[0] * size;
    let pointers = loops::Shared::new(pointers);
    cpu.parallel(2 * bytes * columns, |par| {
        par.for_each_chunk(columns, 1, |range| {
            for column in range {
                let (zero, kept) = rows(column % shape[1]);
                let (from, to) = pointers.get();
                // SAFETY: the ranges are rows of this column, which no other thread has.
                unsafe {
                    let (from, to) = (from.add(column * bytes), to.add(column * bytes));
                    to.add(zero.start * size).write_bytes(0, zero.len() * size);
                    let at = kept.start * size;
                    to.add(at).copy_from_nonoverlapping(from.add(at), kept.len() * size);
                }
            }
        });
    });
}
