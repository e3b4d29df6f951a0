//! Requests of the CLI to which callbacks of the host respond.
//!
//! A request is pending until it has a response or is cancelled. Its callback may outlive it, and
//! counts towards the concurrency limit until it has ended.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use claude_wire::control::CliControlRequest;
use claude_wire::id::RequestId;
use claude_wire::{Json, Map};

use super::event::{CallbackKey, CallbackOutcome, Effect, RunWarning};
use super::failure_rule::FailureRule;
use super::limits::SessionLimits;
use super::outbox::Outbox;
use super::shorten::{MAX_REASON_BYTES, shorten};

/// The reason in the response to a request beyond the limits. The model may read it.
const OVERLOAD_REASON: &str = "too many callbacks in flight; try again later";

#[derive(Debug)]
pub(super) struct Callbacks {
    last_key: u64,
    cancel_grace: Duration,
    /// The requests without a response, by request ID.
    pending: Map<CallbackKey>,
    entries: BTreeMap<CallbackKey, Callback>,
    pools: CallbackPools,
    /// The total size of the requests whose callbacks are queued or running.
    bytes: usize,
    max_bytes: usize,
    /// The times when a callback times out or must be aborted, sorted. A callback has at most one timer.
    timers: Vec<(Duration, CallbackKey)>,
}

/// The concurrency limits of all kinds of callbacks.
#[derive(Debug)]
struct CallbackPools {
    decisions: CallbackPool,
    mcp: CallbackPool,
    /// Responses of the CLI to MCP servers. Running callbacks may wait for them, so they have a limit
    /// of their own.
    mcp_responses: CallbackPool,
}

/// The running and queued callbacks of one kind, with their limits.
#[derive(Debug)]
struct CallbackPool {
    running: usize,
    max_running: usize,
    queue: VecDeque<CallbackKey>,
    max_queued: usize,
}

/// A request and its callback.
#[derive(Debug)]
struct Callback {
    request_id: RequestId,
    /// The length of the request's line.
    bytes: usize,
    rule: FailureRule,
    timeout: Option<Duration>,
    timer: Option<Duration>,
    stage: CallbackStage,
}

#[derive(Debug)]
enum CallbackStage {
    Queued(Box<CliControlRequest>, Bytes),
    Running,
    /// The callback was asked to end; its request is no longer pending.
    Cancelled,
    Aborted,
}

/// A request for a callback.
pub(super) struct CallbackRequest {
    pub(super) request: Box<CliControlRequest>,
    pub(super) line: Bytes,
    pub(super) rule: FailureRule,
    pub(super) timeout: Option<Duration>,
    /// Whether the request is also delivered among the messages.
    pub(super) is_delivered: bool,
}

