//! Where the model is solved: evenly spaced temperatures around the phase transition, itself among them.

use crate::exact::T_CRITICAL;

/// Lowest temperature, well inside the ordered phase.
pub const LOWEST: f64 = 1.6;
/// Highest temperature, well inside the disordered phase.
pub const HIGHEST: f64 = 3.2;

/// `count` ascending temperatures from `LOWEST` to `HIGHEST`, the one nearest to T_c moved onto it; a single
/// temperature is T_c.
pub fn temperatures(count: usize) -> Vec<f64> {
    let step = (HIGHEST - LOWEST) / (count.max(2) - 1) as f64;
    let mut grid: Vec<f64> = (0..count).map(|i| LOWEST + step * i as f64).collect();
    let distance = |t: &f64| (t - T_CRITICAL).abs();
    if let Some(nearest) = grid.iter_mut().min_by(|a, b| distance(a).total_cmp(&distance(b))) {
        *nearest = T_CRITICAL;
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_grid_spans_the_range_and_holds_the_critical_point_once() {
        let grid = temperatures(21);
        assert_eq!(grid.len(), 21);
        assert_eq!(grid[0], 1.6);
        assert!((grid[20] - 3.2).abs() < 1e-14);
        assert!(grid.is_sorted_by(|a, b| a < b));
        assert_eq!(grid.iter().filter(|&&t| t == T_CRITICAL).count(), 1);
        assert!((grid[9] - 2.32).abs() < 1e-14 && (grid[7] - 2.16).abs() < 1e-14);
        assert_eq!(grid[8], T_CRITICAL);
    }

    #[test]
    fn every_count_holds_the_critical_point() {
        assert_eq!(temperatures(1), [T_CRITICAL]);
        for count in 2..50 {
            let grid = temperatures(count);
            assert_eq!(grid.len(), count);
            assert!(grid.contains(&T_CRITICAL) && grid.is_sorted_by(|a, b| a < b), "{grid:?}");
        }
    }
}
