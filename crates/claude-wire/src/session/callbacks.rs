//! Requests of the CLI that callbacks of the host answer.
//!
//! A request is open until it is answered, cancelled or dropped, and then closed for good. The
//! callback that was run for it may outlive it, and keeps its place until it has ended.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;

use super::event::{CallKey, CallOutcome, Effect, Notice};
use super::fail_rule::FailRule;
use super::limits::SessionLimits;
use super::outbox::Outbox;
use super::shorten::{MAX_REASON_BYTES, shorten};
use crate::control::CliControlRequest;
use crate::id::RequestId;
use crate::json::Json;

/// What the CLI is told when too many requests are open.
const OVERLOAD: &str = "the host has too much to answer";

#[derive(Debug)]
pub(super) struct Callbacks {
    last_key: u64,
    cancel_grace: Duration,
    /// Those that are not answered yet.
    open: BTreeMap<RequestId, CallKey>,
    calls: BTreeMap<CallKey, Call>,
    lanes: Lanes,
    /// The bytes of the requests whose callbacks wait or run.
    bytes: usize,
    most_bytes: usize,
    /// When a call must be answered or aborted. A call has one timer at most.
    timers: BTreeSet<(Duration, CallKey)>,
}

/// The places of all callbacks.
#[derive(Debug)]
struct Lanes {
    decisions: Lane,
    mcp: Lane,
    /// Answers of the CLI to servers. Calls that run may wait for them, so they wait for no call.
    answers: Lane,
}

/// The places of one kind of callback.
#[derive(Debug)]
struct Lane {
    running: usize,
    most_running: usize,
    waiting: VecDeque<CallKey>,
    most_waiting: usize,
}

/// A request and its callback.
#[derive(Debug)]
struct Call {
    request_id: RequestId,
    /// The length of the request's line.
    bytes: usize,
    rule: FailRule,
    limit: Option<Duration>,
    timer: Option<Duration>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Waiting(Box<CliControlRequest>, Bytes),
    Running,
    /// Told that its answer is not wanted; the request is closed.
    Cancelled,
    Aborted,
}

/// A request to be answered by a callback.
pub(super) struct Asked {
    pub(super) request: Box<CliControlRequest>,
    pub(super) line: Bytes,
    pub(super) rule: FailRule,
    pub(super) limit: Option<Duration>,
    /// Whether the request is also delivered among the messages.
    pub(super) is_delivered: bool,
}

impl Callbacks {
    pub(super) fn new(limits: &SessionLimits) -> Self {
        Self {
            last_key: 0,
            cancel_grace: limits.cancel_grace,
            open: BTreeMap::new(),
            calls: BTreeMap::new(),
            lanes: Lanes {
                decisions: Lane::new(limits.running_callbacks, limits.waiting_callbacks),
                mcp: Lane::new(limits.running_mcp, limits.waiting_mcp),
                answers: Lane::new(limits.running_mcp, limits.waiting_mcp),
            },
            bytes: 0,
            most_bytes: limits.request_bytes,
            timers: BTreeSet::new(),
        }
    }

    pub(super) fn is_open(&self, request: &RequestId) -> bool {
        self.open.contains_key(request)
    }

    pub(super) fn open_requests(&self) -> usize {
        self.open.len()
    }

    /// Runs the callback of a request, now or later, or refuses it.
    pub(super) fn ask(&mut self, asked: Asked, now: Duration, out: &mut Outbox) {
        let Asked { request, line, rule, limit, is_delivered } = asked;
        let request_id = request.request_id.clone();
        let bytes = line.len();
        let is_too_much = self.bytes > 0 && self.bytes.saturating_add(bytes) > self.most_bytes;
        let lane = self.lanes.of(&rule);
        if lane.is_full() || is_too_much {
            out.answer(&request_id, &rule.refusal(OVERLOAD));
            return out.warn(Notice::CallbackRefused { what: rule.what() });
        }
        if is_delivered {
            out.push(Effect::DeliverPermission(line.clone()));
        }
        self.last_key += 1;
        let key = CallKey(self.last_key);
        lane.waiting.push_back(key);
        self.open.insert(request_id.clone(), key);
        let stage = Stage::Waiting(request, line);
        self.bytes += bytes;
        self.calls.insert(key, Call { request_id, bytes, rule, limit, timer: None, stage });
        self.set_timer(key, limit.map(|limit| now.saturating_add(limit)));
        self.run_next(out);
    }

    /// A callback ended; its place is free.
    pub(super) fn done(&mut self, key: CallKey, outcome: CallOutcome, out: &mut Outbox) {
        let Some(call) = self.calls.get(&key) else { return };
        let was_open = match call.stage {
            // It was never run, so it cannot have ended.
            Stage::Waiting(..) => return,
            Stage::Running => true,
            Stage::Cancelled | Stage::Aborted => false,
        };
        self.lanes.of(&call.rule).running -= 1;
        self.set_timer(key, None);
        let Some(call) = self.remove(key) else { return };
        if was_open {
            self.open.remove(&call.request_id);
            match outcome {
                CallOutcome::Answer(answer) => out.answer(&call.request_id, &answer),
                CallOutcome::Failed(reason) => failed(&call, reason, out),
                CallOutcome::Gone => failed(&call, "the callback was ended".to_owned(), out),
            }
        }
        self.run_next(out);
    }

    /// The CLI no longer wants an answer.
    pub(super) fn cancelled(&mut self, request: &RequestId, now: Duration, out: &mut Outbox) {
        if let Some(key) = self.open.remove(request) {
            self.close(key, now, out);
            self.run_next(out);
        }
    }

