//! Sums of products of numbers.

use num_complex::Complex;

#[cfg(target_arch = "x86_64")]
use super::register::Registers;
use crate::Real;
#[cfg(not(target_arch = "x86_64"))]
use crate::Real as Registers;
use crate::provider::Provider;

/// A number with a way to sum products.
pub(crate) trait Sum: Provider<Real: Registers> {
    /// Adds a b to a sum kept as (sum a re b, sum a im b), which makes the complex product a pair of
    /// multiplications of contiguous reals by one real, without shuffles. `FMA` says that the fused
    /// operation is one instruction.
    fn accumulate<const FMA: bool>(sum: (Self, Self), a: Self, b: Self) -> (Self, Self);

    /// The value of a sum built by `accumulate`.
    fn total(sum: (Self, Self)) -> Self;
}

/// a b + c.
#[inline(always)]
fn multiply_add<R: Real, const FMA: bool>(a: R, b: R, c: R) -> R {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

macro_rules! sums {
    ($($r:ty)*) => {$(
        impl Sum for $r {
            #[inline(always)]
            fn accumulate<const FMA: bool>(sum: (Self, Self), a: Self, b: Self) -> (Self, Self) {
                (multiply_add::<$r, FMA>(a, b, sum.0), sum.1)
            }

            #[inline(always)]
            fn total(sum: (Self, Self)) -> Self {
                sum.0
            }
        }

        impl Sum for Complex<$r> {
            #[inline(always)]
            fn accumulate<const FMA: bool>((s, t): (Self, Self), a: Self, b: Self) -> (Self, Self) {
                let f = multiply_add::<$r, FMA>;
                (
                    Complex::new(f(a.re, b.re, s.re), f(a.im, b.re, s.im)),
                    Complex::new(f(a.re, b.im, t.re), f(a.im, b.im, t.im)),
                )
            }

            #[inline(always)]
            fn total((s, t): (Self, Self)) -> Self {
                Complex::new(s.re - t.im, s.im + t.re)
            }
        }
    )*};
}

sums!(f32 f64);
