//! An operand gives the same results however it lies in memory: transposed, reversed, as part of a larger
//! tensor, or repeated.

use super::{Outcome, all, during, each, near};
use crate::{
    array::{Array, Elem},
    info::OpInfo,
    run,
};
use tenferro_tensor::{Result, Value};

/// An array whose elements may lie otherwise: what is read, and how.
type Laid = (Array, Value);

fn whole(a: &Array) -> Result<Laid> {
    Ok((a.clone(), Value::new(a.to_tensor())))
}

fn transposed(a: &Array) -> Result<Laid> {
    let back: Vec<usize> = (0..a.rank()).rev().collect();
    let stored = Value::new(a.permuted(&back).to_tensor());
    Ok((a.clone(), stored.with_layout(stored.layout().transpose("views", &back)?)))
}

fn reversed(a: &Array) -> Result<Laid> {
    let stored = Array::from_fn(a.dtype, &a.shape, |i| {
        a.at(&i.iter().zip(&a.shape).map(|(i, n)| n - 1 - i).collect::<Vec<_>>())
    });
    let stored = Value::new(stored.to_tensor());
    let axes: Vec<usize> = (0..a.rank()).collect();
    Ok((a.clone(), stored.with_layout(stored.layout().reverse("views", &axes)?)))
}

/// Every second element of a larger tensor, which holds something else in between.
fn sliced(a: &Array) -> Result<Laid> {
    let shape: Vec<usize> = a.shape.iter().map(|n| 2 * n + 1).collect();
    let stored = Array::from_fn(a.dtype, &shape, |i| {
        if i.iter().all(|i| i % 2 == 1) {
            a.at(&i.iter().map(|i| i / 2).collect::<Vec<_>>())
        } else if a.dtype.is_differentiable() {
            Elem::real(f64::NAN)
        } else {
            Elem::Int(77)
        }
    });
    let stored = Value::new(stored.to_tensor());
    let (starts, steps) = (vec![1; a.rank()], vec![2; a.rank()]);
    Ok((a.clone(), stored.with_layout(stored.layout().slice("views", &starts, &shape, &steps)?)))
}

/// The first position of an axis repeated along it.
fn repeated(a: &Array) -> Result<Laid> {
    let Some(axis) = (0..a.rank()).rev().find(|&i| a.shape[i] > 1) else { return whole(a) };
    let first =
        |i: &[usize]| i.iter().enumerate().map(|(k, &i)| if k == axis { 0 } else { i }).collect::<Vec<_>>();
    let read = Array::from_fn(a.dtype, &a.shape, |i| a.at(&first(i)));
    let mut shape = a.shape.clone();
    shape[axis] = 1;
    let stored = Value::new(Array::from_fn(a.dtype, &shape, |i| a.at(i)).to_tensor());
    let axes: Vec<usize> = (0..a.rank()).collect();
    Ok((read, stored.with_layout(stored.layout().broadcast("views", &a.shape, &axes)?)))
}

type Lay = fn(&Array) -> Result<Laid>;

const LAYOUTS: &[(&str, Lay)] =
    &[("transposed", transposed), ("reversed", reversed), ("sliced", sliced), ("repeated", repeated)];

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let n = s.inputs.len();
        // Each operand alone, and all of them.
        let choices = (0..n).map(|i| vec![i]).chain((n > 1).then(|| (0..n).collect()));
        all(choices.flat_map(|chosen| {
            LAYOUTS.iter().map(move |(name, lay)| {
                let of = |(i, a): (usize, &Array)| if chosen.contains(&i) { lay(a) } else { whole(a) };
                let laid = during(name, s.inputs.iter().enumerate().map(of).collect::<Result<Vec<Laid>>>())?;
                let (read, values): (Vec<Array>, Vec<Value>) = laid.into_iter().unzip();
                let what = format!("{name} operands {chosen:?}");
                let want = match run::direct(&s.call, &read) {
                    // Repeated elements make a matrix singular, a position appear twice.
                    Err(e) if *name == "repeated" => {
                        return match run::present(&s.call, &values) {
                            Err(other) if other.op() == e.op() => Ok(()),
                            other => Err(format!("{what}: {other:?}, but {e} where it lies compact")),
                        };
                    }
                    want => during(&what, want)?,
                };
                let got = during(&what, run::present(&s.call, &values))?;
                // Another order of summation rounds otherwise.
                near(&what, &s.observed(&read, got), &s.observed(&read, want), info.tolerance)
            })
        }))
    })
}
