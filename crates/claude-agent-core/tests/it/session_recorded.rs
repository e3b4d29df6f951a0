//! The recorded conversations, played again with the machine in the host's place: it asks what the
//! host state, and everything that the CLI said must fit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{
    CallbackKey, CallbackOutcome, Completion, Effect, Event, HookPlan, Machine, OutgoingMessage,
    Plan, RunEnd, RunMode, RunState, RunWarning, Waiter,
};
use claude_wire::control::{ControlOutcome, HostRequest};
use claude_wire::{Envelope, Exit, FromHost};

use crate::recording::{Recorded, RecordedLine, corpus};

/// Either side's lines in the order in which they were said.
fn conversation(recorded: &Recorded) -> Vec<(bool, &RecordedLine)> {
    let host = recorded.from_host.iter().map(|line| (true, line));
    let cli = recorded.from_cli.iter().map(|line| (false, line));
    let mut lines: Vec<_> = host.chain(cli).collect();
    lines.sort_by_key(|(_, line)| {
        let (_, number) = line.place.rsplit_once(':').unwrap();
        number.parse::<usize>().unwrap()
    });
    lines
}

struct Replay {
    machine: Machine,
    waiters: u64,
    /// Ids of the recording and those of the machine.
    ids: BTreeMap<String, String>,
    /// Requests of the CLI for which a callback was run.
    runs: BTreeMap<String, CallbackKey>,
    /// What the machine answered, by request.
    answers: BTreeMap<String, serde_json::Value>,
    effects: Vec<Effect>,
}

impl Replay {
    fn of(recorded: &Recorded) -> Self {
        let plan = plan(recorded);
        let mut replay = Self {
            machine: Machine::new(plan),
            waiters: 0,
            ids: BTreeMap::new(),
            runs: BTreeMap::new(),
            answers: BTreeMap::new(),
            effects: Vec::new(),
        };
        replay.take_effects();
        for (from_host, line) in conversation(recorded) {
            if from_host {
                replay.host_says(&line.bytes);
            } else {
                replay.cli_says(&line.bytes);
            }
        }
        replay.handle(Event::EndInput(Waiter(0)));
        replay.handle(Event::StdoutEnded(None));
        replay.handle(Event::Exited(Exit::Code(0)));
        replay
    }

    fn handle(&mut self, event: Event) {
        self.machine.handle(event, Duration::ZERO);
        self.take_effects();
    }

    fn take_effects(&mut self) {
        while let Some(effect) = self.machine.next_effect() {
            match &effect {
                Effect::RunCallback { key, request, .. } => {
                    self.runs.insert(request.request_id.to_string(), *key);
                }
                Effect::Write(line) => self.written(line),
                _ => {}
            }
            self.effects.push(effect);
        }
    }

    fn written(&mut self, line: &[u8]) {
        let frame: serde_json::Value = serde_json::from_slice(line).unwrap();
        if frame["type"] == "control_response" {
            let id = frame["response"]["request_id"].as_str().unwrap().to_owned();
            assert!(self.answers.insert(id, frame["response"].clone()).is_none());
        }
    }

    fn host_says(&mut self, line: &[u8]) {
        let Ok(said) = FromHost::decode(Bytes::copy_from_slice(line)) else { return };
        self.waiters += 1;
        let waiter = Waiter(self.waiters);
        match said {
            FromHost::Request(request) => {
                let theirs = request.request_id.to_string();
                let number = self.ids.len() + 1;
                self.ids.insert(theirs, format!("req_{number}_00000000"));
                if !matches!(request.request, HostRequest::Initialize(_)) {
                    let limit = Duration::from_secs(30);
                    self.handle(Event::Request {
                        waiter,
                        request: request.request,
                        timeout: limit,
                    });
                }
            }
            FromHost::User(user) => {
                let id = user.uuid.clone().unwrap_or_else(|| "none".into());
                let mut line = line.to_vec();
                line.push(b'\n');
                self.handle(Event::Send {
                    waiter,
                    message: OutgoingMessage::new(id, line.into(), true),
                });
            }
            FromHost::Response(answer) => {
                let id = answer.request_id().unwrap().to_string();
                let Some(key) = self.runs.get(&id).copied() else { return };
                let outcome = match answer.response {
                    ControlOutcome::Success(success) => {
                        CallbackOutcome::Response(success.response.unwrap_or_default())
                    }
                    _ => CallbackOutcome::Failed("as recorded".to_owned()),
                };
                self.handle(Event::CallbackDone { key, outcome });
            }
            _ => {}
        }
    }

