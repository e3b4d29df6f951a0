//! Processes and their resource usage, read from `/proc`.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often conditions are polled.
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);

/// How often all command lines are read.
const BETWEEN_SCANS: Duration = Duration::from_millis(20);

/// Whether the process exists, as a zombie or not.
pub fn exists(pid: u32) -> bool {
    fs::metadata(format!("/proc/{pid}")).is_ok()
}

/// Returns the children of a process, including zombies.
pub fn children_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in parentheses may contain anything.
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields).unwrap_or_default();
        fields.split_whitespace().nth(1).and_then(|field| field.parse().ok()) == Some(parent)
    };
    all().filter(is_child).collect()
}

/// Returns the processes that were started with this environment variable. Zombies have no environment.
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

/// Watches the command lines of all processes of this machine for texts.
#[derive(Debug)]
pub struct CommandLineWatch {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<BTreeSet<(String, String)>>,
}

impl CommandLineWatch {
    /// Starts to watch for these texts.
    pub fn start(texts: impl IntoIterator<Item = String>) -> Self {
        let texts: Vec<String> = texts.into_iter().collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            let mut found = BTreeSet::new();
            loop {
                // Once more after the end was requested: the processes may be newer than the last round.
                let is_last = asked.load(Ordering::SeqCst);
                for command_line in all().filter_map(command_line) {
                    let program = command_line.split('\0').next().unwrap_or_default();
                    let program = program.rsplit('/').next().unwrap_or_default();
                    let texts = texts.iter().filter(|text| command_line.contains(text.as_str()));
                    found.extend(texts.map(|text| (text.clone(), program.to_owned())));
                }
                if is_last {
                    return found;
                }
                thread::sleep(BETWEEN_SCANS);
            }
        });
        Self { is_over, thread }
    }

    /// Returns the texts that were found until now, each with the name of the program whose command line
    /// contains it.
    ///
    /// # Panics
    /// Panics if the watching thread has panicked.
    pub fn found(self) -> BTreeSet<(String, String)> {
        self.is_over.store(true, Ordering::SeqCst);
        self.thread.join().expect("the thread does not panic")
    }
}

/// Returns the command line of a process, with a NUL after each argument; `None` if it has exited.
fn command_line(pid: u32) -> Option<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The resources that this process uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceUsage {
    /// Open file descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Children, including zombies.
    pub children: usize,
    /// Resident memory, in KiB.
    pub memory: usize,
    /// Peak resident memory, in KiB.
    pub peak_memory: usize,
}

impl ResourceUsage {
    /// Measures the current usage.
    pub fn now() -> Self {
        let entries = |path| fs::read_dir(path).map_or(0, Iterator::count);
        Self {
            // Includes the descriptor of the directory that is being read, in every measurement.
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            children: children_of(std::process::id()).len(),
            memory: status("VmRSS:"),
            peak_memory: status("VmHWM:"),
        }
    }
}

/// Reads a value in KiB from the status of this process.
fn status(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Polls a condition and returns whether it held before the limit.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let latest = Instant::now() + limit;
    while !condition() {
        if Instant::now() > latest {
            return false;
        }
        thread::sleep(BETWEEN_LOOKS);
    }
    true
}

/// Polls a condition from async code and returns whether it held before the limit.
///
/// # Cancel safety
/// Cancel safe: dropping the future has no effect.
pub async fn until(limit: Duration, condition: impl FnMut() -> bool) -> bool {
    tokio::time::timeout(limit, eventually(condition)).await.is_ok()
}

/// Polls a condition until it holds. For conditions that cannot be awaited.
///
/// # Cancel safety
/// Cancel safe: dropping the future has no effect.
pub async fn eventually(mut condition: impl FnMut() -> bool) {
    while !condition() {
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
}
