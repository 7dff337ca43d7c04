//! A diagonal similarity `D^-1 A D`, with powers of two on the diagonal of D, whose elements are small.
//!
//! Within a strongly connected component of the graph of A, each row is made as large as its column: E. E.
//! Osborne, J. ACM 7 (1960), in the maximum norm, whose iteration ends (T. Y. Chen and J. W. Demmel, "Balancing
//! sparse matrices for computing eigenvalues", Linear Algebra Appl. 309, 2000). What leads from a component to
//! another one, and can be made arbitrarily small, is made no larger than the rest.

use crate::pade::Double;
use tenferro_internal_dense::{DenseError, Real, allocated};

/// The least number of halvings of the largest element that is worth a similarity.
const GAIN: i32 = 3;

/// The farthest exponents of D, so that directions of derivatives stay numbers.
const RANGE: i32 = 1000;

/// Osborne's iteration gains little after this many sweeps.
const SWEEPS: usize = 50;

/// D, and which elements of a function of A are zero.
pub(crate) struct Balance {
    /// Of the elements of D.
    pub(crate) exponents: Vec<i32>,
    paths: Paths,
}

/// From which row to which column there is a path of elements that are not zero: bits, in words for each row.
struct Paths {
    words: usize,
    bits: Vec<u64>,
}

impl Paths {
    /// S. Warshall, J. ACM 9 (1962).
    fn new(n: usize, edge: impl Fn(usize, usize) -> bool) -> Result<Self, DenseError> {
        let words = n.div_ceil(64);
        let mut bits = allocated([n, words], 0u64)?;
        for (i, row) in bits.chunks_exact_mut(words).enumerate() {
            (0..n).filter(|&j| i == j || edge(i, j)).for_each(|j| row[j / 64] |= 1 << (j % 64));
        }
        let mut from = allocated([words], 0u64)?;
        for k in 0..n {
            from.copy_from_slice(&bits[k * words..][..words]);
            for row in bits.chunks_exact_mut(words).filter(|row| row[k / 64] >> (k % 64) & 1 == 1) {
                row.iter_mut().zip(&from).for_each(|(to, from)| *to |= from);
            }
        }
        Ok(Paths { words, bits })
    }

    fn has(&self, i: usize, j: usize) -> bool {
        self.bits[i * self.words + j / 64] >> (j % 64) & 1 == 1
    }

    fn count(&self, i: usize) -> u32 {
        self.bits[i * self.words..][..self.words].iter().map(|w| w.count_ones()).sum()
    }
}

