//! `cargo xtask CHORE`: the project's chores, each a short list of commands that are printed as they run.
//!
//! Everything that runs numbers is built in the release profile, which the example and the benchmarks share:
//! a build folder then holds one optimised copy of each dependency.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

const USAGE: &str = "\
Usage: cargo xtask CHORE

Chores:
  check           formatting and lints, warnings denied, of every choice of provider
  test            every test and documentation example
  memcheck        the tests of the unsafe memory code under valgrind
  docs            the API documentation, warnings denied, and every tutorial program
  blas            the conformance suite and the BLAS program on the system's OpenBLAS
  oracles         a replay of the folder that TENFERRO_ORACLES names, which docs/oracles.md must tell
  op-table        docs/operations.md, from the list of operations
  oracle-table    docs/oracles.md, by a replay of the folder that TENFERRO_ORACLES names
  bench [ARGS]    the benchmarks; ARGS go to them
";

/// The tutorial programs: a workspace of its own, as a user of the published crates would have.
const TUTORIAL: &str = "docs/tutorial-code/Cargo.toml";

type Done = Result<(), String>;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let chore = args.next().unwrap_or_default();
    let rest: Vec<OsString> = args.collect();
    let done = match (chore.to_str(), rest.is_empty()) {
        (Some("check"), true) => check(),
        (Some("test"), true) => test(),
        (Some("memcheck"), true) => memcheck(),
        (Some("docs"), true) => docs(),
        (Some("blas"), true) => blas(),
        (Some("oracles"), true) => oracles(),
        (Some("op-table"), true) => op_table(),
        (Some("oracle-table"), true) => oracle_table(),
        (Some("bench"), _) => cargo("run --release --package benchmarks --").args(rest).finish(),
        (Some("-h" | "--help" | "help"), true) => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Done {
    cargo("fmt --all --check").finish()?;
    cargo("clippy --release --workspace --all-targets -- --deny warnings").finish()?;
    // Without a provider of matrix products, and with one that is linked.
    cargo("clippy --release --package tenferro-cpu --lib --no-default-features -- --deny warnings")
        .finish()?;
    cargo("clippy --release --package tenferro-cpu --package tenferro-internal-dense --lib")
        .args([
            "--features",
            "tenferro-cpu/cpu-blas,tenferro-internal-dense/blas",
            "--",
            "--deny",
            "warnings",
        ])
        .finish()?;
    tutorial("fmt --check").finish()?;
    tutorial("clippy --release --all-targets -- --deny warnings").finish()
}

fn test() -> Done {
    cargo("test --release --workspace").finish()?;
    // All unsafe memory code lives here: once more with the checks that the release profile leaves out.
    cargo("test --package tenferro-tensor --lib --tests").finish()
}

/// Reads and writes outside of allocations, reads of what was never written, and leaks. Few cases of each property:
/// valgrind is slow.
fn memcheck() -> Done {
    let runner = "target.'cfg(unix)'.runner=['valgrind', '--quiet', '--error-exitcode=1', '--leak-check=full', \
                  '--show-leak-kinds=definite,indirect', '--errors-for-leak-kinds=definite,indirect']";
    cargo("test --package tenferro-tensor --lib --tests")
        .args(["--config", runner])
        .env("PROPTEST_CASES", "16")
        .finish()
}

fn docs() -> Done {
    cargo("doc --release --workspace --no-deps").env("RUSTDOCFLAGS", "--deny warnings").finish()?;
    for program in tutorial_programs()? {
        tutorial("run --release").args(["--bin".into(), program]).finish()?;
    }
    Ok(())
}

/// Through function pointers, which needs no other build of the tests; and linked. The library is that of the
/// environment variable TENFERRO_BLAS, or the system's.
///
/// One test at a time, so that two runs of a test get the same bits: OpenBLAS 0.3.21 returns NaN for some of the
/// matrices that `ssyevd` diagonalises while `dsyevd` runs in another thread. The kernels see that and do the work
/// themselves, which changes rounding errors.
fn blas() -> Done {
    let library = std::env::var_os("TENFERRO_BLAS").unwrap_or_else(|| "libopenblas.so.0".into());
    cargo("test --release --workspace --test conformance --test blas -- --test-threads 1")
        .env("TENFERRO_BLAS", library)
        .finish()?;
    // Flags of this program alone, so that its dependencies are those of the other programs. As arguments of
    // the linker they come last, after the crates whose symbols they have.
    tutorial("rustc --release --no-default-features --features cpu-blas --bin blas_interop")
        .args(["--", "-C", "link-arg=-lopenblas", "-C", "link-arg=-llapack"])
        .finish()?;
    run(Command::new(target().join("release").join("blas_interop")))
}

fn op_table() -> Done {
    let table = cargo("run --release --package tenferro-testing --example op-table").output()?;
    let path = root().join("docs").join("operations.md");
    std::fs::write(&path, table).map_err(|error| format!("{}: {error}", path.display()))
}

fn oracle_table() -> Done {
    replay(&root().join("docs").join("oracles.md"))
}

fn oracles() -> Done {
    let (path, table) = (root().join("docs").join("oracles.md"), target().join("oracles.md"));
    replay(&table)?;
    let read =
        |path: &Path| std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let (written, now) = (read(&path)?, read(&table)?);
    if written == now {
        return Ok(());
    }
    let differs = written.lines().zip(now.lines()).position(|(a, b)| a != b);
    let line = differs.unwrap_or_else(|| written.lines().count().min(now.lines().count()));
    let [is, should] = [&written, &now].map(|text| text.lines().nth(line).unwrap_or("nothing"));
    Err(format!(
        "{} is stale at line {}:\n  it has    {is}\n  should be {should}\n\
         write it by `TENFERRO_ORACLES=FOLDER cargo xtask oracle-table`",
        path.display(),
        line + 1
    ))
}

/// Replays the outside reference values, with the table going to a file.
fn replay(table: &Path) -> Done {
    if std::env::var_os("TENFERRO_ORACLES").is_none() {
        return Err("TENFERRO_ORACLES is to name the folder of reference values".into());
    }
    cargo("test --release --workspace --test oracles").env("TENFERRO_ORACLES_TABLE", table).finish()
}

/// The names of the tutorial programs, which are the files of its `src/bin`.
fn tutorial_programs() -> Result<Vec<OsString>, String> {
    let folder = root().join(TUTORIAL).with_file_name("src").join("bin");
    let entries = folder.read_dir().map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut programs: Vec<OsString> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| path.file_stem().map(OsString::from))
        .filter(|program| program != "blas_interop") // needs a library: `blas` runs it
        .collect();
    programs.sort();
    Ok(programs)
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is a folder of the workspace")
}

