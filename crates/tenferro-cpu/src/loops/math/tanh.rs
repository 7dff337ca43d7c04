//! Hyperbolic tangent: `tanh x = (exp 2x - 1) / (exp 2x + 1)`.

use super::{Function, compensated::quotient, exp::Reduced, exp2};

pub(super) struct Tanh;

impl Function<f64> for Tanh {
    #[inline(always)]
    fn common(x: f64) -> f64 {
        let a = x.abs();
        // From 22 on the result is 1.
        let e = Reduced::new(2.0 * if a > 22.0 { 22.0 } else { a });
        // Numerator and denominator are divided by 2^k.
        let y = quotient(e.plus(e.shifted(-1.0)), e.plus(e.shifted(1.0)));
        // x - x^3/3 rounds to x, and the remainder of the quotient would be subnormal somewhere here.
        (if a < 1e-9 { a } else { y }).copysign(x)
    }
}

impl Function<f32> for Tanh {
    #[inline(always)]
    fn common(x: f32) -> f32 {
        let a = f64::from(x.abs());
        // From 10 on the result is 1.
        let e = Reduced::single(2.0 * if a > 10.0 { 10.0 } else { a });
        let scale = exp2(e.rounded);
        let p = scale * (e.r + e.rest);
        let (n, d) = ((scale - 1.0) + p, (scale + 1.0) + p);
        ((n / d) as f32).copysign(x)
    }
}
