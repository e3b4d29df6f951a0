//! The interface of benchmark subjects.
//!
//! A subject is a program that is started as `<subject> <work> <count> <cli>`, runs the workload once with the CLI at
//! that path (a copy of `bench-cli`) and prints one line of JSON: `{"figure": 1.5}`, `{"unsupported": "why"}` for what
//! its SDK does not offer, or `{"failed": "why"}`.

pub mod history;
pub mod stores;

use std::env;
use std::error::Error;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// A result with any error.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// `count` messages with 400-byte texts; seconds from the first byte to the result.
    Flood,
    /// `count` deltas of a message; seconds from the first byte to the result.
    Deltas,
    /// One message with a text of `count` bytes; seconds from the first byte to the typed message.
    Line,
    /// `count` hook round trips in sequence; the median in microseconds.
    Hook,
    /// `count` permission round trips in sequence; the median in microseconds.
    Permission,
    /// `count` calls of an in-process tool in sequence; the median in microseconds.
    Tool,
    /// `count` starts in sequence; the median in seconds from the call to the first message.
    First,
    /// `count` concurrent sessions with a turn each; seconds until all have completed.
    Sessions,
    /// `count` idle sessions; memory growth of the client per session, in KiB.
    Idle,
}

impl Work {
    /// All workloads with their names.
    pub const ALL: [(&'static str, Self); 9] = [
        ("flood", Self::Flood),
        ("deltas", Self::Deltas),
        ("line", Self::Line),
        ("hook", Self::Hook),
        ("permission", Self::Permission),
        ("tool", Self::Tool),
        ("first", Self::First),
        ("sessions", Self::Sessions),
        ("idle", Self::Idle),
    ];

    /// Returns the workload with this name.
    ///
    /// # Errors
    ///
    /// Returns an error when the name is unknown.
    pub fn named(name: &str) -> Outcome<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, work)| *work).ok_or_else(|| format!("unknown workload: \"{name}\"").into())
    }

    /// Whether the workload consists of sequential requests of the CLI.
    pub fn is_round_trip(self) -> bool {
        matches!(self, Self::Hook | Self::Permission | Self::Tool)
    }
}

/// The task of a subject.
#[derive(Debug, Clone)]
pub struct Task {
    /// The workload.
    pub work: Work,
    /// The size of the workload.
    pub count: usize,
    /// The path of the CLI.
    pub cli: PathBuf,
}

/// The SDK does not support a workload, for this reason.
#[derive(Debug)]
pub struct Unsupported(pub &'static str);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Unsupported {}

/// Runs the task that is given by the arguments, prints the result and exits.
pub fn run_subject(perform: impl FnOnce(&Task) -> Outcome<f64>) {
    let result = match task().and_then(|task| perform(&task)) {
        Ok(figure) => serde_json::json!({ "figure": figure }),
        Err(error) if error.is::<Unsupported>() => {
            serde_json::json!({ "unsupported": error.to_string() })
        }
        Err(error) => serde_json::json!({ "failed": error.to_string() }),
    };
    println!("{result}");
    // Background work of the client must not delay the exit.
    std::process::exit(0);
}

fn task() -> Outcome<Task> {
    let mut arguments = env::args_os().skip(1);
    let mut next = || arguments.next().ok_or("usage: <subject> <work> <count> <cli>");
    let text = |argument: std::ffi::OsString| argument.to_string_lossy().into_owned();
    let work = Work::named(&text(next()?))?;
    let count = text(next()?).parse()?;
    Ok(Task { work, count, cli: next()?.into() })
}

/// Returns the time of the monotonic clock, which all processes share, in nanoseconds.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let whole = u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000;
    whole + u64::try_from(time.tv_nsec).unwrap_or_default()
}

/// Returns the seconds since the time that the CLI reported.
///
/// # Errors
///
/// Returns an error when the CLI did not report a time.
pub fn seconds_since(reported: &str, now: u64) -> Outcome<f64> {
    let began: u64 =
        reported.parse().map_err(|_| format!("unexpected result of the CLI: {reported}"))?;
    Ok(seconds(now.saturating_sub(began)))
}

/// Converts nanoseconds to seconds.
#[expect(clippy::cast_precision_loss, reason = "measured times are far below 2^53 ns")]
pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Checks that all messages were received.
///
/// # Errors
///
/// Returns an error with the number of received messages.
pub fn all_of(count: usize, seen: usize) -> Outcome<()> {
    if seen == count { Ok(()) } else { Err(format!("received {seen} of {count} messages").into()) }
}

/// Returns the median.
///
/// # Errors
///
/// Returns an error without figures.
pub fn median(mut figures: Vec<f64>) -> Outcome<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().ok_or_else(|| "nothing was measured".into())
}

/// Returns the resident memory of this process, in KiB.
///
/// # Errors
///
/// Returns an error when it cannot be read.
pub fn resident_kib() -> Outcome<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse()?)
}

/// Returns the growth per session.
#[expect(clippy::cast_precision_loss, reason = "counts are in the thousands")]
pub fn each(before: f64, after: f64, count: usize) -> f64 {
    (after - before) / count as f64
}

/// The number of sessions to start before memory is measured, which excludes one-time allocations.
pub const WARM: usize = 50;

/// Creates the runtime for a workload: a current-thread runtime for round trips, which are sequential.
///
/// # Errors
///
/// Returns an error when the runtime cannot be created.
#[cfg(feature = "_tokio")]
pub fn runtime(work: Work) -> Outcome<tokio::runtime::Runtime> {
    let mut builder = if work.is_round_trip() {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    Ok(builder.enable_all().build()?)
}
