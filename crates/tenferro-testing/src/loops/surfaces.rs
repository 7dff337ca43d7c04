//! The methods of dynamic, typed, eager and traced tensors are the operation.

use super::{Outcome, during, each, equal, near};
use crate::{
    array::Array,
    info::{OpInfo, Sample, SurfaceCalls},
    run,
};
use tenferro_core_ops::Dim;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::{EagerRuntime, EagerTensor, GraphCompiler, TracedTensor};
use tenferro_tensor::{DType, Error, Result, Tensor};

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let Some(surface) = &s.surface else { return Ok(()) };
        let y = during("direct", run::direct(&s.call, &s.inputs))?;
        equal("method of Tensor", &during("method of Tensor", direct(s, &*surface.direct))?, &y)?;
        if one_type(s) {
            match direct(s, &*surface.typed) {
                Ok(got) => equal("method of TypedTensor", &got, &y)?,
                // The results of its row have the element type of the operands, or a type that goes with it.
                // Where integers become something else, as by a mean, a typed call is an error.
                Err(Error::DType(_)) if promoted(s, &y) => {}
                Err(e) => return Err(format!("method of TypedTensor: {e}")),
            }
        }
        equal("method of EagerTensor", &during("method of EagerTensor", eager(s, surface))?, &y)?;
        let got = during("method of TracedTensor", traced(s, surface))?;
        near("method of TracedTensor", &got, &y, info.tolerance)
    })
}

/// Whether integers or truth values became results of another dtype.
fn promoted(s: &Sample, y: &[Array]) -> bool {
    s.inputs.first().is_some_and(|x| !x.dtype.is_differentiable() && y.iter().any(|y| y.dtype != x.dtype))
}

/// Whether all operands but conditions and positions have one element type, as a typed call has it.
fn one_type(s: &Sample) -> bool {
    let mut types = s.inputs.iter().map(|x| x.dtype).filter(|d| !matches!(d, DType::I64 | DType::Bool));
    let first = types.next();
    types.all(|d| Some(d) == first)
}

fn tensors(s: &Sample) -> Vec<Tensor> {
    s.inputs.iter().map(Array::to_tensor).collect()
}

type Direct = dyn Fn(&[Tensor], &mut CpuBackend) -> Result<Vec<Tensor>>;

fn direct(s: &Sample, method: &Direct) -> Result<Vec<Array>> {
    Ok(method(&tensors(s), &mut run::cpu())?.iter().map(Array::from_tensor).collect())
}

fn eager(s: &Sample, surface: &SurfaceCalls) -> Result<Vec<Array>> {
    let runtime = EagerRuntime::new(&run::cpu());
    let x: Vec<EagerTensor> = tensors(s).into_iter().map(|t| runtime.tensor(t)).collect::<Result<_>>()?;
    let y = (surface.eager)(&runtime, &x)?;
    y.iter().map(|y| Ok(Array::from_tensor(&y.to_tensor()?))).collect()
}

fn traced(s: &Sample, surface: &SurfaceCalls) -> Result<Vec<Array>> {
    let input =
        |a: &Array| TracedTensor::input(a.dtype, &a.shape.iter().map(|&n| Dim::Lit(n)).collect::<Vec<_>>());
    let x: Vec<TracedTensor> = s.inputs.iter().map(input).collect();
    let y = (surface.traced)(&x)?;
    let program =
        GraphCompiler::new().compile_with(&x.iter().collect::<Vec<_>>(), &y.iter().collect::<Vec<_>>())?;
    run::run(&program, &s.inputs)
}
