//! The text on the terminal: one aligned line per temperature, then the largest errors and the cost.

use crate::comparison::{Comparison, NAMES};
use crate::exact::T_CRITICAL;
use crate::options::Options;
use std::fmt::Write;
use std::time::Duration;

/// From this distance to T_c on, errors are reported as those away from the transition.
const AWAY: f64 = 0.3;
/// Width and digits after the point of a value, per quantity.
const FORMAT: [(usize, usize); 3] = [(13, 8), (13, 8), (14, 6)];

/// What is computed, and the column titles.
pub fn header(options: &Options) -> String {
    let Options { chi, steps, temperatures, mode, .. } = options;
    let mut text = format!(
        "Square-lattice Ising model by differentiable TRG: chi {chi}, {steps} steps, \
         {temperatures} temperatures, {} mode\n\
         H = -sum over bonds of s s', J = k_B = 1; all per site; rank: bond of the last tensor\n\n{:>8}",
        mode.name(),
        "T"
    );
    for (name, (width, _)) in NAMES.iter().zip(FORMAT) {
        text += &format!("{name:>width$}{:>width$}{:>9}", "exact", "rel err");
    }
    text + "  rank"
}

/// One line of the table.
pub fn row(comparison: &Comparison) -> String {
    let mut text = format!("{:>8.5}", comparison.point.t);
    for (quantity, (width, digits)) in comparison.quantities().into_iter().zip(FORMAT) {
        let error = scientific(quantity.relative_error());
        text += &format!("{:>width$.digits$}{:>width$.digits$}{error:>9}", quantity.computed, quantity.exact);
    }
    let note = if comparison.point.t == T_CRITICAL { "  T_c" } else { "" };
    text + &format!("{:>6}{note}", comparison.point.rank)
}

/// The largest relative errors by distance to T_c, the time and the peak memory.
pub fn summary(rows: &[Comparison], elapsed: Duration) -> String {
    // Distances to T_c from the first bound up to the second.
    let regions = [
        ("at T_c", 0.0, f64::MIN_POSITIVE),
        ("0 < |T - T_c| < 0.3", f64::MIN_POSITIVE, AWAY),
        ("|T - T_c| >= 0.3", AWAY, f64::INFINITY),
    ];
    let mut text =
        format!("{:<24}{:>10}{:>10}{:>16}\n", "largest relative error", NAMES[0], NAMES[1], NAMES[2]);
    for (name, from, to) in regions {
        let inside = rows.iter().filter(|row| (from..to).contains(&(row.point.t - T_CRITICAL).abs()));
        let [lnz, energy, heat] = largest_errors(inside).map(scientific);
        writeln!(text, "  {name:<22}{lnz:>10}{energy:>10}{heat:>16}").expect("a string takes any text");
    }
    let seconds = elapsed.as_secs_f64();
    text += &format!("{:.3} s per temperature, {seconds:.1} s in all", seconds / rows.len().max(1) as f64);
    match peak_memory_mib() {
        Some(mib) => text + &format!(", peak memory {mib:.0} MiB"),
        None => text,
    }
}

fn scientific(error: Option<f64>) -> String {
    error.map_or("-".into(), |error| format!("{error:.1e}"))
}

/// A NaN counts as the largest error, so that none is hidden.
fn largest_errors<'a>(rows: impl Iterator<Item = &'a Comparison>) -> [Option<f64>; 3] {
    rows.fold([None; 3], |mut largest, row| {
        for (largest, quantity) in largest.iter_mut().zip(row.quantities()) {
            *largest = (*largest).into_iter().chain(quantity.relative_error()).max_by(|a, b| a.total_cmp(b));
        }
        largest
    })
}

/// The largest resident set of this process so far, where Linux tells it.
fn peak_memory_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<f64>().ok()? / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::tests::displaced;

    #[test]
    fn lines_align_under_their_titles() {
        let header = header(&Options::default());
        let titles = header.lines().last().unwrap();
        let rows = displaced(21, 1e-6);
        for comparison in &rows {
            let line = row(comparison);
            assert_eq!(line.trim_end_matches("  T_c").len(), titles.len(), "{titles}\n{line}");
        }
        assert!(row(&rows[8]).contains("inf        -") && row(&rows[8]).ends_with("T_c"));
    }

    #[test]
    fn summary_separates_the_transition_from_the_rest() {
        let text = summary(&displaced(21, 2e-6), Duration::from_secs(42));
        let at: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().collect();
        assert_eq!(at, ["at", "T_c", "2.0e-6", "2.0e-6", "-"]);
        assert_eq!(text.matches("2.0e-6").count(), 8);
        assert!(text.contains("2.000 s per temperature, 42.0 s in all"));
        assert_eq!(cfg!(target_os = "linux"), text.contains("peak memory"));
    }

    #[test]
    fn nan_is_never_hidden() {
        let mut rows = displaced(3, 1e-6);
        rows[0].point.energy = f64::NAN;
        let [lnz, energy, _] = largest_errors(rows.iter());
        assert!(lnz.unwrap() < 1e-5);
        assert!(energy.unwrap().is_nan());
    }
}
