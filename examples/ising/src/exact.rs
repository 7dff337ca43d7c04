//! Onsager's solution of the isotropic square-lattice Ising model in the thermodynamic limit
//! (J = 1, k_B = 1): what the renormalization group is measured against.
//!
//! With K = 1/T and the signed modulus `q = 2 tanh^2(2K) - 1`, which vanishes at T_c,
//!
//! ```text
//! ln Z  = ln(2 cosh 2K) + (1/pi) int_0^{pi/2} ln[(1 + sqrt(q^2 cos^2 f + sin^2 f)) / 2] df
//! u     = -coth(2K) [1 + (2/pi) q K(k)],                                       k^2 = 1 - q^2
//! c     = (4/pi) (K coth 2K)^2 {K(k) - E(k) - (1 - tanh^2 2K) [pi/2 + q K(k)]}
//! ```
//!
//! (Onsager 1944; McCoy and Wu 1973). Invariant: `q` is never formed as a difference of rounded numbers, so
//! all three keep full relative precision up to T_c.

use std::f64::consts::{FRAC_PI_2, LN_2, PI, SQRT_2};

/// T_c = 2 / ln(1 + sqrt 2), rounded; the argument that [`Exact::at`] takes for the critical point itself.
pub const T_CRITICAL: f64 = 2.269_185_314_213_022;
/// What rounding took from `T_CRITICAL`.
const T_CRITICAL_REST: f64 = -8.519_454_153_395_275e-17;
/// 2K at T_c: ln(1 + sqrt 2), where sinh is one.
const CRITICAL_COUPLING: f64 = 0.881_373_587_019_543;
/// Catalan's constant.
const CATALAN: f64 = 0.915_965_594_177_219;

/// Exact values per site at one temperature.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exact {
    /// ln Z per site.
    pub lnz: f64,
    /// Energy per site.
    pub energy: f64,
    /// Specific heat per site, infinite at T_c.
    pub specific_heat: f64,
}

impl Exact {
    /// The values at temperature `t > 0`. At `t == T_CRITICAL` they are those of T_c itself:
    /// ln Z = ln 2 / 2 + 2 G / pi, u = -sqrt 2 and an infinite specific heat.
    pub fn at(t: f64) -> Exact {
        if t == T_CRITICAL {
            let lnz = LN_2 / 2.0 + 2.0 * CATALAN / PI;
            return Exact { lnz, energy: -SQRT_2, specific_heat: f64::INFINITY };
        }
        let k = 1.0 / t;
        let (cosh, tanh) = ((2.0 * k).cosh(), (2.0 * k).tanh());
        let q = signed_modulus(t, cosh);
        let (first, difference) = elliptic(q);
        let heat = difference - (FRAC_PI_2 + q * first) / (cosh * cosh);
        Exact {
            lnz: (2.0 * cosh).ln() + log_mean(q.abs()) / PI,
            energy: -(1.0 + q * first / FRAC_PI_2) / tanh,
            specific_heat: 4.0 / PI * (k / tanh).powi(2) * heat,
        }
    }
}

/// `q = 2 tanh^2(2K) - 1 = (sinh 2K - 1)(sinh 2K + 1) / cosh^2 2K`, the first factor by the addition theorem
/// from the distance to T_c.
fn signed_modulus(t: f64, cosh: f64) -> f64 {
    let half = ((T_CRITICAL - t) + T_CRITICAL_REST) / (t * T_CRITICAL);
    let sinh_minus_one = 2.0 * (CRITICAL_COUPLING + half).cosh() * half.sinh();
    sinh_minus_one * (2.0 + sinh_minus_one) / (cosh * cosh)
}

/// Complete elliptic integrals `(K, K - E)` of complementary modulus `|q|`, by the arithmetic-geometric mean:
/// K = pi / (2 agm(1, |q|)) and K - E = K sum_n 2^(n-1) c_n^2.
fn elliptic(q: f64) -> (f64, f64) {
    let (mut a, mut b) = (1.0_f64, q.abs());
    let (mut weight, mut sum) = (0.5, 0.5 * (1.0 - q) * (1.0 + q));
    while a - b > f64::EPSILON * a {
        let c = (a - b) / 2.0;
        (a, b) = (a - c, (a * b).sqrt());
        weight *= 2.0;
        sum += weight * c * c;
    }
    let first = FRAC_PI_2 / a;
    (first, first * sum)
}

