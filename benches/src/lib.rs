//! What every subject has in common: what it is asked for and how it tells its figure.
//!
//! A subject is a program that is started as `<subject> <work> <count> <cli>`, does the work once
//! with the CLI at that path (`bench-cli`, whatever its name) and prints one line of JSON:
//! `{"figure": 1.5}`, `{"unsupported": "why"}` for what its SDK does not offer, or `{"failed": "why"}`.

use std::env;
use std::error::Error;
use std::fmt;
use std::fs;
use std::path::PathBuf;

/// What may go wrong.
pub type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// `count` messages with 400-byte texts; seconds from the first byte to the result.
    Flood,
    /// `count` pieces of a message; the same.
    Deltas,
    /// One message with a text of `count` bytes; seconds from the first byte to the typed message.
    Line,
    /// `count` hooks one after the other; the median in microseconds.
    Hook,
    /// `count` permissions; the same.
    Permission,
    /// `count` calls of a tool in the client's process; the same.
    Tool,
    /// `count` starts one after the other; the median in seconds from the call to the first message.
    First,
    /// `count` sessions that live at the same time, a turn each; seconds until all have answered.
    Sessions,
    /// `count` sessions that have started and wait; KiB that the client has grown by for each.
    Idle,
}

impl Work {
    /// All works with the names that they are asked for by.
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

    /// The work of that name.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn named(name: &str) -> Outcome<Self> {
        let found = Self::ALL.iter().find(|(known, _)| *known == name);
        found.map(|(_, work)| *work).ok_or_else(|| format!("there is no work `{name}`").into())
    }

    /// Whether the CLI asks and the client answers, by turns.
    pub fn is_round_trip(self) -> bool {
        matches!(self, Self::Hook | Self::Permission | Self::Tool)
    }
}

/// What a subject is asked for.
#[derive(Debug, Clone)]
pub struct Task {
    /// What to do.
    pub work: Work,
    /// How often, or how many, or how much.
    pub count: usize,
    /// The CLI to do it with.
    pub cli: PathBuf,
}

/// What an SDK does not offer.
#[derive(Debug)]
pub struct Unsupported(pub &'static str);

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Unsupported {}

/// Takes the task from the arguments, does it and prints what came of it.
pub fn run_subject(perform: impl FnOnce(&Task) -> Outcome<f64>) {
    let said = match task().and_then(|task| perform(&task)) {
        Ok(figure) => serde_json::json!({ "figure": figure }),
        Err(error) if error.is::<Unsupported>() => serde_json::json!({ "unsupported": error.to_string() }),
        Err(error) => serde_json::json!({ "failed": error.to_string() }),
    };
    println!("{said}");
    // Nothing that a client leaves behind may keep it from ending.
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

/// The time on the clock that all processes of this machine share, in nanoseconds.
pub fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let whole = u64::try_from(time.tv_sec).unwrap_or_default() * 1_000_000_000;
    whole + u64::try_from(time.tv_nsec).unwrap_or_default()
}

/// The seconds since a moment that the CLI reported.
///
/// # Errors
///
/// When that is no time.
pub fn seconds_since(reported: &str, now: u64) -> Outcome<f64> {
    let began: u64 = reported.parse().map_err(|_| format!("unexpected result of the CLI: {reported}"))?;
    Ok(seconds(now.saturating_sub(began)))
}

/// Nanoseconds as seconds.
#[expect(clippy::cast_precision_loss, reason = "what is measured is far below 2^53 ns")]
pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

/// Whether all came.
///
/// # Errors
///
/// Says how many are missing.
pub fn all_of(count: usize, seen: usize) -> Outcome<()> {
    if seen == count { Ok(()) } else { Err(format!("{seen} of {count} messages came").into()) }
}

/// The one in the middle.
///
/// # Errors
///
/// When there is none.
pub fn median(mut figures: Vec<f64>) -> Outcome<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().ok_or_else(|| "nothing was measured".into())
}

/// How much memory this process holds, in KiB.
///
/// # Errors
///
/// When the system does not say.
pub fn resident_kib() -> Outcome<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.split_whitespace().nth(1).ok_or("no figure")?.parse()?)
}

/// What each of `count` sessions has added.
#[expect(clippy::cast_precision_loss, reason = "thousands, not more")]
pub fn each(before: f64, after: f64, count: usize) -> f64 {
    (after - before) / count as f64
}

/// Sessions that are started before memory is measured: the first ones bring what is needed once.
pub const WARM: usize = 50;

/// The runtime for a work: round trips have one at a time to do, so one thread does it.
///
/// # Errors
///
/// When it does not start.
#[cfg(feature = "_tokio")]
pub fn runtime(work: Work) -> Outcome<tokio::runtime::Runtime> {
    let mut builder = if work.is_round_trip() {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    Ok(builder.enable_all().build()?)
}
