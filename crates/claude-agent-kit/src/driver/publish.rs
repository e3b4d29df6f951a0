//! Publishes messages, warnings, states, replies and the end of a run to the host.

use bytes::Bytes;
use claude_agent_core::session::{
    Completion, Rejection, RunCost, RunEnd, RunFailure, RunState, Waiter,
};
use claude_wire::Exit;
use claude_wire::id::{MessageId, RequestId, SessionId};

use super::Driver;
use crate::commands::{Reply, ReplySender};
use crate::diagnose;
use crate::drift;
use crate::error::{Error, ErrorKind};
use crate::feed::{Over, Piece};
use crate::lock::lock;
use crate::permission::PermissionOrigin;
use crate::session::events::SessionState;
use crate::stderr::TailCopy;
use crate::turn::TurnSlot;
use crate::warning::Warning;

impl Driver {
    pub(super) fn flush_batch(&mut self) {
        if !self.batch.is_empty() {
            self.feed.push(&mut self.batch, self.machine.has_waiters());
        }
        if let Some(id) = &self.machine.evidence().session_id {
            self.events.set_session_id(id);
        }
    }

    /// Returns the session ID reported by the CLI, or the one it was started with.
    pub(super) fn session_id(&self) -> Option<SessionId> {
        let named = self.machine.evidence().session_id.clone();
        named.or_else(|| self.events.session_id())
    }

    /// Delivers a permission request in its place among the messages, before its callback runs.
    pub(super) fn deliver_permission(&mut self, line: Bytes) {
        let session_id = self.session_id();
        let origin = PermissionOrigin { run: self.run, session_id };
        self.batch.push(Piece::Permission(line, Box::new(origin)));
        self.flush_batch();
    }

    /// Offers the turn of a replay to the host, unless the host has given it up.
    pub(super) fn start_replay(&mut self, id: MessageId) {
        self.flush_batch();
        let Some(replay) = self.replay.upgrade() else { return };
        let slot = TurnSlot::new(id, self.feed.subscribe_replay());
        slot.start();
        replay.offer(slot.detached(self.feed.clone(), self.warnings.clone()));
        self.turns.add(slot);
    }

    /// Tells the host that the CLI replays nothing.
    pub(super) fn rule_out_replay(&self) {
        if let Some(replay) = self.replay.upgrade() {
            replay.rule_out();
        }
    }

    pub(super) fn warn(&mut self, warning: Warning) {
        // The text may quote the CLI or the host.
        let warning = warning.masked(&self.evidence.mask);
        self.warnings.tell(&warning);
        self.batch.push(Piece::Warning(warning));
    }

    pub(super) fn publish_cost(&mut self, cost: RunCost) {
        *lock(&self.cost) = cost;
    }

    pub(super) fn publish_state(&mut self, state: RunState) {
        match state {
            RunState::Initializing => self.events.add(SessionState::Initializing),
            RunState::Running(info) => self.events.run(info),
            RunState::Stopping => self.events.add(SessionState::Stopping),
            RunState::Failed(failure) => self.publish_failure(&failure),
        }
    }

    /// Publishes the cause of a failure immediately, while the process is still shutting down.
    fn publish_failure(&mut self, failure: &RunFailure) {
        self.collect_evidence();
        let error = diagnose::failure(failure, &self.evidence);
        self.flush_batch();
        self.feed.fail(error.clone());
        self.events.fail(error);
    }

    pub(super) fn settle(&mut self, waiter: Waiter, settled: Completion) {
        let Some(mut reply) = self.replies.remove(waiter.0) else { return };
        match settled {
            Completion::Sent | Completion::InputEnded => reply.send(Ok(Reply::Accepted)),
            Completion::Response(response) => {
                let done = match reply.interrupts.take() {
                    // Here and not in the waiting future: the results of these turns may follow immediately.
                    Some(turns) => Reply::Interrupted(response, self.turns.running_of(turns)),
                    None => Reply::Response(response),
                };
                reply.send(Ok(done));
            }
            Completion::Rejected(rejection) => self.reject(reply, &rejection),
        }
    }

