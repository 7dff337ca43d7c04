//! The values are those of an independent reference.

use super::{Outcome, during, each, near};
use crate::{info::OpInfo, run};

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let y = during("run", run::direct(&s.call, &s.inputs))?;
        let y = s.observed(&s.inputs, y);
        near("value", &y, &(s.reference)(&s.inputs), info.tolerance)
    })
}
