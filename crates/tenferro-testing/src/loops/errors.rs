//! Bad input gives an error that names the operation, what was got and what was expected: directly, and when
//! it is traced or when the program runs.

use super::{Outcome, all};
use crate::{info::OpInfo, run};
use tenferro_tensor::Error;

pub(super) fn check(info: &OpInfo) -> Outcome {
    all(info.errors.iter().flat_map(|f| {
        let runs = [
            ("direct", f.op, run::direct(&f.call, &f.inputs)),
            ("traced", f.part, run::compiled(&f.call, &f.inputs)),
        ];
        runs.map(|(tier, op, r)| {
            let what = format!("{tier} {}", f.label);
            match r {
                Ok(y) => Err(format!("{what}: gave {y:?}, expected an error")),
                Err(e) => says(&e, op, &f.parts).map_err(|e| format!("{what}: {e}")),
            }
        })
    }))
}

fn says(e: &Error, op: &str, parts: &[&str]) -> Outcome {
    let message = e.to_string();
    if e.op() != op {
        return Err(format!("names {:?}, expected {op:?}: {message}", e.op()));
    }
    match ["got ", "expected "].iter().chain(parts).find(|p| !message.contains(**p)) {
        None => Ok(()),
        Some(p) => Err(format!("{message:?} does not say {p:?}")),
    }
}
