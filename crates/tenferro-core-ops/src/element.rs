//! Scalar formulas of the elementwise operations, for every dtype they are defined on.

use num_complex::Complex;
use tenferro_tensor::Scalar;

/// Arithmetic. Integers wrap around.
pub trait Number: Scalar {
    /// `self + o`
    fn plus(self, o: Self) -> Self;
    /// `self - o`
    fn minus(self, o: Self) -> Self;
    /// `self * o`
    fn times(self, o: Self) -> Self;
    /// `-self`
    fn negate(self) -> Self;
    /// `|self|`
    fn modulus(self) -> Self::Real;
    /// `self / |self|`, and 0 at 0; NaN at NaN.
    fn sign(self) -> Self;
    /// Complex conjugate.
    fn conjugate(self) -> Self;
}

/// Dtypes with an order.
pub trait Ordered: Scalar {
    /// The larger; NaN if either is.
    fn maximum(self, o: Self) -> Self;
    /// The smaller; NaN if either is.
    fn minimum(self, o: Self) -> Self;
    /// `self < o`
    fn less(self, o: Self) -> bool;
    /// `self <= o`
    fn less_equal(self, o: Self) -> bool;
}

/// Real and complex floating-point numbers.
pub trait Element: Number {
    /// `self / o`
    fn over(self, o: Self) -> Self;
    /// Exponential.
    fn exp(self) -> Self;
    /// `exp(self) - 1`
    fn expm1(self) -> Self;
    /// Natural logarithm.
    fn log(self) -> Self;
    /// `log(1 + self)`
    fn log1p(self) -> Self;
    /// Sine.
    fn sin(self) -> Self;
    /// Cosine.
    fn cos(self) -> Self;
    /// Tangent.
    fn tan(self) -> Self;
    /// Hyperbolic tangent.
    fn tanh(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// `1 / sqrt(self)`
    fn rsqrt(self) -> Self;
    /// Power.
    fn pow(self, o: Self) -> Self;
}

macro_rules! integers {
    ($($T:ty)*) => { $(
        impl Number for $T {
            #[inline(always)]
            fn plus(self, o: Self) -> Self { self.wrapping_add(o) }
            #[inline(always)]
            fn minus(self, o: Self) -> Self { self.wrapping_sub(o) }
            #[inline(always)]
            fn times(self, o: Self) -> Self { self.wrapping_mul(o) }
            #[inline(always)]
            fn negate(self) -> Self { self.wrapping_neg() }
            #[inline(always)]
            fn modulus(self) -> Self { self.wrapping_abs() }
            #[inline(always)]
            fn sign(self) -> Self { self.signum() }
            #[inline(always)]
            fn conjugate(self) -> Self { self }
        }
    )* };
}
integers! { i32 i64 }

macro_rules! discrete_order {
    ($($T:ty)*) => { $(
        impl Ordered for $T {
            #[inline(always)]
            fn maximum(self, o: Self) -> Self { self.max(o) }
            #[inline(always)]
            fn minimum(self, o: Self) -> Self { self.min(o) }
            #[inline(always)]
            fn less(self, o: Self) -> bool { self < o }
            #[inline(always)]
            fn less_equal(self, o: Self) -> bool { self <= o }
        }
    )* };
}
discrete_order! { i32 i64 bool }

/// Products with exponentials that overflow alone.
trait Grown: Sized {
    /// `c e^x`; a zero stays zero.
    fn times_exp(c: Self, x: Self) -> Self;
    /// `c cosh y` and `s sinh y` of `[c, s]`; a zero stays zero.
    fn times_hyperbolic(cs: [Self; 2], y: Self) -> (Self, Self);
}

macro_rules! reals {
    ($($T:ident)*) => { $(
        impl Grown for $T {
            #[inline(always)]
            fn times_exp(c: Self, x: Self) -> Self {
                let e = x.exp();
                if e.is_infinite() {
                    let half = (0.5 * x).exp();
                    return if c == 0.0 { c } else { c * half * half };
                }
                e * c
            }
            #[inline(always)]
            fn times_hyperbolic([c, s]: [Self; 2], y: Self) -> (Self, Self) {
                // From here on both are e^|y| / 2 to the last bit.
                if y.abs() > <$T>::MAX.ln() - 1.0 {
                    let s = if y < 0.0 { -s } else { s };
                    return (Self::times_exp(0.5 * c, y.abs()), Self::times_exp(0.5 * s, y.abs()));
                }
                (c * y.cosh(), s * y.sinh())
            }
        }
        impl Number for $T {
            #[inline(always)]
            fn plus(self, o: Self) -> Self { self + o }
            #[inline(always)]
            fn minus(self, o: Self) -> Self { self - o }
            #[inline(always)]
            fn times(self, o: Self) -> Self { self * o }
            #[inline(always)]
            fn negate(self) -> Self { -self }
            #[inline(always)]
            fn modulus(self) -> Self { self.abs() }
            #[inline(always)]
            fn sign(self) -> Self {
                if self > 0.0 { 1.0 } else if self < 0.0 { -1.0 } else if self == 0.0 { 0.0 } else { self }
            }
            #[inline(always)]
            fn conjugate(self) -> Self { self }
        }
        impl Ordered for $T {
            #[inline(always)]
            fn maximum(self, o: Self) -> Self { if self > o || self.is_nan() { self } else { o } }
            #[inline(always)]
            fn minimum(self, o: Self) -> Self { if self < o || self.is_nan() { self } else { o } }
            #[inline(always)]
            fn less(self, o: Self) -> bool { self < o }
            #[inline(always)]
            fn less_equal(self, o: Self) -> bool { self <= o }
        }
        impl Element for $T {
            #[inline(always)]
            fn over(self, o: Self) -> Self { self / o }
            #[inline(always)]
            fn exp(self) -> Self { $T::exp(self) }
            #[inline(always)]
            fn expm1(self) -> Self { self.exp_m1() }
            #[inline(always)]
            fn log(self) -> Self { self.ln() }
            #[inline(always)]
            fn log1p(self) -> Self { self.ln_1p() }
            #[inline(always)]
            fn sin(self) -> Self { $T::sin(self) }
            #[inline(always)]
            fn cos(self) -> Self { $T::cos(self) }
            #[inline(always)]
            fn tan(self) -> Self { $T::tan(self) }
            #[inline(always)]
            fn tanh(self) -> Self { $T::tanh(self) }
            #[inline(always)]
            fn sqrt(self) -> Self { $T::sqrt(self) }
            #[inline(always)]
            fn rsqrt(self) -> Self { 1.0 / $T::sqrt(self) }
            #[inline(always)]
            fn pow(self, o: Self) -> Self { self.powf(o) }
        }
        impl Number for Complex<$T> {
            #[inline(always)]
            fn plus(self, o: Self) -> Self { self + o }
            #[inline(always)]
            fn minus(self, o: Self) -> Self { self - o }
            #[inline(always)]
            fn times(self, o: Self) -> Self { self * o }
            #[inline(always)]
            fn negate(self) -> Self { -self }
            #[inline(always)]
            fn modulus(self) -> $T { self.re.hypot(self.im) }
            #[inline(always)]
            fn sign(self) -> Self {
                // An infinite part is the whole direction.
                if self.re.is_infinite() && self.im.is_finite() {
                    return Complex::new((1.0 as $T).copysign(self.re), (0.0 as $T).copysign(self.im));
                }
                if self.im.is_infinite() && self.re.is_finite() {
                    return Complex::new((0.0 as $T).copysign(self.re), (1.0 as $T).copysign(self.im));
                }
                let r = self.re.hypot(self.im);
                if r == 0.0 {
                    return Complex::new(0.0, 0.0);
                }
                // Scaled where the modulus overflows or loses digits.
                if !r.is_normal() {
                    let scale: $T = if r > 1.0 { 0.25 } else { 1.0 / <$T>::EPSILON };
                    let z = self * scale;
                    return z / z.re.hypot(z.im);
                }
                self / r
            }
            #[inline(always)]
            fn conjugate(self) -> Self { self.conj() }
        }
        impl Element for Complex<$T> {
            // Smith, "Algorithm 116: Complex division", CACM 1962: the ratio of the parts of the divisor
            // neither overflows nor underflows when the quotient does not.
            #[inline]
            fn over(self, o: Self) -> Self {
                if o.re.abs() >= o.im.abs() {
                    if o.re == 0.0 {
                        return Complex::new(self.re / o.re, self.im / o.re);
                    }
                    let r = o.im / o.re;
                    let d = o.re + o.im * r;
                    Complex::new((self.re + self.im * r) / d, (self.im - self.re * r) / d)
                } else {
                    let r = o.re / o.im;
                    let d = o.re * r + o.im;
                    Complex::new((self.re * r + self.im) / d, (self.im * r - self.re) / d)
                }
            }
            #[inline]
            fn exp(self) -> Self {
                if self.im == 0.0 {
                    return Complex::new(self.re.exp(), self.im);
                }
                if self.re == <$T>::NEG_INFINITY {
                    return Complex::new(0.0, 0.0);
                }
                let (s, c) = self.im.sin_cos();
                Complex::new(<$T>::times_exp(c, self.re), <$T>::times_exp(s, self.re))
            }
            // exp(a + ib) - 1 = (expm1(a) cos b - 2 sin^2(b/2)) + i exp(a) sin b
            #[inline]
            fn expm1(self) -> Self {
                let (s, c) = self.im.sin_cos();
                let h = (self.im * 0.5).sin();
                let re = if self.re > 1.0 {
                    <$T>::times_exp(c, self.re) - 1.0
                } else {
                    self.re.exp_m1() * c - 2.0 * h * h
                };
                Complex::new(re, <$T>::times_exp(s, self.re))
            }
            #[inline]
            fn log(self) -> Self {
                let (x, y) = (self.re.abs().max(self.im.abs()), self.re.abs().min(self.im.abs()));
                let r = self.re.hypot(self.im);
                if self.re.is_finite() && self.im.is_finite() && !r.is_normal() {
                    // The modulus overflows or loses digits: log |z| = log |z / s| + log s.
                    let s: $T = if r > 1.0 { 4.0 } else { <$T>::EPSILON };
                    return Complex::new((x / s).hypot(y / s).ln() + s.ln(), self.im.atan2(self.re));
                }
                // Near the unit circle log r = log1p((x - 1)(x + 1) + y^2) / 2 does not cancel.
                let re = if r > 0.5 && r < 2.0 { 0.5 * ((x - 1.0) * (x + 1.0) + y * y).ln_1p() } else { r.ln() };
                Complex::new(re, self.im.atan2(self.re))
            }
            #[inline]
            fn log1p(self) -> Self {
                let (a, b) = (self.re, self.im);
                let w = Complex::new(1.0 + a, b);
                if a.abs() > 0.5 || b.abs() > 0.5 {
                    return Element::log(w);
                }
                Complex::new(0.5 * (a * (2.0 + a) + b * b).ln_1p(), b.atan2(1.0 + a))
            }
            #[inline]
            fn sin(self) -> Self {
                let (s, c) = self.re.sin_cos();
                let (ch, sh) = <$T>::times_hyperbolic([s, c], self.im);
                Complex::new(ch, sh)
            }
            #[inline]
            fn cos(self) -> Self {
                let (s, c) = self.re.sin_cos();
                let (ch, sh) = <$T>::times_hyperbolic([c, -s], self.im);
                Complex::new(ch, sh)
            }
            // tan z = -i tanh(i z)
            #[inline]
            fn tan(self) -> Self {
                let t = Element::tanh(Complex::new(-self.im, self.re));
                Complex::new(t.im, -t.re)
            }
            // Kahan, "Branch cuts for complex elementary functions", 1987.
            #[inline]
            fn tanh(self) -> Self {
                let (x, y) = (self.re, self.im);
                if x.abs() > 0.25 * <$T>::MAX.ln() {
                    let (s, c) = y.sin_cos();
                    return Complex::new((1.0 as $T).copysign(x), 4.0 * s * c * (-2.0 * x.abs()).exp());
                }
                let t = y.tan();
                let beta = 1.0 + t * t;
                let s = x.sinh();
                let rho = (1.0 + s * s).sqrt();
                if t.is_infinite() {
                    Complex::new(rho / s, 1.0 / t)
                } else {
                    let d = 1.0 + beta * s * s;
                    Complex::new(beta * rho * s / d, t / d)
                }
            }
            #[inline]
            fn sqrt(self) -> Self {
                let (x, y) = (self.re, self.im);
                if x == 0.0 && y == 0.0 {
                    return Complex::new(0.0, y);
                }
                // Scaled by a power of four, so that the modulus neither overflows nor is subnormal.
                let big = x.abs().max(y.abs());
                if !(x.is_finite() && y.is_finite()) {
                    // C99, G.6.4.2: an infinity wins over NaN.
                    return if y.is_infinite() {
                        Complex::new(<$T>::INFINITY, y)
                    } else if x == <$T>::INFINITY {
                        Complex::new(x, if y.is_nan() { y } else { (0.0 as $T).copysign(y) })
                    } else if x == <$T>::NEG_INFINITY {
                        Complex::new(if y.is_nan() { y } else { 0.0 }, (-x).copysign(y))
                    } else {
                        Complex::new(<$T>::NAN, <$T>::NAN)
                    };
                }
                let (scale, back): ($T, $T) = if big > <$T>::MAX / 8.0 {
                    (0.0625, 4.0)
                } else if big < <$T>::MIN_POSITIVE * 16.0 / <$T>::EPSILON {
                    let up = 4.0 / (<$T>::EPSILON * <$T>::EPSILON);
                    (up, 0.5 * <$T>::EPSILON)
                } else {
                    (1.0, 1.0)
                };
                let (x, y) = (x * scale, y * scale);
                let t = ((x.abs() + x.hypot(y)) * 0.5).sqrt();
                let (re, im) = if x >= 0.0 { (t, y / (2.0 * t)) } else { (y.abs() / (2.0 * t), t.copysign(y)) };
                Complex::new(re * back, im * back)
            }
            #[inline]
            fn rsqrt(self) -> Self { Complex::new(1.0, 0.0).over(Element::sqrt(self)) }
            #[inline]
            fn pow(self, o: Self) -> Self {
                if o.re == 0.0 && o.im == 0.0 {
                    return Complex::new(1.0, 0.0);
                }
                if self.re == 0.0 && self.im == 0.0 {
                    return if o.re > 0.0 { self } else { Complex::new(<$T>::NAN, <$T>::NAN) };
                }
                Element::exp(Element::log(self) * o)
            }
        }
    )* };
}
reals! { f32 f64 }

#[cfg(test)]
mod tests {
    use super::*;
    use tenferro_tensor::{C32, C64};

