//! The tensor renormalization group of Levin and Nave, written once and differentiated in two ways.
//!
//! The partition function of the square lattice is a network of one tensor per spin, with a leg up, left,
//! down, right:
//!
//! ```text
//! Z = sum_s exp(beta sum_<ij> s_i s_j),    T[u,l,d,r] = sum_s W[s,u] W[s,l] W[s,d] W[s,r],
//! ```
//!
//! where `W W^T` is the Boltzmann weight of a bond. A step splits T across its one diagonal on half of the
//! sites and across the other on the rest, keeping the largest singular values, and sums over the spins left
//! inside a plaquette:
//!
//! ```text
//!                                     u'          r'
//! T[u,l,d,r] ~ S1[u,l,k] S3[k,d,r]      S3 -y- S4
//! T[u,l,d,r] ~ S2[u,r,k] S4[k,l,d]      |x      |z     =  T'[u',l',d',r']
//!                                       S2 -w- S1
//!                                     l'          d'
//! ```
//!
//! T' is the tensor of a square lattice of half as many sites, turned by 45 degrees. What becomes of it does
//! not depend on the bases of its legs: that is the gauge freedom in which [`split`] has derivatives at
//! degenerate singular values, which symmetry makes the rule here.

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

    /// `(ln Z, T)` at this inverse temperature: ln Z per spin of a periodic lattice of `2^steps` spins, and
    /// the last tensor, whose extents are the ranks that `limits` have left it.
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

/// Solves the model at a temperature.
type Solver = Box<dyn FnMut(f64) -> Result<Point>>;

/// A function that solves the model at a temperature by `steps` steps that keep `chi` singular values at
/// most.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::T_CRITICAL;
    use tenferro_linalg::Truncation;

    const MODES: [Mode; 2] = [Mode::Eager, Mode::Traced];

    #[track_caller]
    fn assert_near(got: Point, [lnz, energy, specific_heat]: [f64; 3], tolerances: [f64; 3], what: &str) {
        let pairs = [(got.lnz, lnz), (got.energy, energy), (got.specific_heat, specific_heat)];
        for ((got, expected), tolerance) in pairs.into_iter().zip(tolerances) {
            let error = ((got - expected) / expected).abs();
            assert!(error <= tolerance, "{what}: got {got}, expected {expected}, relative error {error:.1e}");
        }
    }

    /// ln Z, energy and specific heat per spin of a periodic lattice of 4 x 4 spins, by the sum over its
    /// states.
    fn all_states(beta: f64) -> [f64; 3] {
        let spin = |state: u32, i: usize, j: usize| 1 - 2 * (state >> (i % 4 + 4 * (j % 4)) & 1) as i32;
        let bonds = |state, i, j| spin(state, i, j) * (spin(state, i + 1, j) + spin(state, i, j + 1));
        let energy = |state| -(0..16).map(|k| bonds(state, k % 4, k / 4)).sum::<i32>();
        let [z, e, e2] = (0..1 << 16).map(energy).fold([0.0; 3], |[z, e, e2], energy| {
            let (energy, weight) = (f64::from(energy), (-beta * f64::from(energy)).exp());
            [z + weight, e + energy * weight, e2 + energy * energy * weight]
        });
        let (mean, square) = (e / z, e2 / z);
        [z.ln() / 16.0, mean / 16.0, beta * beta * (square - mean * mean) / 16.0]
    }

    #[test]
    fn four_steps_sum_over_all_states_of_sixteen_spins() {
        for mode in MODES {
            let mut solve = solver(mode, 16, 4).unwrap();
            for t in [1.6, T_CRITICAL, 3.2] {
                assert_near(
                    solve(t).unwrap(),
                    all_states(1.0 / t),
                    [1e-13, 1e-12, 1e-10],
                    &format!("{mode:?} {t}"),
                );
            }
        }
    }

    /// Values of another implementation (NumPy, forward jets of second order).
    #[test]
    fn truncated_values_and_derivatives_are_those_of_another_implementation() {
        let rows: [(usize, usize, f64, [f64; 3]); 9] = [
            (4, 10, 2.0, [1.026202569023905, -1.75073491471593, 0.700851163075]),
            (4, 10, T_CRITICAL, [0.929775318897294, -1.41973889627134, 2.182063982280]),
            (4, 10, 3.0, [0.815865671826215, -0.81703292575806, 0.401130564000]),
            (8, 10, 2.0, [1.026466096325213, -1.74566916115324, 0.723986063228]),
            (8, 10, T_CRITICAL, [0.930279305722096, -1.43552350144137, 1.845208483976]),
            (8, 10, 3.0, [0.815870353002849, -0.81705266200807, 0.400896419846]),
            (8, 30, 2.0, [1.02578919542406, -1.74566916201200, 0.723986005166]),
            (8, 30, T_CRITICAL, [0.929631118581198, -1.42633828356376, 2.397074544358]),
            (8, 30, 3.0, [0.815870358783122, -0.81705292143667, 0.400897365850]),
        ];
        for mode in MODES {
            for (chi, steps, t, expected) in rows {
                let point = solver(mode, chi, steps).unwrap()(t).unwrap();
                assert_near(point, expected, [1e-12, 1e-9, 1e-7], &format!("{mode:?} {chi} {steps} {t}"));
                assert_eq!(point.rank, chi);
            }
        }
    }

    #[test]
    fn a_program_is_compiled_for_no_temperature_and_no_rank() {
        let mut solve = solver(Mode::Traced, 8, 10).unwrap();
        for t in [2.0, 3.0, 2.0] {
            assert_eq!(solve(t).unwrap(), solver(Mode::Traced, 8, 10).unwrap()(t).unwrap());
        }
    }

    #[test]
    fn the_direct_tier_gives_the_value() {
        let limits = Truncation { max_rank: Some(8), rel: TOLERANCE, ..Truncation::default() }.into();
        let (ln_z, last) = Tensor::scalar(0.5).ln_z(&limits, 10, &mut CpuBackend::new()).unwrap();
        let point = solver(Mode::Eager, 8, 10).unwrap()(2.0).unwrap();
        assert_eq!(ln_z.item::<f64>().unwrap(), point.lnz);
        assert_eq!(last.shape(), [8; 4]);
    }

    #[test]
    fn a_temperature_that_is_no_number_is_an_error() {
        for mode in MODES {
            for t in [f64::NAN, 0.0, 1e-3] {
                let error = solver(mode, 4, 4).unwrap()(t).unwrap_err().to_string();
                assert!(error.contains("matrix: got element"), "{mode:?} {t}: {error}");
            }
        }
    }
}
