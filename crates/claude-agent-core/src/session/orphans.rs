//! Commands of the host to which the CLI will not respond because it is about to exit. They are
//! rejected once the exit status is known, so that their errors can contain it.

use std::time::Duration;

use super::event::{Completion, Rejection, Waiter};
use super::machine::Machine;

/// The maximum time that they wait for the exit, measured from the first of them.
const EXIT_REASON_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Orphans {
    waiting: Vec<(Waiter, Rejection)>,
    deadline: Option<Duration>,
}

impl Orphans {
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn deadline(&self) -> Option<Duration> {
        self.deadline.filter(|_| !self.is_empty())
    }

    pub(super) fn forget(&mut self, waiter: Waiter) {
        self.waiting.retain(|(waiting, _)| *waiting != waiter);
    }
}

impl Machine {
    /// Rejects a command of the host: after the exit, if the exit may be the reason and there is room
    /// to wait for it, otherwise at once.
    pub(super) fn reject_command(&mut self, waiter: Waiter, rejection: Rejection, now: Duration) {
        let is_exiting =
            !self.process.can_respond() && !self.has_failed() && self.rejection_after_end.is_none();
        let has_room = self.orphans.waiting.len() < self.plan.limits.pending_operations;
        if !is_exiting || !has_room || !matches!(rejection, Rejection::Closed(_)) {
            return self.out.complete(waiter, Completion::Rejected(rejection));
        }
        self.orphans.waiting.push((waiter, rejection));
        self.orphans.deadline.get_or_insert(now.saturating_add(EXIT_REASON_GRACE));
        self.orphans_tick(now);
    }

    pub(super) fn orphans_tick(&mut self, now: Duration) {
        if self.orphans.deadline().is_some_and(|deadline| deadline <= now) {
            self.reject_orphans();
        }
    }

    pub(super) fn reject_orphans(&mut self) {
        for (waiter, rejection) in std::mem::take(&mut self.orphans.waiting) {
            self.out.complete(waiter, Completion::Rejected(rejection));
        }
    }
}
