//! Runs a session machine: feeds events and describes the effects as short texts.

use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{
    CallbackKey, CallbackOutcome, Completion, Effect, Event, HookPlan, Machine, MirrorEntry,
    OutgoingMessage, Plan, RunMode, RunState, TurnEnd, Waiter,
};
use claude_wire::control::{HostRequest, Interrupt};
use claude_wire::{Exit, Frame, Framer, Json};

pub(crate) struct Harness {
    pub(crate) machine: Machine,
    pub(crate) now: Duration,
}

/// The request ID of the handshake with the suffix 0.
pub(crate) const INIT: &str = "req_1_00000000";

impl Harness {
    /// Creates a machine whose first effects are not taken yet.
    pub(crate) fn new(plan: Plan) -> Self {
        Self { machine: Machine::new(plan), now: Duration::ZERO }
    }

    /// Creates a machine and completes its handshake.
    pub(crate) fn ready(plan: Plan) -> Self {
        let mut harness = Self::new(plan);
        harness.line(&success(INIT, r#"{"hook_on_failure_supported":true}"#));
        harness
    }

    pub(crate) fn session() -> Self {
        Self::ready(Plan::new(RunMode::Session))
    }

    pub(crate) fn handle(&mut self, event: Event) -> Vec<String> {
        self.machine.handle(event, self.now);
        self.effects()
    }

    pub(crate) fn effects(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.machine.next_effect())
            // Tests of their own cover these two.
            .filter(|effect| !matches!(effect, Effect::UnmatchedResponse { .. } | Effect::Cost(_)))
            .map(|effect| shown(&effect))
            .collect()
    }

    pub(crate) fn line(&mut self, line: &str) -> Vec<String> {
        self.handle(Event::Line(Bytes::copy_from_slice(line.as_bytes())))
    }

    /// Advances the time, with a tick at every deadline of the machine.
    pub(crate) fn advance(&mut self, milliseconds: u64) -> Vec<String> {
        let until = self.now + Duration::from_millis(milliseconds);
        let mut effects = Vec::new();
        while let Some(at) = self.machine.wake_at().filter(|at| *at <= until) {
            assert!(at >= self.now, "deadline in the past");
            self.now = at;
            effects.extend(self.handle(Event::Tick));
            assert!(
                self.machine.wake_at().is_none_or(|next| next > at),
                "deadline without an effect"
            );
        }
        self.now = until;
        effects
    }

    pub(crate) fn exit(&mut self, code: i32) -> Vec<String> {
        self.handle(Event::Exited(Exit::Code(code)))
    }

    pub(crate) fn eof(&mut self) -> Vec<String> {
        self.handle(Event::StdoutEnded(None))
    }

    /// Closes stdout and exits.
    pub(crate) fn end_process(&mut self, code: i32) -> Vec<String> {
        let mut effects = self.eof();
        effects.extend(self.exit(code));
        effects
    }

    pub(crate) fn send(&mut self, waiter: u64, id: &str) -> Vec<String> {
        let message = message(id);
        self.handle(Event::Send { waiter: Waiter(waiter), message })
    }

    pub(crate) fn interrupt(&mut self, waiter: u64) -> Vec<String> {
        self.send_request(waiter, interrupt())
    }

    pub(crate) fn send_request(&mut self, waiter: u64, request: HostRequest) -> Vec<String> {
        let timeout = Duration::from_secs(30);
        self.handle(Event::Request { waiter: Waiter(waiter), request, timeout })
    }

    pub(crate) fn forget(&mut self, waiter: u64) -> Vec<String> {
        self.handle(Event::Forget(Waiter(waiter)))
    }

    pub(crate) fn stop(&mut self) -> Vec<String> {
        self.handle(Event::Stop)
    }

    pub(crate) fn end_input(&mut self, waiter: u64) -> Vec<String> {
        self.handle(Event::EndInput(Waiter(waiter)))
    }

    pub(crate) fn finish_callback(&mut self, key: u64, outcome: CallbackOutcome) -> Vec<String> {
        self.handle(Event::CallbackDone { key: CallbackKey(key), outcome })
    }

    pub(crate) fn respond(&mut self, key: u64, response: &str) -> Vec<String> {
        self.finish_callback(key, CallbackOutcome::Response(Json::from_text(response).unwrap()))
    }
}

pub(crate) fn message(id: &str) -> OutgoingMessage {
    let line = format!("{{\"type\":\"user\",\"uuid\":\"{id}\"}}\n");
    OutgoingMessage::new(id.into(), line.into(), true)
}

pub(crate) fn interrupt() -> HostRequest {
    HostRequest::Interrupt(Interrupt::default())
}

pub(crate) fn success(id: &str, response: &str) -> String {
    format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{id}","response":{response}}}}}"#
    )
}

pub(crate) fn failure(id: &str, error: &str) -> String {
    format!(
        r#"{{"type":"control_response","response":{{"subtype":"error","request_id":"{id}","error":"{error}"}}}}"#
    )
}

