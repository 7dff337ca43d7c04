//! The tangent is the derivative along one random direction of all inputs, real and complex.

use super::{Outcome, during, each, input_directions};
use crate::{difference::central, info::OpInfo, run};

/// Relative agreement with extrapolated differences.
const TOLERANCE: f64 = 1e-8;

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let wrt = run::differentiable(&s.inputs);
        if !s.smooth || wrt.is_empty() {
            return Ok(());
        }
        let t = input_directions(&s.inputs, 1);
        let dy = during("jvp", run::jvp(&s.call, &s.inputs, &t))?;
        let at = |moved: &[crate::Array]| during("at a moved point", run::direct(&s.call, &with(&s.inputs, &wrt, moved)));
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
        let floats = dy.iter().all(|y| y.dtype.is_differentiable());
        let ct: Vec<_> = dy.iter().map(|y| y.direction(2)).collect();
        let g = if floats { during("vjp", run::vjp(&s.call, &s.inputs, &ct))? } else { vec![] };
        match dy.iter().chain(&g).find(|a| a.norm() != 0.0) {
            None => Ok(()),
            Some(a) => Err(format!("a derivative of {a:?}, expected zero")),
        }
    })
}
