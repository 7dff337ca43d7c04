//! The methods of dynamic, typed, eager and traced tensors are the operation.

use super::{Outcome, during, each, equal, near};
use crate::{
    array::Array,
    info::{OpInfo, Sample, SurfaceCalls},
    run,
};
use tenferro_core_ops::Dim;
use tenferro_runtime::{EagerRuntime, EagerTensor, GraphCompiler, TracedTensor};
use tenferro_tensor::{DType, Result, Tensor};

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let Some(surface) = &s.surface else { return Ok(()) };
        let y = during("direct", run::direct(&s.call, &s.inputs))?;
        equal("method of Tensor", &[during("method of Tensor", direct(s, surface))?], &y)?;
        let plain = |a: &Array| matches!(a.dtype, DType::F64 | DType::I64 | DType::Bool);
        if let Some(typed) = &surface.typed
            && s.inputs[0].dtype == DType::F64
            && s.inputs.iter().all(plain)
        {
            let got = during("method of TypedTensor", typed(&tensors(s), &mut run::cpu()))?;
            equal("method of TypedTensor", &[Array::from_tensor(&got)], &y)?;
        }
        equal("method of EagerTensor", &[during("method of EagerTensor", eager(s, surface))?], &y)?;
        let got = during("method of TracedTensor", traced(s, surface))?;
        near("method of TracedTensor", &[got], &y, info.tolerance)
    })
}

fn tensors(s: &Sample) -> Vec<Tensor> {
    s.inputs.iter().map(Array::to_tensor).collect()
}

fn direct(s: &Sample, surface: &SurfaceCalls) -> Result<Array> {
    Ok(Array::from_tensor(&(surface.direct)(&tensors(s), &mut run::cpu())?))
}

fn eager(s: &Sample, surface: &SurfaceCalls) -> Result<Array> {
    let runtime = EagerRuntime::new(&run::cpu());
    let x: Vec<EagerTensor> = tensors(s).into_iter().map(|t| runtime.tensor(t)).collect::<Result<_>>()?;
    Ok(Array::from_tensor(&(surface.eager)(&x)?.to_tensor()?))
}

fn traced(s: &Sample, surface: &SurfaceCalls) -> Result<Array> {
    let input =
        |a: &Array| TracedTensor::input(a.dtype, &a.shape.iter().map(|&n| Dim::Lit(n)).collect::<Vec<_>>());
    let x: Vec<TracedTensor> = s.inputs.iter().map(input).collect();
    let y = (surface.traced)(&x)?;
    let program = GraphCompiler::new().compile_with(&x.iter().collect::<Vec<_>>(), &[&y])?;
    Ok(run::run(&program, &s.inputs)?.remove(0))
}
