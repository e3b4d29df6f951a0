//! Many seeds, on all cores.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::{Report, run};

/// Everything that has to happen in some of thousands of runs, by how its name begins.
pub const KINDS: &[&str] = &[
    "run: healthy",
    "run: with faults",
    "host: query",
    "host: session",
    "options: one-way form",
    "options: small backlog",
    "options: little may be unwritten",
    "options: few operations",
    "options: few places for callbacks",
    "model: tools",
    "model: text",
    "model: error",
    "model: silent",
    "model: cut off",
    "fault: not started",
    "fault: exit",
    "fault: signal",
    "fault: hang",
    "fault: pause",
    "fault: flood of messages",
    "fault: flood of deltas",
    "fault: flood of stderr",
    "fault: long line",
    "fault: closed stdout",
    "fault: closed stdin",
    "fault: no more reading",
    "fault: deaf to terminate",
    "fault: no signal arrives",
    "fault: crash",
    "fault: late exit",
    "fault: garbage line",
    "fault: cut input",
    "fault: cut output",
    "fault: cut errors",
    "fault: output held open",
    "callback: permission at once",
    "callback: permission late",
    "callback: permission never",
    "callback: permission fails",
    "callback: permission panics",
    "callback: permission dropped",
    "callback: hook at once",
    "callback: hook late",
    "callback: hook never",
    "callback: hook fails",
    "callback: hook panics",
    "callback: hook dropped",
    "callback: tool at once",
    "callback: tool late",
    "callback: tool never",
    "callback: tool fails",
    "callback: tool panics",
    "callback: tool dropped",
    "warning: CallbackFailed",
    "warning: CallbackRefused",
    "warning: CallbackTimedOut",
    "warning: Malformed",
    "dropped after polls: query",
    "dropped after polls: open",
    "dropped after polls: start",
    "dropped after polls: send",
    "dropped after polls: finish",
    "dropped after polls: turn",
    "dropped after polls: messages",
    "dropped after polls: stop",
    "dropped after polls: end_input",
    "dropped after polls: ready",
    "dropped after polls: cancel",
    "dropped after polls: close",
    "dropped after polls: collect",
    "dropped after polls: final_result",
    "dropped after polls: interrupt",
    "dropped after polls: event",
    "dropped after a time: query",
    "dropped after a time: open",
    "dropped after a time: start",
    "dropped after a time: send",
    "dropped after a time: finish",
    "dropped after a time: turn",
    "dropped after a time: messages",
    "dropped after a time: stop",
    "dropped after a time: ready",
    "dropped after a time: close",
    "dropped after a time: collect",
    "dropped after a time: final_result",
    "dropped after a time: interrupt",
    "handle dropped: session",
    "handle dropped: turn",
    "handle dropped: messages",
    "handle dropped: query",
    "actor ended in the middle",
    "runtime dropped under a session",
    "runtime dropped under a query",
    "sent",
    "not sent: SessionStopped",
    "not sent: TransportClosed",
    "not sent: InputEnded",
    "turn finished",
    "turn failed: TurnCancelled",
    "turn failed: SessionStopped",
    "turn failed: TransportClosed",
    "turn failed: Lagged",
    "turn cancelled",
    "operation: interrupt",
    "operation: set_model",
    "operation: set_permission_mode",
    "operation: mcp_status",
    "operation: rename_session",
    "operation failed: ControlTimeout",
    "operation failed: TooManyPending",
    "operation failed: InitQueueFull",
    "operation failed: SessionStopped",
    "operation failed: TransportClosed",
    "messages ended: well",
    "messages ended: Lagged",
    "messages ended: InitializeTimeout",
    "query ended: well",
    "query ended: IdleTimeout",
    "query ended: InitializeTimeout",
    "query ended: Lagged",
    "query ended: ProcessFailed",
    "closed",
    "stopped",
    "terminated",
    "killed",
];

/// What came of many seeds.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Total {
    /// How many runs there were.
    pub runs: u64,
    /// What must not be, each with its seed.
    pub violations: Vec<String>,
    /// What happened, and how often.
    pub counts: BTreeMap<String, u64>,
}

impl Total {
    fn add(&mut self, report: Report) {
        self.runs += 1;
        self.violations.extend(report.violations);
        self.add_counts(report.counts);
    }

    fn join(mut self, other: Self) -> Self {
        self.runs += other.runs;
        self.violations.extend(other.violations);
        self.add_counts(other.counts);
        self
    }

    fn add_counts(&mut self, counts: BTreeMap<String, u64>) {
        for (what, times) in counts {
            *self.counts.entry(what).or_default() += times;
        }
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, times) in &self.counts {
            writeln!(f, "{times:>9} {what}")?;
        }
        write!(f, "{} runs, {} violations", self.runs, self.violations.len())
    }
}

/// How long a run takes at most by the clock on the wall; most take some milliseconds. One that takes
/// longer turns in a circle while its own clock stands still.
const LONGEST_RUN: Duration = Duration::from_secs(120);

/// Plays seeds from `first` on, for as long as `goes_on` says so when told how many were begun. Ends
/// the process if a run never ends.
///
/// # Panics
/// When a run does, which none should.
pub fn seeds(first: u64, goes_on: impl Fn(u64) -> bool + Sync) -> Total {
    let begun = AtomicU64::new(0);
    let running = Mutex::new(BTreeMap::new());
    let running = || running.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        let mut total = Total::default();
        loop {
            let number = begun.fetch_add(1, Ordering::Relaxed);
            if !goes_on(number) {
                return total;
            }
            let seed = first.wrapping_add(number);
            running().insert(seed, Instant::now());
            total.add(run(seed));
            running().remove(&seed);
        }
    };
    let threads = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        while !workers.iter().all(ScopedJoinHandle::is_finished) {
            thread::sleep(Duration::from_millis(20));
            let hangs = |(_, since): &(&u64, &Instant)| since.elapsed() > LONGEST_RUN;
            if let Some((seed, _)) = running().iter().find(hangs) {
                give_up(*seed);
            }
        }
        let done = workers.into_iter().map(|worker| match worker.join() {
            Ok(total) => total,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        done.reduce(Total::join).unwrap_or_default()
    })
}

fn give_up(seed: u64) -> ! {
    // Not by a macro: what those print in a test is held back until it ends, and this one does not.
    let last_words = format!("seed {seed}: never ends (cargo xtask simulate --seed {seed})\n");
    drop(io::stderr().write_all(last_words.as_bytes()));
    std::process::exit(101)
}
