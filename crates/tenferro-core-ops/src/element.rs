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

macro_rules! reals {
    ($($T:ident)*) => { $(
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
                let r = self.re.hypot(self.im);
                if r == 0.0 { Complex::new(0.0, 0.0) } else { self / r }
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
                let (s, c) = self.im.sin_cos();
                let e = self.re.exp();
                Complex::new(e * c, e * s)
            }
            // exp(a + ib) - 1 = (expm1(a) cos b - 2 sin^2(b/2)) + i exp(a) sin b
            #[inline]
            fn expm1(self) -> Self {
                let (s, c) = self.im.sin_cos();
                let h = (self.im * 0.5).sin();
                Complex::new(self.re.exp_m1() * c - 2.0 * h * h, self.re.exp() * s)
            }
            #[inline]
            fn log(self) -> Self {
                let (x, y) = (self.re.abs().max(self.im.abs()), self.re.abs().min(self.im.abs()));
                let r = x.hypot(y);
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
                Complex::new(s * self.im.cosh(), c * self.im.sinh())
            }
            #[inline]
            fn cos(self) -> Self {
                let (s, c) = self.re.sin_cos();
                Complex::new(c * self.im.cosh(), -s * self.im.sinh())
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
                if !big.is_finite() {
                    return num_complex::Complex::sqrt(self);
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
