//! Compiled programs: the launch, an instruction, and compiling.

use super::{Case, Goal, matrix, other_matrix};
use crate::{Result, subject::subject};
use std::hint::black_box;
use tenferro_cpu::CpuBackend;
use tenferro_runtime::prelude::*;

const STEPS: usize = 64;
const LAUNCH: &str = "program: launch of one addition of 1 element";

type Traced = tenferro_tensor::Result<TracedTensor>;

pub(super) fn group() -> Result<Vec<Case>> {
    let [x, y] = [1.5, 2.25].map(|v| Tensor::from_vec_col_major([1], vec![v]));
    let (x, y) = (x?, y?);
    let (a, b) = (matrix()?.into_tensor(), other_matrix()?.into_tensor());
    let launch = run(&x, &y, |x, y| x + y)?;
    let instruction = Goal::Nanoseconds(30.0);
    let chain = |name: &str, goal, subject| {
        Case::new(format!("program: {name}"), goal, subject).per_step(LAUNCH, STEPS)
    };
    Ok(vec![
        Case::new(LAUNCH, Goal::Nanoseconds(300.0), launch).expecting([3.75]),
        chain("an instruction, triangle of 2x2", instruction, run(&a, &b, |a, b| repeat(a, b, triangle))?),
        chain(
            "an instruction, matmul of 2x2",
            instruction,
            run(&a, &b, |a, b| repeat(a, b, |a, b, _| a.matmul(b)))?,
        ),
        chain("an instruction, sum of 2x2 and a view", instruction, run(&a, &b, |a, b| repeat(a, b, sum))?)
            .per_step(LAUNCH, 2 * STEPS),
        chain(
            "an instruction, concatenation of 2x2 and two views",
            instruction,
            run(&a, &b, |a, b| repeat(a, b, exchange))?,
        )
        .per_step(LAUNCH, 3 * STEPS),
        chain("a step of a fused chain, 2x2", Goal::None, run(&a, &b, |a, b| repeat(a, b, elementwise))?),
        Case::new("program: trace and compile 1000 operations", Goal::Nanoseconds(20e6), compile(&a, false)?),
        Case::new("program: the same and the first run", Goal::Nanoseconds(20e6), compile(&a, true)?),
    ])
}

/// A program of two inputs, launched.
fn run(
    x: &Tensor,
    y: &Tensor,
    f: impl Fn(&TracedTensor, &TracedTensor) -> Traced,
) -> Result<Box<dyn crate::subject::Subject>> {
    let (x, y) = (x.duplicate()?, y.duplicate()?);
    let [p, q] = [&x, &y].map(input);
    let program = GraphCompiler::new().compile_with(&[&p, &q], &[&f(&p, &q)?])?;
    let mut cpu = CpuBackend::with_threads(1);
    let launch = move || program.run(&mut cpu, &[black_box(&x), black_box(&y)]);
    Ok(subject(launch, |outputs| outputs[0].to_vec_row_major()))
}

fn input(x: &Tensor) -> TracedTensor {
    let shape: Vec<Dim> = x.shape().iter().map(|&n| Dim::Lit(n)).collect();
    TracedTensor::input(x.dtype(), &shape)
}

/// A chain of `STEPS` operations and one more.
fn repeat(
    a: &TracedTensor,
    b: &TracedTensor,
    step: impl Fn(&TracedTensor, &TracedTensor, usize) -> Traced,
) -> Traced {
    (0..=STEPS).try_fold(a.clone(), |a, k| step(&a, b, k))
}

fn triangle(a: &TracedTensor, _: &TracedTensor, k: usize) -> Traced {
    if k.is_multiple_of(2) { a.tril(0) } else { a.triu(0) }
}

/// Sums over an axis, repeated along it.
fn sum(a: &TracedTensor, _: &TracedTensor, k: usize) -> Traced {
    a.reduce_sum(Some(&[k % 2]))?.broadcast_in_dim(&[2, 2], &[1 - k % 2])
}

/// The halves in the other order.
fn exchange(a: &TracedTensor, _: &TracedTensor, k: usize) -> Traced {
    TracedTensor::concatenate(&[&a.slice_axis(k % 2, 1, 2)?, &a.slice_axis(k % 2, 0, 1)?], k % 2)
}

fn elementwise(a: &TracedTensor, b: &TracedTensor, k: usize) -> Traced {
    if k.is_multiple_of(2) { a - b } else { a * b }
}

/// 200 times five operations of several kinds, none of which is repeated or without use.
fn compile(a: &Tensor, run: bool) -> Result<Box<dyn crate::subject::Subject>> {
    let a = a.duplicate()?;
    let mut cpu = CpuBackend::with_threads(1);
    let compile = move || {
        let x = input(&a);
        let mut y = x.clone();
        for _ in 0..200 {
            y = (&y.matmul(&x)?.tanh()? + &x)?.transpose(&[1, 0])?.tril(1)?;
        }
        let program = GraphCompiler::new().compile_with(&[&x], &[&y])?;
        let outputs = if run { program.run(&mut cpu, &[black_box(&a)])? } else { Vec::new() };
        Ok((program, outputs))
    };
    Ok(subject(compile, |_| Ok(Vec::new())))
}
