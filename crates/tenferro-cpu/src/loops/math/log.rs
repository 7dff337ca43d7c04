//! Logarithms: `log x = k log 2 + log(1 + f)` with `1 + f` in `[sqrt(1/2), sqrt(2))`.
//!
//! With `s = f / (2 + f)`, `log(1 + f) = 2 atanh s` is a series in `s^2`; written as
//! `f - (f^2/2 - s (f^2/2 + ..))`, whose first term is exact, it loses nothing to the rounding of `s` (Muller,
//! "Elementary Functions", 11.3).

use super::{
    Function,
    compensated::two_sum,
    exp::{LN_2_HEAD, LN_2_TAIL},
    polynomial,
};
use std::f64::consts::LN_2;
use tenferro_core_ops::Element;

/// `(log((1 + s) / (1 - s)) - 2 s) / s^3`, a series in `s^2` within 2^-56.
const SERIES: [f64; 7] = [
    0.666666666666667,
    0.3999999999989938,
    0.28571428626031065,
    0.22222211125723262,
    0.1818288978615799,
    0.15331699634642276,
    0.146167211662876,
];

/// `(log(1 + f) - f + f^2/2) / f^3` within 2^-28 of log(1 + f).
const SERIES_SINGLE: [f64; 9] = [
    0.33333331179972575,
    -0.24999996957625975,
    0.2000071576352166,
    -0.16667802367579132,
    0.14249057141902147,
    -0.1242568569282142,
    0.11685423571105265,
    -0.11479748625389889,
    0.06971620541003427,
];

/// `(k, 1 + f)` of a positive normal number.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    let bits = x.to_bits().wrapping_add(ONE - SQRT_HALF);
    // k + 1023 in the last bits of 2^52 makes a number.
    let k = f64::from_bits(bits >> 52 | 0x4330_0000_0000_0000) - (4503599627370496.0 + 1023.0);
    (k, f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + SQRT_HALF))
}

/// `k log 2 + log(1 + f) + dl` for a small `dl`.
#[inline(always)]
fn sum(k: f64, f: f64, dl: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let h = 0.5 * f * f;
    let tail = s * (h + z * polynomial(z, &SERIES)) + (k * LN_2_TAIL + dl);
    k * LN_2_HEAD - ((h - tail) - f)
}

#[inline(always)]
fn sum_single(k: f64, f: f64) -> f64 {
    k * LN_2 + (f + f * f * (f * polynomial(f, &SERIES_SINGLE) - 0.5))
}

pub(super) struct Log;

impl Function<f64> for Log {
    #[inline(always)]
    fn is_rare(x: f64) -> bool {
        !(x >= f64::MIN_POSITIVE && x < f64::INFINITY)
    }
    #[inline(always)]
    fn common(x: f64) -> f64 {
        let (k, m) = split(x);
        sum(k, m - 1.0, 0.0)
    }
    fn rare(x: f64) -> f64 {
        Element::log(x)
    }
}

impl Function<f32> for Log {
    #[inline(always)]
    fn is_rare(x: f32) -> bool {
        !(x > 0.0 && x < f32::INFINITY)
    }
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let (k, m) = split(f64::from(x));
        sum_single(k, m - 1.0) as f32
    }
    fn rare(x: f32) -> f32 {
        Element::log(f64::from(x)) as f32
    }
}

/// The logarithm of `1 + x` rounded, and a first-order term for what the rounding lost.
pub(super) struct Log1p;

impl Function<f64> for Log1p {
    #[inline(always)]
    fn is_rare(x: f64) -> bool {
        !(x > -1.0 && x < f64::INFINITY)
    }
    #[inline(always)]
    fn common(x: f64) -> f64 {
        let (u, du) = two_sum(1.0, x);
        let (k, m) = split(u);
        // m = 2^-k u is exact, and so is the quotient.
        let lost = du * (m / u);
        // 1 / (1 + f) within 4 percent of a term that is within half a last place.
        let f = m - 1.0;
        let correction = lost * (1.0 - f + 0.8 * f * f);
        let (f, correction) = if k == 0.0 { (x, 0.0) } else { (f, correction) };
        sum(k, f, correction).copysign(x)
    }
    fn rare(x: f64) -> f64 {
        Element::log1p(x)
    }
}

impl Function<f32> for Log1p {
    #[inline(always)]
    fn is_rare(x: f32) -> bool {
        !(x > -1.0 && x < f32::INFINITY)
    }
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let wide = f64::from(x);
        let (k, m) = split(1.0 + wide);
        let f = if k == 0.0 { wide } else { m - 1.0 };
        (sum_single(k, f) as f32).copysign(x)
    }
    fn rare(x: f32) -> f32 {
        Element::log1p(f64::from(x)) as f32
    }
}