impl Callbacks {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            last_key: 0,
            cancel_grace: limits.cancel_grace,
            pending: Map::new(),
            entries: BTreeMap::new(),
            pools: CallbackPools {
                decisions: CallbackPool::new(limits.running_callbacks, limits.waiting_callbacks),
                mcp: CallbackPool::new(limits.running_mcp, limits.waiting_mcp),
                mcp_responses: CallbackPool::new(limits.running_mcp, limits.waiting_mcp),
            },
            bytes: 0,
            max_bytes: limits.request_bytes,
            timers: Vec::new(),
        }
    }

    pub(super) fn is_pending(&self, request: &RequestId) -> bool {
        self.pending.contains_key(request.as_str())
    }

    pub(super) fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Starts the callback of a request, queues it, or denies the request if there are too many.
    pub(super) fn start(&mut self, callback: CallbackRequest, now: Duration, out: &mut Outbox) {
        let CallbackRequest { request, line, rule, timeout, is_delivered } = callback;
        let request_id = request.request_id.clone();
        let bytes = line.len();
        let is_too_much = self.bytes > 0 && self.bytes.saturating_add(bytes) > self.max_bytes;
        let pool = self.pools.for_rule(&rule);
        if pool.is_full() || is_too_much {
            out.respond(&request_id, &rule.denial(OVERLOAD_REASON));
            return out.warn(RunWarning::CallbackOverload { request: rule.describe() });
        }
        if is_delivered {
            out.push(Effect::DeliverPermission(line.clone()));
        }
        self.last_key += 1;
        let key = CallbackKey(self.last_key);
        pool.queue.push_back(key);
        self.pending.insert(request_id.as_str(), key);
        let stage = CallbackStage::Queued(request, line);
        self.bytes += bytes;
        self.entries.insert(key, Callback { request_id, bytes, rule, timeout, timer: None, stage });
        self.set_timer(key, timeout.map(|timeout| now.saturating_add(timeout)));
        self.run_queued(out);
    }

    /// Handles the end of a callback, and responds unless its request is no longer pending.
    pub(super) fn on_done(&mut self, key: CallbackKey, outcome: CallbackOutcome, out: &mut Outbox) {
        let Some(call) = self.entries.get(&key) else { return };
        let was_open = match call.stage {
            // A queued callback cannot have ended.
            CallbackStage::Queued(..) => return,
            CallbackStage::Running => true,
            CallbackStage::Cancelled | CallbackStage::Aborted => false,
        };
        self.pools.for_rule(&call.rule).running -= 1;
        self.set_timer(key, None);
        let Some(call) = self.remove(key) else { return };
        if was_open {
            self.pending.remove(call.request_id.as_str());
            match outcome {
                CallbackOutcome::Response(response) => out.respond(&call.request_id, &response),
                CallbackOutcome::Failed(reason) => respond_to_failure(&call, reason, out),
                CallbackOutcome::Aborted => {
                    respond_to_failure(&call, "the callback was aborted".to_owned(), out);
                }
            }
        }
        self.run_queued(out);
    }

    /// Cancels the callback of a request that the CLI has cancelled.
    pub(super) fn cancel(&mut self, request: &RequestId, now: Duration, out: &mut Outbox) {
        if let Some(key) = self.pending.remove(request.as_str()) {
            self.cancel_callback(key, now, out);
            self.run_queued(out);
        }
    }

    /// Cancels the callback of a JSON-RPC request that the CLI has cancelled. The control request
    /// around it gets no response, as if it had been cancelled itself.
    pub(super) fn cancel_mcp(
        &mut self,
        server: &str,
        rpc_id: &Json,
        now: Duration,
        out: &mut Outbox,
    ) {
        let is_match = |key: CallbackKey| {
            self.entries.get(&key).is_some_and(|call| call.rule.is_for(server, rpc_id))
        };
        let found = self.pending.iter().find(|(_, key)| is_match(**key));
        if let Some(request) = found.map(|(id, _)| RequestId::from(id)) {
            self.cancel(&request, now, out);
        }
    }

    /// Cancels running callbacks and removes queued ones, because the CLI accepts no more responses.
    pub(super) fn cancel_all(&mut self, now: Duration, out: &mut Outbox) {
        for pool in self.pools.all_mut() {
            pool.queue.clear();
        }
        for (_, key) in std::mem::take(&mut self.pending) {
            self.cancel_callback(key, now, out);
        }
    }

    /// Aborts all running callbacks.
    pub(super) fn abort_all(&mut self, now: Duration, out: &mut Outbox) {
        self.cancel_all(now, out);
        let keys: Vec<CallbackKey> = self.entries.keys().copied().collect();
        for key in keys {
            self.abort(key, out);
        }
    }

    pub(super) fn tick(&mut self, now: Duration, out: &mut Outbox) {
        while let Some(&(at, key)) = self.timers.first() {
            if now < at {
                break;
            }
            self.set_timer(key, None);
            match self.entries.get(&key).map(|call| &call.stage) {
                Some(CallbackStage::Queued(..) | CallbackStage::Running) => {
                    self.on_timeout(key, now, out);
                }
                Some(CallbackStage::Cancelled) => self.abort(key, out),
                Some(CallbackStage::Aborted) | None => {}
            }
        }
        self.run_queued(out);
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn on_timeout(&mut self, key: CallbackKey, now: Duration, out: &mut Outbox) {
        let Some(call) = self.entries.get(&key) else { return };
        let request = call.rule.describe();
        if let CallbackStage::Queued(..) = call.stage {
            // The callback never ran, so nothing is approved, whatever the failure rule is.
            out.respond(&call.request_id, &call.rule.denial(OVERLOAD_REASON));
            out.warn(RunWarning::CallbackOverload { request });
        } else {
            out.respond(&call.request_id, &call.rule.response("the host's callback took too long"));
            let (timeout, response) = (call.timeout.unwrap_or_default(), call.rule.effect());
            out.warn(RunWarning::CallbackTimedOut { request, timeout, response });
        }
        self.pending.remove(call.request_id.as_str());
        self.cancel_callback(key, now, out);
    }

    /// Cancels the callback of a request that is no longer pending: removes it from the queue, or
    /// signals it and gives it a grace period to end.
    fn cancel_callback(&mut self, key: CallbackKey, now: Duration, out: &mut Outbox) {
        let Some(call) = self.entries.get_mut(&key) else { return };
        match call.stage {
            CallbackStage::Queued(..) => {
                self.pools.for_rule(&call.rule).queue.retain(|queued| *queued != key);
                self.set_timer(key, None);
                self.remove(key);
            }
            CallbackStage::Running => {
                call.stage = CallbackStage::Cancelled;
                out.push(Effect::CancelCallback(key));
                if self.cancel_grace.is_zero() {
                    self.abort(key, out);
                } else {
                    self.set_timer(key, Some(now.saturating_add(self.cancel_grace)));
                }
            }
            CallbackStage::Cancelled | CallbackStage::Aborted => {}
        }
    }

    fn remove(&mut self, key: CallbackKey) -> Option<Callback> {
        let call = self.entries.remove(&key)?;
        self.bytes -= call.bytes;
        Some(call)
    }

    fn abort(&mut self, key: CallbackKey, out: &mut Outbox) {
        self.set_timer(key, None);
        let Some(call) = self.entries.get_mut(&key) else { return };
        if matches!(call.stage, CallbackStage::Cancelled) {
            call.stage = CallbackStage::Aborted;
            out.push(Effect::AbortCallback(key));
        }
    }

    fn run_queued(&mut self, out: &mut Outbox) {
        for pool in self.pools.all_mut() {
            while pool.running < pool.max_running {
                let Some(key) = pool.queue.pop_front() else { break };
                let Some(call) = self.entries.get_mut(&key) else { continue };
                let stage = std::mem::replace(&mut call.stage, CallbackStage::Running);
                if let CallbackStage::Queued(request, line) = stage {
                    pool.running += 1;
                    out.push(Effect::RunCallback { key, request, line });
                }
            }
        }
    }

    fn set_timer(&mut self, key: CallbackKey, at: Option<Duration>) {
        let Some(call) = self.entries.get_mut(&key) else { return };
        if let Some(old) = std::mem::replace(&mut call.timer, at) {
            self.timers.retain(|timer| *timer != (old, key));
        }
        if let Some(at) = at {
            let place = self.timers.partition_point(|timer| *timer < (at, key));
            self.timers.insert(place, (at, key));
        }
    }
}

impl CallbackPools {
    fn for_rule(&mut self, rule: &FailureRule) -> &mut CallbackPool {
        match rule {
            FailureRule::Mcp { .. } => &mut self.mcp,
            FailureRule::McpResponse { .. } => &mut self.mcp_responses,
            _ => &mut self.decisions,
        }
    }

    fn all_mut(&mut self) -> [&mut CallbackPool; 3] {
        [&mut self.decisions, &mut self.mcp, &mut self.mcp_responses]
    }
}

impl CallbackPool {
    fn new(max_running: usize, max_queued: usize) -> Self {
        Self { running: 0, max_running, queue: VecDeque::new(), max_queued }
    }

    fn is_full(&self) -> bool {
        self.running >= self.max_running && self.queue.len() >= self.max_queued
    }
}

/// Responds by the failure rule of a callback, and warns.
fn respond_to_failure(call: &Callback, reason: String, out: &mut Outbox) {
    let text = format!("the host's callback failed: {reason}");
    out.respond(&call.request_id, &call.rule.response(&shorten(&text, MAX_REASON_BYTES)));
    let (request, response) = (call.rule.describe(), call.rule.effect());
    out.warn(RunWarning::CallbackFailed { request, reason, response });
}
