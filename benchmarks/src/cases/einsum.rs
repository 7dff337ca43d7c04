//! Einsums of small tensors, where all but a few nanoseconds are the call's: of text on typed and eager
//! tensors, prepared, and in a compiled program.

use super::{Case, Goal, row_major};
use crate::{
    Result,
    subject::{Subject, subject},
};
use std::hint::black_box;
use tenferro_cpu::CpuBackend;
use tenferro_einsum::prelude::*;
use tenferro_runtime::{EagerRuntime, EagerTensor, prelude::*};

/// Name in `peers.py`, notation and shapes of the operands, nanoseconds asked of an eager and of a prepared
/// call.
type Row = (&'static str, &'static str, &'static [&'static [usize]], Option<[f64; 2]>);

const ROWS: [Row; 9] = [
    ("einsum_product", "ij,jk->ik", &[&[2, 2], &[2, 2]], Some([500.0, 200.0])),
    ("einsum_batch", "bij,bjk->bik", &[&[4, 2, 2], &[4, 2, 2]], None),
    ("einsum_outer", "i,j->ij", &[&[2], &[2]], None),
    ("einsum_inner", "ij,ij->", &[&[2, 2], &[2, 2]], None),
    ("einsum_trace", "ii->", &[&[2, 2]], None),
    ("einsum_reverse", "ijk->kji", &[&[2, 2, 2]], None),
    ("einsum_chain", "ij,jk,kl->il", &[&[2, 2], &[2, 2], &[2, 2]], None),
    ("einsum_outer_1000", "i,j->ij", &[&[1000], &[1000]], None),
    ("einsum_ellipsis", "...ij,...jk->...ik", &[&[4, 2, 2], &[2, 2]], None),
];

pub(super) fn groups() -> Result<Vec<Vec<Case>>> {
    ROWS.iter().map(group).collect()
}

fn group(&(peer, text, shapes, goals): &Row) -> Result<Vec<Case>> {
    let operands = (shapes.iter().enumerate())
        .map(|(k, shape)| Ok(TypedTensor::normal(*shape, k as u64)?))
        .collect::<Result<Vec<TypedTensor<f64>>>>()?;
    let [eager_goal, prepared_goal] = goals.map_or([Goal::None; 2], |goals| goals.map(Goal::Nanoseconds));
    let refs: Vec<&TypedTensor<f64>> = operands.iter().collect();
    let large = shapes.iter().copied().flatten().find(|n| **n > 4);
    let extent = large.map_or(String::new(), |n| format!(" of {n}"));
    let case = |tier: &str, goal, subject| {
        Case::new(format!("einsum {text}{extent}: {tier}"), goal, subject).beside(peer, &refs)
    };
    Ok(vec![
        case("typed", Goal::None, typed(text, &operands)?)?,
        case("prepared", prepared_goal, prepared(text, &operands)?)?,
        case("eager", eager_goal, eager(text, &operands)?)?,
        case("program", Goal::None, program(text, &operands)?)?,
    ])
}

fn copies(x: &[TypedTensor<f64>]) -> Result<Vec<TypedTensor<f64>>> {
    Ok(x.iter().map(|x| x.duplicate()).collect::<tenferro_tensor::Result<_>>()?)
}

fn typed(text: &'static str, x: &[TypedTensor<f64>]) -> Result<Box<dyn Subject>> {
    let (x, mut cpu) = (copies(x)?, CpuBackend::with_threads(1));
    let call = move || match &x[..] {
        [a] => TypedTensor::einsum(text, &[black_box(a)], &mut cpu),
        [a, b] => TypedTensor::einsum(text, &[black_box(a), black_box(b)], &mut cpu),
        x => TypedTensor::einsum(text, &x.iter().map(black_box).collect::<Vec<_>>(), &mut cpu),
    };
    Ok(subject(call, row_major))
}

fn prepared(text: &'static str, x: &[TypedTensor<f64>]) -> Result<Box<dyn Subject>> {
    let (x, mut cpu) = (copies(x)?, CpuBackend::with_threads(1));
    let einsum = Einsum::parse(text)?.prepare(&x.iter().map(|x| x.shape()).collect::<Vec<_>>())?;
    let call = move || match &x[..] {
        [a] => einsum.run_typed(&[black_box(a)], &mut cpu),
        [a, b] => einsum.run_typed(&[black_box(a), black_box(b)], &mut cpu),
        x => einsum.run_typed(&x.iter().map(black_box).collect::<Vec<_>>(), &mut cpu),
    };
    Ok(subject(call, row_major))
}

fn eager(text: &'static str, x: &[TypedTensor<f64>]) -> Result<Box<dyn Subject>> {
    let runtime = EagerRuntime::new(&CpuBackend::with_threads(1));
    let x: Vec<EagerTensor> = (copies(x)?.into_iter())
        .map(|x| runtime.tensor(x.into_tensor()))
        .collect::<tenferro_tensor::Result<_>>()?;
    let call = move || match &x[..] {
        [a] => EagerTensor::einsum(text, &[black_box(a)]),
        [a, b] => EagerTensor::einsum(text, &[black_box(a), black_box(b)]),
        x => EagerTensor::einsum(text, &x.iter().map(black_box).collect::<Vec<_>>()),
    };
    Ok(subject(call, |y| y.to_tensor()?.to_vec_row_major()))
}

fn program(text: &str, x: &[TypedTensor<f64>]) -> Result<Box<dyn Subject>> {
    let x: Vec<Tensor> = copies(x)?.into_iter().map(TypedTensor::into_tensor).collect();
    let inputs: Vec<TracedTensor> = x
        .iter()
        .map(|x| TracedTensor::input(x.dtype(), &x.shape().iter().map(|&n| Dim::Lit(n)).collect::<Vec<_>>()))
        .collect();
    let inputs: Vec<&TracedTensor> = inputs.iter().collect();
    let program = GraphCompiler::new().compile_with(&inputs, &[&TracedTensor::einsum(text, &inputs)?])?;
    let mut cpu = CpuBackend::with_threads(1);
    let call = move || match &x[..] {
        [a] => program.run(&mut cpu, &[black_box(a)]),
        [a, b] => program.run(&mut cpu, &[black_box(a), black_box(b)]),
        x => program.run(&mut cpu, &x.iter().map(black_box).collect::<Vec<_>>()),
    };
    Ok(subject(call, |y| y[0].to_vec_row_major()))
}
