//! The time of a run, which stands still while stdout may not be read.

use std::time::Duration;

use tokio::time::Instant;

/// What is not read yet came before the exit and before any deadline, so no time passes for them.
#[derive(Debug)]
pub(super) struct RunClock {
    start: Instant,
    paused: Option<Instant>,
}

impl RunClock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now(), paused: None }
    }

    /// Returns the time since the start.
    pub(super) fn now(&self) -> Duration {
        self.paused.unwrap_or_else(Instant::now) - self.start
    }

    /// Returns when it will be that late, if the clock is not paused before.
    pub(super) fn instant(&self, time: Duration) -> Instant {
        // A time that no clock can show is never reached: look again in a year.
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
