//! Plays a session machine: events in, effects out, both as short texts.

use std::time::Duration;

use bytes::Bytes;
use claude_wire::control::{HostRequest, Interrupt};
use claude_wire::session::{
    CallKey, CallOutcome, Effect, Event, Exit, HookPlan, Machine, Outgoing, Plan, Run, Settled,
    State, TurnEnd, Waiter,
};
use claude_wire::{Frame, Framer, Json};

pub(crate) struct Play {
    pub(crate) machine: Machine,
    pub(crate) now: Duration,
}

/// The id of the handshake when the suffix is 0.
pub(crate) const INIT: &str = "req_1_00000000";

impl Play {
    /// A machine whose first effects still wait.
    pub(crate) fn of(plan: Plan) -> Self {
        Self { machine: Machine::new(plan), now: Duration::ZERO }
    }

    /// A machine of this plan after its handshake.
    pub(crate) fn ready(plan: Plan) -> Self {
        let mut play = Self::of(plan);
        play.line(&success(INIT, r#"{"hook_on_failure_supported":true}"#));
        play
    }

    pub(crate) fn session() -> Self {
        Self::ready(Plan::new(Run::Session))
    }

    pub(crate) fn happens(&mut self, event: Event) -> Vec<String> {
        self.machine.handle(event, self.now);
        self.effects()
    }

    pub(crate) fn effects(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.machine.next_effect())
            // One is only for a log, the other comes with every result; each has tests of its own.
            .filter(|effect| !matches!(effect, Effect::Unclaimed { .. } | Effect::Cost(_)))
            .map(|effect| shown(&effect))
            .collect()
    }

    pub(crate) fn line(&mut self, line: &str) -> Vec<String> {
        self.happens(Event::Line(Bytes::copy_from_slice(line.as_bytes())))
    }

    /// Lets time pass; the machine is woken exactly when it asks for it.
    pub(crate) fn pass(&mut self, milliseconds: u64) -> Vec<String> {
        let until = self.now + Duration::from_millis(milliseconds);
        let mut effects = Vec::new();
        while let Some(at) = self.machine.wake_at().filter(|at| *at <= until) {
            assert!(at >= self.now, "woken for the past");
            self.now = at;
            effects.extend(self.happens(Event::Tick));
            assert!(self.machine.wake_at().is_none_or(|next| next > at), "woken for nothing");
        }
        self.now = until;
        effects
    }

    pub(crate) fn exit(&mut self, code: i32) -> Vec<String> {
        self.happens(Event::Exited(Exit::Code(code)))
    }

    pub(crate) fn eof(&mut self) -> Vec<String> {
        self.happens(Event::OutputEnded(None))
    }

    /// The process and its output end.
    pub(crate) fn die(&mut self, code: i32) -> Vec<String> {
        let mut effects = self.eof();
        effects.extend(self.exit(code));
        effects
    }

    pub(crate) fn send(&mut self, waiter: u64, id: &str) -> Vec<String> {
        let message = message(id);
        self.happens(Event::Send { waiter: Waiter(waiter), message })
    }

    pub(crate) fn ask(&mut self, waiter: u64) -> Vec<String> {
        self.ask_for(waiter, interrupt())
    }

    pub(crate) fn ask_for(&mut self, waiter: u64, request: HostRequest) -> Vec<String> {
        let limit = Duration::from_secs(30);
        self.happens(Event::Ask { waiter: Waiter(waiter), request, limit })
    }

    pub(crate) fn forget(&mut self, waiter: u64) -> Vec<String> {
        self.happens(Event::Forget(Waiter(waiter)))
    }

    pub(crate) fn stop(&mut self) -> Vec<String> {
        self.happens(Event::Stop)
    }

    pub(crate) fn end_input(&mut self, waiter: u64) -> Vec<String> {
        self.happens(Event::EndInput(Waiter(waiter)))
    }

    pub(crate) fn done(&mut self, key: u64, outcome: CallOutcome) -> Vec<String> {
        self.happens(Event::CallbackDone { key: CallKey(key), outcome })
    }

    pub(crate) fn answers(&mut self, key: u64, answer: &str) -> Vec<String> {
        self.done(key, CallOutcome::Answer(Json::from_text(answer).unwrap()))
    }
}

pub(crate) fn message(id: &str) -> Outgoing {
    let line = format!("{{\"type\":\"user\",\"uuid\":\"{id}\"}}\n");
    Outgoing::new(id.into(), line.into(), true)
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

/// The CLI asks the hook `callback` about a tool.
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

/// A line that is longer than the framer takes.
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

/// A session with one hook that lets through when it fails, one that blocks, and a callback for
/// permissions.
pub(crate) fn with_callbacks() -> Plan {
    let mut plan = Plan::new(Run::Session);
    let limit = Duration::from_secs(60);
    plan.hooks.insert("hook_0".into(), HookPlan::new("PreToolUse", limit, false));
    plan.hooks.insert("hook_1".into(), HookPlan::new("PreToolUse", limit, true));
    plan.hooks.insert("hook_2".into(), HookPlan::new("PermissionRequest", limit, true));
    plan.hooks.insert("hook_3".into(), HookPlan::new("Stop", limit, true));
    plan.permissions = true;
    plan
}

pub(crate) fn shown(effect: &Effect) -> String {
    match effect {
        Effect::Write(line) => written(line),
        Effect::CloseInput => "close input".to_owned(),
        Effect::Terminate => "terminate".to_owned(),
        Effect::Kill => "kill".to_owned(),
        Effect::Deliver(line) => format!("deliver {}", String::from_utf8_lossy(line)),
        Effect::DeliverPermission(line) => {
            format!("deliver permission {}", String::from_utf8_lossy(line))
        }
        Effect::Warn(notice) => format!("warn {notice:?}"),
        Effect::State(State::Running(_)) => "state Running".to_owned(),
        Effect::State(state) => format!("state {state:?}"),
        Effect::Settle(waiter, Settled::Refused(refusal)) => {
            format!("{}: refused {refusal:?}", waiter.0)
        }
        Effect::Settle(waiter, settled) => format!("{}: {settled:?}", waiter.0),
        Effect::Run { key, request, .. } => {
            format!("run {} for {}", key.0, request.request_id)
        }
        Effect::Cancel(key) => format!("cancel {}", key.0),
        Effect::Abort(key) => format!("abort {}", key.0),
        Effect::TurnStarted(id) => format!("turn {id} started"),
        Effect::TurnEnded(id, TurnEnd::Cancelled) => format!("turn {id} cancelled"),
        Effect::TurnEnded(id, TurnEnd::WithoutResult) => format!("turn {id} without result"),
        Effect::TurnEnded(id, TurnEnd::Result { messages, named, oversized, .. }) => {
            let shared_with: Vec<_> = messages.iter().filter(|other| *other != id).collect();
            let named = if *named { "" } else { ", not named" };
            let oversized = if *oversized { ", oversized" } else { "" };
            format!("turn {id} ended with {shared_with:?}{named}{oversized}")
        }
        Effect::End(end) => format!("end {end:?}"),
        Effect::Cost(cost) => format!("cost {cost:?}"),
        Effect::Unclaimed { .. } => format!("{effect:?}"),
    }
}

/// A line to the CLI, without what is the same in all of its kind.
fn written(line: &[u8]) -> String {
    let (last, line) = line.split_last().unwrap();
    assert_eq!(*last, b'\n');
    assert!(!line.contains(&b'\n'));
    let frame: serde_json::Value = serde_json::from_slice(line).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    match &*text(&frame["type"]) {
        "control_request" => {
            format!("ask {} {}", text(&frame["request_id"]), text(&frame["request"]["subtype"]))
        }
        "control_response" => {
            let response = &frame["response"];
            let id = text(&response["request_id"]);
            match &*text(&response["subtype"]) {
                "success" => format!("answer {id} {}", response["response"]),
                _ => format!("answer {id} error {}", response["error"]),
            }
        }
        _ => format!("say {}", text(&frame["uuid"])),
    }
}
