//! What must hold for every run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use claude_agent_kit::ErrorKind;
use serde::Deserialize;
use serde_json::Value;

use super::record::{Answer, Lines, Reading, Record, State};

/// How long an answer may take from the callback to the pipe: longer than a stop takes from its
/// beginning, when callbacks are let go, to the end of the input.
const ON_ITS_WAY: Duration = Duration::from_secs(3);

/// How long the last of several callbacks takes that wait for each other and reach their limits.
const LONGEST_CALLBACK: Duration = Duration::from_secs(200);

/// The lines that readers get: all but control frames.
pub(super) fn expected(read: &Lines, until: Duration) -> Vec<Bytes> {
    let whole = read.whole.iter().filter(|(at, _)| *at <= until).map(|(_, line)| line);
    whole.filter(|line| is_message(line)).cloned().collect()
}

fn is_message(line: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    struct Head {
        #[serde(rename = "type", default)]
        kind: String,
        #[serde(default)]
        sdk_host_only: bool,
    }
    let Head { kind, sdk_host_only } = serde_json::from_slice(line).unwrap_or_default();
    let control = kind.starts_with("control_") || kind == "keep_alive";
    !control && !sdk_host_only
}

fn is_result(line: &[u8]) -> bool {
    serde_json::from_slice::<Value>(line).is_ok_and(|line| line["type"] == "result")
}

/// Checks everything that can be seen when all is over.
pub(super) fn run(record: &Record, strict_time: bool) {
    let violations = {
        let state = record.lock();
        let mut violations = Vec::new();
        check_readings(&state, &mut violations);
        let wire = Frames::of(&state);
        check_answers(&state, &wire, strict_time, &mut violations);
        check_approvals(&state, &wire, &mut violations);
        check_operations(&state, &wire, &mut violations);
        check_sent(&state, &wire, &mut violations);
        violations
    };
    for violation in violations {
        record.violation(violation);
    }
}

fn check_readings(state: &State, violations: &mut Vec<String>) {
    let mut all = expected(&state.wire.read, Duration::MAX);
    // The last line need not have its end.
    if serde_json::from_slice::<Value>(&state.wire.read.rest).is_ok_and(|line| line.is_object())
        && is_message(&state.wire.read.rest)
    {
        all.push(Bytes::from(state.wire.read.rest.clone()));
    }
    for reading in &state.readings {
        if let Err(what) = check_reading(reading, &all) {
            violations.push(format!("`{}` {what}", reading.who));
        }
    }
}

fn check_reading(reading: &Reading, all: &[Bytes]) -> Result<(), String> {
    let count = reading.lines.len();
    let places = 0..=all.len().saturating_sub(count);
    let starts: Vec<usize> =
        places.filter(|at| all.get(*at..at + count) == Some(&*reading.lines)).collect();
    if starts.is_empty() {
        return Err(format!(
            "got {count} messages that were not read like this: {:?}",
            reading.lines
        ));
    }
    if reading.from_start && !starts.contains(&0) {
        return Err(format!("missed the first messages, it begins with number {}", starts[0]));
    }
    let ended_well = reading.end == Some(Ok(()));
    if ended_well
        && reading.who == "turn"
        // A result that does not name its message is followed by the report of its completion.
        && !reading.lines.iter().rev().take(2).any(|line| is_result(line))
    {
        return Err("ended well without a result".to_owned());
    }
    let whole = ended_well && reading.who != "turn";
    let starts = starts.iter().filter(|at| !reading.from_start || **at == 0);
    if whole && !starts.clone().any(|at| at + count == all.len()) {
        return Err(format!("ended well after {count} of {} messages", all.len()));
    }
    Ok(())
}

/// What was said on the wire.
struct Frames {
    /// Requests of the CLI: when they were read, and what they ask for.
    asked: BTreeMap<String, (Duration, Value)>,
    cancelled: BTreeSet<String>,
    /// Answers of the host, by the request.
    answered: BTreeMap<String, Vec<Value>>,
    /// Requests of the host, by their ids.
    host_asked: BTreeMap<String, String>,
    /// Which of these the CLI granted.
    granted: Vec<String>,
    users: Vec<String>,
    /// Results, as they came.
    results: Vec<Bytes>,
    unreadable: usize,
}

impl Frames {
    fn of(state: &State) -> Self {
        let mut frames = Self {
            asked: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            answered: BTreeMap::new(),
            host_asked: BTreeMap::new(),
            granted: Vec::new(),
            users: Vec::new(),
            results: Vec::new(),
            unreadable: 0,
        };
        for (at, line) in &state.wire.read.whole {
            frames.read(*at, line);
        }
        for (_, line) in &state.wire.written.whole {
            frames.written(line);
        }
        frames
    }

    fn read(&mut self, at: Duration, line: &Bytes) {
        let Ok(mut frame) = serde_json::from_slice::<Value>(line) else { return };
        let id = |value: &Value| value["request_id"].as_str().unwrap_or_default().to_owned();
        match frame["type"].as_str() {
            Some("control_request") => {
                let message = &frame["request"]["message"];
                if message["method"] == "notifications/cancelled" {
                    self.cancel_call(&message["params"]["requestId"]);
                }
                self.asked.insert(id(&frame), (at, frame["request"].take()));
            }
            Some("control_cancel_request") => {
                self.cancelled.insert(id(&frame));
            }
            Some("control_response") if frame["response"]["subtype"] == "success" => {
                self.granted.push(id(&frame["response"]));
            }
            Some("result") => self.results.push(line.clone()),
            _ => {}
        }
    }

