//! The time of a run, which stands still while nothing may be read.

use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    paused: Option<Instant>,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now(), paused: None }
    }

    pub(super) fn now(&self) -> Duration {
        self.paused.unwrap_or_else(Instant::now) - self.start
    }

    /// When it will be that late.
    pub(super) fn instant(&self, time: Duration) -> Instant {
        // A limit beyond what a clock can show is none: look again in a year.
        self.start.checked_add(time).unwrap_or(self.start + Duration::from_secs(365 * 24 * 3600))
    }

    pub(super) fn pause(&mut self) {
        self.paused.get_or_insert_with(Instant::now);
    }

    pub(super) fn go_on(&mut self) {
        if let Some(paused) = self.paused.take() {
            self.start += paused.elapsed();
        }
    }
}
