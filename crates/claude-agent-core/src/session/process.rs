//! The state of the process and of its stdout.

use std::time::Duration;

use claude_wire::Exit;

use super::limits::SessionLimits;

#[derive(Debug)]
pub(super) struct ProcessState {
    pub(super) exited: Option<(Exit, Duration)>,
    pub(super) stdout_ended: Option<Duration>,
    pub(super) last_output: Duration,
    pub(super) any_output: bool,
    /// The times for which a stdout that another process keeps open is read: after the last byte, and
    /// in total.
    held_open: (Duration, Duration),
}

impl ProcessState {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            exited: None,
            stdout_ended: None,
            last_output: Duration::ZERO,
            any_output: false,
            held_open: (limits.held_open_quiet, limits.held_open_max),
        }
    }

    pub(super) fn record_output(&mut self, now: Duration) {
        self.last_output = now;
        self.any_output = true;
    }

    /// Returns whether the process is running and its stdout is open.
    pub(super) fn can_respond(&self) -> bool {
        self.exited.is_none() && self.stdout_ended.is_none()
    }

    /// Returns the exit status, once stdout has been read to the end.
    pub(super) fn final_exit(&self, now: Duration) -> Option<Exit> {
        let (exit, _) = self.exited?;
        let is_final =
            self.stdout_ended.is_some() || self.held_open_until().is_some_and(|until| until <= now);
        is_final.then_some(exit)
    }

    /// Returns the time until which stdout is read after the exit, if another process keeps it open.
    pub(super) fn held_open_until(&self) -> Option<Duration> {
        let (_, at) = self.exited.filter(|_| self.stdout_ended.is_none())?;
        let (quiet, max) = self.held_open;
        Some(self.last_output.max(at).saturating_add(quiet).min(at.saturating_add(max)))
    }
}
