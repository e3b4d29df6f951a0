//! The clock of a run, paused while backpressure keeps stdout from being read.

use std::time::Duration;

use tokio::time::Instant;

/// Unread output precedes the exit and any deadline, so time does not advance for these either.
#[derive(Debug)]
pub(super) struct RunClock {
    start: Instant,
    paused: Option<Instant>,
}

impl RunClock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now(), paused: None }
    }

    /// Returns the time since the start of the run.
    pub(super) fn now(&self) -> Duration {
        self.paused.unwrap_or_else(Instant::now) - self.start
    }

    /// Returns the instant at which the clock reaches `at`, unless it is paused before.
    pub(super) fn instant(&self, time: Duration) -> Instant {
        // An instant out of range is never reached: check again in a year.
        self.start.checked_add(time).unwrap_or(self.start + Duration::from_secs(365 * 24 * 3600))
    }

    pub(super) fn pause(&mut self) {
        self.paused.get_or_insert_with(Instant::now);
    }

    pub(super) fn resume(&mut self) {
        if let Some(paused) = self.paused.take() {
            self.start += paused.elapsed();
        }
    }
}
