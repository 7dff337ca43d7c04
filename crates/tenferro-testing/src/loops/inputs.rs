//! No input is written to: by a call, by a program, or by a derivative.

use super::{Outcome, during, each};
use crate::{array::Array, info::OpInfo, run};
use tenferro_core_ops::Now;
use tenferro_core_ops::{Var, leaf, or_zero, vjp_present, with_backend};
use tenferro_runtime::Program;
use tenferro_tensor::{Result, Tensor, Value};

fn bytes(x: &[Tensor]) -> Result<Vec<Vec<u8>>> {
    x.iter().map(|t| Ok(t.as_bytes()?.to_vec())).collect()
}

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let x: Vec<Tensor> = s.inputs.iter().map(Array::to_tensor).collect();
        let before = during("inputs", bytes(&x))?;
        let used = || -> Result<()> {
            let vars = run::placeholders(&s.inputs);
            let program = Program::new(&vars, &(s.call)(&vars))?;
            program.run(&mut run::cpu(), &x.iter().collect::<Vec<_>>())?;
            with_backend(&run::cpu(), || {
                let lift = |t: &Tensor| {
                    let v = Value::new(t.share());
                    if info.order > 0 && t.dtype().is_differentiable() {
                        leaf(v)
                    } else {
                        Var::Now(Now::new(v))
                    }
                };
                let vars: Vec<Var> = x.iter().map(lift).collect();
                let y = (s.call)(&vars);
                let seeds: Vec<(&Var, Var)> = y.iter().map(|y| (y, or_zero(None, y))).collect();
                vjp_present(&seeds, &vars.iter().collect::<Vec<_>>(), false).map(drop)
            })
        };
        during("use", used())?;
        if during("inputs", bytes(&x))? == before { Ok(()) } else { Err("an input was changed".into()) }
    })
}
