//! Replays the reference values of the folder that `TENFERRO_ORACLES` names, and prints a table of how many
//! records of every family were replayed, skipped (and why) or failed. Without the variable it passes and
//! says so; a folder that is not there, or that holds nothing to replay, is a failure.
//!
//! A family is replayed by an adapter, a function from the arguments of a record to the outputs of the
//! operation; see [`args`]. A family of which nothing is replayed fails unless [`pending`] says why, so that
//! nothing is left out silently. `TENFERRO_ORACLES_TABLE` names a file for the table as Markdown.

mod args;
mod bugs;
mod check;
mod einsum;
mod elementwise;
mod index;
mod json;
mod layout;
mod linalg;
mod matrices;
mod pending;
mod pivots;
mod products;
mod record;
mod reductions;
mod table;

use args::Adapter;
use check::Outcome;
use libtest_mimic::{Arguments, FormatSetting, Trial};
use record::Record;
use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::Arc,
};
use table::{Row, Table};

fn main() {
    let mut args = Arguments::from_args();
    if args.filter.is_none() && !args.list {
        args.format.get_or_insert(FormatSetting::Terse);
    }
    let folder = std::env::var_os("TENFERRO_ORACLES").map(std::path::PathBuf::from);
    let Some(folder) = folder else {
        println!("oracles: skipped, TENFERRO_ORACLES names no folder of reference values");
        return;
    };
    let table = Arc::new(Table::default());
    let trials = match trials(&folder, &table) {
        Ok(trials) => trials,
        Err(e) => {
            eprintln!("oracles: TENFERRO_ORACLES is {folder:?}, which is no folder of reference values: {e}");
            std::process::exit(1);
        }
    };
    let conclusion = libtest_mimic::run(&args, trials);
    if !args.list {
        print!("{}", table.text());
        if let Some(path) = std::env::var_os("TENFERRO_ORACLES_TABLE")
            && args.filter.is_none()
            && let Err(e) = std::fs::write(&path, table.markdown())
        {
            eprintln!("oracles: {}: {e}", path.display());
            std::process::exit(1);
        }
    }
    conclusion.exit();
}

/// A step of a trial: one record, with its name for the report.
type Step = Box<dyn Fn() -> Outcome + Send>;

fn trial(table: &Arc<Table>, source: &'static str, family: String, steps: Vec<Step>) -> Trial {
    let table = table.clone();
    Trial::test(format!("{source}::{family}"), move || {
        let mut row = Row::new(source, &family);
        let mut failures = vec![];
        for step in steps {
            match catch_unwind(AssertUnwindSafe(&step)) {
                Ok(Outcome::Replayed) => row.replayed += 1,
                Ok(Outcome::Skipped(reason)) => *row.skipped.entry(reason).or_default() += 1,
                Ok(Outcome::Failed(e)) => failures.push(e),
                Err(_) => failures.push("panic".to_string()),
            }
        }
        row.failed = failures.len();
        if failures.is_empty()
            && let Err(e) = pending::check(&family, row.replayed)
        {
            failures.push(e);
        }
        table.add(row);
        if failures.is_empty() { Ok(()) } else { Err(failures.join("\n").into()) }
    })
}

fn trials(folder: &Path, table: &Arc<Table>) -> Result<Vec<Trial>, String> {
    let mut trials = families(folder, table)?;
    trials.push(trial(table, "einsum_cases", "einsum".into(), einsum::steps(folder)?));
    trials.push(trial(table, "matrix_families", "matrices".into(), matrices::steps(folder)?));
    let fft = json::lines(&folder.join("fft_cases.jsonl.gz"))?;
    let reason = pending::reason("fft").unwrap_or("no adapter");
    let skip = |_| -> Step { Box::new(|| Outcome::Skipped(reason.into())) };
    trials.push(trial(table, "fft_cases", "fft".into(), fft.into_iter().map(skip).collect()));
    for (id, steps) in bugs::steps(folder)? {
        trials.push(trial(table, "bug_reports", id, steps));
    }
    Ok(trials)
}

/// The adapter of a family, or why it has none.
fn adapter(family: &str) -> Result<Adapter, String> {
    let lists = [
        elementwise::FAMILIES,
        reductions::FAMILIES,
        layout::FAMILIES,
        index::FAMILIES,
        products::FAMILIES,
        linalg::FAMILIES,
    ];
    let named = |names: &str| names.split(' ').any(|name| name == family);
    let found = lists.into_iter().flatten().find(|(names, _)| named(names));
    found.map(|(_, adapter)| *adapter).ok_or_else(|| pending::reason(family).unwrap_or("no adapter").into())
}

/// The families of tensor-ad-oracles, a file each, and of the supplement.
fn families(folder: &Path, table: &Arc<Table>) -> Result<Vec<Trial>, String> {
    type Parse = fn(&serde_json::Value) -> Result<Record, String>;
    let mut found: BTreeMap<(&'static str, String), (Parse, Vec<serde_json::Value>)> = BTreeMap::new();
    let database = folder.join("tensor-ad-oracles");
    let entries = database.read_dir().map_err(|e| format!("{}: {e}", database.display()))?;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".jsonl.gz") {
            let family = stem.strip_suffix("__identity").unwrap_or(stem).to_string();
            found.insert(("tensor-ad-oracles", family), (Record::database, json::lines(&entry.path())?));
        }
    }
    if found.is_empty() {
        return Err(format!("{}: no files of records", database.display()));
    }
    for v in json::lines(&folder.join("torch_opinfo_supplement.jsonl.gz"))? {
        let text = |name: &str| v.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        let (op, variant) = (text("op"), text("variant"));
        let op = op.strip_prefix("linalg.").unwrap_or(op);
        let family = if variant.is_empty() { op.to_string() } else { format!("{op}/{variant}") };
        found.entry(("supplement", family)).or_insert((Record::supplement, vec![])).1.push(v);
    }
    let trials = found.into_iter().map(|((source, family), (parse, records))| {
        let adapter = adapter(&family);
        let step = |v: serde_json::Value| -> Step {
            let adapter = adapter.clone();
            Box::new(move || match (parse(&v), &adapter) {
                (_, Err(reason)) => Outcome::Skipped(reason.clone()),
                (Ok(record), Ok(adapter)) => check::replay(record, *adapter),
                (Err(e), _) => Outcome::Failed(e),
            })
        };
        let steps = records.into_iter().map(step).collect();
        trial(table, source, family, steps)
    });
    Ok(trials.collect())
}
