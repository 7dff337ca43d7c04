//! The table: our time, the best peer's, their ratio, the target and whether it is met.

use crate::{
    Result,
    cases::{Case, Goal},
};
use std::{collections::BTreeMap, fs};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
const BEGIN: &str = "<!-- table: written by --write -->\n";
const END: &str = "<!-- end of the table -->";

/// Where half of the rounds take this much longer than the least, the machine was disturbed.
const NOISE: f64 = 1.15;

/// The times of a case.
pub(crate) struct Row {
    name: String,
    goal: Goal,
    per_step: Option<(&'static str, usize)>,
    /// Our medians, by round.
    pub(crate) ours: Vec<f64>,
    /// The medians of each peer, by round.
    pub(crate) peers: BTreeMap<String, Vec<f64>>,
    /// Why it was not timed.
    pub(crate) fault: Option<String>,
    /// The unit of its group, in nanoseconds.
    unit: Option<f64>,
    /// The time of what `per_step` is measured from.
    baseline: f64,
}

impl Row {
    pub(crate) fn new(case: &Case) -> Self {
        Row {
            name: case.name.clone(),
            goal: case.goal,
            per_step: case.per_step,
            ours: Vec::new(),
            peers: BTreeMap::new(),
            fault: None,
            unit: None,
            baseline: 0.0,
        }
    }

    /// Our time in nanoseconds.
    fn ns(&self) -> f64 {
        let steps = self.per_step.map_or(1, |(_, steps)| steps);
        (least(&self.ours) - self.baseline) / steps as f64
    }

    fn best_peer(&self) -> Option<(&str, f64)> {
        let times = self.peers.iter().map(|(peer, times)| (peer.as_str(), least(times)));
        times.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    fn noisy(&self) -> bool {
        let limit = NOISE * least(&self.ours);
        2 * self.ours.iter().filter(|&&ns| ns > limit).count() >= self.ours.len()
    }

    /// The target in words, what was reached in the same measure, and whether that is enough.
    fn verdict(&self) -> Option<(String, String, bool)> {
        let judged =
            |target: String, reached: String, value: f64, limit: f64| Some((target, reached, value <= limit));
        let ns = self.ns();
        match self.goal {
            Goal::Units(limit) => {
                let units = ns / self.unit?;
                judged(format!("{limit} units"), format!("{units:.1} units"), units, limit)
            }
            Goal::Nanoseconds(limit) => judged(time(limit), time(ns), ns, limit),
            Goal::OfTorch(limit) => self.relative("torch", least(self.peers.get("torch")?), limit),
            Goal::OfNumpy(limit) => self.relative("numpy", least(self.peers.get("numpy")?), limit),
            Goal::OfPeers(limit) => self.relative("the best peer", self.best_peer()?.1, limit),
            Goal::Unit | Goal::None => None,
        }
    }

    fn relative(&self, whom: &str, theirs: f64, limit: f64) -> Option<(String, String, bool)> {
        let ratio = self.ns() / theirs;
        Some((format!("{limit:.2} of {whom}"), format!("{ratio:.3} of {whom}"), ratio <= limit))
    }

    fn cells(&self) -> [String; 6] {
        if let Some(fault) = &self.fault {
            return [
                self.name.clone(),
                format!("FAILED: {fault}"),
                "".into(),
                "".into(),
                "".into(),
                "FAIL".into(),
            ];
        }
        let ours = time(self.ns()) + if self.noisy() { " ~" } else { "" };
        let (peer, ratio) = self.best_peer().map_or_else(Default::default, |(peer, ns)| {
            (format!("{} {peer}", time(ns)), format!("{:.2}", self.ns() / ns))
        });
        let (target, verdict) = self.verdict().map_or_else(Default::default, |(target, reached, pass)| {
            (format!("<= {target}"), format!("{} ({reached})", if pass { "pass" } else { "FAIL" }))
        });
        [self.name.clone(), ours, peer, ratio, target, verdict]
    }
}

fn least(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Gives the rows of a group the times of others that theirs are relative to.
pub(crate) fn settle(rows: &mut [Row]) {
    let unit = rows.iter().find(|r| matches!(r.goal, Goal::Unit)).map(|r| least(&r.ours));
    let times: BTreeMap<String, f64> = rows.iter().map(|r| (r.name.clone(), least(&r.ours))).collect();
    for row in rows {
        row.unit = unit;
        if let Some((name, _)) = row.per_step {
            row.baseline = times[name];
        }
    }
}

fn time(ns: f64) -> String {
    let (value, unit) = match ns {
        _ if ns < 1e3 => (ns, "ns"),
        _ if ns < 1e6 => (ns / 1e3, "us"),
        _ => (ns / 1e6, "ms"),
    };
    if value < 10.0 { format!("{value:.2} {unit}") } else { format!("{value:.1} {unit}") }
}

const HEADINGS: [&str; 6] = ["case", "ours", "best peer", "ratio", "target", "verdict"];

/// The table for a terminal.
pub(crate) fn text(rows: &[Row]) -> String {
    let mut lines = vec![HEADINGS.map(String::from)];
    lines.extend(rows.iter().map(Row::cells));
    let width = |k: usize| lines.iter().map(|l| l[k].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let line = |cells: &[String; 6]| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(c, w)| format!("{c:<w$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect::<String>() + &summary(rows) + "\n"
}

fn summary(rows: &[Row]) -> String {
    let verdicts: Vec<bool> =
        rows.iter().filter_map(|r| r.verdict().map(|v| v.2 && r.fault.is_none())).collect();
    let met = verdicts.iter().filter(|&&v| v).count();
    let faults = rows.iter().filter(|r| r.fault.is_some()).count();
    let noisy = rows.iter().filter(|r| r.noisy()).count();
    format!("{met} of {} targets met; {faults} wrong results; {noisy} rows noisy (~)", verdicts.len())
}

/// The table for the README, with the circumstances of the run.
pub(crate) fn markdown(rows: &[Row], machine: &str, peers: &[String], quick: bool) -> String {
    let row = |cells: &[String; 6]| format!("| {} |\n", cells.join(" | "));
    let mut out = format!("Machine: {machine}.  \n");
    out += &match peers {
        [] => "Without peers.  \n".to_owned(),
        peers => format!("Peers: {}.  \n", peers.join(", ")),
    };
    if quick {
        out += "A quick run, less exact.  \n";
    }
    out += &format!("{}.\n\n", summary(rows));
    out += &row(&HEADINGS.map(String::from));
    out += "|---|---:|---:|---:|---:|---|\n";
    out + &rows.iter().map(|r| row(&r.cells())).collect::<String>()
}

/// Puts the table between the marks in the README.
pub(crate) fn write(table: &str) -> Result<()> {
    let readme = fs::read_to_string(README)?;
    let (before, rest) =
        readme.split_once(BEGIN).ok_or("benchmarks/README.md has lost the mark before the table")?;
    let (_, after) = rest.split_once(END).ok_or("benchmarks/README.md has lost the mark after the table")?;
    Ok(fs::write(README, format!("{before}{BEGIN}{table}{END}{after}"))?)
}