impl Balance {
    /// For the `n x n` matrix A, column-major; none if there is not much to gain.
    ///
    /// # Errors
    /// `Memory`.
    pub(crate) fn new<D: Double>(n: usize, a: &[D]) -> Result<Option<Self>, DenseError> {
        let size = |i: usize, j: usize| {
            let z = a[i + j * n].abs1();
            (z > 0.0).then(|| if z.is_finite() { z.exponent() } else { f64::MAX.exponent() })
        };
        let apart = || (0..n).flat_map(|j| (0..n).filter(move |&i| i != j).map(move |i| (i, j)));
        let before = apart().filter_map(|(i, j)| size(i, j)).max();
        // Elements near 1 are small enough; those of the diagonal stay.
        let rest = (0..n).filter_map(|i| size(i, i)).max().unwrap_or(0).max(0);
        if before.is_none_or(|before| before < rest + GAIN) {
            return Ok(None);
        }
        let paths = Paths::new(n, |i, j| size(i, j).is_some())?;
        let together = |i: usize, j: usize| paths.has(i, j) && paths.has(j, i);
        let mut e = allocated([n], 0i32)?;
        for _ in 0..SWEEPS {
            let mut done = true;
            for i in 0..n {
                let others = || (0..n).filter(|&j| j != i && together(i, j));
                let row = others().filter_map(|j| size(i, j).map(|s| s + e[j] - e[i])).max();
                let column = others().filter_map(|j| size(j, i).map(|s| s + e[i] - e[j])).max();
                if let (Some(row), Some(column)) = (row, column) {
                    e[i] += (row - column) / 2;
                    done &= (row - column) / 2 == 0;
                }
            }
            if done {
                break;
            }
        }
        let within = apart().filter(|&(i, j)| together(i, j));
        let rest = within.filter_map(|(i, j)| size(i, j).map(|s| s + e[j] - e[i])).fold(rest, i32::max);
        // A component reaches more rows than any that it leads to.
        let mut order = allocated([n], 0usize)?;
        order.iter_mut().enumerate().for_each(|(i, x)| *x = i);
        order.sort_by_key(|&i| paths.count(i));
        for &i in order.iter().filter(|&&i| (0..i).all(|j| !together(i, j))) {
            let rows = || (i..n).filter(|&k| together(i, k));
            let leaving = rows().flat_map(|k| (0..n).filter(move |&j| !together(i, j)).map(move |j| (k, j)));
            let most = leaving.filter_map(|(k, j)| size(k, j).map(|s| s + e[j] - e[k])).max();
            let up = most.map_or(0, |most| most - rest).max(0);
            rows().for_each(|k| e[k] += up);
        }
        let (low, high) = e.iter().fold((i32::MAX, i32::MIN), |(l, h), &e| (l.min(e), h.max(e)));
        let range = high - low;
        e.iter_mut().for_each(|e| {
            *e -= low;
            if range > RANGE {
                *e = (i64::from(*e) * i64::from(RANGE) / i64::from(range)) as i32;
            }
        });
        let after = apart().filter_map(|(i, j)| size(i, j).map(|s| s + e[j] - e[i])).fold(rest, i32::max);
        let gain = before.is_some_and(|before| before - after >= GAIN);
        Ok(gain.then_some(Balance { exponents: e, paths }))
    }

    /// Whether element (i, j) of a function of A is zero because no path leads from i to j.
    pub(crate) fn is_zero(&self, i: usize, j: usize) -> bool {
        !self.paths.has(i, j)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn largest(n: usize, a: &[f64], e: &[i32]) -> f64 {
        let scaled = |at: usize| a[at].abs() * 2f64.powi(e[at / n] - e[at % n]);
        (0..n * n).map(scaled).fold(0.0, f64::max)
    }

    #[test]
    fn what_can_be_made_small_is() {
        let upper = |n: usize, x: f64| -> Vec<f64> {
            (0..n * n).map(|at| if at % n <= at / n { x } else { 0.0 }).collect()
        };
        let mut unit = upper(5, 1e40);
        (0..5).for_each(|i| unit[i * 6] = 1.0);
        let cases: [(usize, Vec<f64>); 5] = [
            (2, vec![1.0, 0.0, 1e50, 2.0]),
            (2, vec![1.0, 1e-30, 1e30, 2.0]),
            // A large column, and two rotations with something large between them.
            (3, vec![0.5, 1e-31, 0.2, 1e30, -0.5, 1e30, 1.0, 1e-30, 1.0]),
            (4, vec![0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1e60, 0.0, 0.0, 2.0, 0.0, 1e9, -2.0, 0.0]),
            (5, unit),
        ];
        for (n, a) in cases {
            let e = Balance::new(n, &a).unwrap().expect("a gain").exponents;
            assert!(largest(n, &a, &e) <= 8.0, "{a:?} {e:?}");
        }
    }

    #[test]
    fn a_matrix_of_equal_rows_and_columns_stays() {
        for n in [0, 1, 2, 5] {
            assert!(Balance::new(n, &vec![1e30; n * n]).unwrap().is_none());
            assert!(Balance::new(n, &vec![0.1; n * n]).unwrap().is_none());
        }
    }

    #[test]
    fn elements_without_a_path_are_zero() {
        let balance = Balance::new(3, &[1.0, 0.0, 0.0, 1e50, 1.0, 0.0, 0.0, 0.0, 1.0]).unwrap().unwrap();
        let zeros = |i: usize| [0, 1, 2].map(|j| balance.is_zero(i, j));
        assert_eq!([0, 1, 2].map(zeros), [[false, false, true], [true, false, true], [true, true, false]]);
    }
}
