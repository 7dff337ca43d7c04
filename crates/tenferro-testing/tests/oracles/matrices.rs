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
        Ok(()) => Outcome::Replayed,
        Err(e) => Outcome::Failed(format!("{}, {name}: {e}", v["case_id"])),
    }
}

type Checked = Result<(), String>;

type Check = fn(&Value) -> Checked;

/// A field of a record and how it is compared.
const CHECKS: &[(&str, Check)] =
    &[("singular_values", singular_values), ("eigenvalues_sym", eigenvalues), ("det", determinant)];

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
    Ok(())
}

/// As near as the singular values, which are their moduli.
fn eigenvalues(v: &Value) -> Checked {
    let a = array(&v["a"])?;
    let want = numbers(&v["eigenvalues_sym"]);
    let norm = want.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
    let bound = 10.0 * want.len() as f64 * f64::EPSILON * norm;
    let got = run(|| vec![ops::eigvalsh(&present(&a)), ops::eigh(&present(&a)).0])?;
    for (way, w) in ["eigvalsh", "eigh"].into_iter().zip(&got) {
        w.close(&Array::reals(w.dtype, &[want.len()], &want), 0.0, bound)
            .map_err(|e| format!("{way}: {e}"))?;
    }
    Ok(())
}

/// A determinant is a sum of products, so elements that are off by eps of themselves change it by at most
/// `n eps` of the sum of the moduli of these products, the permanent of the moduli; ten times that is allowed,
/// as of the other values. One out of range is infinite.
fn determinant(v: &Value) -> Checked {
    let a = array(&v["a"])?;
    let n = a.shape[0];
    // For sets of rows, the permanents of these rows of as many first columns: no term cancels another.
    let mut permanents = vec![1.0; 1 << n];
    for rows in 1..1_usize << n {
        let column = rows.count_ones() as usize - 1;
        let without = |i: usize| a.at(&[i, column]).re().abs() * permanents[rows & !(1 << i)];
        permanents[rows] = (0..n).filter(|i| rows >> i & 1 == 1).map(without).sum();
    }
    let permanent = permanents[permanents.len() - 1];
    let det = run(|| vec![ops::det(&present(&a))])?.remove(0);
    match crate::json::number(&v["det"]) {
        Some(want) => {
            let bound = 10.0 * n as f64 * f64::EPSILON * permanent;
            det.close(&Array::reals(det.dtype, &[], &[want]), 0.0, bound)
        }
        None if det.data[0].re().is_infinite() => Ok(()),
        None => Err(format!("{:?}, which is out of range", det.data[0])),
    }
}
