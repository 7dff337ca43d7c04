//! Exponentials: `exp x = 2^k exp r` with `|r| <= log(2) / 2`.

use super::{Function, ROUND, compensated::fast_two_sum, exp2, polynomial};
use std::f64::consts::{LN_2, LOG2_E};
use tenferro_core_ops::Element;

/// log 2 in two words. The first has 32 bits, so that its product with `k` is exact.
pub(super) const LN_2_HEAD: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
pub(super) const LN_2_TAIL: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);

/// `(exp r - 1 - r - r^2/2) / r^3` within 2^-60 of exp r.
const SERIES: [f64; 10] = [
    0.16666666666666669,
    0.041666666666666664,
    0.008333333333330062,
    0.0013888888888886552,
    0.00019841269863053618,
    2.4801587317144498e-05,
    2.7557268459997064e-06,
    2.755728296954995e-07,
    2.510038549551032e-08,
    2.0911236630261545e-09,
];

/// `(exp r - 1 - r) / r^2` within 2^-32 of exp r.
const SERIES_SINGLE: [f64; 6] = [
    0.500000001346581,
    0.16666666681623232,
    0.041666464925285904,
    0.0083333109254809,
    0.0013933649996309251,
    0.00019890990824673654,
];

/// `x = k log 2 + r`.
pub(super) struct Reduced {
    /// `k + ROUND`
    pub(super) rounded: f64,
    /// The argument reduced, rounded.
    pub(super) r: f64,
    /// `exp(r + dr) - 1 - r`, where `dr` is what the rounding of `r` lost.
    pub(super) rest: f64,
}

impl Reduced {
    #[inline(always)]
    pub(super) fn new(x: f64) -> Reduced {
        let rounded = x * LOG2_E + ROUND;
        let k = rounded - ROUND;
        let head = x - k * LN_2_HEAD;
        let tail = k * LN_2_TAIL;
        let r = head - tail;
        let dr = (head - r) - tail;
        let r2 = r * r;
        Reduced { rounded, r, rest: 0.5 * r2 + (r2 * r * polynomial(r, &SERIES) + (dr + dr * r)) }
    }

    /// The same to the accuracy that f32 needs.
    #[inline(always)]
    pub(super) fn single(x: f64) -> Reduced {
        let rounded = x * LOG2_E + ROUND;
        let r = x - (rounded - ROUND) * LN_2;
        Reduced { rounded, r, rest: r * r * polynomial(r, &SERIES_SINGLE) }
    }

    /// `1 + sign 2^-k` for `|k| < 1023`, and what its rounding lost.
    #[inline(always)]
    pub(super) fn shifted(&self, sign: f64) -> (f64, f64) {
        let a = sign * exp2(2.0 * ROUND - self.rounded);
        let s = 1.0 + a;
        // Where |a| > 1, this error only matters when it is 0.
        (s, a - (s - 1.0))
    }

    /// `exp(r + dr) - 1 + s` for `s = 0` or `|s| >= |r|`, in two words.
    #[inline(always)]
    pub(super) fn plus(&self, (s, ds): (f64, f64)) -> (f64, f64) {
        let (u, du) = fast_two_sum(s, self.r);
        fast_two_sum(u, self.rest + (du + ds))
    }
}

/// `x` where it is within the bounds, else the bound; NaN for NaN.
#[inline(always)]
fn clamp(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

pub(super) struct Exp;

impl Function<f64> for Exp {
    #[inline(always)]
    fn common(x: f64) -> f64 {
        // Results overflow and vanish within these bounds, where k is outside of the range of exponents:
        // half of it at a time.
        let e = Reduced::new(clamp(x, -750.0, 710.0));
        let half = (e.rounded - ROUND) * 0.5 + ROUND;
        let other = e.rounded - (half - ROUND);
        e.plus((1.0, 0.0)).0 * exp2(half) * exp2(other)
    }
    fn rare(x: f64) -> f64 {
        Element::exp(x)
    }
}

impl Function<f32> for Exp {
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let e = Reduced::single(clamp(f64::from(x), -110.0, 90.0));
        ((1.0 + (e.r + e.rest)) * exp2(e.rounded)) as f32
    }
    fn rare(x: f32) -> f32 {
        Element::exp(f64::from(x)) as f32
    }
}

/// `exp x - 1 = 2^k ((1 - 2^-k) + (exp r - 1))`
pub(super) struct Expm1;

impl Function<f64> for Expm1 {
    #[inline(always)]
    fn is_rare(x: f64) -> bool {
        !(x < 709.0)
    }
    #[inline(always)]
    fn common(x: f64) -> f64 {
        // Below -40 the result is -1.
        let e = Reduced::new(if x < -40.0 { -40.0 } else { x });
        (e.plus(e.shifted(-1.0)).0 * exp2(e.rounded)).copysign(x)
    }
    fn rare(x: f64) -> f64 {
        Element::expm1(x)
    }
}

impl Function<f32> for Expm1 {
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let e = Reduced::single(clamp(f64::from(x), -40.0, 90.0));
        let scale = exp2(e.rounded);
        ((((scale - 1.0) + scale * (e.r + e.rest)) as f32)).copysign(x)
    }
    fn rare(x: f32) -> f32 {
        Element::expm1(f64::from(x)) as f32
    }
}
