//! Circular functions: `|x| = n pi/2 + r` with `|r| <= pi/4`.
//!
//! `n pi/2` is subtracted in three words, the first two of 33 bits, so that their products with `n` are exact
//! (Cody and Waite). Arguments too large for that, and those so near to a multiple that the third word is too
//! short, are rare.

use super::{
    Function, ROUND,
    compensated::{fast_two_sum, quotient, two_sum},
    polynomial,
};
use std::f64::consts::{FRAC_1_PI, FRAC_2_PI};
use tenferro_core_ops::Element;

/// pi/2 in three words.
const HALF_PI: [f64; 3] = [
    f64::from_bits(0x3ff9_21fb_5440_0000),
    f64::from_bits(0x3dd0_b461_1a60_0000),
    f64::from_bits(0x3ba3_198a_2e03_7073),
];
/// pi in two words, the first of 27 bits.
const PI_SINGLE: [f64; 2] = [f64::from_bits(0x4009_21fb_5400_0000), f64::from_bits(0x3e21_0b46_11a6_2633)];

/// `(sin r - r) / r^3`, a series in `r^2` within 2^-55.
const SIN: [f64; 6] = [
    -0.16666666666666666,
    0.008333333333330948,
    -0.00019841269836758213,
    2.755731610236554e-06,
    -2.5051131806051286e-08,
    1.5918126488531496e-10,
];
/// `(cos r - 1 + r^2/2) / r^4`, a series in `r^2` within 2^-59.
const COS: [f64; 6] = [
    0.041666666666666664,
    -0.0013888888888887398,
    2.4801587298765462e-05,
    -2.755731727161287e-07,
    2.0876146244035124e-09,
    -1.1382630669902987e-11,
];
/// `(tan u - u) / u^3` for `|u| <= pi/8`, a series in `u^2` within 2^-58 of tan u / u.
const TAN: [f64; 10] = [
    0.3333333333333333,
    0.13333333333333436,
    0.05396825396803653,
    0.02186948855414931,
    0.008863234775051052,
    0.0035921461810212657,
    0.0014555698313676421,
    0.0005924002924252397,
    0.00022642122850934334,
    0.00013347767521648568,
];
/// `sin r / r` for `|r| <= pi/2`, a series in `r^2` within 2^-27.
const SIN_SINGLE: [f64; 5] =
    [1.0, -0.16666659549840132, 0.008333066229704915, -0.0001980960161956217, 2.605777639358794e-06];
/// `tan r / r`, a series in `r^2` within 2^-27.
const TAN_SINGLE: [f64; 8] = [
    1.0,
    0.33333333979560226,
    0.133332309301823,
    0.053994467902755076,
    0.02162110237149886,
    0.009962234808791045,
    0.0011851813749557748,
    0.0038432230157861577,
];

/// `|x| = n pi/2 + r + dr`.
struct Reduced {
    /// `n + ROUND`
    rounded: f64,
    /// The difference before the last word, exact up to `2^-53`.
    middle: f64,
    r: f64,
    dr: f64,
}

impl Reduced {
    #[inline(always)]
    fn new(x: f64) -> Reduced {
        let a = x.abs();
        let rounded = a * FRAC_2_PI + ROUND;
        let n = rounded - ROUND;
        let (middle, lost) = two_sum(a - n * HALF_PI[0], -(n * HALF_PI[1]));
        let (r, dr) = fast_two_sum(middle, lost - n * HALF_PI[2]);
        Reduced { rounded, middle, r, dr }
    }

    /// Whether the reduction of this argument is accurate.
    #[inline(always)]
    fn is_common(x: f64) -> bool {
        // With n < 2^20 the last word is accurate to 2^-99.
        let e = Reduced::new(x);
        (x.abs() < 1e6) & ((e.middle.abs() >= 1e-13) | (e.rounded == ROUND))
    }

    /// Bit `i` of `n + add`.
    #[inline(always)]
    fn bit(&self, add: u64, i: u32) -> u64 {
        self.rounded.to_bits().wrapping_add(add) >> i & 1
    }

    /// `sin(|x| + quadrants pi/2)`
    #[inline(always)]
    fn sin(&self, quadrants: u64) -> f64 {
        let z = self.r * self.r;
        let half = 0.5 * z;
        let w = 1.0 - half;
        // cos r = w + (what its rounding lost) + r^4 (..), sin r = r + r^3 (..); the derivative times dr.
        let cosine = self.bit(quadrants, 0) != 0;
        let lead = if cosine { w } else { self.r };
        let power = z * if cosine { z } else { self.r };
        let rest = if cosine { ((1.0 - w) - half) - self.r * self.dr } else { self.dr * w };
        let mut c = SIN;
        for (c, &cos) in c.iter_mut().zip(&COS) {
            *c = if cosine { cos } else { *c };
        }
        let y = lead + (power * polynomial(z, &c) + rest);
        f64::from_bits(y.to_bits() ^ self.bit(quadrants, 1) << 63)
    }

