//! The tensor renormalization group of Levin and Nave, written once and differentiated.
//!
//! The partition function of the square lattice is a network of one tensor per spin,
//!
//! ```text
//! Z = sum_s exp(beta sum_<ij> s_i s_j),    T[u,l,d,r] = sum_s W[s,u] W[s,l] W[s,d] W[s,r],
//! ```
//!
//! where `W W^T` is the Boltzmann weight of a bond. One step splits T across either diagonal and joins the halves around
//! a plaquette, which leaves half as many tensors:
//!
//! ```text
//!      u                                                        u'
//!   l -T- r      T ~ S1[u,l,k] S3[k,d,r]      T'[u',l',d',r']   S3 - S4      l' S2, r' S4 at the corners,
//!      d         T ~ S2[u,r,k] S4[k,l,d]                        S2 - S1      d' S1
//! ```
//!
//! Everything that a truncation changes later is a function of T' that does not depend on the bases of the new legs.
//! That is the gauge freedom of [`split`], whose derivatives are therefore right where singular values
//! are degenerate, as they are here by symmetry.

use crate::options::Mode;
use tenferro_ad::prelude::*;
use tenferro_core_ops::{Var, build::stack};
use tenferro_cpu::CpuBackend;
use tenferro_einsum::Einsum;
use tenferro_linalg::{Limits, ops::split};
use tenferro_runtime::{DType, EagerRuntime, GraphCompiler, Result, Tensor, TracedTensor, surfaces};

/// Singular values below this fraction of the largest are rounding errors of zeros.
const TOLERANCE: f64 = 1e-14;

surfaces! {
    traits PartitionRecorded, PartitionTensor, PartitionTyped;

    /// `(ln Z, T)` at this inverse temperature: ln Z per spin of a periodic lattice of `2^steps` spins, and the last
    /// tensor, whose extents are the ranks that `limits` have left it.
    fn ln_z(beta; limits: &Limits, steps: usize) -> [T, T] = partition(beta, limits, steps);
}

fn partition(beta: &Var, limits: &Limits, steps: usize) -> [Var; 2] {
    let mut t = spin(beta);
    let mut ln_z = beta.like(0.0);
    let mut spins = 1.0;
    for _ in 0..steps {
        // A tensor stands for `spins` spins, so a factor taken out of it counts 1/spins per spin.
        let norm = einsum("uldr,uldr->", &[&t, &t]).sqrt();
        ln_z = ln_z + norm.log() / spins;
        t = coarsen(&(&t / &norm), limits);
        spins *= 2.0;
    }
    ln_z = ln_z + einsum("ulul->", &[&t]).log() / spins;
    [ln_z, t]
}

/// The tensor of one spin. `W W^T` is `exp(beta s s') = cosh(beta) + s s' sinh(beta)`.
fn spin(beta: &Var) -> Var {
    let (up, down) = (beta.exp(), (-beta).exp());
    let (cosh, sinh) = ((&up + &down) / 2.0, (&up - &down) / 2.0);
    let (even, odd) = (cosh.sqrt(), sinh.sqrt());
    let w = stack(&[stack(&[even.clone(), odd.clone()], 0), stack(&[even, -odd], 0)], 0);
    einsum("su,sl,sd,sr->uldr", &[&w, &w, &w, &w])
}

/// The tensor of twice as many spins.
fn coarsen(t: &Var, limits: &Limits) -> Var {
    let (s1, s3) = halves(t, limits);
    let (s2, s4) = halves(&t.transpose(&[0, 3, 1, 2]), limits);
    let left = einsum("uxy,xwl->uywl", &[&s3, &s2]);
    let right = einsum("zwd,ryz->wdry", &[&s1, &s4]);
    einsum("uywl,wdry->uldr", &[&left, &right])
}