    /// The line with the ids of the machine.
    fn cli_says(&mut self, line: &[u8]) {
        let mut text = line.to_vec();
        for (theirs, ours) in &self.ids {
            if let Some(place) = find(&text, theirs.as_bytes()) {
                text.splice(place..place + theirs.len(), ours.bytes());
                break;
            }
        }
        self.handle(Event::Line(text.into()));
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// Everything that was registered when the recording was made.
fn plan(recorded: &Recorded) -> Plan {
    let mut plan = Plan::new(RunMode::Session);
    plan.initialize = None;
    plan.permissions = true;
    plan.file_checkpointing = true;
    plan.mcp_servers.push("calc".to_owned());
    for line in &recorded.from_host {
        let said = FromHost::decode(Bytes::copy_from_slice(&line.bytes));
        let Ok(FromHost::Request(request)) = said else { continue };
        if let HostRequest::Initialize(initialize) = request.request {
            for (event, matchers) in initialize.hooks.iter().flatten() {
                for id in matchers.iter().flat_map(|matcher| matcher.hook_callback_ids.iter()) {
                    let hook = HookPlan::new(event, Duration::from_secs(60), false);
                    plan.hooks.insert(id.as_str(), hook);
                }
            }
            plan.initialize = Some(initialize);
        }
    }
    plan
}

/// Lines that are for whoever reads messages.
fn is_message(line: &[u8]) -> bool {
    const CONTROL: &[&str] = &[
        "control_request",
        "control_response",
        "control_cancel_request",
        "keep_alive",
        "transcript_mirror",
    ];
    let envelope = Envelope::read(line);
    envelope.map_or(true, |line| !line.sdk_host_only && !CONTROL.contains(&&*line.kind))
}

#[test]
fn every_message_is_delivered_and_no_control_frame_is() {
    for recorded in corpus() {
        let replay = Replay::of(&recorded);
        let delivered: Vec<&[u8]> = replay
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Deliver(line) => Some(&line[..]),
                Effect::Warn(RunWarning::Malformed(malformed)) => Some(&malformed.line[..]),
                _ => None,
            })
            .collect();
        let said = recorded.from_cli.iter().map(|line| &line.bytes[..]);
        let expected: Vec<&[u8]> = said.filter(|line| is_message(line)).collect();
        assert_eq!(delivered.len(), expected.len(), "{}", recorded.name);
        assert!(delivered == expected, "{}", recorded.name);
    }
}

#[test]
fn every_recorded_handshake_and_operation_completes() {
    for recorded in corpus() {
        let replay = Replay::of(&recorded);
        let asked_to_begin =
            recorded.from_cli.iter().any(|line| find(&line.bytes, b"\"commands\":[").is_some());
        let mut running = 0;
        for effect in &replay.effects {
            match effect {
                Effect::State(RunState::Running(_)) => running += 1,
                Effect::Warn(RunWarning::Malformed(malformed)) => panic!("{malformed}"),
                // The recording ends before these were answered.
                Effect::Complete(_, Completion::Rejected(refusal)) => {
                    let fits = matches!(
                        refusal,
                        claude_agent_core::session::Rejection::ByCli(_)
                            | claude_agent_core::session::Rejection::NotInitialized
                    );
                    assert!(fits, "{} {refusal:?}", recorded.name);
                }
                _ => {}
            }
        }
        assert!(running == 1 || !asked_to_begin, "{}", recorded.name);
    }
}

