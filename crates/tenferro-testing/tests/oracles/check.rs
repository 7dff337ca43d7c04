//! Runs a record in every way there is and compares what comes out.

use crate::{
    args::{Adapter, Args},
    record::{Expected, Probe, Record},
};
use std::sync::Arc;
use tenferro_core_ops::Var;
use tenferro_tensor::{DType, Error};
use tenferro_testing::{Array, Calls, run};

/// What became of a record.
#[derive(Debug)]
pub(crate) enum Outcome {
    Replayed,
    Skipped(String),
    Failed(String),
}

/// How near exact references must be, in units of their largest element: they and the results are rounded alike,
/// so what is left is a condition number.
fn rounding(single: bool) -> f64 {
    if single { 1e-4 } else { 1e-10 }
}

fn epsilon(single: bool) -> f64 {
    if single { f32::EPSILON as f64 } else { f64::EPSILON }
}

/// Whether an array is in single precision.
fn single(a: &Array) -> bool {
    matches!(a.dtype, DType::F32 | DType::C32)
}

/// Compares results with a reference, whose tolerance counts unless it is below the rounding of the reference
/// itself: a few units in the last place of its largest element. With `low`, an input is in single precision, and
/// the reference is rounded to it on its way.
fn compare(got: &[Array], want: &Expected, seeds: &[Array], low: bool) -> Result<(), String> {
    if got.len() != want.arrays.len() {
        return Err(format!("{} results, expected {}", got.len(), want.arrays.len()));
    }
    let seed = seeds.iter().map(Array::norm).fold(0.0, f64::max);
    for (i, (got, want_i)) in got.iter().zip(&want.arrays).enumerate() {
        let norm = want_i.norm();
        let low = low || single(want_i);
        let floor = 16.0 * epsilon(low) * norm;
        let named = |what: &str, e: String| format!("result {i}, {what}: {e}");
        got.close(want_i, want.rtol, want.atol.max(floor))
            .map_err(|e| named("tolerance of the record", e))?;
        if want.exact {
            let atol = rounding(low) * norm.max(seed);
            got.close(want_i, 0.0, atol).map_err(|e| named("rounding", e))?;
        }
    }
    Ok(())
}

type Ran = tenferro_tensor::Result<Vec<Array>>;

fn all(what: &str, results: [Ran; 2], wants: &[Expected], seeds: &[Array], low: bool) -> Result<(), String> {
    for (way, got) in ["traced", "eager"].into_iter().zip(results) {
        let got = got.map_err(|e| format!("{what}, {way}: {e}"))?;
        for want in wants {
            let source = if want.exact { "exact" } else { "finite differences" };
            compare(&got, want, seeds, low).map_err(|e| format!("{what}, {way}, {source}: {e}"))?;
        }
    }
    Ok(())
}

fn probe(call: &Calls, x: &[Array], p: &Probe) -> Result<(), String> {
    let (ct, t) = (&p.cotangents, &p.directions);
    let low = x.iter().any(single);
    let values = [run::compiled(call, x), run::eager(call, x)];
    let y = run::direct(call, x).map_err(|e| format!("value: {e}"))?;
    // Every way gives the same value; where the record has none, its dtypes and extents are those of the cotangents.
    let same = Expected { arrays: y.clone(), rtol: 1.0, atol: 1.0, exact: true };
    all("value", values, &[same], &[], low)?;
    for want in &p.value {
        compare(&y, want, &[], low).map_err(|e| format!("value: {e}"))?;
    }
    let kind = |list: &[Array]| list.iter().map(|a| (a.dtype, a.shape.clone())).collect::<Vec<_>>();
    if kind(&y) != kind(ct) {
        return Err(format!("value: got {:?}, expected {:?}", kind(&y), kind(ct)));
    }
    if !p.jvp.is_empty() {
        all("jvp", [run::jvp(call, x, t), run::eager_jvp(call, x, t)], &p.jvp, t, low)?;
    }
    if !p.vjp.is_empty() {
        all("vjp", [run::vjp(call, x, ct), run::eager_vjp(call, x, ct)], &p.vjp, ct, low)?;
    }
    if !p.hvp.is_empty() {
        all("hvp", [run::hvp(call, x, ct, t), run::eager_hvp(call, x, ct, t)], &p.hvp, ct, low)?;
    }
    Ok(())
}

/// The operation with the record's arguments but for its inputs.
pub(crate) fn call(record: &Arc<Record>, adapter: Adapter) -> Calls {
    let record = record.clone();
    Arc::new(move |x| {
        let failed = |reason: String| vec![Var::Failed(Error::invalid_argument("replay", "record", reason))];
        adapter(&Args { record: &record, x }).unwrap_or_else(failed)
    })
}

/// Runs one record.
pub(crate) fn replay(record: Record, adapter: Adapter) -> Outcome {
    let record = Arc::new(record);
    let x = &record.inputs;
    let constants: Vec<Var> = x.iter().map(crate::args::present).collect();
    if let Err(reason) = adapter(&Args { record: &record, x: &constants }) {
        return Outcome::Skipped(reason);
    }
    let call = call(&record, adapter);
    let mut done = record.probes.iter().try_for_each(|p| probe(&call, x, p));
    if record.error {
        done = expect_error(&call, x);
    }
    match done {
        Ok(()) => Outcome::Replayed,
        Err(e) => Outcome::Failed(format!("{}: {e}", record.case)),
    }
}

/// That the gradient of the call for a cotangent of ones ends in an error.
fn expect_error(call: &Calls, x: &[Array]) -> Result<(), String> {
    let y = run::direct(call, x).map_err(|e| e.to_string())?;
    let ct: Vec<Array> = y.iter().map(|y| y.map(y.dtype, |_| tenferro_testing::Elem::real(1.0))).collect();
    match run::eager_vjp(call, x, &ct) {
        Err(_) => Ok(()),
        Ok(_) => Err("no error".into()),
    }
}
