//! The processes below a process, found through `/proc`.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// Processes that can be ended even when their parent is gone and their id is somebody else's.
pub(super) struct Descendants(Vec<OwnedFd>);

impl Descendants {
    /// Notes everything that runs below `root` now. Tools of the CLI run in sessions of their own,
    /// so a signal to its group does not reach them.
    pub(super) fn of(root: u32) -> Self {
        let parents = parents();
        let mut found = vec![root];
        let mut next = 0;
        while let Some(parent) = found.get(next).copied() {
            next += 1;
            found.extend(
                parents.iter().filter(|(_, above)| *above == parent).map(|(process, _)| *process),
            );
        }
        let held = found[1..].iter().filter_map(|process| {
            let pid = Pid::from_raw(i32::try_from(*process).ok()?)?;
            // One that has ended meanwhile is no concern any more.
            pidfd_open(pid, PidfdFlags::empty()).ok()
        });
        Self(held.collect())
    }

    pub(super) fn kill(&self) {
        for process in &self.0 {
            // The only failure is that it has ended.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }
}

/// Every process with its parent.
fn parents() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let process: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name stands in parentheses and may hold anything; behind it come the state and
            // the parent.
            let behind = &stat[stat.rfind(')')? + 1..];
            Some((process, behind.split_whitespace().nth(1)?.parse().ok()?))
        })
        .collect()
}
