//! Where an operation has a kernel and a decomposition, they agree, and so does the derivative with that of
//! the decomposition.

use super::{Outcome, during, each, input_directions, near};
use crate::{
    info::OpInfo,
    run::{self, Calls},
};
use std::sync::Arc;
use tenferro_core_ops::{Op, Var};

fn decomposed(op: Arc<dyn Op>) -> Calls {
    Arc::new(move |x| {
        let whole = || tenferro_core_ops::apply_n(&*op, &x.iter().collect::<Vec<&Var>>(), 1);
        op.decompose(x).unwrap_or_else(whole).into_vec()
    })
}

pub(super) fn relevant(info: &OpInfo) -> bool {
    info.samples.iter().any(|s| {
        run::primitive(&s.call, &s.inputs)
            .is_some_and(|op| op.decompose(&run::placeholders(&s.inputs)).is_some())
    })
}

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let Some(op) = run::primitive(&s.call, &s.inputs) else { return Ok(()) };
        let (y, parts) = (during("kernel", run::direct(&s.call, &s.inputs))?, decomposed(op));
        near("decomposition", &during("decomposition", run::direct(&parts, &s.inputs))?, &y, info.tolerance)?;
        if info.order == 0 || run::differentiable(&s.inputs).is_empty() {
            return Ok(());
        }
        let t = input_directions(&s.inputs, 51);
        let dy = during("jvp", run::jvp(&s.call, &s.inputs, &t))?;
        let of_parts = during("jvp of the decomposition", run::jvp(&parts, &s.inputs, &t))?;
        near("jvp of the decomposition", &of_parts, &dy, 8.0 * info.tolerance)
    })
}
