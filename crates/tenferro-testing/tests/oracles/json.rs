//! The files of the folder as JSON values.

use flate2::read::GzDecoder;
use serde_json::Value;
use std::{fs::File, io::Read, path::Path};

/// The records of a compressed file of JSON lines.
pub(crate) fn lines(path: &Path) -> Result<Vec<Value>, String> {
    let mut text = String::new();
    let file = File::open(path).map_err(|e| said(path, e))?;
    GzDecoder::new(file).read_to_string(&mut text).map_err(|e| said(path, e))?;
    text.lines().map(|line| serde_json::from_str(&quoted(line)).map_err(|e| said(path, e))).collect()
}

/// The value of a plain file.
pub(crate) fn plain(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| said(path, e))?;
    serde_json::from_str(&quoted(&text)).map_err(|e| said(path, e))
}

fn said(path: &Path, e: impl std::fmt::Display) -> String {
    format!("{}: {e}", path.display())
}

/// With the numbers that JSON lacks (`NaN`, `Infinity`, `-Infinity`) as text, which [`number`] reads.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut within = false;
    while let Some(c) = rest.chars().next() {
        let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|w| !within && rest.starts_with(w));
        if let Some(word) = word {
            out.extend(['"'].into_iter().chain(word.chars()).chain(['"']));
            rest = &rest[word.len()..];
            continue;
        }
        out.push(c);
        rest = &rest[c.len_utf8()..];
        if within && c == '\\' {
            let escaped = rest.chars().next().unwrap_or('"');
            out.push(escaped);
            rest = &rest[escaped.len_utf8().min(rest.len())..];
        } else if c == '"' {
            within = !within;
        }
    }
    out
}

/// A number, in figures or as the name of one without figures.
pub(crate) fn number(v: &Value) -> Option<f64> {
    v.as_f64().or_else(|| v.as_str()?.parse().ok())
}
