//! Operands of different dtypes give what their conversions to the common dtype give, and cotangents of their
//! own dtypes.

use super::{Outcome, all, equal, transpose};
use crate::{array::Array, info::OpInfo, run};
use tenferro_tensor::DType;

pub(super) fn check(info: &OpInfo) -> Outcome {
    let Some(s) = info.samples.iter().find(|s| s.inputs.len() > 1 && s.smooth) else { return Ok(()) };
    let n = s.inputs.len();
    // A condition stays one, and integers beside floating-point operands are positions.
    let floats = s.inputs.iter().any(|x| x.dtype.is_differentiable());
    let number = |d: DType| d != DType::Bool && !(floats && d.is_integer());
    let free: Vec<usize> = (0..n).filter(|&i| number(s.inputs[i].dtype)).collect();
    let pairs = DType::ALL.iter().flat_map(|&a| DType::ALL.iter().map(move |&b| (a, b)));
    all(pairs.map(|(a, b)| {
        let common = DType::promote(a, b);
        let mixed: Vec<Array> = (s.inputs.iter().enumerate())
            .map(|(i, x)| match free.iter().position(|&f| f == i) {
                Some(0) => x.cast(a),
                Some(_) => x.cast(b),
                None => x.clone(),
            })
            .collect();
        let same: Vec<Array> = mixed
            .iter()
            .enumerate()
            .map(|(i, x)| if free.contains(&i) { x.cast(common) } else { x.clone() })
            .collect();
        let what = format!("{a} with {b}");
        match (run::direct(&s.call, &mixed), run::direct(&s.call, &same)) {
            (Ok(got), Ok(want)) => {
                equal(&what, &got, &want)?;
                // Cotangents come back in the dtypes of the operands.
                if info.order > 0 { transpose::adjoint(&what, &s.call, &mixed) } else { Ok(()) }
            }
            (Err(_), Err(_)) => Ok(()),
            (got, want) => Err(format!("{what}: mixed {:?}, of {common} {:?}", got.err(), want.err())),
        }
    }))
}
