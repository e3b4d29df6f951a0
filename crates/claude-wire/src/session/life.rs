//! Whether the process lives and its output can still come.

use std::time::Duration;

use super::{Exit, RunEndLimits};

#[derive(Debug, Default)]
pub(super) struct Life {
    pub(super) exited: Option<(Exit, Duration)>,
    pub(super) output_ended: Option<Duration>,
    last_output: Duration,
}

impl Life {
    pub(super) fn output(&mut self, now: Duration) {
        self.last_output = now;
    }

    /// Whether the process lives and can still say something.
    pub(super) fn can_be_heard(&self) -> bool {
        self.exited.is_none() && self.output_ended.is_none()
    }

    /// How the process ended, if it did and nothing more can come from it.
    pub(super) fn over(&self, now: Duration) -> Option<Exit> {
        let (exit, _) = self.exited?;
        let over =
            self.output_ended.is_some() || self.held_open_until().is_some_and(|until| until <= now);
        over.then_some(exit)
    }

    /// Until when an output is read that outlived its process: another process may hold it open.
    pub(super) fn held_open_until(&self) -> Option<Duration> {
        let (_, at) = self.exited.filter(|_| self.output_ended.is_none())?;
        let limits = RunEndLimits::default();
        let quiet = self.last_output.max(at) + limits.held_open_quiet;
        Some(quiet.min(at + limits.held_open_most))
    }
}

/// How a process ended, in words.
pub(super) fn described(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("the process ended with exit code {code}"),
        Exit::Signal(signal) => format!("the process was ended by signal {signal}"),
        Exit::Unknown => "the process ended with an unknown status".to_owned(),
    }
}
