//! Among the samples, which all loops run on, there are empty tensors and tensors without axes.

use super::Outcome;
use crate::{array::Array, info::OpInfo};

pub(super) fn check(info: &OpInfo) -> Outcome {
    let has = |what: &str, f: fn(&Array) -> bool| {
        let skipped = info.skips.iter().any(|(name, _)| *name == what);
        let found =
            info.samples.iter().any(|s| s.inputs.iter().any(f) || (s.reference)(&s.inputs).iter().any(f));
        if found || skipped { Ok(()) } else { Err(format!("no sample with {what}")) }
    };
    has("zero_size", |a| a.data.is_empty())?;
    has("rank_0", |a| a.shape.is_empty())
}