pub(crate) fn request(id: &str, body: &str) -> String {
    format!(r#"{{"type":"control_request","request_id":"{id}","request":{{{body}}}}}"#)
}

/// A request for the hook `callback` before a tool call.
pub(crate) fn hook(id: &str, callback: &str) -> String {
    let input = r#"{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}"#;
    request(id, &format!(r#""subtype":"hook_callback","callback_id":"{callback}","input":{input}"#))
}

pub(crate) fn permission(id: &str) -> String {
    request(id, r#""subtype":"can_use_tool","tool_name":"Bash","input":{}"#)
}

pub(crate) fn cancel(id: &str) -> String {
    format!(r#"{{"type":"control_cancel_request","request_id":"{id}"}}"#)
}

pub(crate) fn lifecycle(id: &str, state: &str) -> String {
    format!(r#"{{"type":"command_lifecycle","command_uuid":"{id}","state":"{state}"}}"#)
}

pub(crate) fn session_state(state: &str) -> String {
    format!(
        r#"{{"type":"system","subtype":"session_state_changed","state":"{state}","sdk_host_only":true}}"#
    )
}

pub(crate) fn result_for(ids: &[&str]) -> String {
    format!(r#"{{"type":"result","is_error":false,"user_message_uuids":{ids:?}}}"#)
}

/// A line that exceeds the limit of the framer.
pub(crate) fn oversized(line: &str) -> Event {
    let mut framer = Framer::new(1024);
    framer.push(line.as_bytes());
    framer.push(b"\n");
    match framer.next_frame() {
        Some(Frame::Oversized(oversized)) => Event::Oversized(oversized),
        other => panic!("{other:?}"),
    }
}

pub(crate) const RESULT: &str = r#"{"type":"result"}"#;
pub(crate) const ANSWER: &str = r#"{"type":"assistant"}"#;

/// A session with fail-open and fail-closed hooks and a permission callback.
pub(crate) fn with_callbacks() -> Plan {
    let mut plan = Plan::new(RunMode::Session);
    let limit = Duration::from_secs(60);
    plan.hooks.insert("hook_0", HookPlan::new("PreToolUse", limit, false));
    plan.hooks.insert("hook_1", HookPlan::new("PreToolUse", limit, true));
    plan.hooks.insert("hook_2", HookPlan::new("PermissionRequest", limit, true));
    plan.hooks.insert("hook_3", HookPlan::new("Stop", limit, true));
    plan.permissions = true;
    plan
}

pub(crate) fn shown(effect: &Effect) -> String {
    match effect {
        Effect::Write(line) => written(line),
        Effect::CloseStdin => "close stdin".to_owned(),
        Effect::Terminate => "terminate".to_owned(),
        Effect::TerminateAtOnce => "terminate at once".to_owned(),
        Effect::Kill => "kill".to_owned(),
        Effect::Deliver(line) => format!("deliver {}", String::from_utf8_lossy(line)),
        Effect::DeliverPermission(line) => {
            format!("deliver permission {}", String::from_utf8_lossy(line))
        }
        Effect::Warn(warning) => format!("warn {warning:?}"),
        Effect::State(RunState::Running(_)) => "state Running".to_owned(),
        Effect::State(state) => format!("state {state:?}"),
        Effect::Complete(waiter, Completion::Rejected(rejection)) => {
            format!("{}: rejected {rejection:?}", waiter.0)
        }
        Effect::Complete(waiter, completed) => format!("{}: {completed:?}", waiter.0),
        Effect::RunCallback { key, request, .. } => {
            format!("run {} for {}", key.0, request.request_id)
        }
        Effect::CancelCallback(key) => format!("cancel {}", key.0),
        Effect::AbortCallback(key) => format!("abort {}", key.0),
        Effect::TurnStarted(id) => format!("turn {id} started"),
        Effect::ReplayStarted(id) => format!("replay {id} started"),
        Effect::NoReplay => "replay ruled out".to_owned(),
        Effect::TurnEnded(id, TurnEnd::Cancelled) => format!("turn {id} cancelled"),
        Effect::TurnEnded(id, TurnEnd::WithoutResult) => format!("turn {id} without result"),
        Effect::TurnEnded(id, TurnEnd::Result { messages, named, oversized, stored, .. }) => {
            let shared_with: Vec<_> = messages.iter().filter(|other| *other != id).collect();
            let named = if *named { "" } else { ", not named" };
            let oversized = if *oversized { ", oversized" } else { "" };
            let unstored = if *stored == Some(false) { ", not stored" } else { "" };
            format!("turn {id} ended with {shared_with:?}{named}{oversized}{unstored}")
        }
        Effect::End(end) => format!("end {end:?}"),
        Effect::Cost(cost) => format!("cost {cost:?}"),
        Effect::UnmatchedResponse { .. } => format!("{effect:?}"),
        Effect::Stored(stored) => format!("stored {stored}"),
        Effect::Append(batch) => {
            let texts: Vec<String> = batch.entries.iter().map(entry_shown).collect();
            format!("append {} [{}]", batch.number.0, texts.join(" "))
        }
        Effect::RetryAppend(number) => format!("retry {}", number.0),
        Effect::CatchUp(request) => {
            let files: Vec<&str> = request.files.iter().map(|file| &*file.path).collect();
            let is_final = if request.is_final { " at the end" } else { "" };
            format!("catch up {}{is_final} {files:?}", request.number.0)
        }
        Effect::AbandonAppend => "abandon".to_owned(),
    }
}

/// Describes an entry as its text, with the subpath before it.
fn entry_shown(entry: &MirrorEntry) -> String {
    match &entry.subpath {
        Some(subpath) => format!("{subpath}:{}", entry.text),
        None => entry.text.to_string(),
    }
}

/// Describes a line to the CLI.
fn written(line: &[u8]) -> String {
    let (last, line) = line.split_last().unwrap();
    assert_eq!(*last, b'\n');
    assert!(!line.contains(&b'\n'));
    let frame: serde_json::Value = serde_json::from_slice(line).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    match &*text(&frame["type"]) {
        "control_request" => {
            format!("request {} {}", text(&frame["request_id"]), text(&frame["request"]["subtype"]))
        }
        "control_response" => {
            let response = &frame["response"];
            let id = text(&response["request_id"]);
            match &*text(&response["subtype"]) {
                "success" => format!("respond {id} {}", response["response"]),
                _ => format!("respond {id} error {}", response["error"]),
            }
        }
        _ => format!("send {}", text(&frame["uuid"])),
    }
}
