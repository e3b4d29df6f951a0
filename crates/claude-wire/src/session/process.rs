//! Whether the process lives, and whether more of its stdout can come.

use std::time::Duration;

use super::Exit;
use super::limits::SessionLimits;

#[derive(Debug)]
pub(super) struct ProcessState {
    pub(super) exited: Option<(Exit, Duration)>,
    pub(super) stdout_ended: Option<Duration>,
    pub(super) last_output: Duration,
    pub(super) any_output: bool,
    /// How long a stdout that another process holds open is read, after the last byte and at most.
    held_open: (Duration, Duration),
}

impl ProcessState {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            exited: None,
            stdout_ended: None,
            last_output: Duration::ZERO,
            any_output: false,
            held_open: (limits.held_open_quiet, limits.held_open_most),
        }
    }

    pub(super) fn output(&mut self, now: Duration) {
        self.last_output = now;
        self.any_output = true;
    }

    /// Whether the process lives and can still write to stdout.
    pub(super) fn can_be_heard(&self) -> bool {
        self.exited.is_none() && self.stdout_ended.is_none()
    }

    /// Returns how the process ended, once nothing more can come from it.
    pub(super) fn over(&self, now: Duration) -> Option<Exit> {
        let (exit, _) = self.exited?;
        let over =
            self.stdout_ended.is_some() || self.held_open_until().is_some_and(|until| until <= now);
        over.then_some(exit)
    }

    /// Until when a stdout is read that outlived its process: another process may hold it open.
    pub(super) fn held_open_until(&self) -> Option<Duration> {
        let (_, at) = self.exited.filter(|_| self.stdout_ended.is_none())?;
        let (quiet, most) = self.held_open;
        Some(self.last_output.max(at).saturating_add(quiet).min(at.saturating_add(most)))
    }
}