/// The folder of builds.
fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |path| root().join(path))
}

/// A cargo command in the workspace, its words separated by spaces.
fn cargo(words: &str) -> Chore {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(words.split(' '));
    Chore(command)
}

/// A cargo command on the tutorial programs, in the workspace's build folder: dependencies are built once.
fn tutorial(words: &str) -> Chore {
    let (verb, rest) = words.split_once(' ').expect("a verb and its options");
    cargo(verb).args(["--manifest-path", TUTORIAL]).args(rest.split(' ')).env("CARGO_TARGET_DIR", target())
}

fn run(mut command: Command) -> Done {
    let name = command.get_program().to_string_lossy().into_owned();
    eprintln!("$ {name}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{name}: {status}")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

struct Chore(Command);

impl Chore {
    fn args(mut self, args: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        self.0.args(args.into_iter().map(Into::into));
        self
    }

    fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.0.env(name, value.into());
        self
    }

    fn finish(mut self) -> Done {
        let words = self.said();
        let status = self.0.status().map_err(|error| format!("cargo {words}: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("cargo {words}: {status}")) }
    }

    /// What it prints.
    fn output(mut self) -> Result<Vec<u8>, String> {
        let words = self.said();
        let output = self.0.stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cargo {words}: {error}"))?;
        if output.status.success() {
            Ok(output.stdout)
        } else {
            Err(format!("cargo {words}: {}", output.status))
        }
    }

    fn said(&self) -> String {
        let words = self.0.get_args().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        eprintln!("$ cargo {words}");
        words
    }
}
