//! Scalar functions by their Taylor coefficients, and their divided differences.

use std::{
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};
use tenferro_core_ops::Real;

/// A function f of positive numbers with all its derivatives, continued to negative ones as an odd function.
///
/// ```
/// use tenferro_linalg::SpectralFunction;
/// let root = SpectralFunction::power(0.5);
/// assert_eq!(root.coefficient(0, 4.0), 2.0);
/// assert_eq!(root.coefficient(1, 4.0), 0.25);
/// assert_eq!(root, SpectralFunction::power(0.5));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SpectralFunction(Kind);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Power(Real),
    Exp(Real),
    Sign,
    Custom(Custom),
}

/// A closure, compared by its address.
#[derive(Clone)]
struct Custom(Arc<dyn Fn(usize, f64) -> f64 + Send + Sync>);

impl Custom {
    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>().addr()
    }
}

impl PartialEq for Custom {
    fn eq(&self, o: &Custom) -> bool {
        self.address() == o.address()
    }
}

impl Eq for Custom {}

impl Hash for Custom {
    fn hash<H: Hasher>(&self, h: &mut H) {
        self.address().hash(h);
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "custom({:#x})", self.address())
    }
}

/// Terms of a Taylor series that are tried.
const TERMS: usize = 40;

/// The term that must be smaller than others for more to be tried.
const EARLY: usize = 8;

impl SpectralFunction {
    /// `x^p`.
    pub fn power(p: f64) -> Self {
        SpectralFunction(Kind::Power(Real(p)))
    }

    /// `exp(c x)`.
    pub fn exp(c: f64) -> Self {
        SpectralFunction(Kind::Exp(Real(c)))
    }

    /// 1, the limit from above at 0. As an odd function, it is the sign.
    pub fn sign() -> Self {
        SpectralFunction(Kind::Sign)
    }

    /// `derivative(n, x)` is the n-th derivative at x >= 0; for n = 0 the value. NaN says that a derivative
    /// of this order is not known: to ask for it is an error. Two functions are equal if they are clones of one.
    pub fn custom(derivative: impl Fn(usize, f64) -> f64 + Send + Sync + 'static) -> Self {
        SpectralFunction(Kind::Custom(Custom(Arc::new(derivative))))
    }

    /// The order and the point of a derivative, up to `order` and at one of these points, that is not known, or
    /// infinite elsewhere than at 0.
    pub(crate) fn unknown(&self, points: &[f64], order: usize) -> Option<(usize, f64)> {
        let Kind::Custom(f) = &self.0 else { return None };
        let mut all = points.iter().flat_map(|&x| (1..=order).map(move |n| (n, x)));
        all.find(|&(n, x)| {
            let c = (f.0)(n, x);
            c.is_nan() || x > 0.0 && c.is_infinite()
        })
    }

    /// Whether x has a scale for f. For powers it has none: their divided differences are as exact close to
    /// 0 as anywhere.
    pub(crate) fn has_scale(&self) -> bool {
        matches!(self.0, Kind::Exp(_) | Kind::Custom(_))
    }

    /// The n-th derivative at x, divided by n!.
    pub fn coefficient(&self, n: usize, x: f64) -> f64 {
        if x < 0.0 {
            let odd = if n.is_multiple_of(2) { -1.0 } else { 1.0 };
            return odd * self.coefficient(n, -x);
        }
        match &self.0 {
            Kind::Power(Real(p)) => {
                let binomial = (0..n).fold(1.0, |b, i| b * (p - i as f64) / (i + 1) as f64);
                if binomial == 0.0 { 0.0 } else { binomial * x.powf(p - n as f64) }
            }
            Kind::Exp(Real(c)) => (0..n).fold((c * x).exp(), |b, i| b * c / (i + 1) as f64),
            Kind::Sign => (n == 0) as u8 as f64,
            Kind::Custom(f) => (0..n).fold((f.0)(n, x), |b, i| b / (i + 1) as f64),
        }
    }

    /// `f[x_0, .., x_n]`, which for distinct points is
    /// `(f[x_1, .., x_n] - f[x_0, .., x_(n-1)]) / (x_n - x_0)`, and for equal ones the n-th Taylor
    /// coefficient; where that is infinite or unknown, 0. The points get sorted. NaN among several points,
    /// and no points at all, give NaN.
    pub fn divided_difference(&self, x: &mut [f64]) -> f64 {
        if x.is_empty() || (x.len() > 1 && x.iter().any(|x| x.is_nan())) {
            return f64::NAN;
        }
        x.sort_by(f64::total_cmp);
        self.of_sorted(x)
    }

