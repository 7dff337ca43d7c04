//! Products of many numbers, which overflow only if the result does.

use tenferro_internal_dense::{Field, Real};

/// `value 2^exponent`, with the value near 1 or zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product<T> {
    value: T,
    exponent: i64,
}

impl<T: Field> Product<T> {
    /// The product of nothing.
    pub(crate) const ONE: Self = Product { value: T::ONE, exponent: 0 };

    /// A number, as a product of one factor.
    pub(crate) fn of(x: T) -> Self {
        if x == T::ZERO {
            return Product { value: x, exponent: 0 };
        }
        let e = x.abs1().exponent();
        // In two steps, because the reciprocal of a large number's power of two is not normal.
        let value = x.scale(T::Real::power(-(e / 2))).scale(T::Real::power(-(e - e / 2)));
        Product { value, exponent: i64::from(e) }
    }

    pub(crate) fn times(self, o: Self) -> Self {
        let p = Product::of(self.value * o.value);
        Product { value: p.value, exponent: p.exponent + self.exponent + o.exponent }
    }

    /// The product with `2^exponent`.
    pub(crate) fn times_power(self, exponent: i64) -> Self {
        Product { exponent: if self.value == T::ZERO { 0 } else { self.exponent + exponent }, ..self }
    }

    /// The number; 0 or an infinity if that is what is nearest.
    pub(crate) fn number(self) -> T {
        // No type has numbers beyond these powers of two, nor can so many be lost.
        let (mut value, mut left) = (self.value, self.exponent.clamp(-4000, 4000) as i32);
        while left != 0 && value != T::ZERO {
            let step = left.clamp(-100, 100);
            value = value.scale(T::Real::power(step));
            left -= step;
        }
        value
    }

    /// The number divided by its modulus, or 0.
    pub(crate) fn sign(self) -> T {
        // A quotient, for a number over its modulus to be exactly 1; near 1, nothing overflows.
        if self.value == T::ZERO { self.value } else { self.value.divide(T::real(self.value.abs())) }
    }

    /// The value, near 1 unless it is zero, and the power of two that it is to be multiplied by.
    pub(crate) fn parts(self) -> (T, i64) {
        (self.value, self.exponent)
    }
}

/// 1 for an even permutation, -1 for an odd one, which is left as the identity.
pub(crate) fn sign_of_permutation<T: Field>(p: &mut [i32]) -> T {
    let mut odd = false;
    for i in 0..p.len() {
        while p[i] as usize != i {
            let j = p[i] as usize;
            p.swap(i, j);
            odd = !odd;
        }
    }
    if odd { -T::ONE } else { T::ONE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenferro_tensor::C64;

    #[test]
    fn only_the_result_overflows() {
        let product = |x: &[f64]| x.iter().fold(Product::ONE, |p, &x| p.times(Product::of(x)));
        let (large, small) = (2f64.powi(1000), 2f64.powi(-1000));
        assert_eq!(product(&[large, large, small, small, 3.0]).number(), 3.0);
        assert_eq!(product(&[f64::MAX, 0.5, 2.0]).number(), f64::MAX);
        assert_eq!(product(&[5e-324, 1.0]).number(), 5e-324);
        assert_eq!(product(&[1e-200, -1e-200]).number(), -0.0);
        assert_eq!(product(&[1e200, -1e200]).number(), f64::NEG_INFINITY);
        assert_eq!(product(&[1e200, 0.0]).number(), 0.0);
        let z = C64::new(1.5e308, -1.5e308);
        assert_eq!(Product::of(z).number(), z);
        for k in 1..1000 {
            let x = f64::from(k);
            assert_eq!((Product::of(x).sign(), Product::of(-x).sign()), (1.0, -1.0));
            assert_eq!(Product::of(C64::new(0.0, x)).sign(), C64::new(0.0, 1.0));
            assert_eq!(Product::of(x as f32).sign(), 1.0);
        }
        assert!((Product::of(z).sign() - C64::new(0.5f64.sqrt(), -0.5f64.sqrt())).norm() < 1e-15);
    }

    #[test]
    fn permutations_have_signs() {
        assert_eq!(sign_of_permutation::<f64>(&mut []), 1.0);
        assert_eq!(sign_of_permutation::<f64>(&mut [1, 0, 2]), -1.0);
        assert_eq!(sign_of_permutation::<f64>(&mut [1, 2, 0]), 1.0);
        assert_eq!(sign_of_permutation::<f64>(&mut [3, 2, 1, 0]), 1.0);
    }
}
