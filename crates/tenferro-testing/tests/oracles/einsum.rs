//! The einsum cases: integers, so that every result is exact.

use crate::{
    Step,
    args::{Adapter, Args, Outputs},
    check::{Outcome, call},
    json::lines,
    record::{Record, array},
};
use serde_json::Value;
use std::{path::Path, sync::Arc};
use tenferro_testing::{Array, run};

pub(crate) fn steps(folder: &Path) -> Result<Vec<Step>, String> {
    let step = |v: Value| -> Step {
        Box::new(move || match case(&v) {
            Ok(()) => Outcome::Replayed,
            Err(e) => Outcome::Failed(format!("{}: {e}", v["case_id"])),
        })
    };
    Ok(lines(&folder.join("einsum_cases.jsonl.gz"))?.into_iter().map(step).collect())
}

const EINSUM: Adapter =
    |a: &Args| -> Outputs { crate::products::einsum(a.text(a.x.len(), "").ok_or("no notation")?, a.x) };

fn case(v: &Value) -> Result<(), String> {
    let list =
        |name: &str| v[name].as_array().into_iter().flatten().map(array).collect::<Result<Vec<_>, _>>();
    let record = Record::einsum(list("inputs")?, v["expr"].as_str().unwrap_or_default());
    let (x, t) = (record.inputs.clone(), list("tangents")?);
    let ct = [array(&v["cotangent"])?];
    let f = call(&Arc::new(record), EINSUM);
    let same = |what: &str, got: tenferro_tensor::Result<Vec<Array>>, want: &[Array]| {
        let got = got.map_err(|e| format!("{what}: {e}"))?;
        if got.len() != want.len() {
            return Err(format!("{what}: {} results, expected {}", got.len(), want.len()));
        }
        let close = |(got, want): (&Array, &Array)| got.close(want, 0.0, 0.0);
        got.iter().zip(want).try_for_each(close).map_err(|e| format!("{what}: {e}"))
    };
    let value = [array(&v["value"])?];
    same("value", run::direct(&f, &x), &value)?;
    same("value, traced", run::compiled(&f, &x), &value)?;
    let jvp = [array(&v["jvp"])?];
    same("jvp, traced", run::jvp(&f, &x, &t), &jvp)?;
    same("jvp, eager", run::eager_jvp(&f, &x, &t), &jvp)?;
    let vjp = list("vjp")?;
    same("vjp, traced", run::vjp(&f, &x, &ct), &vjp)?;
    same("vjp, eager", run::eager_vjp(&f, &x, &ct), &vjp)
}
