//! Joining along an axis: each operand is copied to its part of the output.

use super::{
    copy::{compact, strides_coming, strides_of, strides_to},
    destination::with_outputs,
};
use crate::{
    CpuBackend,
    loops::{self, plan::LoopPlan},
};
use tenferro_core_ops::{
    Aval, Coming, Kernels, Op, Operand, Out, Outs, Prepared, Shortcuts,
    ops::{ALL, Concatenate},
};
use tenferro_tensor::{Result, Tensor};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on_with(ALL, concatenate, Shortcuts { prepare: Some(prepare), ..Shortcuts::default() });
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

/// [`concatenate`] for few elements.
fn prepare(op: &dyn Op, x: &[Coming<'_>], y: &Aval) -> Option<Prepared> {
    let axis = op.as_any().downcast_ref::<Concatenate>()?.axis;
    if !(1..=super::SMALL).contains(&y.len()) {
        return None;
    }
    let ys = compact(&y.shape);
    let (mut moves, mut part) = (Vec::with_capacity(y.len()), 0);
    for (operand, x) in x.iter().enumerate() {
        let shape = &x.aval.shape;
        let plan = LoopPlan::new(shape, &[&ys, &strides_coming(x)]);
        let to = plan.offsets(0).into_iter().map(|to| to + part * ys[axis]);
        moves.extend(to.zip(plan.offsets(1)).map(|(to, from)| Move { operand, from, to }));
        part += shape[axis] as isize;
    }
    match y.dtype.size() {
        1 => moved::<u8>(moves),
        4 => moved::<u32>(moves),
        8 => moved::<u64>(moves),
        16 => moved::<[u64; 2]>(moves),
        _ => None,
    }
}

/// An element's way: offsets in elements.
struct Move {
    operand: usize,
    from: isize,
    to: isize,
}

/// The moves, of elements of the size of `T`.
fn moved<T: Copy + 'static>(moves: Vec<Move>) -> Option<Prepared> {
    let run = move |x: &[*const u8], y: *mut u8| {
        for m in &moves {
            // SAFETY: the offsets are those of elements, and the caller vouches for the addresses.
            unsafe {
                y.cast::<T>()
                    .offset(m.to)
                    .write_unaligned(x[m.operand].cast::<T>().offset(m.from).read_unaligned())
            };
        }
    };
    // SAFETY: every element of the result has its move.
    Some(unsafe { Prepared::new(run) })
}
