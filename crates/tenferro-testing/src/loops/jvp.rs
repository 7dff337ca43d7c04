//! The tangent is the derivative along one random direction of all inputs, real and complex.

use super::{Outcome, all, during, each, epsilon, input_directions};
use crate::{difference::central, info::OpInfo, run};

/// Relative agreement with extrapolated differences.
const TOLERANCE: f64 = 1e-8;

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let wrt = run::differentiable(&s.inputs);
        if !(s.smooth && s.double()) || wrt.is_empty() {
            return Ok(());
        }
        let t = input_directions(&s.inputs, 1);
        let dy = during("jvp", run::jvp(&s.call, &s.inputs, &t))?;
        let (dy, discrete): (Vec<_>, Vec<_>) = dy.into_iter().partition(|a| a.dtype.is_differentiable());
        all(discrete.iter().map(zero))?;
        if dy.iter().any(|a| epsilon(a.dtype) > f64::EPSILON) {
            return Ok(());
        }
        let call = run::differentiable_outputs(&s.call);
        let at = |moved: &[crate::Array]| {
            during("at a moved point", run::direct(&call, &with(&s.inputs, &wrt, moved)))
        };
        let x: Vec<_> = wrt.iter().map(|&i| s.inputs[i].clone()).collect();
        central(at, &x, &t, &dy, TOLERANCE)
    })
}

/// `x` with the inputs `wrt` replaced.
pub(super) fn with(x: &[crate::Array], wrt: &[usize], moved: &[crate::Array]) -> Vec<crate::Array> {
    let mut x = x.to_vec();
    wrt.iter().zip(moved).for_each(|(&i, m)| x[i] = m.clone());
    x
}

/// An operation without a derivative has tangent and cotangents zero.
pub(super) fn check_flat(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let dy = during("jvp", run::jvp(&s.call, &s.inputs, &input_directions(&s.inputs, 1)))?;
        let floats = dy.iter().filter(|y| y.dtype.is_differentiable());
        let ct: Vec<_> = floats.map(|y| y.direction(2)).collect();
        let call = run::differentiable_outputs(&s.call);
        let g = if ct.is_empty() { vec![] } else { during("vjp", run::vjp(&call, &s.inputs, &ct))? };
        all(dy.iter().chain(&g).map(zero))
    })
}

fn zero(a: &crate::Array) -> Outcome {
    if a.norm() == 0.0 { Ok(()) } else { Err(format!("a derivative of {a:?}, expected zero")) }
}
