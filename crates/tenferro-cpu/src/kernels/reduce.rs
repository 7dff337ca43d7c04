//! Reductions over axes.

use super::{
    copy::{strides_of, strides_to},
    destination::with_outputs,
    elementwise::unlisted,
};
use crate::{
    CpuBackend,
    loops::reduce::{Max, Min, Prod, Reducer, Sum, reduce},
};
use smallvec::SmallVec;
use tenferro_core_ops::{
    Aval, Kernels, Number, Operand, Out, Outs,
    ops::{Axes, ExclusiveProd, NUMBERS, ORDERED, ReduceMax, ReduceMin, ReduceProd, ReduceSum},
};
use tenferro_tensor::{Result, Scalar, Tensor, dispatch_number, dispatch_ordered};

macro_rules! rows {
    ($table:expr, $($op:ident $dtypes:ident $dispatch:ident $reducer:ident;)*) => { $(
        $table.on::<CpuBackend, $op>($dtypes, |op, cpu, x, y, out| {
            $dispatch!(y[0].dtype, T => over::<$reducer<T>, T>(&op.axes, cpu, x, y, out), else unlisted(y[0].dtype))
        });
    )* };
}

pub(super) fn list(table: &mut dyn Kernels) {
    rows! { table,
        ReduceSum NUMBERS dispatch_number Sum;
        ReduceProd NUMBERS dispatch_number Prod;
        ReduceMax ORDERED dispatch_ordered Max;
        ReduceMin ORDERED dispatch_ordered Min;
    }
    table.on::<CpuBackend, ExclusiveProd>(NUMBERS, |op, cpu, x, y, out| {
        dispatch_number!(y[0].dtype, T => exclusive_prod::<T>(&op.axes, cpu, x, y, out), else unlisted(y[0].dtype))
    });
}

fn over<R, T: Scalar>(
    axes: &[usize],
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>>
where
    R: Reducer<In = T, Acc = T> + Default,
{
    let x = x[0].read();
    // SAFETY: the reduction writes every element, also of an empty operand.
    unsafe {
        with_outputs(y, out, |to| {
            let reduced: SmallVec<[bool; 6]> = (0..x.rank()).map(|i| axes.contains(&i)).collect();
            let mut kept = strides_to(&to[0], &y[0].shape).into_iter();
            let ys: SmallVec<[isize; 6]> = reduced
                .iter()
                .map(|&r| if r { 0 } else { kept.next().expect("one stride per kept axis") })
                .collect();
            let (from, xs) = (x.host_ptr::<T>()?, strides_of(&x));
            // SAFETY: the output has the kept extents, the operand is within its buffer, and the destination is
            // new or borrowed mutably.
            reduce(cpu.domain(), R::default(), x.shape(), &reduced, (from, &xs), (to[0].typed::<T>(), &ys));
            Ok(())
        })
    }
}

/// The products before and after each element, multiplied: no division, so zeros are harmless.
fn exclusive_prod<T: Number>(
    axes: &Axes,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let x = tenferro_core_ops::contiguous(cpu, x[0].read())?;
    let data = x.as_slice::<T>()?;
    let shape = x.shape();
    let strides = super::copy::compact(shape);
    let split = |reduced: bool| -> SmallVec<[(usize, isize); 6]> {
        (0..shape.len()).filter(|i| axes.contains(i) == reduced).map(|i| (shape[i], strides[i])).collect()
    };
    let (kept, reduced) = (offsets(&split(false)), offsets(&split(true)));
    // SAFETY: the offsets of kept and reduced axes together reach every element once.
    unsafe {
        with_outputs(y, out, |to| {
            let (to, out_strides) = (to[0].typed::<T>(), strides_to(&to[0], shape));
            // Where an element of the compact operand is in the output.
            let place = |offset: isize| -> isize {
                let mut rest = offset as usize;
                shape
                    .iter()
                    .zip(&out_strides)
                    .map(|(&n, s)| {
                        let i = rest % n;
                        rest /= n;
                        i as isize * s
                    })
                    .sum()
            };
            for &base in &kept {
                let mut before = T::one();
                for &i in &reduced {
                    // SAFETY: `place` is the position of an element of the output.
                    to.offset(place(base + i)).write(before);
                    before = before.times(data[(base + i) as usize]);
                }
                let mut after = T::one();
                for &i in reduced.iter().rev() {
                    let p = to.offset(place(base + i));
                    p.write((*p).times(after));
                    after = after.times(data[(base + i) as usize]);
                }
            }
            Ok(())
        })
    }
}

/// The offsets of every index over `(extent, stride)` pairs, in column-major order.
fn offsets(axes: &[(usize, isize)]) -> Vec<isize> {
    let mut all = vec![0];
    for &(n, s) in axes {
        all = (0..n as isize).flat_map(|i| all.iter().map(move |o| o + i * s)).collect();
    }
    all
}
