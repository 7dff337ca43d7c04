//! Matrices of reproducible numbers, and a way to look at any of them in double precision.

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
