//! Direct, eager and traced runs agree, and so do their derivatives.

use super::{Outcome, directions, during, each, equal, input_directions, near, near_derivative};
use crate::{info::OpInfo, run};

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let y = during("direct", run::direct(&s.call, &s.inputs))?;
        equal("eager", &during("eager", run::eager(&s.call, &s.inputs))?, &y)?;
        // Simplification and fusion may round otherwise.
        near("traced", &during("traced", run::compiled(&s.call, &s.inputs))?, &y, info.tolerance)?;
        let call = run::differentiable_outputs(&s.call);
        let y: Vec<_> = y.into_iter().filter(|y| y.dtype.is_differentiable()).collect();
        // Where a value is infinite or NaN, what its derivative is depends on the order of products.
        let finite = y.iter().all(|y| y.data.iter().all(|e| e.c().is_finite()));
        if info.order == 0 || !finite || y.is_empty() || run::differentiable(&s.inputs).is_empty() {
            return Ok(());
        }
        let (t, ct) = (input_directions(&s.inputs, 11), directions(&y, 12));
        let tolerance = 8.0 * info.tolerance;
        let forward = during("traced jvp", run::jvp(&call, &s.inputs, &t))?;
        near_derivative(
            "eager jvp",
            &during("eager jvp", run::eager_jvp(&call, &s.inputs, &t))?,
            &forward,
            tolerance,
        )?;
        let reverse = during("traced vjp", run::vjp(&call, &s.inputs, &ct))?;
        near_derivative(
            "eager vjp",
            &during("eager vjp", run::eager_vjp(&call, &s.inputs, &ct))?,
            &reverse,
            tolerance,
        )
    })
}
