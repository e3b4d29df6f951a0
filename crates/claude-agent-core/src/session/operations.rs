//! Control requests to the CLI that are in flight.

use std::time::Duration;

use bytes::Bytes;
use claude_wire::control::{ControlOutcome, ControlResponse, HostControlRequest, HostRequest};
use claude_wire::id::RequestId;
use claude_wire::{DecodeError, FromHost};

use super::event::{Completion, Effect, Rejection, Waiter};
use super::limits::SessionLimits;
use super::outbox::Outbox;
use super::shorten::{MAX_NAME_BYTES, shorten};

#[derive(Debug)]
pub(super) struct Operations {
    last_id: u64,
    suffix: u32,
    /// The maximum number of operations in flight.
    max_pending: usize,
    /// The maximum number of messages of in-process MCP servers in flight. Every running tool call may
    /// send some; a limit of their own keeps them from blocking an interrupt.
    max_pending_mcp: usize,
    pending: Vec<PendingOperation>,
}

#[derive(Debug)]
struct PendingOperation {
    id: RequestId,
    waiter: Waiter,
    timeout: Duration,
    deadline: Duration,
    is_mcp: bool,
}

impl Operations {
    pub(super) fn new(suffix: u32, limits: &SessionLimits) -> Self {
        Self {
            last_id: 0,
            suffix,
            max_pending: limits.pending_operations,
            max_pending_mcp: limits.running_mcp.saturating_mul(2),
            pending: Vec::new(),
        }
    }

    /// Encodes a request with a new ID.
    pub(super) fn encode(
        &mut self,
        request: HostRequest,
    ) -> Result<(RequestId, Bytes), DecodeError> {
        self.last_id += 1;
        let id = RequestId::from(format!("req_{}_{:08x}", self.last_id, self.suffix));
        let frame = HostControlRequest::new(id.clone(), request);
        let line = FromHost::Request(Box::new(frame)).encode()?;
        Ok((id, line))
    }

    /// Writes a request and registers its waiter.
    pub(super) fn send(
        &mut self,
        waiter: Waiter,
        request: HostRequest,
        timeout: Duration,
        now: Duration,
        must_have_room: bool,
        out: &mut Outbox,
    ) {
        let is_mcp = matches!(request, HostRequest::McpMessage(_));
        let limit = if is_mcp { self.max_pending_mcp } else { self.max_pending };
        let same_kind = self.pending.iter().filter(|pending| pending.is_mcp == is_mcp);
        if same_kind.count() >= limit {
            return out.complete(waiter, Completion::Rejected(Rejection::TooManyPending));
        }
        let (id, line) = match self.encode(request) {
            Ok(encoded) => encoded,
            Err(error) => {
                let rejection = Rejection::Unencodable(error.reason().to_owned());
                return out.complete(waiter, Completion::Rejected(rejection));
            }
        };
        if must_have_room && !out.has_room(line.len()) {
            return out.complete(waiter, Completion::Rejected(Rejection::TooManyPending));
        }
        let deadline = now.saturating_add(timeout);
        // Registered before the write, so that no response can arrive too early.
        self.pending.push(PendingOperation { id, waiter, timeout, deadline, is_mcp });
        out.write(line);
    }

    /// Completes the operation of a response. A response without a pending request is discarded.
    pub(super) fn on_response(&mut self, id: &RequestId, line: &Bytes, out: &mut Outbox) {
        if let Some(pending) = self.remove(id) {
            return out.complete(pending.waiter, completion(line));
        }
        let (request_id, late) = (id.clone(), self.was_sent(id));
        out.push(Effect::UnmatchedResponse { request_id, late });
    }

    fn was_sent(&self, id: &RequestId) -> bool {
        let number = id.as_str().strip_suffix(&format!("_{:08x}", self.suffix));
        let number = number.and_then(|id| id.strip_prefix("req_")?.parse::<u64>().ok());
        number.is_some_and(|number| (1..=self.last_id).contains(&number))
    }

    /// Completes the operation of a response that exceeds the line length limit.
    pub(super) fn on_oversized_response(&mut self, id: &RequestId, size: u64, out: &mut Outbox) {
        if let Some(pending) = self.remove(id) {
            out.complete(pending.waiter, Completion::Rejected(Rejection::ResponseTooLarge(size)));
        }
    }

    pub(super) fn forget(&mut self, waiter: Waiter) {
        self.pending.retain(|pending| pending.waiter != waiter);
    }

    fn remove(&mut self, id: &RequestId) -> Option<PendingOperation> {
        let index = self.pending.iter().position(|pending| pending.id == *id)?;
        Some(self.pending.remove(index))
    }

    /// Removes all pending operations and returns their waiters.
    pub(super) fn take_waiters(&mut self) -> Vec<Waiter> {
        self.pending.drain(..).map(|pending| pending.waiter).collect()
    }

    /// Rejects the operations that have timed out. If stdin is broken, that is the reason.
    pub(super) fn tick(&mut self, now: Duration, broken: Option<&str>, out: &mut Outbox) {
        if self.next_deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        self.pending.retain(|pending| {
            let is_pending = now < pending.deadline;
            if !is_pending {
                let rejection = match broken {
                    Some(reason) => Rejection::Closed(reason.to_owned()),
                    None => Rejection::TimedOut {
                        request_id: pending.id.clone(),
                        timeout: pending.timeout,
                    },
                };
                out.complete(pending.waiter, Completion::Rejected(rejection));
            }
            is_pending
        });
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.pending.iter().map(|pending| pending.deadline).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

/// Decodes a response.
fn completion(line: &Bytes) -> Completion {
    let rejection = match ControlResponse::decode(line).map(|response| response.response) {
        Ok(ControlOutcome::Success(success)) => return Completion::Response(success.response),
        Ok(ControlOutcome::Error(failure)) => Rejection::ByCli(failure),
        Ok(ControlOutcome::Unknown(unknown)) => {
            let kind = shorten(&unknown.kind, MAX_NAME_BYTES);
            Rejection::UndecodableResponse(format!("unknown kind of response: `{kind}`"))
        }
        Ok(ControlOutcome::Undecodable(undecodable)) => {
            Rejection::UndecodableResponse(undecodable.reason)
        }
        Ok(_) => Rejection::UndecodableResponse("unknown outcome of a request".to_owned()),
        Err(malformed) => Rejection::UndecodableResponse(malformed.reason),
    };
    Completion::Rejected(rejection)
}
