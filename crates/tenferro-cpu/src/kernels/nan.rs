//! Looking for the operation that made a NaN.

use crate::CpuBackend;
use smallvec::SmallVec;
use tenferro_core_ops::{Now, Operand, Out, Outs, Primitive, Var, into_tensor, ops::Fused, with_backend};
use tenferro_tensor::{Error, Result, Scalar, Tensor, TensorView, Value, dispatch_float};

/// An error if a result, new or written into a view, has a NaN.
pub(crate) fn check(op: &'static str, results: &[Tensor], out: &mut Out<'_>) -> Result<()> {
    results.iter().try_for_each(|t| check_view(op, t.as_view()))?;
    match out {
        // The views are written from new results, if there are any.
        _ if !results.is_empty() => Ok(()),
        Out::New => Ok(()),
        Out::Into(views) => views.iter().try_for_each(|v| check_view(op, v.as_view())),
        Out::Accumulate { view, .. } => check_view(op, view.as_view()),
    }
}

fn check_view(op: &'static str, x: TensorView<'_>) -> Result<()> {
    dispatch_float!(x.dtype(), T => {
        let nan = |v: &T| {
            let z = v.to_c64();
            z.re.is_nan() || z.im.is_nan()
        };
        match x.typed::<T>()?.iter()?.position(nan) {
            None => Ok(()),
            Some(i) => Err(Error::numeric(op, format!("element {i} of the result"), "NaN", "a number")),
        }
    }, else Ok(()))
}

/// The results of a chain, each of its operations run and checked alone.
pub(crate) fn steps(cpu: &CpuBackend, chain: &Fused, x: &[Operand<'_>]) -> Result<Outs<Tensor>> {
    // SAFETY: dropped before this kernel returns.
    let value = |x: &Operand<'_>| unsafe { Value::borrowed(x.read()) };
    let x: SmallVec<[Var; 4]> = x.iter().map(|x| Var::Now(Now::new(value(x)))).collect();
    let y = with_backend(cpu, || Primitive::decompose(chain, &x)).unwrap_or_default();
    y.into_iter().map(|v| into_tensor(cpu, v.into_value()?)).collect()
}
