//! A call on an operand that has failed passes its error on, not one of its own.

use super::{Outcome, all};
use crate::{info::OpInfo, run};
use tenferro_core_ops::{Now, Var, with_backend};
use tenferro_tensor::Error;

const OP: &str = "upstream";

pub(super) fn check(info: &OpInfo) -> Outcome {
    all(info.samples.iter().flat_map(|s| {
        (0..s.inputs.len()).map(move |i| {
            let present = |v| Var::Now(Now::new(v));
            let tiers: [(&str, Vec<Var>); 2] = [
                ("present", run::values(&s.inputs).into_iter().map(present).collect()),
                ("traced", run::placeholders(&s.inputs)),
            ];
            all(tiers.into_iter().map(|(tier, mut x)| {
                x[i] = Var::Failed(Error::argument(OP, "operand", "nothing", "something"));
                let y = with_backend(&run::cpu(), || (s.call)(&x));
                // A result may not depend on this operand.
                let mut errors = y.iter().filter_map(|y| y.ok().err()).peekable();
                if errors.peek().is_some() && errors.all(|e| e.op() == OP) {
                    return Ok(());
                }
                let got: Vec<_> = y.iter().map(|y| y.ok().map(Var::aval)).collect();
                Err(format!("{}: {tier} operand {i} has failed, and the call gives {got:?}", s.label))
            }))
        })
    }))
}
