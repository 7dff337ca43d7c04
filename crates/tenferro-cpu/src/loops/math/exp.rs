//! Exponentials: `exp x = 2^k exp r` with `|r| <= log(2) / 2`.

use super::{Function, ROUND, ROUND_SINGLE, compensated::fast_two_sum, exp2, exp2_single, polynomial};
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

/// `(exp r - 1 - r) / r^2` within 2^-28 of exp r.
const SERIES_SINGLE: [f64; 5] = [
    0.49999993447783114,
    0.1666652063166768,
    0.04166838804802093,
    0.008368716883585226,
    0.001381459851378708,
];

/// log 2 in two words, the first of 16 bits.
pub(super) const LN_2_SINGLE: [f32; 2] = [f32::from_bits(0x3f31_7200), f32::from_bits(0x35bf_be8e)];

/// `(exp r - 1 - r - r^2/2) / r^3` within 2^-27 of exp r.
const SERIES_SHORT: [f32; 4] = [0.16666535, 0.041667238, 0.008367483, 0.0013863781];

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

/// [`Reduced`] in f32.
struct Single {
    rounded: f32,
    r: f32,
    rest: f32,
}

impl Single {
    #[inline(always)]
    fn new(x: f32) -> Single {
        let rounded = x * std::f32::consts::LOG2_E + ROUND_SINGLE;
        let k = rounded - ROUND_SINGLE;
        let head = x - k * LN_2_SINGLE[0];
        let tail = k * LN_2_SINGLE[1];
        let r = head - tail;
        let dr = (head - r) - tail;
        let r2 = r * r;
        Single { rounded, r, rest: 0.5 * r2 + (r2 * r * polynomial(r, &SERIES_SHORT) + (dr + dr * r)) }
    }

    /// [`Reduced::plus`], rounded.
    #[inline(always)]
    fn plus(&self, (s, ds): (f32, f32)) -> f32 {
        let u = s + self.r;
        u + (self.rest + ((self.r - (u - s)) + ds))
    }
}

pub(super) struct Exp;

impl Function<f64> for Exp {
    #[inline(always)]
    fn common(x: f64) -> f64 {
        // Results vanish and overflow at these bounds. There k is out of the range of exponents: half of it
        // at a time.
        let x = if x < -750.0 { -750.0 } else { x };
        let x = if x > 710.0 { 710.0 } else { x };
        let e = Reduced::new(x);
        let half = (e.rounded - ROUND) * 0.5 + ROUND;
        let other = e.rounded - (half - ROUND);
        e.plus((1.0, 0.0)).0 * exp2(half) * exp2(other)
    }
}

impl Function<f32> for Exp {
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let x = if x < -110.0 { -110.0 } else { x };
        let x = if x > 90.0 { 90.0 } else { x };
        let e = Single::new(x);
        let half = (e.rounded - ROUND_SINGLE) * 0.5 + ROUND_SINGLE;
        let other = e.rounded - (half - ROUND_SINGLE);
        e.plus((1.0, 0.0)) * exp2_single(half) * exp2_single(other)
    }
}

/// `exp x - 1 = 2^k ((1 - 2^-k) + (exp r - 1))`
pub(super) struct Expm1;

impl Function<f64> for Expm1 {
    #[inline(always)]
    fn is_common(x: f64) -> bool {
        x < 709.0
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
    fn is_common(x: f32) -> bool {
        x < 88.0
    }
    #[inline(always)]
    fn common(x: f32) -> f32 {
        // Below -20 the result is -1.
        let e = Single::new(if x < -20.0 { -20.0 } else { x });
        let a = exp2_single(2.0 * ROUND_SINGLE - e.rounded);
        let s = 1.0 - a;
        (e.plus((s, (1.0 - s) - a)) * exp2_single(e.rounded)).copysign(x)
    }
    fn rare(x: f32) -> f32 {
        Element::expm1(f64::from(x)) as f32
    }
}
