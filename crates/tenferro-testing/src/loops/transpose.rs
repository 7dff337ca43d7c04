//! Reverse mode is the adjoint of forward mode: `<ct, J t> = <J^H ct, t>`, in the inner product `Re
//! sum(conj(a) b)`, wherever the derivative is finite.

use super::{Outcome, all, directions, during, each, epsilon, input_directions};
use crate::{
    array::Array,
    info::OpInfo,
    run::{self, Calls},
};

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        if run::differentiable(&s.inputs).is_empty() { Ok(()) } else { adjoint("", &s.call, &s.inputs) }
    })
}

/// Checks the identity for the outputs that have derivatives, traced and on the tape, at three pairs of
/// directions.
pub(super) fn adjoint(what: &str, call: &Calls, x: &[Array]) -> Outcome {
    let call = &run::differentiable_outputs(call);
    all((0..3).map(|k| {
        let t = input_directions(x, 20 + 10 * k);
        let dy = during("jvp", run::jvp(call, x, &t))?;
        let ct = directions(&dy, 25 + 10 * k);
        let forward: f64 = ct.iter().zip(&dy).map(|(a, b)| a.dot(b)).sum();
        if !forward.is_finite() {
            return Ok(());
        }
        let size: f64 = ct.iter().zip(&dy).map(|(a, b)| a.norm() * b.norm() * b.data.len() as f64).sum();
        let eps = x.iter().chain(&dy).map(|a| epsilon(a.dtype)).fold(0.0, f64::max);
        for (name, g) in [("traced", run::vjp(call, x, &ct)), ("eager", run::eager_vjp(call, x, &ct))] {
            let g = during(&format!("{what} {name} vjp"), g)?;
            for (g, t) in g.iter().zip(&t) {
                if (g.dtype, &g.shape) != (t.dtype, &t.shape) {
                    return Err(format!("{what} {name}: cotangent {g:?} of an input like {t:?}"));
                }
            }
            let reverse: f64 = g.iter().zip(&t).map(|(a, b)| a.dot(b)).sum();
            let own: f64 = g.iter().zip(&t).map(|(a, b)| a.norm() * b.norm() * b.data.len() as f64).sum();
            let equal = (forward - reverse).abs() <= 64.0 * eps * size.max(own);
            if !equal {
                return Err(format!("{what} {name}: <ct, J t> = {forward:e}, <J^H ct, t> = {reverse:e}"));
            }
        }
        Ok(())
    }))
}