/// `A` and `B` with `T[a,b,c,d] ~ sum_k A[a,b,k] B[k,c,d]`.
fn halves(t: &Var, limits: &Limits) -> (Var, Var) {
    let [a, b, c, d] = [0, 1, 2, 3].map(|axis| t.extent(axis));
    let (left, right) = split(&t.reshape(&[&a * &b, &c * &d]), limits);
    let k = left.extent(1);
    (left.reshape(&[a, b, k.clone()]), right.reshape(&[k, c, d]))
}

fn einsum(subscripts: &str, x: &[&Var]) -> Var {
    match Einsum::parse(subscripts) {
        Ok(op) => tenferro_einsum::einsum(&op, x),
        Err(error) => Var::Failed(error),
    }
}

/// The model at one temperature, per spin, in units of the coupling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Temperature.
    pub t: f64,
    /// Logarithm of the partition function.
    pub lnz: f64,
    /// Energy, `-d ln Z / d beta`.
    pub energy: f64,
    /// Specific heat, `beta^2 d^2 ln Z / d beta^2`.
    pub specific_heat: f64,
    /// Largest extent of the last tensor.
    pub rank: usize,
}

impl Point {
    fn new(t: f64, [lnz, slope, curvature]: [f64; 3], last: &[usize]) -> Point {
        let rank = last.iter().copied().max().unwrap_or(0);
        Point { t, lnz, energy: -slope, specific_heat: curvature / (t * t), rank }
    }
}

/// Solves the model at the temperatures it is given, with bonds of dimension `chi` at most, after `steps` steps.
type Solver = Box<dyn FnMut(f64) -> Result<Point>>;

/// A function that solves the model at a temperature, keeping at most `chi` singular values in each of `steps` steps.
///
/// # Errors
/// If the program cannot be compiled.
pub fn solver(mode: Mode, chi: usize, steps: usize) -> Result<Solver> {
    match mode {
        Mode::Eager => eager(chi as i64, steps),
        Mode::Traced => traced(chi as i64, steps),
    }
}

/// Runs operation by operation, then back along the tape, then back along the tape of that.
fn eager(chi: i64, steps: usize) -> Result<Solver> {
    let runtime = EagerRuntime::new(&CpuBackend::new());
    let none = runtime.scalar(0.0)?;
    let limits = Limits::of(&runtime.scalar(chi)?, &runtime.scalar(TOLERANCE)?, &none, &none);
    Ok(Box::new(move |t| {
        let beta = runtime.scalar(1.0 / t)?.requires_grad()?;
        let (ln_z, last) = beta.ln_z(&limits, steps)?;
        let slope = ln_z.gradients(&[&beta], true)?.remove(0);
        let curvature = slope.gradients(&[&beta], false)?.remove(0);
        Ok(Point::new(t, [ln_z.item()?, slope.item()?, curvature.item()?], last.shape()))
    }))
}

/// Compiles one program of the temperature and the limits, in which the ranks are decided while it runs.
fn traced(chi: i64, steps: usize) -> Result<Solver> {
    let number = |dtype| TracedTensor::input(dtype, &[]);
    let [beta, max_rank, tolerance] = [DType::F64, DType::I64, DType::F64].map(number);
    let [zero, one] = [TracedTensor::scalar(0.0)?, TracedTensor::scalar(1.0)?];
    let (ln_z, last) = beta.ln_z(&Limits::of(&max_rank, &tolerance, &zero, &zero), steps)?;
    let (slope, curvature) = (ln_z.grad(&beta)?, ln_z.hvp(&beta, &one)?);
    let program = GraphCompiler::new()
        .compile_with(&[&beta, &max_rank, &tolerance], &[&ln_z, &slope, &curvature, &last])?;

    let mut cpu = CpuBackend::new();
    let (max_rank, tolerance) = (Tensor::scalar(chi), Tensor::scalar(TOLERANCE));
    Ok(Box::new(move |t| {
        let y = program.run(&mut cpu, &[&Tensor::scalar(1.0 / t), &max_rank, &tolerance])?;
        Ok(Point::new(t, [y[0].item()?, y[1].item()?, y[2].item()?], y[3].shape()))
    }))
}
