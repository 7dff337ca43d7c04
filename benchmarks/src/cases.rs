//! What is measured, with the targets.
//!
//! Cases of one group are timed in turn, so that they may be compared; a case beside peers is compared with them.

mod calls;
mod dense;
mod einsum;
mod gradients;
mod programs;
mod transposes;
mod views;

use crate::{Result, subject::Subject};
use tenferro_tensor::TypedTensor;

/// One thing to time.
pub(crate) struct Case {
    /// What it is, in the table.
    pub(crate) name: String,
    /// Its name in `peers.py`, if the peers have it.
    pub(crate) peer: Option<String>,
    /// What the peers shall work on: the operands of `subject`.
    pub(crate) operands: Vec<TypedTensor<f64>>,
    /// The call.
    pub(crate) subject: Box<dyn Subject>,
    /// What it should give, in row-major order, where plain arithmetic says so.
    pub(crate) expected: Option<Vec<f64>>,
    /// What is asked of its time.
    pub(crate) goal: Goal,
    /// The time is what this case takes longer than another of its group, for each of so many steps.
    pub(crate) per_step: Option<(&'static str, usize)>,
}

/// What is asked of a time.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    /// The unit that others are measured in.
    Unit,
    /// At most so many units.
    Units(f64),
    /// At most so many nanoseconds.
    Nanoseconds(f64),
    /// At most this fraction of the time of PyTorch.
    OfTorch(f64),
    /// At most this many times the time of NumPy.
    OfNumpy(f64),
    /// At most this many times the time of the fastest peer.
    OfPeers(f64),
    /// Nothing: for comparison only.
    None,
}

impl Case {
    fn new(name: impl Into<String>, goal: Goal, subject: Box<dyn Subject>) -> Self {
        Case {
            name: name.into(),
            peer: None,
            operands: Vec::new(),
            subject,
            expected: None,
            goal,
            per_step: None,
        }
    }

    fn expecting(mut self, expected: impl Into<Vec<f64>>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// With the case of this name in `peers.py`, on the same operands.
    fn beside(mut self, peer: impl Into<String>, operands: &[&TypedTensor<f64>]) -> Result<Self> {
        self.peer = Some(peer.into());
        self.operands = operands.iter().map(|x| x.duplicate()).collect::<Result<_, _>>()?;
        Ok(self)
    }

    fn per_step(mut self, baseline: &'static str, steps: usize) -> Self {
        self.per_step = Some((baseline, steps));
        self
    }
}

/// All cases.
pub(crate) fn groups() -> Result<Vec<Vec<Case>>> {
    let mut all = vec![calls::group()?, views::group()?, programs::group()?];
    all.extend(einsum::groups()?);
    all.extend(gradients::groups()?);
    all.extend(transposes::groups()?);
    all.extend(dense::groups()?);
    Ok(all)
}

/// A well-conditioned matrix.
fn matrix() -> Result<TypedTensor<f64>> {
    Ok(TypedTensor::from_vec_row_major([2, 2], vec![3.0, 1.0, 0.5, 2.0])?)
}

/// Another one.
fn other_matrix() -> Result<TypedTensor<f64>> {
    Ok(TypedTensor::from_vec_row_major([2, 2], vec![0.3, -1.2, 0.7, 0.4])?)
}

fn row_major(x: TypedTensor<f64>) -> tenferro_tensor::Result<Vec<f64>> {
    x.to_vec_row_major()
}