#[test]
fn every_turn_that_was_sent_with_an_id_ends_by_it() {
    let mut shared = 0;
    for recorded in corpus() {
        let replay = Replay::of(&recorded);
        let (mut open, mut started) = (BTreeSet::new(), BTreeSet::new());
        for line in &recorded.from_host {
            let said = FromHost::decode(Bytes::copy_from_slice(&line.bytes));
            if let Ok(FromHost::User(user)) = said {
                open.extend(user.uuid.clone());
            }
        }
        let answered = recorded.from_cli.iter().any(|line| is_result(&line.bytes));
        for effect in &replay.effects {
            match effect {
                Effect::TurnStarted(id) => assert!(started.insert(id.clone()), "{id}"),
                Effect::ReplayStarted(id) => assert!(open.insert(id.clone()), "{id}"),
                Effect::TurnEnded(id, end) => {
                    assert!(open.remove(id) || *id == "none", "{} {id}", recorded.name);
                    let text = format!("{end:?}");
                    shared +=
                        usize::from(text.contains("messages: [\"") && text.contains("\", \""));
                    let named = !text.contains("named: false");
                    assert!(named || *id == "none", "{} {id} {text}", recorded.name);
                }
                _ => {}
            }
        }
        assert!(open.is_empty() || !answered, "{}: {open:?} never ended", recorded.name);
    }
    assert!(shared > 0, "the corpus has turns that share a result");
}

fn is_result(line: &[u8]) -> bool {
    Envelope::read(line).is_ok_and(|line| line.kind == "result")
}

#[test]
fn every_request_gets_the_recorded_response() {
    let mut compared = 0;
    for recorded in corpus() {
        let replay = Replay::of(&recorded);
        for line in &recorded.from_host {
            let frame: serde_json::Value = match serde_json::from_slice(&line.bytes) {
                Ok(frame) => frame,
                Err(_) => continue,
            };
            let response = &frame["response"];
            let known = response["request_id"].as_str().and_then(|id| replay.answers.get(id));
            // Where the recorded host answered with an error the fail rule answers here.
            if let Some(ours) = known.filter(|_| response["subtype"] == "success") {
                let callback = replay.runs.contains_key(response["request_id"].as_str().unwrap());
                assert!(!callback || ours == response, "{} {ours} {response}", recorded.name);
                compared += usize::from(callback);
            }
        }
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn a_recorded_session_ends_as_its_process_does() {
    for recorded in corpus() {
        let replay = Replay::of(&recorded);
        let last = replay.effects.last();
        let begins = !recorded.from_cli.is_empty();
        match last {
            Some(Effect::End(RunEnd::Completed)) => {}
            Some(Effect::End(RunEnd::Failed(_))) if !begins => {}
            other => assert!(
                replay
                    .effects
                    .iter()
                    .all(|effect| !matches!(effect, Effect::State(RunState::Running(_)))),
                "{} {other:?}",
                recorded.name
            ),
        }
    }
}

/// `cargo xtask golden` keeps hashes of these.
#[test]
fn the_trace_of_every_recording_can_be_written() {
    let mut traces = Vec::new();
    for recorded in corpus() {
        for effect in Replay::of(&recorded).effects {
            let (kind, line) = match &effect {
                Effect::Write(line) => ("written", line.trim_ascii_end()),
                Effect::Deliver(line) => ("delivered", &line[..]),
                Effect::Warn(RunWarning::Malformed(malformed)) => {
                    ("delivered", &malformed.line[..])
                }
                _ => continue,
            };
            traces.extend_from_slice(format!("{} {kind} ", recorded.name).as_bytes());
            traces.extend_from_slice(line);
            traces.push(b'\n');
        }
    }
    assert!(traces.len() > 1_000_000, "the corpus has many long lines");
    if let Some(path) = std::env::var_os("CLAUDE_WIRE_TRACES") {
        std::fs::write(path, traces).unwrap();
    }
}
