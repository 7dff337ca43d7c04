//! Dense kernels on typed tensors, each result in a new tensor.

use super::{Case, Goal, row_major};
use crate::{Result, subject::subject};
use std::hint::black_box;
use tenferro_cpu::CpuBackend;
use tenferro_linalg::prelude::*;
use tenferro_runtime::prelude::*;
use tenferro_tensor::C64;

const GEMM: [usize; 5] = [64, 128, 256, 512, 1024];
const FACTOR: [usize; 8] = [2, 4, 8, 16, 32, 64, 128, 256];
const EIGEN: [usize; 5] = [2, 8, 32, 128, 256];
const VALUES: [usize; 4] = [2, 8, 32, 128];
const CHOLESKY: [usize; 5] = [2, 8, 32, 128, 256];
const INVERSE: [usize; 3] = [2, 8, 32];
const QR: [usize; 5] = [2, 8, 32, 128, 256];

type Matrix = TypedTensor<f64>;
type Outcome = tenferro_tensor::Result<Matrix>;

pub(super) fn groups() -> Result<Vec<Vec<Case>>> {
    let mut all = Vec::new();
    for n in GEMM {
        let (a, b) = (random(n, n, 1)?, random(n, n, 2)?);
        // The same rate as NumPy's, or three quarters of it.
        let goal = Goal::OfNumpy(if n <= 256 { 1.0 / 0.95 } else { 1.0 / 0.75 });
        let name = format!("matmul, {n}x{n}");
        all.push(binary(&name, &format!("gemm_{n}"), goal, a, b, |a, b, cpu| a.matmul(b, cpu))?);
    }
    let x = TypedTensor::normal([1 << 22], 3)?;
    all.push(unary("exp, 2^22", "exp_4M", x.duplicate()?, |x, cpu| x.exp(cpu), |x| x.map(f64::exp))?);
    all.push(unary("tanh, 2^22", "tanh_4M", x.duplicate()?, |x, cpu| x.tanh(cpu), |x| x.map(f64::tanh))?);
    let sum = |x: &Matrix| x.as_slice().map(|x| TypedTensor::scalar(x.iter().sum()));
    all.push(unary("sum, 2^22", "sum_4M", x, |x, cpu| x.reduce_sum(None, cpu), sum)?);
    for n in FACTOR {
        let a = random(n, n, 5)?;
        let mut cpu = CpuBackend::with_threads(1);
        let x = a.duplicate()?;
        let call = subject(move || black_box(&x).svd(&mut cpu), |(_, s, _)| row_major(s));
        all.push(vec![
            Case::new(format!("svd, {n}x{n}"), factored(n), call).beside(format!("svd_{n}"), &[&a])?,
        ]);
    }
    for n in EIGEN {
        let mut cpu = CpuBackend::with_threads(1);
        let a = random(n, n, 5)?;
        let a = a.add(&a.transpose(&[1, 0], &mut cpu)?, &mut cpu)?;
        let x = a.duplicate()?;
        let call = subject(move || black_box(&x).eigh(&mut cpu), |(w, _)| row_major(w));
        all.push(vec![
            Case::new(format!("eigh, {n}x{n}"), factored(n), call).beside(format!("eigh_{n}"), &[&a])?,
        ]);
    }
    for n in VALUES {
        let a = random(n, n, 5)?;
        let mut cpu = CpuBackend::with_threads(1);
        let symmetric = a.add(&a.transpose(&[1, 0], &mut cpu)?, &mut cpu)?;
        let values = |name: &str, a: &Matrix, call| -> Result<Vec<Case>> {
            let case = Case::new(format!("{name}, {n}x{n}"), Goal::None, call);
            Ok(vec![case.beside(format!("{name}_{n}"), &[a])?])
        };
        let x = a.duplicate()?;
        all.push(values("svdvals", &a, subject(move || black_box(&x).svdvals(&mut cpu), row_major))?);
        let (x, mut cpu) = (symmetric.duplicate()?, CpuBackend::with_threads(1));
        let call = subject(move || black_box(&x).eigvalsh(&mut cpu), row_major);
        all.push(values("eigvalsh", &symmetric, call)?);
        let (x, mut cpu) = (a.duplicate()?, CpuBackend::with_threads(1));
        all.push(values("eigvals", &a, subject(move || black_box(&x).eigvals(&mut cpu), moduli))?);
    }
    for n in QR {
        let a = random(n, n, 5)?;
        let mut cpu = CpuBackend::with_threads(1);
        let x = a.duplicate()?;
        let call = subject(move || black_box(&x).qr(&mut cpu), |(_, r)| row_major(r));
        all.push(vec![
            Case::new(format!("qr, {n}x{n}"), factored(n), call).beside(format!("qr_{n}"), &[&a])?,
        ]);
    }
    for n in FACTOR {
        let (a, b) = (random(n, n, 5)?, random(n, 1, 6)?);
        let name = format!("solve, {n}x{n}, one right-hand side");
        all.push(binary(&name, &format!("solve_{n}"), factored(n), a, b, |a, b, cpu| a.solve(b, cpu))?);
    }
    for n in CHOLESKY {
        let a = definite(n)?;
        let (x, mut cpu) = (a.duplicate()?, CpuBackend::with_threads(1));
        let call = subject(move || black_box(&x).cholesky(&mut cpu), row_major);
        let case = Case::new(format!("cholesky, {n}x{n}"), factored(n), call);
        all.push(vec![case.beside(format!("cholesky_{n}"), &[&a])?]);
    }
    for n in INVERSE {
        let a = random(n, n, 5)?;
        let (x, mut cpu) = (a.duplicate()?, CpuBackend::with_threads(1));
        let call = subject(move || black_box(&x).inv(&mut cpu), row_major);
        let case = Case::new(format!("inv, {n}x{n}"), Goal::None, call);
        all.push(vec![case.beside(format!("inv_{n}"), &[&a])?]);
    }
    Ok(all)
}

