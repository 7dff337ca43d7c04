//! The command line.

use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// What `--help` prints.
pub const HELP: &str = "\
Thermodynamics of the square-lattice Ising model by a differentiable tensor renormalization group:
ln Z, its first derivative (energy) and its second (specific heat) beside Onsager's exact values.

Usage: ising [OPTIONS]

Options:
      --chi N            largest bond dimension kept by a truncation [16]
      --steps N          coarse-graining steps, each halving the number of tensors [30]
      --temperatures N   temperatures from 1.6 to 3.2, the critical one among them [21]
      --mode MODE        traced: compile once, run at every temperature; eager: op by op [traced]
      --csv FILE         also write the table to FILE
      --plot FILE        write the plot to FILE, as .svg and as .png [ising.svg]
  -h, --help             print this text
";

/// How derivatives are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Operations run as they are called and are recorded on a tape.
    Eager,
    /// One program is compiled and run at every temperature.
    Traced,
}

impl Mode {
    /// The word of the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Eager => "eager",
            Mode::Traced => "traced",
        }
    }
}

/// Everything a run needs to know.
#[derive(Debug, PartialEq)]
pub struct Options {
    /// Largest bond dimension kept.
    pub chi: usize,
    /// Number of coarse-graining steps.
    pub steps: usize,
    /// Number of temperatures.
    pub temperatures: usize,
    /// How derivatives are taken.
    pub mode: Mode,
    /// Where the table goes, if anywhere.
    pub csv: Option<PathBuf>,
    /// Where the vector plot goes.
    pub svg: PathBuf,
    /// Where the bitmap plot goes.
    pub png: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            chi: 16,
            steps: 30,
            temperatures: 21,
            mode: Mode::Traced,
            csv: None,
            svg: "ising.svg".into(),
            png: "ising.png".into(),
        }
    }
}

impl Options {
    /// Reads the arguments that follow the program's name; `None` when they ask for help.
    pub fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Option<Options>, lexopt::Error> {
        let mut options = Options::default();
        let mut args = Parser::from_args(args);
        while let Some(arg) = args.next()? {
            match arg {
                Arg::Short('h') | Arg::Long("help") => return Ok(None),
                Arg::Long("chi") => options.chi = number(&mut args, "--chi", 2..=128)?,
                Arg::Long("steps") => options.steps = number(&mut args, "--steps", 1..=100)?,
                Arg::Long("temperatures") => {
                    options.temperatures = number(&mut args, "--temperatures", 1..=10_000)?;
                }
                Arg::Long("mode") => {
                    let word = args.value()?.string()?;
                    options.mode = [Mode::Eager, Mode::Traced]
                        .into_iter()
                        .find(|mode| mode.name() == word)
                        .ok_or(format!("--mode: got {word:?}, expected eager or traced"))?;
                }
                Arg::Long("csv") => options.csv = Some(args.value()?.into()),
                Arg::Long("plot") => (options.svg, options.png) = plot_files(args.value()?.into())?,
                other => return Err(other.unexpected()),
            }
        }
        match &options.csv {
            Some(csv) if *csv == options.svg || *csv == options.png => {
                Err(format!("--csv: {} is also a file of the plot", csv.display()).into())
            }
            _ => Ok(Some(options)),
        }
    }

    /// Every file the run will write.
    pub fn outputs(&self) -> impl Iterator<Item = &Path> {
        self.csv.iter().chain([&self.svg, &self.png]).map(PathBuf::as_path)
    }
}

fn number(args: &mut Parser, name: &str, range: RangeInclusive<usize>) -> Result<usize, lexopt::Error> {
    let text = args.value()?.string()?;
    text.parse().ok().filter(|n| range.contains(n)).ok_or_else(|| {
        format!("{name}: got {text:?}, expected a whole number from {} to {}", range.start(), range.end())
            .into()
    })
}

/// `FILE.svg` and `FILE.png` for a `FILE` that has either extension or none.
fn plot_files(file: PathBuf) -> Result<(PathBuf, PathBuf), lexopt::Error> {
    let extension = file.extension().map(|e| e.to_ascii_lowercase());
    let known = extension.as_ref().is_none_or(|e| e == "svg" || e == "png");
    if !known || file.file_name().is_none() {
        return Err(
            format!("--plot: got {:?}, expected a file name ending in .svg, .png or neither", file).into()
        );
    }
    Ok((file.with_extension("svg"), file.with_extension("png")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Option<Options>, String> {
        Options::parse(line.split_whitespace().map(OsString::from)).map_err(|e| e.to_string())
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        assert_eq!(parse(""), Ok(Some(Options::default())));
        for documented in ["[16]", "[30]", "[21]", "[traced]", "[ising.svg]"] {
            assert!(HELP.contains(documented), "{documented}");
        }
    }

    #[test]
    fn every_option_is_read() {
        let line = "--chi 8 --steps=5 --temperatures 3 --mode eager --csv t.csv --plot out/p.png";
        let expected = Options {
            chi: 8,
            steps: 5,
            temperatures: 3,
            mode: Mode::Eager,
            csv: Some("t.csv".into()),
            svg: "out/p.svg".into(),
            png: "out/p.png".into(),
        };
        assert_eq!(parse(line), Ok(Some(expected)));
        assert_eq!(parse("--chi 8 --help"), Ok(None));
    }

    #[test]
    fn bad_options_are_named() {
        for (line, message) in [
            ("--chi 1", "--chi: got \"1\", expected a whole number from 2 to 128"),
            ("--chi=-3", "--chi: got \"-3\""),
            ("--steps many", "--steps: got \"many\""),
            ("--temperatures 0", "--temperatures: got \"0\""),
            ("--mode lazy", "--mode: got \"lazy\", expected eager or traced"),
            ("--plot ising.pdf", "--plot: got \"ising.pdf\""),
            ("--csv a.svg --plot a", "--csv: a.svg is also a file of the plot"),
            ("--chi", "missing argument for option '--chi'"),
            ("--beta 1", "invalid option '--beta'"),
            ("extra", "unexpected argument \"extra\""),
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains(message), "{line}: {error}");
        }
    }
}
