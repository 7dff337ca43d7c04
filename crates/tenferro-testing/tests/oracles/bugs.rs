//! Bugs that were reported against other libraries of this field.

use crate::{Step, check::Outcome, json::plain};
use serde_json::Value;
use std::path::Path;

pub(crate) fn steps(folder: &Path) -> Result<Vec<(String, Step)>, String> {
    let all = plain(&folder.join("bug_reports.json"))?;
    let step = |v: &Value| -> (String, Step) {
        let id = v["id"].as_str().unwrap_or_default().to_string();
        (id, Box::new(|| Outcome::Skipped("to do".into())))
    };
    Ok(all.as_array().into_iter().flatten().map(step).collect())
}
