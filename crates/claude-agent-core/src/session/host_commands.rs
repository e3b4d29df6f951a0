//! Commands of the host: accepts, queues or rejects them.

use std::time::Duration;

use claude_wire::control::HostRequest;

use super::end::describe_exit;
use super::event::{Completion, OutgoingMessage, Rejection, Waiter};
use super::handshake::Handshake;
use super::machine::Machine;
use super::queue::{QueueEntry, QueuedItem};
use super::stop::{StopReason, rejection_after};

impl Machine {
    pub(super) fn send(&mut self, waiter: Waiter, message: OutgoingMessage, now: Duration) {
        if let Some(rejection) = self.rejection() {
            return self.reject_command(waiter, rejection, now);
        }
        if self.query.is_none() {
            // The CLI ignores a second message with the same ID, so its turn would never end.
            if !self.turns.add(&message) {
                return self
                    .out
                    .complete(waiter, Completion::Rejected(Rejection::DuplicateMessage));
            }
        }
        let must_wait = self.handshake.is_pending() || !self.queue.is_empty();
        if must_wait || !self.out.has_room(message.line.len()) {
            self.queue.push(waiter, QueuedItem::Message(message));
        } else {
            self.write_message(waiter, message);
        }
    }

    pub(super) fn write_message(&mut self, waiter: Waiter, message: OutgoingMessage) {
        self.turns.written(&message.id);
        self.out.write(message.line);
        self.out.complete(waiter, Completion::Sent);
    }

    pub(super) fn request(
        &mut self,
        waiter: Waiter,
        request: HostRequest,
        timeout: Duration,
        now: Duration,
    ) {
        let rewinds = matches!(request, HostRequest::RewindFiles(_));
        let must_wait = self.handshake.is_pending();
        let rejection = self.rejection().or_else(|| match () {
            () if rewinds && !self.plan.file_checkpointing => {
                Some(Rejection::CheckpointingNotEnabled)
            }
            () if must_wait && self.queue.operations() >= self.plan.limits.waiting_operations => {
                Some(Rejection::HandshakeQueueFull)
            }
            () => None,
        });
        if let Some(rejection) = rejection {
            self.reject_command(waiter, rejection, now);
        } else if must_wait {
            self.queue.push(waiter, QueuedItem::Operation(Box::new(request), timeout));
        } else {
            self.operations.send(waiter, request, timeout, now, true, &mut self.out);
        }
    }

    /// Writes the commands that waited for the handshake, in order and without waiting for responses.
    pub(super) fn flush_queue(&mut self, now: Duration) {
        self.write_prompt();
        for QueueEntry { waiter, item } in self.queue.take_all() {
            match item {
                QueuedItem::Operation(request, timeout) => {
                    self.operations.send(waiter, *request, timeout, now, false, &mut self.out);
                }
                QueuedItem::Message(message) => {
                    self.queue.push(waiter, QueuedItem::Message(message));
                    self.write_messages();
                }
            }
        }
        self.close_stdin_when_written(now);
    }

    /// Writes queued messages, in order, while the write buffer has room.
    pub(super) fn write_messages(&mut self) {
        while !self.handshake.is_pending()
            && self.queue.next_message_length().is_some_and(|length| self.out.has_room(length))
        {
            if let Some(QueueEntry { waiter, item: QueuedItem::Message(message) }) =
                self.queue.pop()
            {
                self.write_message(waiter, message);
            }
        }
    }

    pub(super) fn forget(&mut self, waiter: Waiter, now: Duration) {
        self.operations.forget(waiter);
        self.orphans.forget(waiter);
        let queued = self.queue.forget(waiter);
        if let Some(QueueEntry { item: QueuedItem::Message(message), .. }) = queued {
            self.turns.withdraw(&message.id);
            self.write_messages();
        }
        self.close_stdin_when_written(now);
    }

    /// Returns the reason why no further command is accepted, if there is one.
    pub(super) fn rejection(&self) -> Option<Rejection> {
        match &self.stop_reason {
            Some(StopReason::Host) => return Some(Rejection::Stopped),
            Some(StopReason::Failed(failure)) => return Some(rejection_after(failure)),
            Some(StopReason::Overdue(_)) | None => {}
        }
        if self.input_ended {
            return Some(Rejection::InputEnded);
        }
        if let Some((exit, _)) = self.process.exited {
            return Some(Rejection::Closed(describe_exit(exit)));
        }
        if self.process.stdout_ended.is_some() {
            return Some(Rejection::Closed("the CLI closed stdout".to_owned()));
        }
        if self.write_failed.is_some() {
            let reason = self.evidence.write_error.clone();
            return Some(Rejection::Closed(reason.unwrap_or_default()));
        }
        match self.handshake {
            Handshake::Failed => Some(Rejection::NotInitialized),
            _ if !self.out.is_open() => Some(Rejection::InputEnded),
            _ => None,
        }
    }

    /// Rejects all commands that wait for a response or for room in the write buffer.
    pub(super) fn reject_pending(&mut self, rejection: &Rejection, now: Duration) {
        for waiter in self.operations.take_waiters() {
            self.reject_command(waiter, rejection.clone(), now);
        }
        self.reject_queued(rejection, now);
    }

    pub(super) fn reject_queued(&mut self, rejection: &Rejection, now: Duration) {
        for QueueEntry { waiter, item } in self.queue.take_all() {
            if let QueuedItem::Message(message) = item {
                self.turns.withdraw(&message.id);
            }
            self.reject_command(waiter, rejection.clone(), now);
        }
    }
}
