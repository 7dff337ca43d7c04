//! Results written into views, or added to them, are the new results; nothing beside the views is written.

use super::{Outcome, close, during, each, epsilon, near};
use crate::{
    array::{Array, Elem},
    info::OpInfo,
    run,
};
use tenferro_core_ops::Op;
use tenferro_runtime::{Out, execute};
use tenferro_tensor::{Error, Tensor, TensorRead, TensorViewMut};

/// A destination: whole, or every second element, backwards, of a larger tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Whole,
    Strided,
}

impl Place {
    /// The tensor that has `a` in this place, and something else beside it.
    fn holding(self, a: &Array) -> Array {
        match self {
            Place::Whole => a.clone(),
            Place::Strided => {
                let shape: Vec<usize> = a.shape.iter().map(|n| 2 * n + 1).collect();
                Array::from_fn(a.dtype, &shape, |i| {
                    let inside = i.iter().all(|i| i % 2 == 1);
                    let at = || i.iter().zip(&a.shape).map(|(i, n)| n - 1 - i / 2).collect::<Vec<_>>();
                    if inside { a.at(&at()) } else { Elem::Int(1) }
                })
            }
        }
    }

    fn view(self, t: &mut Tensor) -> Result<TensorViewMut<'_>, Error> {
        let (shape, rank) = (t.shape().to_vec(), t.rank());
        let v = t.as_view_mut()?;
        match self {
            Place::Whole => Ok(v),
            Place::Strided => v
                .slice_view(vec![1; rank], &shape, vec![2; rank])?
                .reverse_view((0..rank).collect::<Vec<_>>()),
        }
    }
}

pub(super) fn relevant(info: &OpInfo) -> bool {
    info.samples.iter().any(|s| run::primitive(&s.call, &s.inputs).is_some())
}

pub(super) fn check(info: &OpInfo) -> Outcome {
    each(info, |s| {
        let Some(op) = run::primitive(&s.call, &s.inputs) else { return Ok(()) };
        let x: Vec<Tensor> = s.inputs.iter().map(Array::to_tensor).collect();
        let new = during("new", into(&*op, &x, Out::New))?;
        let new: Vec<Array> = new.iter().map(Array::from_tensor).collect();
        near("new", &s.observed(&s.inputs, new.clone()), &(s.reference)(&s.inputs), info.tolerance)?;
        for place in [Place::Whole, Place::Strided] {
            let mut held: Vec<Tensor> = new.iter().map(|a| place.holding(&before(a)).to_tensor()).collect();
            let views = during("view", held.iter_mut().map(|t| place.view(t)).collect())?;
            let rest = during("into", into(&*op, &x, Out::Into(views)))?;
            if !rest.is_empty() {
                return Err(format!("into {place:?}: {} new tensors", rest.len()));
            }
            let got: Vec<Array> = held.iter().map(Array::from_tensor).collect();
            let want: Vec<Array> = new.iter().map(|a| place.holding(a)).collect();
            near(&format!("into {place:?}"), &got, &want, info.tolerance)?;
            if new.len() == 1 && new[0].dtype != tenferro_tensor::DType::Bool {
                accumulate(info, &*op, &x, &new[0], place)?;
            }
        }
        Ok(())
    })
}

/// What a destination holds before, so that a result that is not written shows.
fn before(a: &Array) -> Array {
    Array::uniform(a.dtype, &a.shape, 99, -2.0, 2.0)
}

fn accumulate(info: &OpInfo, op: &dyn Op, x: &[Tensor], new: &Array, place: Place) -> Outcome {
    for (alpha, beta) in [(1.0, 1.0), (2.0, -3.0), (-1.0, 0.0)] {
        let what = format!("{alpha} new + {beta} old, {place:?}");
        let old = match beta {
            // Not read, so that NaN does not matter.
            0.0 if new.dtype.is_differentiable() => new.map(new.dtype, |_| Elem::real(f64::NAN)),
            _ => before(new),
        };
        let mut held = place.holding(&old).to_tensor();
        let view = during(&what, place.view(&mut held))?;
        during(&what, into(op, x, Out::Accumulate { alpha, beta, view }))?;
        let sum = Array::from_fn(new.dtype, &new.shape, |i| {
            let scaled = |f: f64, e: Elem| match e {
                Elem::Int(n) => Elem::Int(n.wrapping_mul(f as i64)),
                Elem::Float(z) => Elem::Float(f * z),
            };
            let r = scaled(alpha, new.at(i));
            if beta == 0.0 { r } else { r.plus(scaled(beta, old.at(i))) }
        });
        let eps = 2.0 * info.tolerance * epsilon(new.dtype);
        let got = [Array::from_tensor(&held)];
        close(&what, &got, &[place.holding(&sum)], eps, 10.0 * eps)?;
    }
    Ok(())
}

fn into(op: &dyn Op, x: &[Tensor], out: Out<'_>) -> Result<Vec<Tensor>, Error> {
    let reads: Vec<TensorRead<'_>> = x.iter().map(TensorRead::from).collect();
    Ok(execute(op, &reads, out, &mut run::cpu())?.into_vec())
}
