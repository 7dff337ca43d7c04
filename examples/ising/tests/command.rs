//! The command as its user meets it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn ising(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_ising"))
        .args(args)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

/// An empty folder of its own for each test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::remove_dir_all(&folder).ok();
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    folder
}

fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).expect("the folder can be read");
    let mut names: Vec<_> = names.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_prints_the_table_and_writes_the_files() {
    let folder = folder("run");
    let output = ising(
        &folder,
        &["--chi", "4", "--steps", "6", "--temperatures", "3", "--csv", "t.csv", "--plot", "p"],
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for temperature in ["1.60000", "2.26919", "3.20000"] {
        let rows = text.lines().filter(|line| line.trim_start().starts_with(temperature)).count();
        assert_eq!(rows, 1, "{temperature} in\n{text}");
    }
    assert!(text.contains("largest relative error") && text.contains("wrote t.csv, p.svg, p.png"), "{text}");
    assert!(output.stderr.is_empty(), "no progress bar outside a terminal");
    assert_eq!(files(&folder), ["p.png", "p.svg", "t.csv"]);
    assert_eq!(std::fs::read_to_string(folder.join("t.csv")).unwrap().lines().count(), 4);
}

#[test]
fn bad_options_exit_with_two_and_compute_nothing() {
    let folder = folder("bad_options");
    for args in [&["--chi", "0"][..], &["--mode", "lazy"], &["--nonsense"], &["--plot", "p.pdf"]] {
        let output = ising(&folder, args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert!(message.starts_with("ising: ") && message.contains(args[0]), "{message}");
        assert!(output.stdout.is_empty());
    }
    assert!(files(&folder).is_empty());
}

#[test]
fn a_file_that_cannot_be_written_is_reported_before_computing() {
    let folder = folder("unwritable");
    std::fs::create_dir(folder.join("taken.svg")).unwrap();
    for args in [["--csv", "missing/t.csv"], ["--plot", "taken"]] {
        let output = ising(&folder, &args);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{message}");
        assert!(message.contains("cannot write"), "{message}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(files(&folder), ["taken.svg"], "no file is left behind");
}

#[test]
fn help_goes_to_standard_output() {
    let output = ising(&folder("help"), &["--help"]);
    assert!(output.status.success() && output.stderr.is_empty());
    assert!(String::from_utf8(output.stdout).unwrap().contains("--temperatures"));
}