    /// A call of a tool is given up by its number, which no two calls of the one server share.
    fn cancel_call(&mut self, number: &Value) {
        let is_it = |request: &Value| {
            let message = &request["message"];
            message["method"] == "tools/call" && message["id"] == *number
        };
        let open = self.asked.iter().filter(|(_, (_, request))| is_it(request));
        self.cancelled.extend(open.map(|(id, _)| id.clone()));
    }

    fn written(&mut self, line: &[u8]) {
        let Ok(mut frame) = serde_json::from_slice::<Value>(line) else {
            self.unreadable += 1;
            return;
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match frame["type"].as_str() {
            Some("control_response") => {
                let id = text(&frame["response"]["request_id"]);
                self.answered.entry(id).or_default().push(frame["response"].take());
            }
            Some("control_request") => {
                self.host_asked
                    .insert(text(&frame["request_id"]), text(&frame["request"]["subtype"]));
            }
            Some("user") => self.users.push(text(&frame["uuid"])),
            _ => {}
        }
    }
}

fn check_answers(state: &State, frames: &Frames, strict_time: bool, violations: &mut Vec<String>) {
    if frames.unreadable > 0 {
        violations.push(format!("the host wrote {} lines that are no JSON", frames.unreadable));
    }
    for (id, answers) in &frames.answered {
        if !frames.asked.contains_key(id) {
            violations.push(format!("`{id}` was answered and never asked"));
        }
        if answers.len() > 1 {
            violations.push(format!("`{id}` was answered {} times", answers.len()));
        }
    }
    // What is half written is on its way.
    if !state.wire.written.rest.is_empty() {
        return;
    }
    // While the host could write.
    let until = [state.wire.closed, state.wire.blocked].into_iter().flatten().min();
    let until = until.unwrap_or(Duration::MAX);
    for (id, (at, request)) in &frames.asked {
        if frames.cancelled.contains(id) || frames.answered.contains_key(id) {
            continue;
        }
        let due = match state.answers.get(id) {
            Some((at, answer)) if *answer != Answer::Running => at.saturating_add(ON_ITS_WAY),
            _ if strict_time => at.saturating_add(LONGEST_CALLBACK),
            _ => continue,
        };
        if due < until {
            violations.push(format!("`{id}` ({}) was never answered", request["subtype"]));
        }
    }
}

/// Nobody approves but callbacks.
fn check_approvals(state: &State, frames: &Frames, violations: &mut Vec<String>) {
    for (id, answers) in &frames.answered {
        let approves = answers.iter().any(|answer| {
            let answer = &answer["response"];
            answer["behavior"] == "allow"
                || answer["hookSpecificOutput"]["permissionDecision"] == "allow"
                || answer["decision"] == "approve"
        });
        let said = state.answers.get(id).map(|(_, answer)| *answer);
        if approves && said != Some(Answer::Approved) {
            violations.push(format!("`{id}` was approved, but its callback said {said:?}"));
        }
    }
    for call in &state.ran {
        if !state.approved.contains(call) {
            violations.push(format!("tool call {call} ran, and nobody approved it"));
        }
    }
}

/// No operation succeeds that the CLI did not grant.
fn check_operations(state: &State, frames: &Frames, violations: &mut Vec<String>) {
    let mut granted: BTreeMap<&str, usize> = BTreeMap::new();
    for id in &frames.granted {
        if let Some(subtype) = frames.host_asked.get(id) {
            *granted.entry(subtype).or_default() += 1;
        }
    }
    for (operation, succeeded) in &state.succeeded {
        let granted = granted.get(operation).copied().unwrap_or_default();
        if *succeeded > granted {
            violations.push(format!(
                "`{operation}` succeeded {succeeded} times, and the CLI granted it {granted} times"
            ));
        }
    }
}

/// Messages are written once, and results belong to them.
fn check_sent(state: &State, frames: &Frames, violations: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for user in &frames.users {
        if !seen.insert(user) && !state.repeated.contains(user) {
            violations.push(format!("message `{user}` was written twice"));
        }
    }
    for (at, id) in state.sent.iter().enumerate() {
        if state.sent[..at].contains(id) && !state.repeated.contains(id) {
            violations.push(format!("message `{id}` was accepted twice"));
        }
    }
    for id in &state.finished {
        let named = |line: &Bytes| line.windows(id.len()).any(|some| some == id.as_bytes());
        if !frames.results.iter().any(named) {
            violations.push(format!("turn `{id}` has a result that the CLI did not give it"));
        }
    }
}

/// Checks how the CLI was ended, where the runtime lived to see it.
pub(super) fn process(record: &Record) {
    let (abandoned, killed_at_once, gone) = {
        let state = record.lock();
        let wire = &state.wire;
        let gone = |reading: &Reading| reading.end == Some(Err(ErrorKind::RuntimeGone));
        let gone = state.readings.iter().any(gone);
        (wire.abandoned, wire.killed.is_some() && wire.terminated.is_none(), gone)
    };
    if abandoned {
        record.violation("the host let go of a CLI that still ran");
    }
    if killed_at_once {
        record.violation("the CLI was killed without having been asked to end");
    }
    if gone {
        record.violation("the runtime is said to be gone, and is there");
    }
}