    type Functions<T> = [(&'static str, fn(T) -> T); 9];

    fn functions<T: Element>() -> Functions<T> {
        [
            ("exp", T::exp),
            ("expm1", T::expm1),
            ("log", T::log),
            ("log1p", T::log1p),
            ("sin", T::sin),
            ("cos", T::cos),
            ("tan", T::tan),
            ("tanh", T::tanh),
            ("sqrt", T::sqrt),
        ]
    }

    #[test]
    fn a_part_that_is_nan_shows_in_both_parts_of_the_result() {
        for v in [0.0, 0.5, 1.0, 1e-30, -20.0, 20.0] {
            for (re, im) in [(v, f64::NAN), (f64::NAN, v)] {
                if im == 0.0 {
                    continue;
                }
                for (name, f) in functions::<C64>() {
                    let y = f(C64::new(re, im));
                    assert!(y.re.is_nan() && y.im.is_nan(), "{name} of {re} + {im}i is {y}");
                }
                for (name, f) in functions::<C32>() {
                    let y = f(C32::new(re as f32, im as f32));
                    assert!(y.re.is_nan() && y.im.is_nan(), "{name} of {re} + {im}i is {y}");
                }
            }
        }
    }

    #[test]
    fn what_overflows_on_the_way_does_not_show_in_the_result() {
        let (inf, big, tiny) = (f64::INFINITY, 1.7e308, 5e-324);
        let z = C64::new;
        // What NumPy gives, but for signs of zeros, log(tiny), which is the real logarithm, and expm1(1000).
        let cases: [(&str, C64, C64); 14] = [
            ("exp", z(710.0, 1.0), z(1.2070325234545281e308, inf)),
            ("exp", z(710.0, 1e-20), z(inf, 2.2339947661617108e288)),
            ("exp", z(-inf, inf), z(0.0, 0.0)),
            ("expm1", z(710.0, 1.0), z(1.2070325234545281e308, inf)),
            ("expm1", z(1000.0, 0.0), z(inf, 0.0)),
            ("log", z(big, big), z(710.0734104835082, std::f64::consts::FRAC_PI_4)),
            ("log", z(-tiny, tiny), z(-744.0934983311012, 2.356194490192345)),
            ("sin", z(0.0, 1000.0), z(0.0, inf)),
            ("sin", z(1e-20, -711.0), z(3.0363136888649963e288, -inf)),
            ("cos", z(0.0, 1000.0), z(inf, 0.0)),
            ("cos", z(1e-20, 711.0), z(inf, -3.0363136888649963e288)),
            ("sqrt", z(inf, 1.0), z(inf, 0.0)),
            ("sqrt", z(-inf, -1.0), z(0.0, -inf)),
            ("sqrt", z(f64::NAN, inf), z(inf, inf)),
        ];
        let close = |a: f64, b: f64| a == b || (a - b).abs() <= 1e-13 * b.abs();
        for (name, x, want) in cases {
            let (_, f) = functions::<C64>().into_iter().find(|f| f.0 == name).unwrap();
            let y = f(x);
            assert!(close(y.re, want.re) && close(y.im, want.im), "{name} of {x} is {y}, not {want}");
        }
        for x in [z(big, big), z(tiny, tiny), z(-big, tiny), z(3.0, -4.0), z(0.0, -inf), z(inf, 1.0)] {
            let y = Number::sign(x);
            assert!((y.norm() - 1.0).abs() < 1e-15, "sign of {x} is {y}");
        }
        for x in [C32::new(88.9, 1.0), C32::new(88.9, 1e-20)] {
            let (y, want) = (Element::exp(x), Element::exp(C64::new(x.re.into(), x.im.into())));
            let want = (want.re as f32, want.im as f32);
            let close = |a: f32, b: f32| a == b || (a - b).abs() <= 1e-5 * b.abs();
            assert!(close(y.re, want.0) && close(y.im, want.1), "exp of {x} is {y}");
        }
    }
}
