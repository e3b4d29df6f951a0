//! What the system says about processes: who lives, whose children, how much they hold.

use std::fs;
use std::time::{Duration, Instant};

/// How often it is looked again for something that will happen.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// Whether there is such a process, a zombie included.
pub fn exists(pid: u32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok()
}

/// The children of a process, zombies included.
pub fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may hold anything.
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
        fields.split_whitespace().nth(1).and_then(|field| field.parse().ok()) == Some(parent)
    };
    all().filter(is_child).collect()
}

/// The processes that were started with this variable, wherever they have gone since. Zombies have
/// no variables any more.
pub fn marked(name: &str, value: &str) -> Vec<u32> {
    let mark = format!("{name}={value}");
    let has_mark = |pid: &u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    };
    all().filter(has_mark).collect()
}

fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// What this process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holdings {
    /// Open descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Children, zombies included.
    pub children: usize,
    /// Memory in use, in KiB.
    pub memory: usize,
    /// The most memory that ever was in use, in KiB.
    pub most_memory: usize,
}

impl Holdings {
    /// What it holds now.
    pub fn now() -> Self {
        let entries = |path| fs::read_dir(path).map_or(0, Iterator::count);
        Self {
            // The directory that is being read is open too, and always was.
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            children: children_of(std::process::id()).len(),
            memory: status("VmRSS:"),
            most_memory: status("VmHWM:"),
        }
    }
}

/// A number of KiB that the system keeps about this process.
fn status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Waits until something is so; says whether it came to be so in time.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let latest = Instant::now() + limit;
    while !condition() {
        if Instant::now() > latest {
            return false;
        }
        std::thread::sleep(BETWEEN_LOOKS);
    }
    true
}

/// The same, for a task.
///
/// # Cancel safety
/// Looks only; dropping the future changes nothing.
pub async fn until(limit: Duration, condition: impl FnMut() -> bool) -> bool {
    tokio::time::timeout(limit, eventually(condition)).await.is_ok()
}

/// Waits until something is so, for as long as it takes. Meant for what nobody tells of, so that
/// looking again is the only way to learn of it.
///
/// # Cancel safety
/// Looks only; dropping the future changes nothing.
pub async fn eventually(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
