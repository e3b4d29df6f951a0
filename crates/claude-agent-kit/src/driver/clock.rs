//! The time of a run, which stands still while nothing may be read.

use std::time::Duration;

use tokio::time::Instant;

/// Looking at a clock costs as much as some of the steps that it is looked at for, so one look is
/// good for all that happens at once.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    paused: Option<Instant>,
    seen: Option<Instant>,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { start: Instant::now(), paused: None, seen: None }
    }

    /// Time may have passed since the last look.
    pub(super) fn look_again(&mut self) {
        self.seen = None;
    }

    /// The time on the wall.
    fn on_the_wall(&mut self) -> Instant {
        *self.seen.get_or_insert_with(Instant::now)
    }

    pub(super) fn now(&mut self) -> Duration {
        let now = self.paused.unwrap_or_else(|| self.on_the_wall());
        now - self.start
    }

    /// When it will be that late.
    pub(super) fn instant(&self, time: Duration) -> Instant {
        // A limit beyond what a clock can show is none: look again in a year.
        self.start.checked_add(time).unwrap_or(self.start + Duration::from_secs(365 * 24 * 3600))
    }

    pub(super) fn pause(&mut self) {
        if self.paused.is_none() {
            self.paused = Some(self.on_the_wall());
        }
    }

    pub(super) fn go_on(&mut self) {
        if let Some(paused) = self.paused.take() {
            let now = self.on_the_wall();
            self.start += now - paused;
        }
    }
}
