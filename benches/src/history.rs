//! The interface of subjects that read stored conversations.
//!
//! Such a subject is started as `<subject> <operation> <config> <directory> <session> <times>`, performs the operation
//! so many times on the history in that config directory, and prints one line of JSON:
//! `{"count": 50, "wall": 0.1, "cpu": 0.1, "peak": 12.5}`, with seconds of the fastest time, and the peak memory of the
//! process in MiB; or `{"failed": "why"}`.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::{Outcome, seconds};

/// What is done with the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Lists all sessions; counts them.
    List,
    /// Lists the 50 newest sessions; counts them.
    Page,
    /// Returns the information of a session; counts one.
    Info,
    /// Reads all messages of a session; counts them.
    Read,
    /// Reads the last 10 messages of a session; counts them.
    Last,
    /// Forks a session; counts one.
    Fork,
}

impl Operation {
    /// All operations with their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("list", Self::List),
        ("page", Self::Page),
        ("info", Self::Info),
        ("read", Self::Read),
        ("last", Self::Last),
        ("fork", Self::Fork),
    ];
}

/// The task of a subject.
#[derive(Debug, Clone)]
pub struct HistoryTask {
    /// The operation.
    pub operation: Operation,
    /// The config directory.
    pub config: PathBuf,
    /// The working directory whose sessions are meant.
    pub directory: PathBuf,
    /// The session.
    pub session: String,
    /// How many times the operation is performed.
    pub times: usize,
}

/// Performs the task that is given by the arguments, prints the measurement and exits.
pub fn run_history_subject(perform: impl Fn(&HistoryTask) -> Outcome<usize>) {
    let measured = task().and_then(|task| measure(&task, perform));
    println!("{}", measured.unwrap_or_else(|error| serde_json::json!({ "failed": error.to_string() })));
    std::process::exit(0);
}

fn measure(
    task: &HistoryTask,
    perform: impl Fn(&HistoryTask) -> Outcome<usize>,
) -> Outcome<serde_json::Value> {
    let (mut wall, mut cpu, mut count) = (f64::INFINITY, f64::INFINITY, 0);
    for _ in 0..task.times {
        let (began, cpu_before) = (Instant::now(), cpu_seconds());
        count = perform(task)?;
        wall = wall.min(began.elapsed().as_secs_f64());
        cpu = cpu.min(cpu_seconds() - cpu_before);
    }
    let peak = peak_mib()?;
    Ok(serde_json::json!({ "count": count, "wall": wall, "cpu": cpu, "peak": peak }))
}

fn task() -> Outcome<HistoryTask> {
    let mut arguments = env::args().skip(1);
    let mut next = || arguments.next().ok_or("usage: <operation> <config> <directory> <session> <times>");
    let name = next()?;
    let found = Operation::ALL.iter().find(|(known, _)| *known == name);
    Ok(HistoryTask {
        operation: found.ok_or_else(|| format!("unknown operation: \"{name}\""))?.1,
        config: next()?.into(),
        directory: next()?.into(),
        session: next()?,
        times: next()?.parse()?,
    })
}

/// Returns the user and system time of this process.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let whole = u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000;
    seconds(whole + u64::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns the largest resident memory of this process so far, in MiB.
///
/// # Errors
///
/// Returns an error when it cannot be read.
pub fn peak_mib() -> Outcome<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).ok_or("no VmHWM")?;
    let kib: f64 = line.split_whitespace().nth(1).ok_or("no figure")?.parse()?;
    Ok(kib / 1024.0)
}
