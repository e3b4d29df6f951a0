//! What the host asks of the machine, and when it may not.

use std::time::Duration;

use super::ending::described;
use super::event::{Outgoing, Refusal, Settled, Waiter};
use super::handshake::Handshake;
use super::machine::Machine;
use super::queue::{Queued, QueuedItem};
use super::stop::{StopReason, refusal_after};
use crate::control::HostRequest;

impl Machine {
    pub(super) fn send(&mut self, waiter: Waiter, message: Outgoing, now: Duration) {
        if let Some(refusal) = self.refusal() {
            return self.refuse(waiter, refusal, now);
        }
        if self.query.is_none() {
            // The CLI ignores a second message of the same id, whose turn would never end.
            if !self.turns.open(&message) {
                return self.out.settle(waiter, Settled::Refused(Refusal::DuplicateMessage));
            }
        }
        let waits = self.handshake.is_pending() || !self.queue.is_empty();
        if waits || !self.out.has_room(message.line.len()) {
            self.queue.push(waiter, QueuedItem::Message(message));
        } else {
            self.write_message(waiter, message);
        }
    }

    pub(super) fn write_message(&mut self, waiter: Waiter, message: Outgoing) {
        self.turns.written(&message.id);
        self.out.write(message.line);
        self.out.settle(waiter, Settled::Sent);
    }

    pub(super) fn ask(
        &mut self,
        waiter: Waiter,
        request: HostRequest,
        limit: Duration,
        now: Duration,
    ) {
        let rewinds = matches!(request, HostRequest::RewindFiles(_));
        let waits = self.handshake.is_pending();
        let refusal = self.refusal().or_else(|| match () {
            () if rewinds && !self.plan.file_checkpointing => {
                Some(Refusal::CheckpointingNotEnabled)
            }
            () if waits && self.queue.operations() >= self.plan.limits.waiting_operations => {
                Some(Refusal::InitQueueFull)
            }
            () => None,
        });
        if let Some(refusal) = refusal {
            self.refuse(waiter, refusal, now);
        } else if waits {
            self.queue.push(waiter, QueuedItem::Operation(Box::new(request), limit));
        } else {
            self.operations.ask(waiter, request, limit, now, true, &mut self.out);
        }
    }

    /// Writes what waited for the handshake, in order and without waiting for answers.
    pub(super) fn write_what_waits(&mut self, now: Duration) {
        self.write_prompt();
        for Queued { waiter, what } in self.queue.take_all() {
            match what {
                QueuedItem::Operation(request, limit) => {
                    self.operations.ask(waiter, *request, limit, now, false, &mut self.out);
                }
                QueuedItem::Message(message) => {
                    self.queue.push(waiter, QueuedItem::Message(message));
                    self.write_messages();
                }
            }
        }
        self.close_when_written(now);
    }

    /// Writes messages that wait for room, in order, while there is some.
    pub(super) fn write_messages(&mut self) {
        while !self.handshake.is_pending()
            && self.queue.next_message_length().is_some_and(|length| self.out.has_room(length))
        {
            if let Some(Queued { waiter, what: QueuedItem::Message(message) }) = self.queue.pop() {
                self.write_message(waiter, message);
            }
        }
    }

    pub(super) fn forget(&mut self, waiter: Waiter, now: Duration) {
        self.operations.forget(waiter);
        self.orphans.forget(waiter);
        let queued = self.queue.forget(waiter);
        if let Some(Queued { what: QueuedItem::Message(message), .. }) = queued {
            self.turns.withdraw(&message.id);
            self.write_messages();
        }
        self.close_when_written(now);
    }

    /// Why nothing more can be asked, if that is so.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        match &self.stop_reason {
            Some(StopReason::Host) => return Some(Refusal::Stopped),
            Some(StopReason::Failed(failure)) => return Some(refusal_after(failure)),
            Some(StopReason::Overdue(_)) | None => {}
        }
        if self.input_ended {
            return Some(Refusal::InputEnded);
        }
        if let Some((exit, _)) = self.process.exited {
            return Some(Refusal::Closed(described(exit)));
        }
        if self.process.stdout_ended.is_some() {
            return Some(Refusal::Closed("the CLI closed its output".to_owned()));
        }
        if self.write_failed.is_some() {
            let reason = self.evidence.write_error.clone();
            return Some(Refusal::Closed(reason.unwrap_or_default()));
        }
        match self.handshake {
            Handshake::Failed => Some(Refusal::NotInitialized),
            _ if !self.out.is_open() => Some(Refusal::InputEnded),
            _ => None,
        }
    }

    /// Tells everybody who waits for an answer or for room.
    pub(super) fn refuse_waiting(&mut self, refusal: &Refusal, now: Duration) {
        for waiter in self.operations.take_waiters() {
            self.refuse(waiter, refusal.clone(), now);
        }
        self.refuse_queued(refusal, now);
    }

    pub(super) fn refuse_queued(&mut self, refusal: &Refusal, now: Duration) {
        for Queued { waiter, what } in self.queue.take_all() {
            if let QueuedItem::Message(message) = what {
                self.turns.withdraw(&message.id);
            }
            self.refuse(waiter, refusal.clone(), now);
        }
    }
}