    fn reject(&mut self, reply: ReplySender, rejection: &Rejection) {
        if let Some(turn) = &reply.turn
            && *rejection != Rejection::DuplicateMessage
        {
            self.turns.forget(turn);
        }
        // Masking is costly, so only errors that quote the tails mask them.
        if let Rejection::Closed(_) = rejection {
            self.collect_evidence();
        } else {
            self.evidence.session_id.clone_from(&self.machine.evidence().session_id);
        }
        let error = diagnose::rejection(rejection, &reply.operation, &self.evidence);
        tracing::error!(operation = reply.operation, kind = ?error.kind(), "failed");
        reply.send(Err(error));
    }

    fn collect_evidence(&mut self) {
        let seen = self.machine.evidence();
        let stdout = TailCopy::of_lines(seen.output_before_handshake());
        let evidence = &mut self.evidence;
        evidence.exit = self.exit;
        evidence.stderr_tail = self.stderr.tail();
        evidence.stdout_tail = stdout.masked(&evidence.mask);
        evidence.last_malformed_line.clone_from(&seen.last_malformed_line);
        evidence.session_id.clone_from(&seen.session_id);
        evidence.read_error.clone_from(&seen.read_error);
    }

    /// Publishes the end, then rejects new commands, then fails the pending ones.
    pub(super) async fn shut_down(&mut self, end: RunEnd) {
        self.flush_batch();
        // The last lines of stderr, which may contain the reason of a failure, may still be unread.
        self.stderr.finish().await;
        if let Some(mirror) = &mut self.mirror {
            let is_complete = self.exit.is_some_and(Exit::success);
            mirror.finish(self.machine.is_stored(), is_complete).await;
        }
        let error = match &end {
            RunEnd::Failed(failure) => {
                self.collect_evidence();
                let error = diagnose::failure(failure, &self.evidence);
                tracing::debug!(kind = ?error.kind(), "the run failed");
                Some(error)
            }
            RunEnd::Finished | RunEnd::Stopped | RunEnd::Completed => None,
        };
        self.publish_end(error, Some(&end));
        // After the cause is published: a sender that finds the channel closed reads the cause.
        for command in self.commands.close() {
            self.on_command(command);
        }
        self.perform_effects();
        self.turns.end_all(&self.feed);
    }

    fn publish_end(&mut self, error: Option<Error>, end: Option<&RunEnd>) {
        let completed = matches!(end, Some(RunEnd::Completed));
        let stopped = matches!(end, Some(RunEnd::Stopped));
        let over = Over { exit: self.exit, error, completed, stopped };
        let state = SessionState::at_end(&over);
        // Before the feed, whose end completes `stop`: the state is final by then.
        self.events.add(state);
        self.feed.end(over);
        self.turns.end_all(&self.feed);
        self.rule_out_replay();
    }
}

impl Drop for Driver {
    /// Publishes that the runtime was shut down, if the driver task is dropped before the end.
    fn drop(&mut self) {
        if self.feed.over().is_some() {
            return;
        }
        if self.turns.any_started() {
            lock(&self.cost).sum.is_complete = false;
        }
        self.publish_end(Some(runtime_gone()), None);
        // After the cause is published: a sender that finds the channel closed reads the cause.
        drop(self.commands.close());
    }
}

pub(crate) fn runtime_gone() -> Error {
    let message = "the Tokio runtime was shut down while the session was running";
    Error::new(ErrorKind::RuntimeGone, message)
        .with_help("keep the runtime for as long as the session is needed")
}

/// Logs a response without a pending operation.
pub(super) fn log_unclaimed(request_id: &RequestId, late: bool) {
    let request_id = drift::shown(request_id.as_str());
    if late {
        tracing::debug!(request_id, "late response to an operation");
    } else {
        tracing::warn!(request_id, "response without a pending operation");
    }
}
