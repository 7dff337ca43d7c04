//! The machine the benchmarks run on.

use crate::Result;
use std::fs::read_to_string;

/// Ties this process to one core, the last that it may use, and names it; `None` where that is not possible.
#[cfg(target_os = "linux")]
pub(crate) fn pin() -> Result<Option<usize>> {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let allowed = sched_getaffinity(None)?;
    let core = (0..CpuSet::MAX_CPU).rev().find(|&c| allowed.is_set(c)).ok_or("no core to run on")?;
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one)?;
    Ok(Some(core))
}

/// Ties this process to one core, where that is possible.
#[cfg(not(target_os = "linux"))]
pub(crate) fn pin() -> Result<Option<usize>> {
    Ok(None)
}

/// The load averages over 1, 5 and 15 minutes.
pub(crate) fn load() -> String {
    let text = read_to_string("/proc/loadavg").unwrap_or_default();
    let found: Vec<&str> = text.split_whitespace().take(3).collect();
    if found.is_empty() { "unknown".into() } else { found.join(" ") }
}

/// Processor, cores and the load before the run.
pub(crate) fn describe(load: &str) -> String {
    let info = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|l| l.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let model = field("model name").unwrap_or_else(|| std::env::consts::ARCH.into());
    let family = field("cpu family").zip(field("model\t"));
    let family = family.map_or_else(String::new, |(f, m)| format!(" (family {f}, model {m})"));
    let widest =
        ["avx512f", "avx2"].into_iter().find(|f| info.contains(f)).unwrap_or("neither avx2 nor avx512f");
    let cores = info.lines().filter(|l| l.starts_with("processor")).count();
    format!(
        "{model}{family}, {widest}, {cores} cores of which one is used; load averages before the run {load}"
    )
}
