//! The list of operations is complete.

use super::{Completeness, LOOPS, Outcome, all};
use crate::{info::OpInfo, run};
use std::{collections::BTreeSet, path::Path};

/// Checks of the list as a whole.
pub const COMPLETENESS: &[Completeness] = &[
    Completeness { name: "every_primitive_has_samples", check: every_primitive },
    Completeness { name: "every_operation_has_a_derivative_status", check: derivative_status },
    Completeness { name: "every_operation_is_listed_in_full", check: listed_in_full },
    Completeness { name: "skips_name_loops", check: skips },
    Completeness { name: "names_are_distinct", check: names },
    Completeness { name: "the_table_in_the_documents_is_current", check: documented },
];

fn documented(infos: &[OpInfo]) -> Outcome {
    let kept = include_str!("../../../../docs/operations.md");
    if kept == crate::table(infos) {
        Ok(())
    } else {
        Err("docs/operations.md: run `cargo xtask op-table`".into())
    }
}

/// What the core exports beside operations: parameters of them.
const PARAMETERS: &[&str] = &["Relation", "Step", "Translated"];

/// The source that lists the core operations.
const EXPORTS: &str = include_str!("../../../tenferro-core-ops/src/ops/mod.rs");

/// The types that `pub use module::{A, B};` lines name.
fn exported() -> BTreeSet<&'static str> {
    let lines = EXPORTS.lines().filter_map(|l| l.strip_prefix("pub use ")?.strip_suffix(';'));
    let names = lines.flat_map(|l| l.rsplit("::").next().unwrap_or(l).trim_matches(['{', '}']).split(", "));
    names.filter(|n| !PARAMETERS.contains(n)).collect()
}

/// Crates beside the core that define operations, in the folder of crates.
const CRATES: &[&str] = &["tenferro-linalg", "tenferro-einsum"];

/// The types that the sources under `folder` implement `Primitive` for, outside of tests.
fn implemented(folder: &Path, found: &mut BTreeSet<String>) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            implemented(&path, found)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).map_err(failed)?;
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let names = code.lines().filter_map(|l| l.trim().strip_prefix("impl Primitive for "));
            found.extend(names.map(|n| n.trim_end_matches([' ', '{']).to_string()));
        }
    }
    Ok(())
}

fn every_primitive(infos: &[OpInfo]) -> Outcome {
    // The Debug form of an operation begins with its type.
    let type_of = |debug: String| debug.split([' ', '{', '(']).next().unwrap_or_default().to_string();
    let sampled: BTreeSet<String> = infos
        .iter()
        .flat_map(|i| &i.samples)
        .filter_map(|s| run::primitive(&s.call, &s.inputs))
        .map(|op| type_of(format!("{op:?}")))
        .collect();
    let exported = exported();
    if exported.len() < 40 {
        return Err(format!("only {} operations found in the list of the core", exported.len()));
    }
    let mut names: BTreeSet<String> = exported.into_iter().map(String::from).collect();
    for name in CRATES {
        let (before, crates) = (names.len(), Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        implemented(&crates.join(name).join("src"), &mut names)?;
        if names.len() == before {
            return Err(format!("no operations found in {name}"));
        }
    }
    all(names.into_iter().map(|name| {
        if sampled.contains(&name) { Ok(()) } else { Err(format!("{name} has no sample in any OpInfo")) }
    }))
}

/// An operation is differentiable and checked to be at a smooth point of f64 and, if it takes them, complex
/// numbers, or is stated not to be.
fn derivative_status(infos: &[OpInfo]) -> Outcome {
    all(infos.iter().map(|i| {
        let complex = |a: &crate::Array| a.dtype.is_complex();
        let smooth = |f: &dyn Fn(&crate::info::Sample) -> bool| {
            let floats = |s: &crate::info::Sample| s.inputs.iter().any(|a| a.dtype.is_differentiable());
            i.samples.iter().any(|s| s.smooth && s.double() && floats(s) && f(s))
        };
        let takes_complex = i.samples.iter().any(|s| s.inputs.iter().any(complex));
        let inputs = i.samples.iter().any(|s| !s.inputs.is_empty());
        if i.order > 0 && inputs && !smooth(&|_| true) {
            Err(format!("{}: no smooth sample", i.name))
        } else if i.order > 0 && takes_complex && !smooth(&|s| s.inputs.iter().any(complex)) {
            Err(format!("{}: no smooth complex sample", i.name))
        } else {
            Ok(())
        }
    }))
}

/// An operation has a stated error, a call with symbolic extents and methods, or says why it has none.
fn listed_in_full(infos: &[OpInfo]) -> Outcome {
    type Part = (&'static str, fn(&OpInfo) -> bool);
    let parts: [Part; 3] = [
        ("errors", |i| !i.errors.is_empty()),
        ("symbolic", |i| !i.symbolic.is_empty()),
        ("surfaces", |i| i.samples.iter().any(|s| s.surface.is_some())),
    ];
    all(infos.iter().flat_map(|i| {
        parts.map(|(name, has)| {
            let skipped = i.skips.iter().any(|(skip, _)| *skip == name);
            if has(i) || skipped {
                Ok(())
            } else {
                Err(format!("{}: no {name}, and no reason for it", i.name))
            }
        })
    }))
}

fn skips(infos: &[OpInfo]) -> Outcome {
    let known = |name: &str| LOOPS.iter().any(|l| l.name == name) || ["zero_size", "rank_0"].contains(&name);
    all(infos.iter().flat_map(|i| i.skips.iter().map(move |s| (i, s))).map(|(i, (name, why))| {
        if known(name) && !why.is_empty() { Ok(()) } else { Err(format!("{} skips {name}: {why:?}", i.name)) }
    }))
}

fn names(infos: &[OpInfo]) -> Outcome {
    let mut seen = BTreeSet::new();
    all(infos.iter().map(|i| if seen.insert(i.name) { Ok(()) } else { Err(format!("{} twice", i.name)) }))
}
