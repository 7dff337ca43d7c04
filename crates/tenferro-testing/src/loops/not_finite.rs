//! What is not finite is not lost: with a floating-point operand full of NaN, an operation gives an error, or a
//! result that is not finite; in linear algebra, with one full of infinities, too.
//!
//! Of methods of tensors: a derivative rule may well pass what it does not read. A sample that states why an
//! operand has no say in the results is free of this; its results must be finite indeed.

use super::{Outcome, all};
use crate::{
    array::{Array, Elem},
    info::{OpInfo, Sample},
    run,
};
use tenferro_tensor::C64;

pub(super) fn relevant(info: &OpInfo) -> bool {
    info.samples.iter().any(|s| operands(s).next().is_some())
}

/// The operands of a method that have floating-point elements.
fn operands(s: &Sample) -> impl Iterator<Item = usize> {
    let holds = |a: &Array| a.dtype.is_differentiable() && !a.data.is_empty();
    (0..s.inputs.len()).filter(move |&i| s.surface.is_some() && holds(&s.inputs[i]))
}

pub(super) fn check(info: &OpInfo) -> Outcome {
    let numbers = if info.infinite { &[f64::NAN, f64::INFINITY][..] } else { &[f64::NAN] };
    all(info.samples.iter().flat_map(|s| {
        operands(s).flat_map(move |i| {
            numbers
                .iter()
                .map(move |&z| one(s, i, z).map_err(|e| format!("{}: operand {i} of {z}: {e}", s.label)))
        })
    }))
}

fn one(s: &Sample, i: usize, z: f64) -> Outcome {
    let mut x = s.inputs.clone();
    // Of a complex number, either part may be read alone.
    x[i] = x[i].map(x[i].dtype, |_| Elem::Float(C64::new(z, z)));
    let results = run::direct(&s.call, &x);
    match (results, s.overlooks[i]) {
        (Err(e), Some(why)) => Err(format!("{e}, though {why}")),
        (Err(_), None) => Ok(()),
        (Ok(y), why) => {
            let floats = || y.iter().filter(|y| y.dtype.is_differentiable()).flat_map(|y| &y.data);
            let seen = floats().any(|e| !e.c().is_finite());
            match why {
                Some(why) if seen => Err(format!("the results show it, though {why}")),
                None if !seen && floats().next().is_some() => Err("the results are finite".into()),
                _ => Ok(()),
            }
        }
    }
}
