//! Finds out whether a CLI uses a session, by the CLI's registry of running processes.

use std::path::Path;

use serde_json::Value;

#[cfg(target_os = "linux")]
use super::note::start_of;
use super::{errors, open};
use crate::error::Result;
use crate::id::SessionId;

/// Returns the process that uses a session.
pub(crate) fn process_of(config: &Path, id: &SessionId) -> Result<Option<u32>> {
    let registry = config.join("sessions");
    let entries = open::entries(&registry);
    for entry in entries.map_err(|error| errors::io("list", &registry, error))? {
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        // An entry that cannot be read is of a CLI that is starting or ending.
        let Some(value) = open::read_json(&path) else { continue };
        let pid = value.get("pid").and_then(Value::as_u64).and_then(|pid| u32::try_from(pid).ok());
        let is_same = value.get("sessionId").and_then(Value::as_str) == Some(id.as_str());
        if let Some(pid) = pid.filter(|pid| is_same && is_running(*pid, &value)) {
            return Ok(Some(pid));
        }
    }
    Ok(None)
}

#[cfg(unix)]
fn is_running(pid: u32, entry: &Value) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let pid_of_entry = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let exists =
        pid_of_entry.is_some_and(|pid| matches!(test_kill_process(pid), Ok(()) | Err(Errno::PERM)));
    exists && !is_reused(pid, entry)
}

#[cfg(not(unix))]
fn is_running(_: u32, _: &Value) -> bool {
    true
}

/// Returns whether the process started after the registry entry was written, so that its ID belonged
/// to a CLI that is gone: a CLI that is killed leaves its entry.
#[cfg(target_os = "linux")]
fn is_reused(pid: u32, entry: &Value) -> bool {
    /// How much later a process may seem to have started, because clocks are set and rounded.
    const TOLERANCE_MILLIS: u64 = 60_000;
    /// Ticks per second in `/proc`, the same on all supported architectures.
    const TICKS: u64 = 100;

    let started = || {
        let ticks = start_of(pid)?;
        let boot = std::fs::read_to_string("/proc/stat").ok()?;
        let boot = boot.lines().find_map(|line| line.strip_prefix("btime "))?;
        let millis = ticks.parse::<u64>().ok()? * 1000 / TICKS;
        Some((boot.trim().parse::<u64>().ok()? * 1000 + millis, ticks))
    };
    let Some((started, ticks)) = started() else { return false };
    let recorded = entry.get("procStart");
    if recorded.is_some_and(|recorded| recorded.to_string().trim_matches('"') == ticks) {
        return false;
    }
    let registered = entry.get("startedAt").and_then(Value::as_u64);
    registered.is_some_and(|registered| started > registered + TOLERANCE_MILLIS)
}

#[cfg(all(unix, not(target_os = "linux")))]
fn is_reused(_: u32, _: &Value) -> bool {
    false
}
