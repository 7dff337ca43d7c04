//! Second derivatives, by forward over reverse and by reverse over reverse, are those of the first.

use super::{Outcome, directions, during, each, epsilon, input_directions, jvp::with, near_derivative};
use crate::{difference::central, info::OpInfo, run};

/// Relative agreement with extrapolated differences of gradients.
const TOLERANCE: f64 = 1e-8;

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let wrt = run::differentiable(&s.inputs);
        if !(s.smooth && s.double()) || wrt.is_empty() {
            return Ok(());
        }
        let call = run::differentiable_outputs(&s.call);
        let y = during("value", run::direct(&call, &s.inputs))?;
        if y.iter().any(|a| epsilon(a.dtype) > f64::EPSILON) {
            return Ok(());
        }
        let (t, ct) = (input_directions(&s.inputs, 61), directions(&y, 62));
        let forward = during("jvp of grad", run::hvp(&call, &s.inputs, &ct, &t))?;
        let reverse = during("vjp of grad", run::eager_hvp(&call, &s.inputs, &ct, &t))?;
        near_derivative("jvp of grad, vjp of grad", &reverse, &forward, 64.0 * info.tolerance)?;
        let at = |moved: &[crate::Array]| {
            during("gradient at a moved point", run::eager_vjp(&call, &with(&s.inputs, &wrt, moved), &ct))
        };
        let x: Vec<_> = wrt.iter().map(|&i| s.inputs[i].clone()).collect();
        central(at, &x, &t, &forward, TOLERANCE)
    })
}
