//! The table of what was replayed.

use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Mutex, PoisonError},
};

const HEAD: &str = "\
# Outside oracles

Written by `cargo xtask oracle-table`, which replays reference values that the project's own code did not produce; see
CONTRIBUTING.md. A record is replayed when its value, JVP, VJP and, where it has one, HVP were compared with the
reference, eager and traced. The records of tensor-ad-oracles have no values: there the value is only the same in all
ways. A family that is no operation is replayed through a composition of operations.

The records of `lu_solve` lack the permutation of the factors: it is taken from the cotangent of the right-hand side, as
the one of all permutations that agrees with it, and everything else is then compared as always.
";

/// A family: how many of its records went which way.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    source: &'static str,
    family: String,
    pub(crate) replayed: usize,
    /// By reason.
    pub(crate) skipped: BTreeMap<String, usize>,
    pub(crate) failed: usize,
}

impl Row {
    pub(crate) fn new(source: &'static str, family: &str) -> Row {
        Row { source, family: family.to_string(), replayed: 0, skipped: BTreeMap::new(), failed: 0 }
    }

    fn skips(&self) -> usize {
        self.skipped.values().sum()
    }

    fn reasons(&self) -> String {
        let one = |(reason, n): (&String, &usize)| {
            if self.skipped.len() == 1 { reason.clone() } else { format!("{n}: {reason}") }
        };
        self.skipped.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// The rows of all families, which trials add in any order.
#[derive(Debug, Default)]
pub(crate) struct Table(Mutex<Vec<Row>>);

impl Table {
    pub(crate) fn add(&self, row: Row) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(row);
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        rows.sort_by(|a, b| (a.source, &a.family).cmp(&(b.source, &b.family)));
        rows
    }

    /// Rows for the sources and for everything.
    fn totals(rows: &[Row]) -> Vec<Row> {
        let mut totals: Vec<Row> = vec![];
        for row in rows {
            if totals.last().is_none_or(|t| t.source != row.source) {
                totals.push(Row::new(row.source, "all"));
            }
            let t = totals.last_mut().expect("one was pushed");
            t.replayed += row.replayed;
            t.failed += row.failed;
            *t.skipped.entry(String::new()).or_default() += row.skips();
        }
        totals
    }

    /// For a terminal.
    pub(crate) fn text(&self) -> String {
        let rows = self.rows();
        let mut out = format!("\n{:>8} {:>8} {:>8}  family\n", "replayed", "skipped", "failed");
        for r in rows.iter().chain(&Self::totals(&rows)) {
            let reasons = r.reasons();
            let why = if reasons.is_empty() { String::new() } else { format!("  ({reasons})") };
            let (source, family) = (r.source, &r.family);
            let _ =
                writeln!(out, "{:>8} {:>8} {:>8}  {source}::{family}{why}", r.replayed, r.skips(), r.failed);
        }
        out
    }

    /// For docs/oracles.md.
    pub(crate) fn markdown(&self) -> String {
        let rows = self.rows();
        let mut out = format!("{HEAD}\n| source | replayed | skipped | failed |\n|---|---:|---:|---:|\n");
        for r in Self::totals(&rows) {
            let _ = writeln!(out, "| {} | {} | {} | {} |", r.source, r.replayed, r.skips(), r.failed);
        }
        out += "\n| source | family | replayed | skipped | failed | why skipped |\n|---|---|---:|---:|---:|---|\n";
        for r in &rows {
            let (n, s, f) = (r.replayed, r.skips(), r.failed);
            let _ = writeln!(out, "| {} | `{}` | {n} | {s} | {f} | {} |", r.source, r.family, r.reasons());
        }
        out
    }
}
