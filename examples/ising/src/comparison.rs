//! One solved temperature beside the exact solution: what the table, the CSV file and the plot all show.

use crate::exact::Exact;
use crate::trg::Point;

/// The three quantities, in the order of [`Comparison::quantities`].
pub const NAMES: [&str; 3] = ["ln Z", "energy", "specific heat"];

/// A computed value and the exact one.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The value of the renormalization group.
    pub computed: f64,
    /// Onsager's value.
    pub exact: f64,
}

impl Quantity {
    /// `|computed - exact| / |exact|`; none where the exact value is infinite.
    pub fn relative_error(self) -> Option<f64> {
        self.exact.is_finite().then(|| ((self.computed - self.exact) / self.exact).abs())
    }
}

/// One temperature: the computed point and the exact values.
pub struct Comparison {
    /// What was computed.
    pub point: Point,
    exact: Exact,
}

impl Comparison {
    /// Sets `point` beside the exact values at its temperature.
    pub fn new(point: Point) -> Self {
        let exact = Exact::at(point.t);
        Comparison { point, exact }
    }

    /// ln Z, energy and specific heat per site, named by [`NAMES`].
    pub fn quantities(&self) -> [Quantity; 3] {
        let Comparison { point, exact } = self;
        [
            Quantity { computed: point.lnz, exact: exact.lnz },
            Quantity { computed: point.energy, exact: exact.energy },
            Quantity { computed: point.specific_heat, exact: exact.specific_heat },
        ]
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::exact::T_CRITICAL;
    use crate::temperatures::temperatures;

    /// Points off the exact values by the relative `error`, with a finite specific heat at T_c.
    pub(crate) fn displaced(count: usize, error: f64) -> Vec<Comparison> {
        let point = |t: f64| {
            let Exact { lnz, energy, specific_heat } = Exact::at(t);
            let scale = 1.0 + error;
            let specific_heat = if specific_heat.is_finite() { specific_heat * scale } else { 4.0 };
            Point { t, lnz: lnz * scale, energy: energy * scale, specific_heat, rank: 16 }
        };
        temperatures(count).into_iter().map(|t| Comparison::new(point(t))).collect()
    }

    #[test]
    fn relative_error_is_of_the_exact_value_and_absent_at_the_divergence() {
        let rows = displaced(3, 1e-3);
        for error in rows[0].quantities().map(|q| q.relative_error().unwrap()) {
            assert!((error - 1e-3).abs() < 1e-12, "{error}");
        }
        assert_eq!(rows[1].point.t, T_CRITICAL);
        assert!(rows[1].quantities()[2].relative_error().is_none());
    }
}
