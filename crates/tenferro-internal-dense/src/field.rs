//! The numbers that matrices are made of.

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

use num_complex::Complex;

/// Keeps [`Field`] to the types that this crate is compiled for.
mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    impl Sealed for num_complex::Complex<f32> {}
    impl Sealed for num_complex::Complex<f64> {}
}
use sealed::Sealed;

/// A real element type, with what the factorizations need beyond `Field`.
pub trait Real: Field<Real = Self> + PartialOrd {
    /// The distance from one to the next larger number.
    const EPS: Self;
    /// The smallest positive normal number.
    const TINY: Self;
    /// Squares of numbers near 2 to this power can be summed without overflow.
    const HEADROOM: i32;

    /// The square root.
    fn sqrt(self) -> Self;
    /// self b + c, rounded once.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// The magnitude of self with the sign of b.
    fn copysign(self, b: Self) -> Self;
    /// The nearest number.
    fn of(x: f64) -> Self;
    /// The value, exactly.
    fn to_f64(self) -> f64;
    /// The exponent e with 2^e <= self < 2^(e + 1), for positive normal numbers; below them, that of `TINY`.
    fn exponent(self) -> i32;
    /// 2^e, for e within the normal range.
    fn power(e: i32) -> Self;
}

/// An element type of dense linear algebra: `f32`, `f64`, `Complex<f32>` or `Complex<f64>`.
pub trait Field:
    Sealed
    + Copy
    + Debug
    + PartialEq
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Neg<Output = Self>
    + Div<Output = Self>
{
    /// The type of norms and singular values.
    type Real: Real;
    /// The complex numbers over them.
    type Complex: Field<Real = Self::Real, Complex = Self::Complex>;
    /// Whether the type has an imaginary part.
    const COMPLEX: bool;
    /// The additive identity.
    const ZERO: Self;
    /// The multiplicative identity.
    const ONE: Self;

    /// The embedding of the reals.
    fn real(x: Self::Real) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The imaginary part.
    fn im(self) -> Self::Real;
    /// The number with these parts.
    fn complex(re: Self::Real, im: Self::Real) -> Self::Complex;
    /// The complex conjugate.
    fn conj(self) -> Self;
    /// The product with a real number.
    fn scale(self, x: Self::Real) -> Self;
    /// The modulus of a finite number, without intermediate overflow.
    fn abs(self) -> Self::Real;
    /// The sum of the absolute values of the parts: zero exactly when self is, within sqrt(2) of `abs`.
    fn abs1(self) -> Self::Real;
    /// The squared modulus.
    fn abs2(self) -> Self::Real;
    /// self / b without intermediate overflow.
    fn divide(self, b: Self) -> Self;
    /// Whether the parts are neither infinite nor NaN.
    fn finite(self) -> bool;
}

macro_rules! fields {
    ($r:ident, $bits:ty, $headroom:expr) => {
        impl Real for $r {
            const EPS: Self = $r::EPSILON;
            const TINY: Self = $r::MIN_POSITIVE;
            const HEADROOM: i32 = $headroom;

            #[inline(always)]
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn copysign(self, b: Self) -> Self {
                self.copysign(b)
            }
            #[inline(always)]
            fn of(x: f64) -> Self {
                x as $r
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn exponent(self) -> i32 {
                let biased = (self.to_bits() >> ($r::MANTISSA_DIGITS - 1)) as i32;
                biased.max(1) + $r::MIN_EXP - 2
            }
            #[inline(always)]
            fn power(e: i32) -> Self {
                $r::from_bits(((e + 2 - $r::MIN_EXP) as $bits) << ($r::MANTISSA_DIGITS - 1))
            }
        }

        impl Field for $r {
            type Real = $r;
            type Complex = Complex<$r>;
            const COMPLEX: bool = false;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;

            #[inline(always)]
            fn real(x: $r) -> Self {
                x
            }
            #[inline(always)]
            fn re(self) -> $r {
                self
            }
            #[inline(always)]
            fn im(self) -> $r {
                0.0
            }
            #[inline(always)]
            fn complex(re: $r, im: $r) -> Complex<$r> {
                Complex::new(re, im)
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn scale(self, x: $r) -> Self {
                self * x
            }
            #[inline(always)]
            fn abs(self) -> $r {
                self.abs()
            }
            #[inline(always)]
            fn abs1(self) -> $r {
                self.abs()
            }
            #[inline(always)]
            fn abs2(self) -> $r {
                self * self
            }
            #[inline(always)]
            fn divide(self, b: Self) -> Self {
                self / b
            }
            #[inline(always)]
            fn finite(self) -> bool {
                self.is_finite()
            }
        }

        impl Field for Complex<$r> {
            type Real = $r;
            type Complex = Complex<$r>;
            const COMPLEX: bool = true;
            const ZERO: Self = Complex::new(0.0, 0.0);
            const ONE: Self = Complex::new(1.0, 0.0);

            #[inline(always)]
            fn real(x: $r) -> Self {
                Complex::new(x, 0.0)
            }
            #[inline(always)]
            fn re(self) -> $r {
                self.re
            }
            #[inline(always)]
            fn im(self) -> $r {
                self.im
            }
            #[inline(always)]
            fn complex(re: $r, im: $r) -> Self {
                Complex::new(re, im)
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Complex::new(self.re, -self.im)
            }
            #[inline(always)]
            fn scale(self, x: $r) -> Self {
                Complex::new(self.re * x, self.im * x)
            }
            #[inline(always)]
            fn abs(self) -> $r {
                let (x, y) = (self.re.abs(), self.im.abs());
                let (low, high) = if x < y { (x, y) } else { (y, x) };
                let ratio = if high == 0.0 { 0.0 } else { low / high };
                high * (1.0 + ratio * ratio).sqrt()
            }
            #[inline(always)]
            fn abs1(self) -> $r {
                self.re.abs() + self.im.abs()
            }
            #[inline(always)]
            fn abs2(self) -> $r {
                self.re * self.re + self.im * self.im
            }
            /// Smith, Algorithm 116, CACM 5 (1962).
            #[inline(always)]
            fn divide(self, b: Self) -> Self {
                if b.re.abs() >= b.im.abs() {
                    let r = if b.im == 0.0 { 0.0 } else { b.im / b.re };
                    let d = b.re + b.im * r;
                    Complex::new((self.re + self.im * r) / d, (self.im - self.re * r) / d)
                } else {
                    let r = b.re / b.im;
                    let d = b.re * r + b.im;
                    Complex::new((self.re * r + self.im) / d, (self.im * r - self.re) / d)
                }
            }
            #[inline(always)]
            fn finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
        }
    };
}

fields!(f32, u32, 50);
fields!(f64, u64, 400);
