//! Derivatives known in closed form, eagerly, traced, and forward against reverse.

use super::{Outcome, all, during, near, transpose};
use crate::{info::OpInfo, run};

pub(super) fn check(info: &OpInfo) -> Outcome {
    all(info.closed.iter().map(|c| {
        let check = || {
            let ct = [c.ct.clone()];
            let eager = during("eager vjp", run::eager_vjp(&c.call, &c.inputs, &ct))?;
            near("eager vjp", &eager, &c.expected, info.tolerance)?;
            let traced = during("traced vjp", run::vjp(&c.call, &c.inputs, &ct))?;
            near("traced vjp", &traced, &c.expected, info.tolerance)?;
            transpose::adjoint("", &c.call, &c.inputs)
        };
        check().map_err(|e| format!("{}: {e}", c.label))
    }))
}
