//! How a run ends, and who is told.

use std::time::Duration;

use claude_wire::session::{End, Refusal};

use super::Driver;
use crate::diagnose;
use crate::error::{Error, ErrorKind};
use crate::feed::Over;
use crate::mailbox::Reply;
use crate::session::events::SessionEvent;
use crate::stderr::TailCopy;

/// So long a CLI that has closed its output may take to say how it ends, until those are told without
/// that whom it owes an answer.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(2);

impl Driver {
    /// Tells everybody that it is over, and why.
    pub(super) async fn conclude(&mut self, end: End) {
        // The reason of a failure, and what is told line by line, may still be on its way.
        self.stderr.finish().await;
        self.clock.look_again();
        let error = match &end {
            End::Failed(failure) => {
                self.complete_evidence();
                let error = diagnose::failure(failure, &self.evidence);
                tracing::debug!(kind = ?error.kind(), "the run failed");
                Some(error)
            }
            End::Finished | End::Stopped | End::Completed => None,
        };
        self.finish(error, end == End::Completed);
        // Only now: whoever finds the mailbox closed looks for the cause.
        for note in self.mailbox.close() {
            self.take_note(note);
        }
        self.act();
        self.refuse_bereft();
        self.turns.end_all(&self.feed);
    }

    /// The cause is published first, so that whoever is woken finds it.
    pub(super) fn finish(&mut self, error: Option<Error>, completed: bool) {
        self.turns.note_cut_off();
        self.feed.end(Over { exit: self.exit, error: error.clone(), completed });
        self.turns.end_all(&self.feed);
        self.events.add(match error {
            Some(error) => SessionEvent::Failed(error),
            None if completed => SessionEvent::Completed(self.exit),
            None => SessionEvent::Stopped(self.exit),
        });
    }

    pub(super) fn complete_evidence(&mut self) {
        let seen = self.machine.evidence();
        let stdout = TailCopy::of_lines(seen.output_before_handshake());
        let evidence = &mut self.evidence;
        evidence.exit = self.exit;
        evidence.stderr_tail = self.stderr.tail();
        evidence.stdout_tail = stdout.masked(&evidence.mask);
        evidence.last_other_line.clone_from(&seen.last_other_line);
        evidence.session_id.clone_from(&seen.session_id);
        evidence.read_error.clone_from(&seen.read_error);
    }

    /// Tells what is known to those who have waited long enough for more.
    pub(super) fn console(&mut self) {
        let now = self.clock.now();
        if self.bereft_until.is_some_and(|until| until <= now) {
            self.refuse_bereft();
        }
    }

    fn refuse_bereft(&mut self) {
        self.complete_evidence();
        for (reply, refusal) in std::mem::take(&mut self.bereft) {
            self.refuse(reply, &refusal);
        }
    }

    /// Whether the CLI is about to end without anybody having said why.
    pub(super) fn is_dying(&self) -> bool {
        (self.output.is_none() || self.exit.is_some()) && !self.failed_early
    }

    /// Collects what a refusal needs. The tails are masked only for a refusal that quotes them.
    pub(super) fn complete_evidence_for(&mut self, refusal: &Refusal) {
        match refusal {
            Refusal::Closed(_) => self.complete_evidence(),
            _ => self.evidence.session_id.clone_from(&self.machine.evidence().session_id),
        }
    }

    pub(super) fn refuse(&self, reply: Reply, refusal: &Refusal) {
        let error = diagnose::refusal(refusal, &reply.operation, &self.evidence);
        tracing::error!(operation = reply.operation, kind = ?error.kind(), "failed");
        reply.send(Err(error));
    }
}

impl Drop for Driver {
    /// Where the task is dropped before its end, its runtime is gone.
    fn drop(&mut self) {
        if self.feed.over().is_none() {
            let error = Error::new(
                ErrorKind::RuntimeGone,
                "the runtime that the run lived on was shut down before its end",
            )
            .remedy("keep the runtime for as long as the run is needed");
            self.finish(Some(error), false);
        }
        // Only now: whoever finds the mailbox closed looks for the cause.
        drop(self.mailbox.close());
    }
}
