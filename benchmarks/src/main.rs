//! Times the tiers of tenferro, beside NumPy, PyTorch and JAX if there is a Python that has them.
//!
//! All run on one core, in turn: a round asks our side and then each peer about every case, so that a disturbance of
//! the machine meets all of them. A round takes half a minute: a disturbance that lasts a while spoils a few rounds of
//! all cases, not all rounds of a few. A time is the least over the rounds of a round's median; ratios are only formed of
//! times of one run. A case whose result is wrong is not timed.

mod cases;
mod machine;
mod peers;
mod report;
mod subject;

use cases::Case;
use peers::Peers;
use report::Row;
use std::{io::IsTerminal, path::PathBuf, process::ExitCode, time::Duration};

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

const USAGE: &str = "\
Usage: cargo run --release -p benchmarks -- [OPTIONS]

Options:
  --peers PYTHON   also time NumPy, PyTorch and JAX with this Python, which has them
  --quick          two rounds of 20 ms a case instead of ten of 50 ms
  --only TEXT      only the groups with a case whose name contains TEXT
  --write          put the table into benchmarks/README.md
";

#[derive(Default)]
struct Options {
    peers: Option<PathBuf>,
    quick: bool,
    only: String,
    write: bool,
}

fn options() -> Result<Option<Options>> {
    use lexopt::{Arg, ValueExt};
    let mut found = Options::default();
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("peers") => found.peers = Some(parser.value()?.into()),
            Arg::Long("quick") => found.quick = true,
            Arg::Long("only") => found.only = parser.value()?.string()?,
            Arg::Long("write") => found.write = true,
            Arg::Short('h') | Arg::Long("help") => return Ok(None),
            arg => return Err(arg.unexpected().into()),
        }
    }
    if found.write && !found.only.is_empty() {
        return Err("--write publishes the whole table: not with --only".into());
    }
    Ok(Some(found))
}

fn main() -> ExitCode {
    match options().and_then(|o| match o {
        Some(o) => run(&o),
        None => {
            print!("{USAGE}");
            Ok(())
        }
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("benchmarks: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<()> {
    let load = machine::load();
    let core = machine::pin()?;
    let mut peers = options.peers.as_deref().map(|python| Peers::start(python, core)).transpose()?;
    let (rounds, budget) = if options.quick { (2, 20) } else { (10, 50) };
    let mut groups = Vec::new();
    for mut group in cases::groups()? {
        if group.iter().any(|c| c.name.contains(&options.only)) {
            let rows = admit(&mut group, peers.as_mut())?;
            groups.push((group, rows));
        }
    }
    for _ in 0..rounds {
        for (group, rows) in &mut groups {
            measure(group, rows, peers.as_mut(), Duration::from_millis(budget))?;
        }
    }
    let mut rows = Vec::new();
    for (_, mut group) in groups {
        report::settle(&mut group);
        rows.extend(group);
    }
    progress("");
    let versions = peers.as_ref().map_or(&[][..], Peers::identities);
    print!("{}", report::text(&rows));
    if options.write {
        report::write(&report::markdown(&rows, &machine::describe(&load), versions, options.quick))?;
    }
    match rows.iter().filter(|row| row.fault.is_some()).count() {
        0 => Ok(()),
        wrong => Err(format!("{wrong} wrong results").into()),
    }
}

/// What is at work now, on one line of a terminal.
fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{what}");
    }
}

/// Gives the peers the cases of a group, and checks the results.
fn admit(group: &mut [Case], mut peers: Option<&mut Peers>) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = group.iter().map(Row::new).collect();
    for (case, row) in group.iter_mut().zip(&mut rows) {
        progress(&case.name);
        if let (Some(name), Some(peers)) = (&case.peer, peers.as_deref_mut()) {
            peers.give(name, &case.operands)?;
        }
        row.fault = check(case, peers.as_deref_mut()).err().map(|e| e.to_string());
    }
    Ok(rows)
}

/// A round over a group.
fn measure(
    group: &mut [Case],
    rows: &mut [Row],
    mut peers: Option<&mut Peers>,
    budget: Duration,
) -> Result<()> {
    for (case, row) in group.iter_mut().zip(rows).filter(|(_, row)| row.fault.is_none()) {
        progress(&case.name);
        row.ours.push(subject::median_ns(&mut *case.subject, budget));
        if let (Some(name), Some(peers)) = (&case.peer, peers.as_deref_mut()) {
            for (peer, ns) in peers.ask(name, budget)? {
                row.peers.entry(peer).or_default().push(ns);
            }
        }
    }
    Ok(())
}

/// Whether a case gives what plain arithmetic and the peers give.
fn check(case: &mut Case, peers: Option<&mut Peers>) -> Result<()> {
    let values = case.subject.values()?;
    if let Some(expected) = &case.expected {
        let close = |a: &f64, b: &f64| (a - b).abs() <= 1e-12 * (1.0 + b.abs());
        if values.len() != expected.len() || !values.iter().zip(expected).all(|(a, b)| close(a, b)) {
            return Err("the result is wrong".into());
        }
    }
    if let (Some(name), Some(peers)) = (&case.peer, peers) {
        let ours: f64 = values.iter().enumerate().map(|(i, v)| v * (i as f64).cos()).sum();
        for (peer, theirs) in peers.ask(name, Duration::ZERO)? {
            if (ours - theirs).abs() > 1e-8 * ours.abs().max(1.0) {
                return Err(format!("{peer} gives another result: {theirs}, ours is {ours}").into());
            }
        }
    }
    Ok(())
}
