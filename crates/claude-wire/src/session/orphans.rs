//! Calls of the host that the CLI will not answer because it is about to exit. They are refused when
//! it is known how it exited, so that their errors can say it.

use std::time::Duration;

use super::event::{Refusal, Settled, Waiter};
use super::machine::Machine;

/// How long they wait for the exit at most, from the first of them on.
const EXIT_REASON_GRACE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(super) struct Orphans {
    waiting: Vec<(Waiter, Refusal)>,
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
    /// Refuses a call of the host: when it is known how the process exited, if that may be the reason
    /// and not too many wait for it, otherwise at once.
    pub(super) fn refuse(&mut self, waiter: Waiter, refusal: Refusal, now: Duration) {
        let is_dying = !self.process.can_be_heard() && !self.has_failed() && self.over.is_none();
        let has_room = self.orphans.waiting.len() < self.plan.limits.pending_operations;
        if !is_dying || !has_room || !matches!(refusal, Refusal::Closed(_)) {
            return self.out.settle(waiter, Settled::Refused(refusal));
        }
        self.orphans.waiting.push((waiter, refusal));
        self.orphans.deadline.get_or_insert(now.saturating_add(EXIT_REASON_GRACE));
        self.orphans_tick(now);
    }

    pub(super) fn orphans_tick(&mut self, now: Duration) {
        if self.orphans.deadline().is_some_and(|deadline| deadline <= now) {
            self.refuse_orphans();
        }
    }

    pub(super) fn refuse_orphans(&mut self) {
        for (waiter, refusal) in std::mem::take(&mut self.orphans.waiting) {
            self.out.settle(waiter, Settled::Refused(refusal));
        }
    }
}
