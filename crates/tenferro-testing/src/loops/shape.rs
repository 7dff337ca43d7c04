//! The shape rule gives the dtypes and extents of the results, on concrete and on symbolic extents.

use super::{Outcome, during, each};
use crate::{info::OpInfo, run};
use tenferro_core_ops::{Aval, Env, Var};

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let y = during("run", run::direct(&s.call, &s.inputs))?;
        let actual: Vec<Aval> = y.iter().map(|y| Aval::new(y.dtype, y.shape.iter().copied())).collect();
        let recorded = (s.call)(&run::placeholders(&s.inputs));
        for (v, a) in recorded.iter().zip(&actual) {
            let inferred = during("trace", v.ok().map(Var::aval).and_then(|v| v.eval(&Env::default())))?;
            if inferred != *a {
                return Err(format!("traced as {inferred}, computed {a}"));
            }
        }
        let Some(op) = run::primitive(&s.call, &s.inputs) else { return Ok(()) };
        let x: Vec<Aval> = s.inputs.iter().map(|x| Aval::new(x.dtype, x.shape.iter().copied())).collect();
        let inferred = during("infer", op.infer_now(&x.iter().collect::<Vec<_>>()))?;
        if inferred[..] == actual[..] {
            Ok(())
        } else {
            Err(format!("inferred {inferred:?}, computed {actual:?}"))
        }
    })
}
