//! Reading and adding at positions that are data.

use super::{
    copy::{Strides, strides_of, strides_to},
    destination::with_outputs,
    elementwise::unlisted,
};
use crate::{CpuBackend, loops};
use smallvec::SmallVec;
use tenferro_core_ops::{
    Aval, Kernels, Number, Operand, Out, Outs, elements,
    ops::{ALL, Gather, IndexAdd, IndexSelect, NUMBERS, ScatterAdd},
};
use tenferro_tensor::{Error, Result, Tensor, TensorRef, dispatch, dispatch_number};

pub(super) fn list(table: &mut dyn Kernels) {
    table
        .on::<CpuBackend, IndexSelect>(ALL, index_select)
        .on::<CpuBackend, IndexAdd>(NUMBERS, |op, cpu, x, y, out| {
            dispatch_number!(y[0].dtype, T => index_add::<T>(op, cpu, x, y, out), else unlisted(y[0].dtype))
        })
        .on::<CpuBackend, Gather>(ALL, |op, _, x, y, out| dispatch!(y[0].dtype, T => gather::<T>(op, x, y, out)))
        .on::<CpuBackend, ScatterAdd>(NUMBERS, |op, cpu, x, y, out| {
            dispatch_number!(y[0].dtype, T => scatter_add::<T>(op, cpu, x, y, out), else unlisted(y[0].dtype))
        });
}

/// Positions along an axis of extent `n`, in column-major order of the index.
fn positions(op: &'static str, index: &TensorRef<'_>, n: usize) -> Result<Vec<isize>> {
    let index = index.typed::<i64>()?;
    let check = |i: i64| match usize::try_from(i) {
        Ok(k) if k < n => Ok(k as isize),
        _ => Err(Error::argument(op, "index", i, format!("a position from 0 up to, but not including, {n}"))),
    };
    index.iter()?.copied().map(check).collect()
}

/// The shape with one axis of extent 1.
fn without(shape: &[usize], axis: usize) -> SmallVec<[usize; 6]> {
    let mut s: SmallVec<[usize; 6]> = shape.into();
    s[axis] = 1;
    s
}

fn index_select(
    op: &IndexSelect,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let (x, index) = (x[0].read(), x[1].read());
    let size = y[0].dtype.size() as isize;
    let from = positions("index_select", &index, x.shape()[op.axis])?;
    let part = without(&y[0].shape, op.axis);
    // SAFETY: every position of the axis is written.
    unsafe {
        with_outputs(y, out, |to| {
            let (base, xs, ys) = (x.host_byte_ptr()?, strides_of(&x), strides_to(&to[0], &y[0].shape));
            for (k, &i) in from.iter().enumerate() {
                let src = base.wrapping_offset(i * xs[op.axis] * size);
                let dst = to[0].ptr().wrapping_offset(k as isize * ys[op.axis] * size);
                // SAFETY: both are one position of the axis, and positions were checked.
                loops::copy::copy(cpu.domain(), size as usize, &part, (src, &xs), (dst, &ys));
            }
            Ok(())
        })
    }
}

/// Calls `f` with the position in the index tensor's column-major order and the offsets, without the axis,
/// under both strides.
fn walk(shape: &[usize], axis: usize, a: &Strides, b: &Strides, mut f: impl FnMut(usize, isize, isize)) {
    let n = elements(shape);
    let mut at: SmallVec<[usize; 6]> = SmallVec::from_elem(0, shape.len());
    for k in 0..n {
        let offset = |s: &Strides, skip: bool| -> isize {
            at.iter()
                .zip(s)
                .enumerate()
                .filter(|(i, _)| !skip || *i != axis)
                .map(|(_, (&i, s))| i as isize * s)
                .sum()
        };
        f(k, offset(a, true), offset(b, false));
        for (i, &n) in at.iter_mut().zip(shape) {
            *i += 1;
            if *i < n {
                break;
            }
            *i = 0;
        }
    }
}

fn gather<T: Copy + tenferro_tensor::Scalar>(
    op: &Gather,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let (x, index) = (x[0].read(), x[1].read());
    let at = positions("gather", &index, x.shape()[op.axis])?;
    // SAFETY: the walk visits every element of the output.
    unsafe {
        with_outputs(y, out, |to| {
            let (from, xs, ys) = (x.host_ptr::<T>()?, strides_of(&x), strides_to(&to[0], &y[0].shape));
            let dst = to[0].typed::<T>();
            walk(&y[0].shape, op.axis, &xs, &ys, |k, src, place| {
                // SAFETY: the positions were checked, and the index has the extents of the operand elsewhere.
                dst.offset(place).write(*from.offset(src + at[k] * xs[op.axis]))
            });
            Ok(())
        })
    }
}

/// Fills the output with zeros and calls `add` with its address and strides.
fn from_zero<T: Number>(
    cpu: &CpuBackend,
    y: &[Aval],
    out: &mut Out<'_>,
    add: impl FnOnce(*mut T, &Strides) -> Result<()>,
) -> Result<Outs<Tensor>> {
    // SAFETY: the fill writes every element.
    unsafe {
        with_outputs(y, out, |to| {
            let ys = strides_to(&to[0], &y[0].shape);
            let zero = T::zero();
            // SAFETY: the destination has this shape.
            loops::copy::fill(
                cpu.domain(),
                size_of::<T>(),
                &y[0].shape,
                (&raw const zero).cast(),
                (to[0].ptr(), &ys),
            );
            add(to[0].typed(), &ys)
        })
    }
}

fn index_add<T: Number>(
    op: &IndexAdd,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let (x, index) = (x[0].read(), x[1].read());
    let at = positions("index_add", &index, y[0].shape[op.axis])?;
    let part = without(x.shape(), op.axis);
    from_zero::<T>(cpu, y, out, |to, ys| {
        let (from, xs) = (x.host_ptr::<T>()?, strides_of(&x));
        for (k, &i) in at.iter().enumerate() {
            walk(&part, op.axis, &xs, ys, |_, src, dst| {
                // SAFETY: the positions were checked, and the other extents are those of the operand.
                unsafe {
                    let p = to.offset(dst + i * ys[op.axis]);
                    p.write((*p).plus(*from.offset(src + k as isize * xs[op.axis])));
                }
            });
        }
        Ok(())
    })
}

fn scatter_add<T: Number>(
    op: &ScatterAdd,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let (x, index) = (x[0].read(), x[1].read());
    let at = positions("scatter_add", &index, y[0].shape[op.axis])?;
    let shape: SmallVec<[usize; 6]> = x.shape().into();
    from_zero::<T>(cpu, y, out, |to, ys| {
        let (from, xs) = (x.host_ptr::<T>()?, strides_of(&x));
        walk(&shape, op.axis, ys, &xs, |k, dst, src| {
            // SAFETY: the positions were checked, and the other extents are those of the operand.
            unsafe {
                let p = to.offset(dst + at[k] * ys[op.axis]);
                p.write((*p).plus(*from.offset(src)));
            }
        });
        Ok(())
    })
}
