//! Derivatives in single precision are those of the same call in double precision, up to rounding.
//!
//! Differences of single precision say too little. The derivative in double precision is checked by them, and
//! shares with this one the rules, but neither kernels nor dtypes.

use super::{Outcome, close, differentiable, directions, during, each, input_directions};
use crate::{
    array::Array,
    info::{OpInfo, Sample},
    run,
};
use tenferro_tensor::DType;

/// Rounding errors of the derivative, for one of the value.
const FACTOR: f64 = 8.0;

fn checked(s: &Sample) -> bool {
    s.smooth && !s.double()
}

pub(super) fn relevant(info: &OpInfo) -> bool {
    differentiable(info) && info.samples.iter().any(checked)
}

/// The same numbers in double precision.
fn double(x: &[Array]) -> Vec<Array> {
    let of = |a: &Array| match a.dtype {
        DType::F32 => a.cast(DType::F64),
        DType::C32 => a.cast(DType::C64),
        _ => a.clone(),
    };
    x.iter().map(of).collect()
}

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        if !checked(s) {
            return Ok(());
        }
        let t = input_directions(&s.inputs, 71);
        let (x, dx) = (double(&s.inputs), double(&t));
        let dy = during("jvp", run::jvp(&s.call, &s.inputs, &t))?;
        rounded("jvp", &dy, &during("jvp in double precision", run::jvp(&s.call, &x, &dx))?, info.tolerance)?;
        if dy.iter().any(|a| !a.dtype.is_differentiable()) {
            return Ok(());
        }
        let ct = directions(&dy, 72);
        let want = during("vjp in double precision", run::vjp(&s.call, &x, &double(&ct)))?;
        for (name, g) in [
            ("vjp", run::vjp(&s.call, &s.inputs, &ct)),
            ("eager vjp", run::eager_vjp(&s.call, &s.inputs, &ct)),
        ] {
            rounded(name, &during(name, g)?, &want, info.tolerance)?;
        }
        Ok(())
    })
}

/// Whether `got` is `want`, up to single-precision rounding errors of the largest of its elements.
fn rounded(what: &str, got: &[Array], want: &[Array], tolerance: f64) -> Outcome {
    let eps = FACTOR * tolerance * f32::EPSILON as f64;
    let want: Vec<Array> = want.iter().zip(got).map(|(w, g)| w.cast(g.dtype)).collect();
    let size = want.iter().map(Array::norm).fold(1.0, f64::max);
    close(what, got, &want, eps, eps * size)
}