/// `int_0^{pi/2} ln[(1 + sqrt(q^2 cos^2 f + sin^2 f)) / 2] df` by tanh-sinh quadrature, whose nodes crowd at
/// f = 0 as fast as the integrand's branch points at f ~ +-iq approach it.
fn log_mean(q: f64) -> f64 {
    const STEP: f64 = 1.0 / 32.0;
    const NODES: i32 = 120;
    (-NODES..=NODES)
        .map(|n| {
            let t = STEP * f64::from(n);
            let s = PI * t.sinh();
            let (left, right) = (1.0 / (1.0 + (-s).exp()), 1.0 / (1.0 + s.exp()));
            let (sin, cos) = (FRAC_PI_2 * left).sin_cos();
            let weight = FRAC_PI_2 * PI * t.cosh() * left * right;
            STEP * weight * (((q * cos).hypot(sin) - 1.0) / 2.0).ln_1p()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(T, ln Z, u, c)` rounded from 45 digits: Onsager's arccosh integral, and closed forms that agree with
    /// its numerical derivatives to those digits. T is the double nearest to the decimal.
    const TABLE: [(f64, f64, f64, f64); 10] = [
        (1.0, 2.000_348_283_700_710_3, -1.997_160_204_112_251_1, 0.023_379_564_686_542_134),
        (1.6, 1.258_109_339_091_741_7, -1.928_241_953_536_615, 0.262_354_294_112_726_65),
        (2.0, 1.025_792_812_694_917_6, -1.745_564_575_312_554, 0.724_871_448_601_573_9),
        (2.2, 0.950_339_138_278_758_3, -1.546_489_144_098_454, 1.414_277_691_343_330_1),
        (2.26, 0.932_254_397_876_222_8, -1.440_968_601_944_598_2, 2.418_038_021_644_897_6),
        (2.2692, 0.929_691_365_091_290_8, -1.414_124_023_264_499_4, 5.602_451_301_840_392),
        (2.269185, 0.929_695_484_639_406_8, -1.414_216_075_536_013_8, 7.503_738_862_459_540_5),
        (2.4, 0.898_589_466_007_068_2, -1.203_974_467_914_571_6, 1.123_034_124_669_874),
        (3.2, 0.799_617_482_230_808_3, -0.745_148_245_925_110_2, 0.324_783_600_033_031_9),
        (10.0, 0.703_231_242_285_832_4, -0.203_377_391_097_355_64, 0.021_022_315_788_654_312),
    ];

    #[track_caller]
    fn assert_relative(ours: f64, reference: f64, tolerance: f64, what: &str) {
        let error = (ours / reference - 1.0).abs();
        assert!(
            error <= tolerance,
            "{what}: got {ours:e}, expected {reference:e}, relative error {error:.1e}"
        );
    }

    #[test]
    fn agrees_with_high_precision_values() {
        for (t, lnz, energy, heat) in TABLE {
            let exact = Exact::at(t);
            assert_relative(exact.lnz, lnz, 1e-15, &format!("ln Z at {t}"));
            assert_relative(exact.energy, energy, 3e-15, &format!("u at {t}"));
            let tolerance = if (1.6..=3.2).contains(&t) { 1e-14 } else { 3e-13 };
            assert_relative(exact.specific_heat, heat, tolerance, &format!("c at {t}"));
        }
    }

    #[test]
    fn is_critical_at_the_critical_temperature() {
        let exact = Exact::at(T_CRITICAL);
        assert_relative(exact.lnz, 0.929_695_398_341_610_2, 3e-16, "ln Z at T_c");
        assert_eq!(exact.energy, -SQRT_2);
        assert_eq!(exact.specific_heat, f64::INFINITY);
    }

    #[test]
    fn is_continuous_through_the_critical_temperature() {
        let centre = Exact::at(T_CRITICAL);
        for t in [T_CRITICAL.next_down(), T_CRITICAL.next_up()] {
            let beside = Exact::at(t);
            assert_relative(beside.lnz, centre.lnz, 4e-15, "ln Z");
            assert_relative(beside.energy, centre.energy, 4e-14, "u");
            assert!(beside.specific_heat > 15.0 && beside.specific_heat.is_finite());
        }
    }

    #[test]
    fn derivatives_of_ln_z_are_energy_and_heat() {
        let beta = 1.0 / 2.1;
        let (h, lnz) = (2e-4, |beta: f64| Exact::at(1.0 / beta).lnz);
        let slope = (8.0 * (lnz(beta + h) - lnz(beta - h)) - (lnz(beta + 2.0 * h) - lnz(beta - 2.0 * h)))
            / (12.0 * h);
        assert_relative(-slope, Exact::at(2.1).energy, 1e-10, "u");
        let (h, u) = (2e-4, |t: f64| Exact::at(t).energy);
        let slope = (8.0 * (u(2.1 + h) - u(2.1 - h)) - (u(2.1 + 2.0 * h) - u(2.1 - 2.0 * h))) / (12.0 * h);
        assert_relative(slope, Exact::at(2.1).specific_heat, 1e-10, "c");
    }
}