    /// The CLI withdrew a JSON-RPC request of an in-process server. Its control request is closed
    /// unanswered, as with a cancel of that itself.
    pub(super) fn cancelled_mcp(
        &mut self,
        server: &str,
        rpc_id: &Json,
        now: Duration,
        out: &mut Outbox,
    ) {
        let is_asked =
            |key| self.calls.get(key).is_some_and(|call| call.rule.is_for(server, rpc_id));
        let asked = self.open.iter().find(|(_, key)| is_asked(key));
        if let Some(request) = asked.map(|(id, _)| id.clone()) {
            self.cancelled(&request, now, out);
        }
    }

    /// No answer can be given any more: what runs is cancelled, what waits is dropped.
    pub(super) fn close_all(&mut self, now: Duration, out: &mut Outbox) {
        for lane in self.lanes.all() {
            lane.waiting.clear();
        }
        for key in std::mem::take(&mut self.open).into_values() {
            self.close(key, now, out);
        }
    }

    /// Ends what still runs.
    pub(super) fn abort_all(&mut self, now: Duration, out: &mut Outbox) {
        self.close_all(now, out);
        let keys: Vec<CallKey> = self.calls.keys().copied().collect();
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
            match self.calls.get(&key).map(|call| &call.stage) {
                Some(Stage::Waiting(..) | Stage::Running) => self.timed_out(key, now, out),
                Some(Stage::Cancelled) => self.abort(key, out),
                Some(Stage::Aborted) | None => {}
            }
        }
        self.run_next(out);
    }

    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.timers.first().map(|(at, _)| *at)
    }

    fn timed_out(&mut self, key: CallKey, now: Duration, out: &mut Outbox) {
        let Some(call) = self.calls.get(&key) else { return };
        let what = call.rule.what();
        if let Stage::Waiting(..) = call.stage {
            // Nobody was asked, because too many were: that approves nothing.
            out.answer(&call.request_id, &call.rule.refusal(OVERLOAD));
            out.warn(Notice::CallbackRefused { what });
        } else {
            out.answer(&call.request_id, &call.rule.answer("the host's callback took too long"));
            let (limit, refused) = (call.limit.unwrap_or_default(), call.rule.refuses());
            out.warn(Notice::CallbackTimedOut { what, limit, refused });
        }
        self.open.remove(&call.request_id);
        self.close(key, now, out);
    }

    /// Closes a request that is open no more: drops it from those that wait, or tells its
    /// callback, which has a grace to end.
    fn close(&mut self, key: CallKey, now: Duration, out: &mut Outbox) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        match call.stage {
            Stage::Waiting(..) => {
                self.lanes.of(&call.rule).waiting.retain(|waiting| *waiting != key);
                self.set_timer(key, None);
                self.remove(key);
            }
            Stage::Running => {
                call.stage = Stage::Cancelled;
                out.push(Effect::Cancel(key));
                if self.cancel_grace.is_zero() {
                    self.abort(key, out);
                } else {
                    self.set_timer(key, Some(now.saturating_add(self.cancel_grace)));
                }
            }
            Stage::Cancelled | Stage::Aborted => {}
        }
    }

    fn remove(&mut self, key: CallKey) -> Option<Call> {
        let call = self.calls.remove(&key)?;
        self.bytes -= call.bytes;
        Some(call)
    }

    fn abort(&mut self, key: CallKey, out: &mut Outbox) {
        self.set_timer(key, None);
        let Some(call) = self.calls.get_mut(&key) else { return };
        if matches!(call.stage, Stage::Cancelled) {
            call.stage = Stage::Aborted;
            out.push(Effect::Abort(key));
        }
    }

    fn run_next(&mut self, out: &mut Outbox) {
        for lane in self.lanes.all() {
            while lane.running < lane.most_running {
                let Some(key) = lane.waiting.pop_front() else { break };
                let Some(call) = self.calls.get_mut(&key) else { continue };
                let stage = std::mem::replace(&mut call.stage, Stage::Running);
                if let Stage::Waiting(request, line) = stage {
                    lane.running += 1;
                    out.push(Effect::Run { key, request, line });
                }
            }
        }
    }

    fn set_timer(&mut self, key: CallKey, at: Option<Duration>) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        if let Some(old) = std::mem::replace(&mut call.timer, at) {
            self.timers.remove(&(old, key));
        }
        if let Some(at) = at {
            self.timers.insert((at, key));
        }
    }
}

impl Lanes {
    fn of(&mut self, rule: &FailRule) -> &mut Lane {
        match rule {
            FailRule::Mcp { .. } => &mut self.mcp,
            FailRule::McpResponse { .. } => &mut self.answers,
            _ => &mut self.decisions,
        }
    }

    fn all(&mut self) -> [&mut Lane; 3] {
        [&mut self.decisions, &mut self.mcp, &mut self.answers]
    }
}

impl Lane {
    fn new(most_running: usize, most_waiting: usize) -> Self {
        Self { running: 0, most_running, waiting: VecDeque::new(), most_waiting }
    }

    fn is_full(&self) -> bool {
        self.running >= self.most_running && self.waiting.len() >= self.most_waiting
    }
}

/// Answers by the fail rule.
fn failed(call: &Call, reason: String, out: &mut Outbox) {
    let told = format!("the host's callback failed: {reason}");
    out.answer(&call.request_id, &call.rule.answer(&shorten(&told, MAX_REASON_BYTES)));
    let (what, refused) = (call.rule.what(), call.rule.refuses());
    out.warn(Notice::CallbackFailed { what, reason, refused });
}
