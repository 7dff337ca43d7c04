//! Reductions over axes.

use super::{
    copy::{Strides, compact, strides_coming, strides_of, strides_to},
    destination::with_outputs,
    elementwise::unlisted,
};
use crate::{
    CpuBackend,
    loops::{
        plan::offsets,
        reduce::{Few, Max, Min, Prod, Reducer, Sum, reduce},
    },
};
use smallvec::SmallVec;
use tenferro_core_ops::{
    Aval, Coming, Kernels, Number, Operand, Out, Outs, Prepare, Prepared, Shortcuts,
    ops::{Axes, ExclusiveProd, NUMBERS, ORDERED, ReduceMax, ReduceMin, ReduceProd, ReduceSum},
};
use tenferro_tensor::{Result, Scalar, Tensor, dispatch_number, dispatch_ordered};

macro_rules! rows {
    ($table:expr, $($op:ident $dtypes:ident $dispatch:ident $reducer:ident;)*) => { $(
        let prepare: Prepare = |op, x, y| {
            let op = op.as_any().downcast_ref::<$op>()?;
            $dispatch!(y.dtype, T => prepared::<$reducer<T>, T>(&op.axes, x, y), else None)
        };
        $table.on_with::<CpuBackend, $op>($dtypes, |op, cpu, x, y, out| {
            $dispatch!(y[0].dtype, T => over::<$reducer<T>, T>(&op.axes, cpu, x, y, out), else unlisted(y[0].dtype))
        }, Shortcuts { prepare: Some(prepare), ..Shortcuts::default() });
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
            let (reduced, ys) = spread(axes, x.rank(), &strides_to(&to[0], &y[0].shape));
            let (from, xs) = (x.host_ptr::<T>()?, strides_of(&x));
            // SAFETY: the output has the kept extents, the operand is within its buffer, and the destination is
            // new or borrowed mutably.
            reduce(cpu.domain(), R::default(), x.shape(), &reduced, (from, &xs), (to[0].typed::<T>(), &ys));
            Ok(())
        })
    }
}

/// Which axes are reduced, and the strides of the result along all, 0 along those.
fn spread(axes: &[usize], rank: usize, kept: &[isize]) -> (SmallVec<[bool; 6]>, Strides) {
    let mut kept = kept.iter();
    let mut stride = |&r: &bool| if r { 0 } else { *kept.next().expect("one stride per kept axis") };
    let reduced: SmallVec<[bool; 6]> = (0..rank).map(|i| axes.contains(&i)).collect();
    let strides = reduced.iter().map(&mut stride).collect();
    (reduced, strides)
}

/// [`over`] for few elements.
fn prepared<R, T: Scalar>(axes: &[usize], x: &[Coming<'_>], y: &Aval) -> Option<Prepared>
where
    R: Reducer<In = T, Acc = T> + Default,
{
    let shape = &x[0].aval.shape;
    // An empty operand may have a result of any size.
    if !(1..=super::SMALL).contains(&x[0].aval.len()) {
        return None;
    }
    let (reduced, ys) = spread(axes, shape.len(), &compact(&y.shape));
    let few = Few::new(shape, &reduced, &strides_coming(&x[0]), &ys)?;
    // SAFETY: the caller of the prepared kernel vouches for the addresses.
    let run = move |x: &[*const u8], y: *mut u8| unsafe { few.run(R::default(), x[0].cast(), y.cast()) };
    // SAFETY: made for these operands, it writes every element of the result.
    Some(unsafe { Prepared::new(run) })
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
    let along = |reduced: bool| {
        let some = (0..shape.len()).filter(|i| axes.contains(i) == reduced);
        offsets(0, some.map(|i| (shape[i], strides[i])))
    };
    let (kept, reduced) = (along(false), along(true));
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