    fn of_sorted(&self, x: &[f64]) -> f64 {
        let (first, last, n) = (x[0], x[x.len() - 1], x.len() - 1);
        // Between differences it is the continuation to both sides of 0 that counts.
        if n == 0 && first == 0.0 && self.0 == Kind::Sign {
            return 0.0;
        }
        if n == 0 || first == last {
            let c = self.coefficient(n, first);
            return if (n > 0 || first == 0.0) && !c.is_finite() { 0.0 } else { c };
        }
        // Differences cancel among points that are close together, compared with their distance from 0, where f
        // may be singular. Higher ones cancel close to 0, too, where f has a scale and they stay finite.
        let center = (first + last) / 2.0;
        let close = first * last > 0.0 && last - first < center.abs() / 2.0;
        let scaled = n > 1 && self.has_scale();
        let series = if close || (scaled && first * last >= 0.0) {
            self.series(x, center, |_| true)
        } else if scaled {
            // What is odd has no even terms at 0; of any other function, the continuation is no series there.
            let odd = |order: usize| order % 2 == 1 || self.coefficient(order, 0.0) == 0.0;
            (0..n).all(odd).then(|| self.series(x, 0.0, odd)).flatten()
        } else {
            None
        };
        if let Some(sum) = series {
            return sum;
        }
        (self.of_sorted(&x[1..]) - self.of_sorted(&x[..n])) / (last - first)
    }

