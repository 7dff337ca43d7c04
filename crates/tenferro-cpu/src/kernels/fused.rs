//! Chains of elementwise operations, tile by tile.

use super::{
    destination::{in_place, with_outputs_at},
    elementwise::tile,
};
use crate::{
    CpuBackend,
    loops::elementwise::{Input, Output, Scratch, Source, Step, Tile, run},
};
use smallvec::SmallVec;
use std::mem::MaybeUninit;
use tenferro_core_ops::{
    Aval, Coming, Kernels, Op, Operand, Out, Outs, Prepared, Shortcuts,
    ops::{ALL, Fused},
};
use tenferro_tensor::{DType, Error, Result, Tensor};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on_with(ALL, fused, Shortcuts { prepare: Some(prepare), ..Shortcuts::default() });
}

/// The kernels of the steps, for operands of these dtypes.
struct Chain {
    operands: SmallVec<[DType; 8]>,
    steps: Vec<Link>,
}

struct Link {
    tile: Tile,
    cost: usize,
    size: usize,
    inputs: SmallVec<[Source; 3]>,
}

impl Chain {
    fn new(op: &Fused, operands: &[DType]) -> Result<Chain> {
        let mut dtypes: SmallVec<[DType; 8]> = operands.into();
        let mut steps = Vec::with_capacity(op.steps().len());
        for step in op.steps() {
            let x: SmallVec<[DType; 3]> = step.x.iter().map(|&k| dtypes[k as usize]).collect();
            let (tile, cost) =
                tile(&*step.op, &x).ok_or_else(|| Error::unsupported(step.op.name(), x[0], "cpu"))?;
            let result = result_dtype(&*step.op, &x)?;
            dtypes.push(result);
            let source = |&k: &u32| match (k as usize).checked_sub(op.inputs()) {
                Some(s) => Source::Step(s),
                None => Source::Input(k as usize),
            };
            steps.push(Link { tile, cost, size: result.size(), inputs: step.x.iter().map(source).collect() });
        }
        Ok(Chain { operands: operands.into(), steps })
    }
}

fn fused(
    op: &Fused,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let dtypes: SmallVec<[DType; 8]> = x.iter().map(|x| x.dtype()).collect();
    let kept = op.translated().get_or_init(|| Chain::new(op, &dtypes));
    let made;
    let chain = match kept {
        Some(Ok(chain)) if chain.operands == dtypes => chain,
        Some(Err(e)) => return Err(e.clone()),
        _ => {
            made = Chain::new(op, &dtypes)?;
            &made
        }
    };
    let taken = in_place(x, y, out);
    // SAFETY: every output is the result of a step and is written on its whole shape.
    unsafe {
        with_outputs_at(taken, y, out, |to, taken| {
            let reads: SmallVec<[_; 4]> = x.iter().map(|x| x.read()).collect();
            let mut inputs: SmallVec<[Input<'_>; 4]> = SmallVec::new();
            for (i, r) in reads.iter().enumerate() {
                inputs.push(match taken {
                    Some(t) if t == i => Input { ptr: to[0].ptr(), size: y[0].dtype.size(), strides: None },
                    _ => Input { ptr: r.host_byte_ptr()?, size: r.dtype().size(), strides: r.strides() },
                });
            }
            let steps: SmallVec<[Step<'_>; 8]> = chain
                .steps
                .iter()
                .map(|s| Step {
                    tile: s.tile,
                    op: std::ptr::null(),
                    inputs: &s.inputs,
                    size: s.size,
                    cost: s.cost,
                })
                .collect();
            let outputs: SmallVec<[Output<'_>; 2]> = op
                .outputs()
                .iter()
                .zip(to.iter().zip(y))
                .map(|(&step, (to, y))| Output {
                    ptr: to.ptr(),
                    size: y.dtype.size(),
                    strides: to.strides(),
                    step: step as usize,
                })
                .collect();
            // SAFETY: as for a single elementwise operation, and the steps' tiles are those of their dtypes.
            run(cpu.domain(), &y[0].shape, &inputs, &steps, &outputs);
            Ok(())
        })
    }
}

/// Bytes of scratch memory of a prepared chain.
const SCRATCH: usize = 8192;

/// [`fused`] for few elements of compact operands and one result.
fn prepare(op: &dyn Op, x: &[Coming<'_>], y: &Aval) -> Option<Prepared> {
    let op: &Fused = op.as_any().downcast_ref()?;
    let n = y.len();
    let (true, [output]) = (n <= super::SMALL, op.outputs()) else { return None };
    let dtypes: SmallVec<[DType; 8]> = x.iter().map(|x| x.aval.dtype).collect();
    let chain = Chain::new(op, &dtypes).ok()?;
    let room = |step: &Link| (n * step.size).next_multiple_of(64);
    let few = chain.steps.iter().map(room).sum::<usize>() <= SCRATCH
        && chain.steps.iter().all(|s| s.inputs.len() <= 4);
    if !few || x.iter().any(|x| x.strides.is_some()) {
        return None;
    }
    let mut at = 0;
    let places: Vec<usize> = chain.steps.iter().map(|s| (at, at += room(s)).0).collect();
    let output = *output as usize;
    let run = move |x: &[*const u8], y: *mut u8| {
        let mut scratch = MaybeUninit::<Scratch<SCRATCH>>::uninit();
        let scratch: *mut u8 = scratch.as_mut_ptr().cast();
        let result = |step: usize| if step == output { y } else { scratch.wrapping_add(places[step]) };
        for (k, step) in chain.steps.iter().enumerate() {
            let mut from = [std::ptr::null(); 4];
            for (from, source) in from.iter_mut().zip(&step.inputs) {
                *from = match *source {
                    Source::Input(i) => x[i],
                    Source::Step(s) => result(s).cast_const(),
                };
            }
            // SAFETY: the caller vouches for the addresses of operands and result; each step has its own part
            // of the scratch, with room for n elements, and reads what earlier steps wrote.
            unsafe { (step.tile)(std::ptr::null(), &from[..step.inputs.len()], result(k), n) }
        }
    };
    // SAFETY: the step that is the output writes its n elements, which are all of the result.
    Some(unsafe { Prepared::new(run) })
}

/// The dtype an elementwise operation gives, from its shape rule on scalars.
fn result_dtype(op: &dyn Op, x: &[DType]) -> Result<DType> {
    let scalars: SmallVec<[Aval; 3]> = x.iter().map(|&d| Aval::new(d, [])).collect();
    let refs: SmallVec<[&Aval; 3]> = scalars.iter().collect();
    Ok(op.infer_now(&refs)?[0].dtype)
}
