//! The command `ising`: solves the model at every temperature and writes the table and the plot.
//!
//! Invariant: options and output files are checked before anything is computed, and a run that fails on the
//! way leaves the files as they were.

use indicatif::{ProgressBar, ProgressStyle};
use ising::comparison::Comparison;
use ising::options::{self, Options};
use ising::{csv, plot, report, temperatures, trg};
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args_os().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return finish(io::stdout().write_all(options::HELP.as_bytes()).map_err(Into::into)),
        Err(error) => return usage_error(&error),
    };
    match options.outputs().try_for_each(check_writable) {
        Ok(()) => finish(run(&options)),
        Err(error) => usage_error(&error),
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let mut solve = trg::solver(options.mode, options.chi, options.steps)?;
    let mut out = io::stdout();
    writeln!(out, "{}", report::header(options))?;

    let bar = ProgressBar::new(options.temperatures as u64).with_style(
        ProgressStyle::with_template("{bar:40} {pos}/{len} temperatures, {elapsed}, {eta} left")
            .expect("the template is well formed"),
    );
    bar.enable_steady_tick(Duration::from_millis(250));
    let mut rows = Vec::with_capacity(options.temperatures);
    for t in temperatures::temperatures(options.temperatures) {
        let comparison = Comparison::new(solve(t)?);
        if comparison.quantities().iter().any(|quantity| !quantity.computed.is_finite()) {
            return Err(format!("a result at T = {t} is not finite: {}", report::row(&comparison)).into());
        }
        bar.suspend(|| writeln!(out, "{}", report::row(&comparison)))?;
        rows.push(comparison);
        bar.inc(1);
    }
    bar.finish_and_clear();
    writeln!(out, "\n{}", report::summary(&rows, start.elapsed()))?;

    if let Some(path) = &options.csv {
        let mut file = BufWriter::new(File::create(path).map_err(|error| cannot_write(path, error))?);
        csv::write(&mut file, &rows).map_err(|error| cannot_write(path, error))?;
    }
    plot::write(options, &rows)?;
    let written: Vec<_> = options.outputs().map(|path| path.display().to_string()).collect();
    writeln!(out, "wrote {}", written.join(", "))?;
    Ok(())
}

/// Fails if `path` cannot be opened for writing; leaves a file that exists as it is and makes none.
fn check_writable(path: &Path) -> Result<(), Box<dyn Error>> {
    let opened = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            OpenOptions::new().write(true).open(path).map(drop)
        }
        Err(error) => Err(error),
    };
    opened.map_err(|error| cannot_write(path, error))
}

fn cannot_write(path: &Path, error: io::Error) -> Box<dyn Error> {
    format!("cannot write {}: {error}", path.display()).into()
}

fn usage_error(error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("ising: {error}\nTry 'ising --help'.");
    ExitCode::from(2)
}

/// A reader that closes standard output early has seen what it wanted.
fn finish(result: Result<(), Box<dyn Error>>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    let closed = error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe);
    if closed {
        return ExitCode::SUCCESS;
    }
    eprintln!("ising: {error}");
    ExitCode::FAILURE
}