    /// `sum over k of c_(n+k) h_k(x_0 - center, .., x_n - center)`, with Taylor coefficients c and the
    /// complete homogeneous polynomials h_k; `None` if it does not converge, or has an order that is not
    /// `allowed`.
    fn series(&self, x: &[f64], center: f64, allowed: impl Fn(usize) -> bool) -> Option<f64> {
        let n = x.len() - 1;
        // h_k of the first points, for each number of points.
        let mut h = vec![1.0; n + 1];
        let (mut sum, mut largest, mut small) = (0.0, 0.0_f64, 0);
        for k in 0..TERMS {
            if k > 0 {
                let mut left = 0.0;
                for (h, x) in h.iter_mut().zip(x) {
                    left += (x - center) * *h;
                    *h = left;
                }
            }
            let term = self.coefficient(n + k, center) * h[n];
            if !term.is_finite() {
                // Derivatives of this order are not known, and may not be needed.
                return (small >= 2).then_some(sum);
            }
            if !allowed(n + k) || (k == EARLY && term.abs() > largest / 64.0) {
                return None;
            }
            sum += term;
            largest = largest.max(term.abs());
            // Every other h_k may vanish by symmetry, and a coefficient between them by chance.
            small = if sum != 0.0 && term.abs() <= f64::EPSILON / 8.0 * sum.abs() { small + 1 } else { 0 };
            if small == 4 {
                return Some(sum);
            }
        }
        (largest == 0.0).then_some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::SpectralFunction;

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance * b.abs().max(1e-300), "{a} {b}");
    }

    #[test]
    fn cubes_have_the_differences_of_a_polynomial() {
        let f = SpectralFunction::power(3.0);
        for (a, b, c) in [(1.0, 2.0, 3.0), (1.0, 1.0 + 1e-9, 1.0 + 3e-9), (2.0, 2.0, 2.0), (0.5, 0.5, 7.0)] {
            close(f.divided_difference(&mut [b, a]), a * a + a * b + b * b, 1e-14);
            close(f.divided_difference(&mut [c, a, b]), a + b + c, 1e-14);
        }
        // An odd function as it is.
        close(f.divided_difference(&mut [-1.0, 2.0]), 3.0, 1e-15);
    }

    #[test]
    fn roots_have_differences_by_rationalisation() {
        let f = SpectralFunction::power(0.5);
        for (a, b) in [(1.0, 4.0), (1.0, 1.0 + 1e-7), (1.0, 1.3), (1.0, 1.9), (1e-9, 1.1e-9), (3.0, 3.0)] {
            let (p, q) = (f64::sqrt(a), f64::sqrt(b));
            close(f.divided_difference(&mut [a, b]), 1.0 / (p + q), 1e-14);
            // f[a, a, b] = -1 / (2 p (p + q)^2)
            close(f.divided_difference(&mut [a, b, a]), -0.5 / (p * (p + q) * (p + q)), 1e-13);
        }
        assert_eq!(f.divided_difference(&mut [0.0, 0.0]), 0.0);
        close(f.divided_difference(&mut [0.0, 4.0]), 0.5, 1e-15);
    }

    #[test]
    fn differences_close_to_zero_are_those_of_the_series() {
        let sine = SpectralFunction::custom(|n, x| match n % 4 {
            0 => x.sin(),
            1 => x.cos(),
            2 => -x.sin(),
            _ => -x.cos(),
        });
        for a in [1e-3, 1e-8, 1e-13] {
            close(sine.divided_difference(&mut [-a, a, 2.0 * a]), -a / 3.0, 1e-5);
            close(sine.divided_difference(&mut [0.0, a, 3.0 * a, 4.0 * a]), -1.0 / 6.0, 1e-5);
            close(sine.divided_difference(&mut [-a, 0.0, a, 3.0 * a]), -1.0 / 6.0, 1e-5);
            close(sine.divided_difference(&mut [-a, 0.0, a, 2.0 * a, 3.0 * a, -3.0 * a]), 1.0 / 120.0, 1e-5);
        }
        // x^2 to both sides of 0 is no polynomial: f[-a, a, a] = (2 a - a) / 2 a.
        let square = SpectralFunction::custom(|n, x| [x * x, 2.0 * x, 2.0].get(n).copied().unwrap_or(0.0));
        close(square.divided_difference(&mut [-1e-8, 1e-8, 1e-8]), 0.5, 1e-13);
        close(square.divided_difference(&mut [1e-8, 2e-8, 3e-8]), 1.0, 1e-13);
    }

    #[test]
    fn a_series_goes_on_after_terms_that_vanish() {
        // x^5 - 10 x^3, whose third derivative is 0 at 1, in the middle.
        let f = SpectralFunction::custom(|n, x| {
            let all = [x.powi(5) - 10.0 * x.powi(3), 5.0 * x.powi(4) - 30.0 * x * x];
            let more = [20.0 * x.powi(3) - 60.0 * x, 60.0 * x * x - 60.0, 120.0 * x, 120.0];
            all.iter().chain(&more).nth(n).copied().unwrap_or(0.0)
        });
        let (a, b) = (0.875_f64, 1.125_f64);
        let expected = (f.coefficient(0, b) - f.coefficient(0, a)) / (b - a);
        close(f.divided_difference(&mut [a, b]), expected, 1e-14);
        // Beyond its degree, a polynomial has no differences.
        assert_eq!(f.divided_difference(&mut [-0.1, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7]), 0.0);
    }

    #[test]
    fn a_series_ends_where_derivatives_are_not_known() {
        let sine = |known: usize| {
            SpectralFunction::custom(move |n, x: f64| match n {
                n if n > known => f64::NAN,
                n => (x + n as f64 * std::f64::consts::FRAC_PI_2).sin(),
            })
        };
        let x = [0.7, 0.7 + 1e-9, 0.7 - 1e-9];
        close(sine(5).divided_difference(&mut x.clone()), -0.7f64.sin() / 2.0, 1e-12);
    }

    #[test]
    fn points_that_are_no_numbers_give_none() {
        let f = SpectralFunction::power(2.0);
        for x in [&mut [][..], &mut [f64::NAN], &mut [1.0, f64::NAN], &mut [f64::NAN, f64::NAN, 2.0]] {
            assert!(f.divided_difference(x).is_nan(), "{x:?}");
        }
    }

    #[test]
    fn the_sign_has_the_differences_of_a_lyapunov_equation() {
        let f = SpectralFunction::sign();
        assert_eq!((f.coefficient(0, 0.0), f.coefficient(0, -2.0), f.coefficient(1, 2.0)), (1.0, -1.0, 0.0));
        close(f.divided_difference(&mut [3.0, -1.0]), 2.0 / 4.0, 1e-15);
        close(f.divided_difference(&mut [3.0, 0.0]), 1.0 / 3.0, 1e-15);
        assert_eq!(f.divided_difference(&mut [3.0, 1.0]), 0.0);
        assert_eq!(f.divided_difference(&mut [3.0, 3.0]), 0.0);
    }

    #[test]
    fn infinite_values_at_zero_count_as_those_of_an_odd_function() {
        let f = SpectralFunction::power(-1.0);
        close(f.divided_difference(&mut [0.0, 2.0]), 0.25, 1e-15);
        close(f.divided_difference(&mut [0.0, -2.0, 2.0]), 0.0, 1e-15);
    }

    #[test]
    fn exponentials_have_shifted_differences() {
        let f = SpectralFunction::exp(2.0);
        let custom = SpectralFunction::custom(|n, x| 2f64.powi(n as i32) * (2.0 * x).exp());
        for (a, d) in [(0.3, 1e-8), (0.3, 0.2), (5.0, 1.0), (0.0, 1e-3)] {
            let expected = f64::exp(2.0 * a) * f64::exp_m1(2.0 * d) / d;
            close(f.divided_difference(&mut [a, a + d]), expected, if a == 0.0 { 1e-12 } else { 1e-7 });
            close(custom.divided_difference(&mut [a, a + d]), f.divided_difference(&mut [a, a + d]), 1e-13);
        }
        assert_eq!(custom, custom.clone());
        assert_ne!(custom, SpectralFunction::custom(|_, x| x));
    }
}
