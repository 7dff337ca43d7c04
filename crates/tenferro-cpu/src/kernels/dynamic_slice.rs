//! Blocks whose position is data.

use super::{
    copy::{Strides, strides_of, strides_to},
    destination::with_outputs,
};
use crate::{CpuBackend, loops};
use smallvec::SmallVec;
use tenferro_core_ops::{
    Aval, Kernels, Operand, Out, Outs,
    ops::{ALL, DynamicSlice, DynamicUpdateSlice},
};
use tenferro_tensor::{Error, Result, Tensor, TensorRef};

pub(super) fn list(table: &mut dyn Kernels) {
    table
        .on::<CpuBackend, DynamicSlice>(ALL, dynamic_slice)
        .on::<CpuBackend, DynamicUpdateSlice>(ALL, dynamic_update_slice);
}

/// The offset, in elements under `strides`, of a block of extents `block` at `starts` in `shape`.
fn offset(
    op: &'static str,
    starts: &TensorRef<'_>,
    block: &[usize],
    shape: &[usize],
    strides: &Strides,
) -> Result<isize> {
    let starts: SmallVec<[i64; 6]> = starts.typed::<i64>()?.iter()?.copied().collect();
    let mut offset = 0;
    for (i, (&start, &extent)) in starts.iter().zip(block).enumerate() {
        let fits = usize::try_from(start)
            .ok()
            .and_then(|s| s.checked_add(extent))
            .is_some_and(|end| end <= shape[i]);
        if !fits {
            let expected = format!("a block of extent {extent} inside {} on axis {i}", shape[i]);
            return Err(Error::argument(op, "start", start, expected));
        }
        offset += start as isize * strides[i];
    }
    Ok(offset)
}

fn dynamic_slice(
    _: &DynamicSlice,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let (x, starts) = (x[0].read(), x[1].read());
    let (block, size, xs) = (&y[0].shape, y[0].dtype.size(), strides_of(&x));
    let offset = offset("dynamic_slice", &starts, block, x.shape(), &xs)?;
    // SAFETY: the copy writes every element.
    unsafe {
        with_outputs(y, out, |to| {
            let from = x.host_byte_ptr()?.wrapping_offset(offset * size as isize);
            // SAFETY: the block was checked to be inside of the operand.
            loops::copy::copy(
                cpu.domain(),
                size,
                block,
                (from, &xs),
                (to[0].ptr(), &strides_to(&to[0], block)),
            );
            Ok(())
        })
    }
}

fn dynamic_update_slice(
    _: &DynamicUpdateSlice,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let (x, block, starts) = (x[0].read(), x[1].read(), x[2].read());
    let (shape, size) = (&y[0].shape, y[0].dtype.size());
    // Checked before anything is written.
    offset("dynamic_update_slice", &starts, block.shape(), shape, &Strides::from_elem(0, shape.len()))?;
    // SAFETY: the first copy writes every element.
    unsafe {
        with_outputs(y, out, |to| {
            let ys = strides_to(&to[0], shape);
            // SAFETY: the operand has the shape of the output.
            loops::copy::copy(
                cpu.domain(),
                size,
                shape,
                (x.host_byte_ptr()?, &strides_of(&x)),
                (to[0].ptr(), &ys),
            );
            let at = offset("dynamic_update_slice", &starts, block.shape(), shape, &ys)?;
            let to = to[0].ptr().wrapping_offset(at * size as isize);
            // SAFETY: the block was checked to be inside of the output.
            loops::copy::copy(
                cpu.domain(),
                size,
                block.shape(),
                (block.host_byte_ptr()?, &strides_of(&block)),
                (to, &ys),
            );
            Ok(())
        })
    }
}
