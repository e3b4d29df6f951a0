//! Finds the descendants of a process through `/proc`.

use std::fs;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open, pidfd_send_signal};

use crate::sort;

/// A snapshot of all processes. One scan serves every SIGKILL that is due.
pub(super) struct ProcessTable {
    /// Sorted by their parents.
    processes: Vec<Entry>,
}

#[derive(Clone, Copy)]
struct Entry {
    process: u32,
    parent: u32,
    /// In ticks since boot; distinguishes processes with a reused ID.
    started: u64,
}

/// Processes that can be killed safely even after their parent exited or their ID was reused.
pub(super) struct Descendants(Vec<Descendant>);

struct Descendant {
    pid: Pid,
    entry: Entry,
    /// `None` without `pidfd_open`.
    pidfd: Option<OwnedFd>,
}

impl ProcessTable {
    pub(super) fn scan() -> Self {
        #[cfg(test)]
        SCANS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let mut processes = Vec::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let process = entry.file_name().to_str().and_then(|name| name.parse().ok());
            if let Some(entry) = process.and_then(Entry::read) {
                processes.push(entry);
            }
        }
        sort::sort_by_key(&mut processes, |entry| entry.parent);
        Self { processes }
    }

    /// Returns all descendants of `root`. The CLI runs tools in their own sessions, which a signal to its
    /// process group does not reach.
    pub(super) fn below(&self, root: u32) -> Descendants {
        self.with_descendants(self.children(root).to_vec())
    }

    /// Returns these processes and all their descendants.
    fn with_descendants(&self, mut found: Vec<Entry>) -> Descendants {
        let mut held = Vec::new();
        let mut next = 0;
        while let Some(entry) = found.get(next).copied() {
            next += 1;
            found.extend_from_slice(self.children(entry.process));
            if let Some(descendant) = Descendant::hold(entry) {
                held.push(descendant);
            }
        }
        Descendants(held)
    }

    fn children(&self, process: u32) -> &[Entry] {
        let start = self.processes.partition_point(|entry| entry.parent < process);
        let count = self.processes[start..].partition_point(|entry| entry.parent == process);
        &self.processes[start..start + count]
    }
}

impl Entry {
    fn read(process: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name is in parentheses and may contain any character. It is followed by the state, the
        // parent, and, as the twentieth field, the start time.
        let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace().skip(1);
        let parent = fields.next()?.parse().ok()?;
        Some(Self { process, parent, started: fields.nth(17)?.parse().ok()? })
    }

    /// Returns whether the ID still belongs to the scanned process.
    fn is_current(&self) -> bool {
        Self::read(self.process).is_some_and(|now| now.started == self.started)
    }
}

impl Descendant {
    fn hold(entry: Entry) -> Option<Self> {
        let pid = Pid::from_raw(i32::try_from(entry.process).ok()?)?;
        let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
            // The id may have been reused since the scan.
            Ok(pidfd) if entry.is_current() => Some(pidfd),
            Ok(_) | Err(rustix::io::Errno::SRCH) => return None,
            Err(_) => None,
        };
        Some(Self { pid, entry, pidfd })
    }

    fn kill(&self) -> rustix::io::Result<()> {
        match &self.pidfd {
            Some(pidfd) => pidfd_send_signal(pidfd, Signal::KILL),
            None if self.entry.is_current() => kill_process(self.pid, Signal::KILL),
            None => Ok(()),
        }
    }
}

impl Descendants {
    pub(super) fn kill(&self) {
        for process in &self.0 {
            // The process may have exited. One that must not be signalled runs as another user: only that
            // user or the closed pipes can end it.
            let _ = process.kill();
        }
    }

    /// Kills the processes that still run, and those that they have started since.
    pub(super) fn kill_with_descendants(&self, table: &ProcessTable) {
        let current = self.0.iter().map(|process| process.entry).filter(Entry::is_current);
        let found = table.with_descendants(current.collect());
        self.kill();
        found.kill();
    }
}

/// The number of scans of `/proc`.
#[cfg(test)]
pub(super) static SCANS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
