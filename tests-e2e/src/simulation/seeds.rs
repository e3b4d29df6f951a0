//! Runs many seeds on all cores.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use super::{Report, run};

/// What must happen in at least one of several thousand runs, as prefixes of the counted names.
pub const KINDS: &[&str] = &[
    "run: healthy",
    "run: with faults",
    "host: query",
    "host: session",
    "options: one-pipe form",
    "options: small backlog",
    "options: small write buffer",
    "options: low operation limits",
    "options: low callback limits",
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
    "fault: SIGTERM ignored",
    "fault: signals lost",
    "fault: crash",
    "fault: late exit",
    "fault: garbage line",
    "fault: cut stdin",
    "fault: cut stdout",
    "fault: cut stderr",
    "fault: stdout held open",
    "callback: permission immediate",
    "callback: permission late",
    "callback: permission never",
    "callback: permission fails",
    "callback: permission panics",
    "callback: permission dropped",
    "callback: hook immediate",
    "callback: hook late",
    "callback: hook never",
    "callback: hook fails",
    "callback: hook panics",
    "callback: hook dropped",
    "callback: tool immediate",
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
    "dropped after polls: interrupt",
    "dropped after polls: event",
    "dropped after a delay: query",
    "dropped after a delay: open",
    "dropped after a delay: start",
    "dropped after a delay: send",
    "dropped after a delay: finish",
    "dropped after a delay: turn",
    "dropped after a delay: messages",
    "dropped after a delay: stop",
    "dropped after a delay: ready",
    "dropped after a delay: close",
    "dropped after a delay: collect",
    "dropped after a delay: interrupt",
    "handle dropped: session",
    "handle dropped: turn",
    "handle dropped: messages",
    "handle dropped: query",
    "actor aborted",
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
    "messages ended: ok",
    "messages ended: Lagged",
    "messages ended: InitializeTimeout",
    "query ended: ok",
    "query ended: IdleTimeout",
    "query ended: InitializeTimeout",
    "query ended: Lagged",
    "query ended: ProcessFailed",
    "closed",
    "stopped",
    "terminated",
    "killed",
];

/// The results of many runs.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Total {
    /// The number of runs.
    pub runs: u64,
    /// Violated invariants, each with its seed.
    pub violations: Vec<String>,
    /// What happened, with counts.
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

/// The longest wall-clock time of a run; most take milliseconds. A run that takes longer is stuck in a loop
/// while its own clock does not advance.
const LONGEST_RUN: Duration = Duration::from_secs(120);

/// Runs seeds from `first` on, while `continues` returns `true` for the number of runs started so far. Exits the
/// process if a run never ends.
///
/// # Panics
/// Panics if a run panics.
pub fn seeds(first: u64, continues: impl Fn(u64) -> bool + Sync) -> Total {
    let begun = AtomicU64::new(0);
    let running = Mutex::new(BTreeMap::new());
    let running = || running.lock().unwrap_or_else(PoisonError::into_inner);
    let work = || {
        let mut total = Total::default();
        loop {
            let number = begun.fetch_add(1, Ordering::Relaxed);
            if !continues(number) {
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
    // Written directly, because a test captures the output of `eprintln!` until it ends.
    let message = format!(
        "seed {seed}: never ends (cargo xtask simulate --seed {seed})
    "
    );
    drop(io::stderr().write_all(message.as_bytes()));
    std::process::exit(101)
}