/// The moduli of eigenvalues, ascending: each library has these in an order of its own.
fn moduli(w: TypedTensor<C64>) -> tenferro_tensor::Result<Vec<f64>> {
    let mut sizes: Vec<f64> = w.to_vec_row_major()?.iter().map(|w| w.norm()).collect();
    sizes.sort_by(f64::total_cmp);
    Ok(sizes)
}

/// A well-conditioned positive definite matrix.
fn definite(n: usize) -> Result<Matrix> {
    let x = random(n, n, 7)?;
    let mut cpu = CpuBackend::with_threads(1);
    let gram = x.matmul(&x.transpose(&[1, 0], &mut cpu)?, &mut cpu)?;
    Ok(gram.add(&TypedTensor::eye(n)?.mul(&TypedTensor::scalar(n as f64), &mut cpu)?, &mut cpu)?)
}

fn random(rows: usize, columns: usize, seed: u64) -> Result<Matrix> {
    Ok(TypedTensor::normal([rows, columns], seed)?)
}

/// What a direct call on a matrix of order n may take.
fn factored(n: usize) -> Goal {
    match n {
        2 | 8 => Goal::OfPeers(0.5),
        32 => Goal::OfPeers(1.0),
        _ => Goal::None,
    }
}

fn unary(
    name: &str,
    peer: &str,
    x: Matrix,
    f: impl Fn(&Matrix, &mut CpuBackend) -> Outcome + 'static,
    reference: impl Fn(&Matrix) -> Outcome,
) -> Result<Vec<Case>> {
    let expected = reference(&x)?.to_vec_row_major()?;
    let (operand, mut cpu) = (x.duplicate()?, CpuBackend::with_threads(1));
    let call = subject(move || f(black_box(&operand), &mut cpu), row_major);
    Ok(vec![Case::new(name, Goal::None, call).expecting(expected).beside(peer, &[&x])?])
}

fn binary(
    name: &str,
    peer: &str,
    goal: Goal,
    a: Matrix,
    b: Matrix,
    f: impl Fn(&Matrix, &Matrix, &mut CpuBackend) -> Outcome + 'static,
) -> Result<Vec<Case>> {
    let (x, y, mut cpu) = (a.duplicate()?, b.duplicate()?, CpuBackend::with_threads(1));
    let call = subject(move || f(black_box(&x), black_box(&y), &mut cpu), row_major);
    Ok(vec![Case::new(name, goal, call).beside(peer, &[&a, &b])?])
}
