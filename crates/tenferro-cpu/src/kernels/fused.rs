//! Chains of elementwise operations, tile by tile.

use super::{destination::with_outputs, elementwise::tile};
use crate::{
    CpuBackend,
    loops::elementwise::{Input, Output, Source, Step, run},
};
use smallvec::SmallVec;
use tenferro_core_ops::{
    Aval, Kernels, Op, Operand, Out, Outs,
    ops::{ALL, Fused},
};
use tenferro_tensor::{DType, Error, Result, Tensor};

pub(super) fn list(table: &mut dyn Kernels) {
    table.on::<CpuBackend, Fused>(ALL, fused);
}

fn fused(
    op: &Fused,
    cpu: &CpuBackend,
    x: &mut [Operand<'_>],
    y: &[Aval],
    out: &mut Out<'_>,
) -> Result<Outs<Tensor>> {
    let mut dtypes: SmallVec<[DType; 8]> = x.iter().map(|x| x.dtype()).collect();
    let mut sources: SmallVec<[SmallVec<[Source; 3]>; 8]> = SmallVec::new();
    let mut kernels = SmallVec::<[_; 8]>::new();
    for step in op.steps.iter() {
        let operands: SmallVec<[DType; 3]> = step.x.iter().map(|&k| dtypes[k as usize]).collect();
        let found = tile(&*step.op, &operands)
            .ok_or_else(|| Error::unsupported(step.op.name(), operands[0], "cpu"))?;
        kernels.push(found);
        dtypes.push(result_dtype(&*step.op, &operands)?);
        sources.push(
            step.x
                .iter()
                .map(|&k| match (k as usize).checked_sub(op.inputs) {
                    Some(s) => Source::Step(s),
                    None => Source::Input(k as usize),
                })
                .collect(),
        );
    }
    // SAFETY: every output is the result of a step and is written on its whole shape.
    unsafe {
        with_outputs(y, out, |to| {
            let reads: SmallVec<[_; 4]> = x.iter().map(|x| x.read()).collect();
            let mut inputs: SmallVec<[Input<'_>; 4]> = SmallVec::new();
            for r in &reads {
                inputs.push(Input { ptr: r.host_byte_ptr()?, size: r.dtype().size(), strides: r.strides() });
            }
            let steps: SmallVec<[Step<'_>; 8]> = kernels
                .iter()
                .zip(&sources)
                .zip(&dtypes[op.inputs..])
                .map(|((&(tile, cost), inputs), dtype)| Step {
                    tile,
                    op: std::ptr::null(),
                    inputs,
                    size: dtype.size(),
                    cost,
                })
                .collect();
            let outputs: SmallVec<[Output<'_>; 2]> = op
                .outputs
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

/// The dtype an elementwise operation gives, from its shape rule on scalars.
fn result_dtype(op: &dyn Op, x: &[DType]) -> Result<DType> {
    let scalars: SmallVec<[Aval; 3]> = x.iter().map(|&d| Aval::new(d, [])).collect();
    let refs: SmallVec<[&Aval; 3]> = scalars.iter().collect();
    Ok(op.infer_now(&refs)?[0].dtype)
}
