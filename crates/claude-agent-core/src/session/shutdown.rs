//! The shutdown sequence: the order of its steps and their grace periods.

use std::time::Duration;

/// The grace periods between the steps of the shutdown sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the sequence has no other steps")]
pub struct GracePeriods {
    /// The time for a turn to end after it was interrupted.
    pub interrupt: Duration,
    /// The time for the process to exit after its stdin was closed.
    pub exit: Duration,
    /// The time for the process to exit after SIGTERM.
    pub terminate: Duration,
}

impl Default for GracePeriods {
    /// 1 s to end a turn, 5 s to exit, 5 s after SIGTERM.
    fn default() -> Self {
        Self {
            interrupt: Duration::from_secs(1),
            exit: Duration::from_secs(5),
            terminate: Duration::from_secs(5),
        }
    }
}

/// The longest time from SIGTERM to SIGKILL if the process must end at once.
const MOST_AT_ONCE: Duration = Duration::from_secs(1);

impl GracePeriods {
    /// Returns the time from SIGTERM to SIGKILL if the process must end at once: at most one second.
    pub fn at_once(&self) -> Duration {
        self.terminate.min(MOST_AT_ONCE)
    }

    /// Returns the duration of the whole sequence, from the interrupt to SIGKILL.
    pub fn total(&self) -> Duration {
        self.interrupt.saturating_add(self.exit).saturating_add(self.terminate)
    }
}

/// A step of the shutdown sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShutdownStep {
    /// Wait until the CLI is idle; the turn has its result.
    Settle,
    /// Interrupt the turn.
    Interrupt,
    /// Close stdin, which makes the CLI exit.
    CloseStdin,
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL. This is the last step.
    Kill,
}

impl ShutdownStep {
    /// Returns the next step and the grace period before it.
    fn next(self, grace: &GracePeriods) -> Option<(Self, Duration)> {
        match self {
            Self::Settle | Self::Interrupt => Some((Self::CloseStdin, grace.interrupt)),
            Self::CloseStdin => Some((Self::Terminate, grace.exit)),
            Self::Terminate => Some((Self::Kill, grace.terminate)),
            Self::Kill => None,
        }
    }
}

/// The progress of the shutdown of a process: keeps the order and the deadlines of the steps, which
/// the caller performs. Used by the session machine, and by the reaper thread for processes without a
/// driver.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shutdown {
    step: Option<ShutdownStep>,
    next: Option<(ShutdownStep, Duration)>,
}

impl Shutdown {
    /// Returns the last step that was entered.
    pub fn step(&self) -> Option<ShutdownStep> {
        self.step
    }

    /// Enters a step, unless it or a later one was entered before. Returns whether it was entered.
    pub fn enter(&mut self, step: ShutdownStep, now: Duration, grace: &GracePeriods) -> bool {
        if self.step.is_some_and(|known| known >= step) {
            return false;
        }
        self.step = Some(step);
        self.next = step.next(grace).map(|(next, grace)| (next, now.saturating_add(grace)));
        true
    }

    /// Enters [`ShutdownStep::Terminate`] for a process that must end at once, or shortens the time to SIGKILL if
    /// that step was entered before. Returns whether the process must be signalled: not after SIGKILL.
    pub fn end_at_once(&mut self, now: Duration, grace: &GracePeriods) -> bool {
        if self.step == Some(ShutdownStep::Kill) {
            return false;
        }
        let kill_at = now.saturating_add(grace.at_once());
        let known = self.next.filter(|(step, _)| *step == ShutdownStep::Kill).map(|(_, at)| at);
        self.step = Some(ShutdownStep::Terminate);
        self.next = Some((ShutdownStep::Kill, known.map_or(kill_at, |known| known.min(kill_at))));
        true
    }

    /// Returns the time when the next step is due.
    pub fn deadline(&self) -> Option<Duration> {
        self.next.map(|(_, at)| at)
    }

    /// Returns the step that is due, if any.
    pub fn due(&self, now: Duration) -> Option<ShutdownStep> {
        self.next.filter(|(_, at)| *at <= now).map(|(step, _)| step)
    }
}
