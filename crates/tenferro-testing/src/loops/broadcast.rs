//! Operands of unequal shapes give what their repetitions to the common shape give, and derivatives of their
//! own shapes.

use super::{Outcome, all, during, each, equal, transpose};
use crate::{array::Array, info::OpInfo, run};

/// The part of `a` at the first position of some axes, which stay with extent 1, without its first `drop`
/// axes.
fn part(a: &Array, ones: &[usize], drop: usize) -> Array {
    let shape: Vec<usize> =
        (0..a.rank()).map(|i| if i < drop || ones.contains(&i) { 1 } else { a.shape[i] }).collect();
    Array::from_fn(a.dtype, &shape, |i| a.at(i)).reshape(&shape[drop..])
}

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let rank = s.inputs[0].rank();
        if s.inputs[0].data.is_empty() || s.inputs.iter().any(|a| a.shape != s.inputs[0].shape) {
            return Ok(());
        }
        // Axes dropped in front, and axes of extent 1, of one operand; the next one is cut elsewhere.
        let cuts = (0..=rank).map(|drop| (vec![], drop)).chain((0..rank).map(|axis| (vec![axis], 0)));
        all(cuts.flat_map(|(ones, drop)| {
            (0..s.inputs.len()).map(move |cut| {
                let mut x = s.inputs.clone();
                x[cut] = part(&x[cut], &ones, drop);
                let other = (cut + 1) % x.len();
                let apart: Vec<usize> = (drop..rank).filter(|i| !ones.contains(i)).take(1).collect();
                x[other] = part(&x[other], &apart, 0);
                let common: Vec<usize> = (0..rank)
                    .map(|k| {
                        let extent = |a: &Array| (k + a.rank()).checked_sub(rank).map_or(1, |k| a.shape[k]);
                        x.iter().map(extent).max().unwrap_or(1)
                    })
                    .collect();
                let what = format!("{:?}", x.iter().map(|a| &a.shape).collect::<Vec<_>>());
                let full: Vec<Array> = x.iter().map(|a| a.broadcast(&common)).collect();
                let got = during(&what, run::direct(&s.call, &x))?;
                equal(&what, &got, &during(&what, run::direct(&s.call, &full))?)?;
                if info.order > 0 && s.smooth { transpose::adjoint(&what, &s.call, &x) } else { Ok(()) }
            })
        }))
    })
}