    /// Numerator and denominator of `tan(r + dr)`, each in two words: `2 u / (1 - u^2)`, where `u` is the
    /// tangent of the half, whose rounding errors are much smaller than those of a series for the whole.
    #[inline(always)]
    fn tan(&self) -> [(f64, f64); 2] {
        let r = 0.5 * self.r;
        let z = r * r;
        let t = z * r * polynomial(z, &TAN);
        let y = r + t;
        let (u, du) = fast_two_sum(r, t + 0.5 * self.dr * (1.0 + y * y));
        let (d, dd) = fast_two_sum(1.0, -(u * u));
        [(2.0 * u, 2.0 * du), (d, dd - 2.0 * u * du)]
    }
}

/// `y` with the sign changed where `x` is negative.
#[inline(always)]
fn odd(y: f64, x: f64) -> f64 {
    f64::from_bits(y.to_bits() ^ x.to_bits() & 1 << 63)
}

/// Beyond this, f32 is rare.
const LIMIT_SINGLE: f32 = 4e6;

pub(super) struct Sin;

impl Function<f64> for Sin {
    #[inline(always)]
    fn is_common(x: f64) -> bool {
        Reduced::is_common(x)
    }
    #[inline(always)]
    fn common(x: f64) -> f64 {
        odd(Reduced::new(x).sin(0), x)
    }
    fn rare(x: f64) -> f64 {
        Element::sin(x)
    }
}

/// `x - h pi`, accurate enough for f32.
#[inline(always)]
fn reduce_single(x: f64, h: f64) -> f64 {
    (x - h * PI_SINGLE[0]) - h * PI_SINGLE[1]
}

/// `(-1)^n sin(x - h pi)`, given `n + ROUND`.
#[inline(always)]
fn sin_single(x: f64, h: f64, rounded: f64) -> f32 {
    let r = reduce_single(x, h);
    let y = r * polynomial(r * r, &SIN_SINGLE);
    f64::from_bits(y.to_bits() ^ rounded.to_bits() << 63) as f32
}

impl Function<f32> for Sin {
    #[inline(always)]
    fn is_common(x: f32) -> bool {
        x.abs() < LIMIT_SINGLE
    }
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let x = f64::from(x);
        let rounded = x * FRAC_1_PI + ROUND;
        sin_single(x, rounded - ROUND, rounded)
    }
    fn rare(x: f32) -> f32 {
        Element::sin(f64::from(x)) as f32
    }
}

pub(super) struct Cos;

impl Function<f64> for Cos {
    #[inline(always)]
    fn is_common(x: f64) -> bool {
        Reduced::is_common(x)
    }
    #[inline(always)]
    fn common(x: f64) -> f64 {
        Reduced::new(x).sin(1)
    }
    fn rare(x: f64) -> f64 {
        Element::cos(x)
    }
}

impl Function<f32> for Cos {
    #[inline(always)]
    fn is_common(x: f32) -> bool {
        x.abs() < LIMIT_SINGLE
    }
    // cos x = (-1)^n sin(x - (n - 1/2) pi)
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let x = f64::from(x);
        let rounded = (x * FRAC_1_PI + 0.5) + ROUND;
        sin_single(x, (rounded - ROUND) - 0.5, rounded)
    }
    fn rare(x: f32) -> f32 {
        Element::cos(f64::from(x)) as f32
    }
}

/// `tan r`, or `-1 / tan r` where `n` is odd.
pub(super) struct Tan;

impl Function<f64> for Tan {
    #[inline(always)]
    fn is_common(x: f64) -> bool {
        Reduced::is_common(x)
    }
    #[inline(always)]
    fn common(x: f64) -> f64 {
        let e = Reduced::new(x);
        let [n, d] = e.tan();
        let turned = e.bit(0, 0);
        let (n, d) = if turned != 0 { (d, n) } else { (n, d) };
        let y = quotient(n, d);
        let y = if x.abs() < 1e-9 { x.abs() } else { y };
        odd(f64::from_bits(y.to_bits() ^ turned << 63), x)
    }
    fn rare(x: f64) -> f64 {
        Element::tan(x)
    }
}

impl Function<f32> for Tan {
    #[inline(always)]
    fn is_common(x: f32) -> bool {
        x.abs() < LIMIT_SINGLE
    }
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let x = f64::from(x);
        let rounded = x * FRAC_2_PI + ROUND;
        let r = reduce_single(x, 0.5 * (rounded - ROUND));
        let t = r * polynomial(r * r, &TAN_SINGLE);
        (if rounded.to_bits() & 1 != 0 { -1.0 / t } else { t }) as f32
    }
    fn rare(x: f32) -> f32 {
        Element::tan(f64::from(x)) as f32
    }
}
