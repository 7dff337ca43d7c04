//! Direct, eager and traced runs agree, and so do their derivatives.

use super::{Outcome, directions, during, each, equal, input_directions, near};
use crate::{info::OpInfo, run};

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let y = during("direct", run::direct(&s.call, &s.inputs))?;
        equal("eager", &during("eager", run::eager(&s.call, &s.inputs))?, &y)?;
        // Simplification and fusion may round otherwise.
        near("traced", &during("traced", run::compiled(&s.call, &s.inputs))?, &y, info.tolerance)?;
        // Where a value is infinite or NaN, what its derivative is depends on the order of products.
        let finite =
            y.iter().all(|y| y.dtype.is_differentiable() && y.data.iter().all(|e| e.c().is_finite()));
        if info.order == 0 || !finite || run::differentiable(&s.inputs).is_empty() {
            return Ok(());
        }
        let (t, ct) = (input_directions(&s.inputs, 11), directions(&y, 12));
        let tolerance = 8.0 * info.tolerance;
        let forward = during("traced jvp", run::jvp(&s.call, &s.inputs, &t))?;
        near(
            "eager jvp",
            &during("eager jvp", run::eager_jvp(&s.call, &s.inputs, &t))?,
            &forward,
            tolerance,
        )?;
        let reverse = during("traced vjp", run::vjp(&s.call, &s.inputs, &ct))?;
        near("eager vjp", &during("eager vjp", run::eager_vjp(&s.call, &s.inputs, &ct))?, &reverse, tolerance)
    })
}
