//! Logarithms: `log x = k log 2 + log(1 + f)` with `1 + f` in `[sqrt(1/2), sqrt(2))`.
//!
//! With `s = f / (2 + f)`, `log(1 + f) = 2 atanh s` is a series in `s^2`; written as
//! `f - (f^2/2 - s (f^2/2 + ..))`, whose first term is exact, it loses little to the rounding of `s` (Muller,
//! "Elementary Functions", 11.3). In f32 a series in `f` takes less time than the quotient.

use super::{
    Function,
    compensated::two_sum,
    exp::{LN_2_HEAD, LN_2_SINGLE, LN_2_TAIL},
    polynomial,
};
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

/// `(log(1 + f) - f + f^2/2) / f^3` within 2^-26 of log(1 + f).
const SERIES_SINGLE: [f32; 8] =
    [0.3333333, -0.2500082, 0.20001227, -0.16623357, 0.14201757, -0.13160183, 0.12761578, -0.076344974];

/// `(k, 1 + f, 2^-k)` of a positive normal number, which for the last is less than half the greatest.
#[inline(always)]
fn split(x: f64) -> (f64, f64, f64) {
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    const ONE: u64 = 0x3ff0_0000_0000_0000;
    let bits = x.to_bits().wrapping_add(ONE - SQRT_HALF);
    let biased = bits >> 52;
    // In the last bits of 2^52 it makes a number.
    let k = f64::from_bits(biased | 0x4330_0000_0000_0000) - (4503599627370496.0 + 1023.0);
    let m = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + SQRT_HALF);
    (k, m, f64::from_bits(2046u64.wrapping_sub(biased) << 52))
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

/// [`split`] of f32.
#[inline(always)]
fn split_single(x: f32) -> (f32, f32, f32) {
    const SQRT_HALF: u32 = 0x3f35_04f3;
    const ONE: u32 = 0x3f80_0000;
    let bits = x.to_bits().wrapping_add(ONE - SQRT_HALF);
    let biased = bits >> 23;
    let m = f32::from_bits((bits & 0x7f_ffff) + SQRT_HALF);
    (biased as i32 as f32 - 127.0, m, f32::from_bits(254u32.wrapping_sub(biased) << 23))
}

/// [`sum`] of f32.
#[inline(always)]
fn sum_single(k: f32, f: f32, dl: f32) -> f32 {
    let f2 = f * f;
    let h = 0.5 * f2;
    let tail = f2 * (f * polynomial(f, &SERIES_SINGLE)) + (k * LN_2_SINGLE[1] + dl);
    k * LN_2_SINGLE[0] - ((h - tail) - f)
}

pub(super) struct Log;

impl Function<f64> for Log {
    #[inline(always)]
    fn is_common(x: f64) -> bool {
        (f64::MIN_POSITIVE..f64::INFINITY).contains(&x)
    }
    #[inline(always)]
    fn common(x: f64) -> f64 {
        let (k, m, _) = split(x);
        sum(k, m - 1.0, 0.0)
    }
    fn rare(x: f64) -> f64 {
        Element::log(x)
    }
}

impl Function<f32> for Log {
    #[inline(always)]
    fn is_common(x: f32) -> bool {
        (f32::MIN_POSITIVE..f32::INFINITY).contains(&x)
    }
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let (k, m, _) = split_single(x);
        sum_single(k, m - 1.0, 0.0)
    }
    fn rare(x: f32) -> f32 {
        Element::log(f64::from(x)) as f32
    }
}

/// The logarithm of `1 + x` rounded, and a first-order term for what the rounding lost.
pub(super) struct Log1p;

impl Function<f64> for Log1p {
    #[inline(always)]
    fn is_common(x: f64) -> bool {
        x > -1.0 && x < 0.5 * f64::MAX
    }
    #[inline(always)]
    fn common(x: f64) -> f64 {
        let (u, du) = two_sum(1.0, x);
        let (k, m, scale) = split(u);
        // 1 / (1 + f) within 4 percent of a term that is within half a last place.
        let f = m - 1.0;
        let correction = du * scale * (1.0 - f + 0.8 * f * f);
        let (f, correction) = if k == 0.0 { (x, 0.0) } else { (f, correction) };
        sum(k, f, correction).copysign(x)
    }
    fn rare(x: f64) -> f64 {
        Element::log1p(x)
    }
}

impl Function<f32> for Log1p {
    #[inline(always)]
    fn is_common(x: f32) -> bool {
        x > -1.0 && x < 0.5 * f32::MAX
    }
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let u = 1.0 + x;
        let t = u - 1.0;
        let du = (1.0 - (u - t)) + (x - t);
        let (k, m, scale) = split_single(u);
        let f = m - 1.0;
        let correction = du * scale * (1.0 - f + 0.8 * f * f);
        let (f, correction) = if k == 0.0 { (x, 0.0) } else { (f, correction) };
        sum_single(k, f, correction).copysign(x)
    }
    fn rare(x: f32) -> f32 {
        Element::log1p(f64::from(x)) as f32
    }
}
