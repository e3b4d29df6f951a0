//! Questions to the CLI that wait for their answers.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::event::{Effect, Refusal, Settled, Waiter};
use super::limits::SessionLimits;
use super::outbox::Outbox;
use super::shorten::{MAX_NAME_BYTES, shorten};
use crate::control::{ControlOutcome, ControlResponse, HostControlRequest, HostRequest};
use crate::error::DecodeError;
use crate::from_cli::control;
use crate::from_host::FromHost;
use crate::id::RequestId;

#[derive(Debug)]
pub(super) struct Operations {
    last_id: u64,
    suffix: u32,
    /// Of the host's own.
    most: usize,
    /// Messages of servers inside the host: every call that runs may send some, and none of them
    /// takes the place of an interrupt.
    most_of_servers: usize,
    pending: BTreeMap<RequestId, Pending>,
}

#[derive(Debug)]
struct Pending {
    waiter: Waiter,
    limit: Duration,
    deadline: Duration,
    of_a_server: bool,
}

impl Operations {
    pub(super) fn new(suffix: u32, limits: &SessionLimits) -> Self {
        Self {
            last_id: 0,
            suffix,
            most: limits.pending_operations,
            most_of_servers: limits.running_mcp.saturating_mul(2),
            pending: BTreeMap::new(),
        }
    }

    /// The line of a request, with an id of its own.
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

    /// Writes a request and waits for its answer.
    pub(super) fn ask(
        &mut self,
        waiter: Waiter,
        request: HostRequest,
        limit: Duration,
        now: Duration,
        must_have_room: bool,
        out: &mut Outbox,
    ) {
        let of_a_server = matches!(request, HostRequest::McpMessage(_));
        let most = if of_a_server { self.most_of_servers } else { self.most };
        let alike = self.pending.values().filter(|pending| pending.of_a_server == of_a_server);
        if alike.count() >= most {
            return out.settle(waiter, Settled::Refused(Refusal::TooManyPending));
        }
        let (id, line) = match self.encode(request) {
            Ok(encoded) => encoded,
            Err(error) => {
                let refusal = Refusal::Unencodable(error.reason().to_owned());
                return out.settle(waiter, Settled::Refused(refusal));
            }
        };
        if must_have_room && !out.has_room(line.len()) {
            return out.settle(waiter, Settled::Refused(Refusal::TooManyPending));
        }
        let deadline = now.saturating_add(limit);
        // Registered before it is written, so that no answer can come too early.
        self.pending.insert(id, Pending { waiter, limit, deadline, of_a_server });
        out.write(line);
    }

    /// Settles whoever waits for this answer. One that nobody waits for is dropped.
    pub(super) fn answered(&mut self, id: &RequestId, line: &Bytes, out: &mut Outbox) {
        if let Some(pending) = self.pending.remove(id) {
            return out.settle(pending.waiter, settled(line));
        }
        let (request_id, late) = (id.clone(), self.was_asked(id));
        out.push(Effect::Unclaimed { request_id, late });
    }

    fn was_asked(&self, id: &RequestId) -> bool {
        let number = id.as_str().strip_suffix(&format!("_{:08x}", self.suffix));
        let number = number.and_then(|id| id.strip_prefix("req_")?.parse::<u64>().ok());
        number.is_some_and(|number| (1..=self.last_id).contains(&number))
    }

    /// Settles whoever waits for an answer that was too long.
    pub(super) fn answered_too_long(&mut self, id: &RequestId, size: u64, out: &mut Outbox) {
        if let Some(pending) = self.pending.remove(id) {
            out.settle(pending.waiter, Settled::Refused(Refusal::ResponseTooLarge(size)));
        }
    }

    pub(super) fn forget(&mut self, waiter: Waiter) {
        self.pending.retain(|_, pending| pending.waiter != waiter);
    }

    /// Takes out everybody who waits.
    pub(super) fn take_waiters(&mut self) -> Vec<Waiter> {
        let pending = std::mem::take(&mut self.pending).into_values();
        pending.map(|pending| pending.waiter).collect()
    }

    /// Settles those whose time is over. If stdin is broken, that is why no answer came.
    pub(super) fn tick(&mut self, now: Duration, broken: Option<&str>, out: &mut Outbox) {
        if self.next_deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        self.pending.retain(|request_id, pending| {
            let waits = now < pending.deadline;
            if !waits {
                let refusal = match broken {
                    Some(reason) => Refusal::Closed(reason.to_owned()),
                    None => {
                        Refusal::TimedOut { request_id: request_id.clone(), limit: pending.limit }
                    }
                };
                out.settle(pending.waiter, Settled::Refused(refusal));
            }
            waits
        });
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.pending.values().map(|pending| pending.deadline).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }
}

/// What an answer says.
fn settled(line: &Bytes) -> Settled {
    let refusal = match control::<ControlResponse>(line).map(|answer| answer.response) {
        Ok(ControlOutcome::Success(success)) => return Settled::Answered(success.response),
        Ok(ControlOutcome::Error(failure)) => Refusal::Rejected(failure),
        Ok(ControlOutcome::Unknown(unknown)) => {
            let kind = shorten(&unknown.kind, MAX_NAME_BYTES);
            Refusal::UndecodableResponse(format!("unknown kind of response: `{kind}`"))
        }
        Ok(ControlOutcome::Undecodable(undecodable)) => {
            Refusal::UndecodableResponse(undecodable.reason)
        }
        Err(malformed) => Refusal::UndecodableResponse(malformed.reason),
    };
    Settled::Refused(refusal)
}
