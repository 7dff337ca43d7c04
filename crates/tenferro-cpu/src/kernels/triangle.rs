//! Triangles: the kept part of each column is copied, the rest is set to zero.

use super::{
    copy::{strides_of, strides_to},
    destination::with_outputs,
};
use crate::{CpuBackend, loops};
use smallvec::SmallVec;
use std::ops::Range;
use tenferro_core_ops::{
    Aval, Coming, Kernels, Op, Operand, Out, Outs, Prepared, Shortcuts, elements,
    ops::{NUMBERS, Triangle},
};
use tenferro_tensor::{Result, Tensor};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on_with(NUMBERS, triangle, Shortcuts { prepare: Some(prepare), ..Shortcuts::default() });
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
            // A matrix without rows may have columns of any number.
            if y[0].is_empty() {
                return Ok(());
            }
            let from = x.host_byte_ptr()?;
            if x.is_contiguous() && to[0].strides().is_none() {
                let columns = elements(&shape[1..]);
                let pointers = loops::Shared::new((from, to[0].ptr()));
                cpu.parallel(2 * size * y[0].len(), |par| {
                    par.for_each_chunk(columns, 1, |range| {
                        // SAFETY: the operand and the destination have this shape, and ranges are disjoint.
                        dense(op, [shape[0], shape[1]], size, pointers.get(), range)
                    })
                });
                return Ok(());
            }
            let (xs, ys) = (strides_of(&x), strides_to(&to[0], shape));
            for j in 0..shape[1] {
                let (zero, kept) = parts(op, shape[0], j);
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

/// The rows of column `j` that become zero, and those that stay. Row i is on diagonal j - i.
fn parts(op: &Triangle, rows: usize, j: usize) -> (Range<usize>, Range<usize>) {
    let edge = (j as isize).saturating_sub(op.diagonal);
    if op.lower {
        let first = edge.clamp(0, rows as isize) as usize;
        (0..first, first..rows)
    } else {
        let end = edge.saturating_add(1).clamp(0, rows as isize) as usize;
        (end..rows, 0..end)
    }
}

/// Columns `range` of triangles of compact matrices of this shape.
///
/// # Safety
/// The addresses are those of compact tensors of matrices with `rows` and `columns` and this size of an element,
/// which have the columns of the range; nobody else uses those of the result.
unsafe fn dense(
    op: &Triangle,
    [rows, columns]: [usize; 2],
    size: usize,
    (from, to): (*const u8, *mut u8),
    range: Range<usize>,
) {
    for column in range {
        let (zero, kept) = parts(op, rows, column % columns);
        let bytes = column * rows * size;
        // SAFETY: the ranges are rows of this column.
        unsafe {
            let (from, to) = (from.add(bytes), to.add(bytes));
            to.add(zero.start * size).write_bytes(0, zero.len() * size);
            let at = kept.start * size;
            to.add(at).copy_from_nonoverlapping(from.add(at), kept.len() * size);
        }
    }
}

/// [`triangle`] for few elements of a compact operand: its bits, where those of the triangle of ones are set.
fn prepare(op: &dyn Op, x: &[Coming<'_>], y: &Aval) -> Option<Prepared> {
    let op: &Triangle = op.as_any().downcast_ref()?;
    let (n, size) = (y.len(), y.dtype.size());
    let ([rows, columns, ..], true, None) = (&y.shape[..], n <= super::SMALL, x[0].strides) else {
        return None;
    };
    let (ones, mut mask) = (vec![u8::MAX; n * size], vec![0; n * size]);
    let pointers = (ones.as_ptr(), mask.as_mut_ptr());
    // SAFETY: both are of this shape, and the mask is ours.
    unsafe { dense(op, [*rows, *columns], size, pointers, 0..n / (*rows).max(1)) };
    let run = move |x: &[*const u8], y: *mut u8| {
        for (i, mask) in mask.iter().enumerate() {
            // SAFETY: the caller of the prepared kernel vouches for the addresses.
            unsafe { *y.add(i) = *x[0].add(i) & mask };
        }
    };
    // SAFETY: operand and result have as many bytes as the mask, all of which are written.
    Some(unsafe { Prepared::new(run) })
}
