//! Matrices of reproducible numbers, and a way to look at any of them in double precision.
#![allow(dead_code)]

use num_complex::Complex;
use tenferro_internal_dense::{Dense, Strided};

/// Deterministic numbers in (-1, 1).
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

pub(crate) trait Sample: Dense {
    fn of(re: f64, im: f64) -> Self;
    fn wide(self) -> Complex<f64>;
    fn eps() -> f64;
}

macro_rules! sample {
    ($($t:ty, $r:ty, |$re:ident, $im:ident| $of:expr, |$x:ident| $wide:expr;)*) => {$(
        impl Sample for $t {
            fn of($re: f64, $im: f64) -> Self { $of }
            fn wide(self) -> Complex<f64> { let $x = self; $wide }
            fn eps() -> f64 { <$r>::EPSILON as f64 }
        }
    )*};
}

sample! {
    f32, f32, |re, _im| re as f32, |x| Complex::new(x as f64, 0.0);
    f64, f64, |re, _im| re, |x| Complex::new(x, 0.0);
    Complex<f32>, f32, |x, y| Complex::new(x as f32, y as f32), |x| Complex::new(x.re as f64, x.im as f64);
    Complex<f64>, f64, |re, im| Complex::new(re, im), |x| x;
}

pub(crate) fn matrix<T: Sample>(m: usize, n: usize, mut f: impl FnMut(usize, usize) -> (f64, f64)) -> Vec<T> {
    (0..m * n).map(|at| f(at % m, at / m)).map(|(re, im)| T::of(re, im)).collect()
}

pub(crate) fn strided<P>(ptr: P, ld: usize) -> Strided<P> {
    Strided { ptr, row: 1, col: ld as isize }
}

pub(crate) fn norm(a: impl Iterator<Item = Complex<f64>>) -> f64 {
    a.map(|x| x.norm_sqr()).sum::<f64>().sqrt()
}

/// The spectra of LAPACK's matrix generator, xLATMS, with random signs.
pub(crate) fn spectrum(mode: usize, n: usize, condition: f64, rng: &mut Rng) -> Vec<f64> {
    let last = (n - 1).max(1) as f64;
    (0..n)
        .map(|k| {
            let size = match mode {
                1 if k > 0 => 1.0 / condition,
                2 if k + 1 == n && n > 1 => 1.0 / condition,
                1 | 2 => 1.0,
                3 => condition.powf(-(k as f64) / last),
                4 => 1.0 - k as f64 / last * (1.0 - 1.0 / condition),
                5 => condition.powf(-0.5 - 0.5 * rng.next()),
                _ => rng.next(),
            };
            size.copysign(rng.next())
        })
        .collect()
}

/// A random unitary matrix, real unless `complex`.
pub(crate) fn unitary(n: usize, complex: bool, rng: &mut Rng) -> Vec<Complex<f64>> {
    orthonormal(n, n, complex, rng)
}

/// Random orthonormal columns, `k` of length `m`.
fn orthonormal(m: usize, k: usize, complex: bool, rng: &mut Rng) -> Vec<Complex<f64>> {
    let mut q: Vec<Complex<f64>> = Vec::with_capacity(m * k);
    for j in 0..k {
        let im = if complex { 1.0 } else { 0.0 };
        let mut x: Vec<_> = (0..m).map(|_| Complex::new(rng.next(), im * rng.next())).collect();
        for _ in 0..2 {
            for q in q.chunks_exact(m).take(j) {
                let along: Complex<f64> = q.iter().zip(&x).map(|(q, x)| q.conj() * x).sum();
                x.iter_mut().zip(q).for_each(|(x, q)| *x -= along * q);
            }
        }
        let length = norm(x.iter().copied());
        q.extend(x.into_iter().map(|x| x / length));
    }
    q
}

/// `Q D P^H`, `m x n`, with random orthonormal columns of Q and P and the spectrum of `mode`, of condition
/// 1/eps: a matrix of LAPACK's test programs, its elements `scale` times those of a matrix of norm about 1. A
/// definite one has P = Q and absolute values, which are not so small that rounding makes it indefinite.
pub(crate) fn of_spectrum<T: Sample>(
    mode: usize,
    (m, n): (usize, usize),
    form: Form,
    scale: f64,
    rng: &mut Rng,
) -> (Vec<T>, Vec<f64>) {
    let definite = form == Form::Definite;
    let k = m.min(n);
    let condition = if definite { 0.01 / (n as f64 * T::eps()) } else { 1.0 / T::eps() };
    let mut d = spectrum(mode, k, condition, rng);
    if definite {
        d.iter_mut().for_each(|d| *d = d.abs().max(1.0 / condition));
    }
    let q = orthonormal(m, k, T::COMPLEX, rng);
    let p = if definite { q.clone() } else { orthonormal(n, k, T::COMPLEX, rng) };
    let scaled = matrix(m, n, |i, j| {
        let x: Complex<f64> = (0..k).map(|k| q[i + k * m] * d[k] * p[j + k * n].conj()).sum();
        (x.re * scale, if definite && i == j { 0.0 } else { x.im * scale })
    });
    (scaled, d)
}

/// What [`of_spectrum`] makes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Form {
    General,
    Definite,
}

/// Orders of matrices with a given spectrum.
pub(crate) const ORDERS: [usize; 9] = [1, 2, 3, 4, 5, 8, 16, 33, 70];

/// Extents of matrices with given singular values: these orders, and both orders of unlike extents, nearly
/// equal ones and far apart.
pub(crate) fn shapes() -> impl Iterator<Item = (usize, usize)> {
    const TALL: [(usize, usize); 7] = [(2, 1), (5, 3), (9, 8), (16, 4), (50, 7), (70, 33), (90, 70)];
    ORDERS.into_iter().map(|n| (n, n)).chain(TALL.into_iter().flat_map(|(m, n)| [(m, n), (n, m)]))
}

/// Scales of these matrices: 1, near underflow, and near overflow. Elements of eps keep their digits.
pub(crate) fn scales<T: Sample>() -> [f64; 3] {
    if T::eps() > 1e-10 { [1.0, 1e-30, 1e36] } else { [1.0, 1e-290, 1e306] }
}
