//! The shutdown sequence: the order of its steps, and the time that each of them has.

use std::time::Duration;

/// How long a process may take before the next step of the shutdown sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "the sequence has no other steps")]
pub struct GracePeriods {
    /// For a turn to end after it was interrupted.
    pub interrupt: Duration,
    /// For the process to exit after its stdin was closed.
    pub exit: Duration,
    /// For the process to exit after SIGTERM.
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

impl GracePeriods {
    /// Returns the time of the whole sequence, from the interrupt to SIGKILL.
    pub fn total(&self) -> Duration {
        self.interrupt.saturating_add(self.exit).saturating_add(self.terminate)
    }
}

/// A step of the shutdown sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShutdownStep {
    /// The turn has its result: wait until the CLI is idle.
    Settle,
    /// Interrupt the turn.
    Interrupt,
    /// Close stdin, on which the CLI exits.
    CloseStdin,
    /// Send SIGTERM.
    Terminate,
    /// Send SIGKILL. After it nothing is left but to wait.
    Kill,
}

impl ShutdownStep {
    /// Returns the step that follows when the process has used up its time, and that time.
    fn next(self, grace: &GracePeriods) -> Option<(Self, Duration)> {
        match self {
            Self::Settle | Self::Interrupt => Some((Self::CloseStdin, grace.interrupt)),
            Self::CloseStdin => Some((Self::Terminate, grace.exit)),
            Self::Terminate => Some((Self::Kill, grace.terminate)),
            Self::Kill => None,
        }
    }
}

/// How far the shutdown of a process has come. Whoever uses it does what a step says; this type keeps
/// the order and the time. The session machine uses it, and the thread that ends processes whose
/// driver is gone.
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

    /// Enters a step, unless the sequence has come as far before. Returns whether it was entered.
    pub fn enter(&mut self, step: ShutdownStep, now: Duration, grace: &GracePeriods) -> bool {
        if self.step.is_some_and(|known| known >= step) {
            return false;
        }
        self.step = Some(step);
        self.next = step.next(grace).map(|(next, grace)| (next, now.saturating_add(grace)));
        true
    }

    /// Returns when the next step is due.
    pub fn deadline(&self) -> Option<Duration> {
        self.next.map(|(_, at)| at)
    }

    /// Returns the step that is due and has to be entered.
    pub fn due(&self, now: Duration) -> Option<ShutdownStep> {
        self.next.filter(|(_, at)| *at <= now).map(|(step, _)| step)
    }
}
