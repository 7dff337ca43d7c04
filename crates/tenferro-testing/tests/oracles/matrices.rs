//! Hard matrices with singular values, eigenvalues and determinants to many digits.

use crate::{Step, args::present, check::Outcome, json::lines, record::array};
use serde_json::Value;
use std::path::Path;
use tenferro_core_ops::{Var, into_tensor, with_backend};
use tenferro_cpu::CpuBackend;
use tenferro_linalg::ops;
use tenferro_testing::Array;

pub(crate) fn steps(folder: &Path) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = vec![];
    for v in lines(&folder.join("matrix_families.jsonl.gz"))? {
        for (name, check) in CHECKS {
            let v = v.clone();
            if v.get(*name).is_some() {
                steps.push(Box::new(move || outcome(check(&v), &v, name)));
            }
        }
    }
    Ok(steps)
}

fn outcome(checked: Checked, v: &Value, name: &str) -> Outcome {
    match checked {
        Ok(None) => Outcome::Replayed,
        Ok(Some(reason)) => Outcome::Skipped(reason),
        Err(e) => Outcome::Failed(format!("{}, {name}: {e}", v["case_id"])),
    }
}

/// Why it was skipped, if it was.
type Checked = Result<Option<String>, String>;

type Check = fn(&Value) -> Checked;

/// A field of a record and how it is compared.
const CHECKS: &[(&str, Check)] = &[
    ("singular_values", singular_values),
    ("eigenvalues_sym", |_| Ok(Some("operation absent: eigh".into()))),
    ("det", |_| Ok(Some("operation absent: det".into()))),
];

/// The values on the host.
pub(crate) fn run(f: impl FnOnce() -> Vec<Var>) -> Result<Vec<Array>, String> {
    let cpu = CpuBackend::new();
    let read = |v: Var| -> tenferro_tensor::Result<Array> {
        Ok(Array::from_tensor(&into_tensor(&cpu, v.detach().into_value()?)?))
    };
    with_backend(&cpu, || f().into_iter().map(read).collect::<Result<_, _>>()).map_err(|e| e.to_string())
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().into_iter().flatten().filter_map(crate::json::number).collect()
}

/// `|sigma' - sigma| <= 10 max(m, n) eps sigma_1`, as the records say.
fn singular_values(v: &Value) -> Checked {
    let a = array(&v["a"])?;
    let want = numbers(&v["singular_values"]);
    let got = run(|| vec![ops::svdvals(&present(&a)), ops::svd(&present(&a)).1])?;
    let bound = 10.0 * *a.shape.iter().max().unwrap_or(&1) as f64 * f64::EPSILON * want[0];
    for (way, s) in ["svdvals", "svd"].into_iter().zip(&got) {
        s.close(&Array::reals(s.dtype, &[want.len()], &want), 0.0, bound)
            .map_err(|e| format!("{way}: {e}"))?;
    }
    Ok(None)
}
