//! Eager gradients of small matrices, forward and backward.

use super::{Case, Goal, matrix, other_matrix};
use crate::{Result, subject::subject};
use tenferro_ad::prelude::*;
use tenferro_cpu::CpuBackend;
use tenferro_linalg::prelude::*;
use tenferro_runtime::{EagerRuntime, EagerTensor};

type Loss = fn(&EagerTensor, &EagerTensor) -> tenferro_tensor::Result<EagerTensor>;

pub(super) fn groups() -> Result<Vec<Vec<Case>>> {
    let cases: [(&str, &str, Loss); 2] = [
        ("gradient of sum(solve(A, B)^2), 2x2: eager", "solve_2x2_grad", solve),
        ("gradient of sum(S) + sum(W U Vh), 2x2: eager", "svd_2x2_grad", svd),
    ];
    cases.into_iter().map(|(name, peer, loss)| Ok(vec![gradient(name, peer, loss)?])).collect()
}

fn solve(a: &EagerTensor, b: &EagerTensor) -> tenferro_tensor::Result<EagerTensor> {
    let x = a.solve(b)?;
    (&x * &x)?.reduce_sum(None)
}

/// Independent of the gauge of U and V.
fn svd(a: &EagerTensor, weight: &EagerTensor) -> tenferro_tensor::Result<EagerTensor> {
    let (u, s, vh) = a.svd()?;
    &s.reduce_sum(None)? + &(weight * &u.matmul(&vh)?)?.reduce_sum(None)?
}

/// The gradient of the first operand; that of the second is computed, too.
fn gradient(name: &str, peer: &str, loss: Loss) -> Result<Case> {
    let (a, b) = (matrix()?, other_matrix()?);
    let runtime = EagerRuntime::new(&CpuBackend::with_threads(1));
    let x = runtime.variable(a.duplicate()?.into_tensor())?;
    let y = runtime.variable(b.duplicate()?.into_tensor())?;
    let call = move || {
        x.clear_grad();
        y.clear_grad();
        loss(&x, &y)?.backward()?;
        Ok(x.grad())
    };
    let read = |g: Option<EagerTensor>| g.map_or(Ok(Vec::new()), |g| g.to_tensor()?.to_vec_row_major());
    Case::new(name, Goal::OfTorch(1.0 / 3.0), subject(call, read)).beside(peer, &[&a, &b])
}
