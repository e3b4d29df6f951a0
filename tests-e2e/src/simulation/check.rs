//! The invariants of every run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use claude_agent_kit::ErrorKind;
use serde::Deserialize;
use serde_json::Value;

use super::record::{CallbackOutcome, Lines, ReaderLog, Record, RecordState};

/// How long a response may take from the callback to the pipe: longer than a stop takes from cancelling the
/// callbacks to closing stdin.
const RESPONSE_DELAY: Duration = Duration::from_secs(3);

/// How long the last of several queued callbacks takes when each of them times out.
const LONGEST_CALLBACK: Duration = Duration::from_secs(200);

/// Returns the lines that readers receive: all except control messages.
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

/// Checks the invariants of a finished run.
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

fn check_readings(state: &RecordState, violations: &mut Vec<String>) {
    let mut all = expected(&state.wire.read, Duration::MAX);
    // The last line may lack its newline.
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

fn check_reading(reading: &ReaderLog, all: &[Bytes]) -> Result<(), String> {
    let count = reading.lines.len();
    let places = 0..=all.len().saturating_sub(count);
    let starts: Vec<usize> =
        places.filter(|at| all.get(*at..at + count) == Some(&*reading.lines)).collect();
    if starts.is_empty() {
        return Err(format!("got {count} messages that differ from the wire: {:?}", reading.lines));
    }
    if reading.from_start && !starts.contains(&0) {
        return Err(format!("missed the first messages and started with number {}", starts[0]));
    }
    let ended_ok = reading.end == Some(Ok(()));
    if ended_ok
        && reading.who == "turn"
        // A result that does not name its message is followed by a completion message.
        && !reading.lines.iter().rev().take(2).any(|line| is_result(line))
    {
        return Err("ended without an error and without a result".to_owned());
    }
    let whole = ended_ok && reading.who != "turn";
    let starts = starts.iter().filter(|at| !reading.from_start || **at == 0);
    if whole && !starts.clone().any(|at| at + count == all.len()) {
        return Err(format!("ended without an error after {count} of {} messages", all.len()));
    }
    Ok(())
}

/// The messages on the wire.
struct Frames {
    /// Requests of the CLI, with the time at which they were read.
    requests: BTreeMap<String, (Duration, Value)>,
    cancelled: BTreeSet<String>,
    /// Responses of the host, by request ID.
    responses: BTreeMap<String, Vec<Value>>,
    /// Requests of the host, by their IDs.
    host_requests: BTreeMap<String, String>,
    /// Requests of the host that the CLI granted.
    granted: Vec<String>,
    users: Vec<String>,
    /// Result messages.
    results: Vec<Bytes>,
    unreadable: usize,
}

impl Frames {
    fn of(state: &RecordState) -> Self {
        let mut frames = Self {
            requests: BTreeMap::new(),
            cancelled: BTreeSet::new(),
            responses: BTreeMap::new(),
            host_requests: BTreeMap::new(),
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
                self.requests.insert(id(&frame), (at, frame["request"].take()));
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

    /// Cancels the tool call with this JSON-RPC ID, which is unique per server.
    fn cancel_call(&mut self, number: &Value) {
        let is_it = |request: &Value| {
            let message = &request["message"];
            message["method"] == "tools/call" && message["id"] == *number
        };
        let open = self.requests.iter().filter(|(_, (_, request))| is_it(request));
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
                self.responses.entry(id).or_default().push(frame["response"].take());
            }
            Some("control_request") => {
                self.host_requests
                    .insert(text(&frame["request_id"]), text(&frame["request"]["subtype"]));
            }
            Some("user") => self.users.push(text(&frame["uuid"])),
            _ => {}
        }
    }
}

fn check_answers(
    state: &RecordState,
    frames: &Frames,
    strict_time: bool,
    violations: &mut Vec<String>,
) {
    if frames.unreadable > 0 {
        violations.push(format!("the host wrote {} lines that are not JSON", frames.unreadable));
    }
    for (id, answers) in &frames.responses {
        if !frames.requests.contains_key(id) {
            violations.push(format!("the host responded to `{id}`, which was never requested"));
        }
        if answers.len() > 1 {
            violations.push(format!("the host responded to `{id}` {} times", answers.len()));
        }
    }
    // The remaining bytes are still being written.
    if !state.wire.written.rest.is_empty() {
        return;
    }
    // Only while the host was able to write.
    let until = [state.wire.closed, state.wire.blocked].into_iter().flatten().min();
    let until = until.unwrap_or(Duration::MAX);
    for (id, (at, request)) in &frames.requests {
        if frames.cancelled.contains(id) || frames.responses.contains_key(id) {
            continue;
        }
        let due = match state.answers.get(id) {
            Some((at, answer)) if *answer != CallbackOutcome::Running => {
                at.saturating_add(RESPONSE_DELAY)
            }
            _ if strict_time => at.saturating_add(LONGEST_CALLBACK),
            _ => continue,
        };
        if due < until {
            violations.push(format!("`{id}` ({}) never got a response", request["subtype"]));
        }
    }
}

/// Checks that only callbacks approve tool calls.
fn check_approvals(state: &RecordState, frames: &Frames, violations: &mut Vec<String>) {
    for (id, answers) in &frames.responses {
        let approves = answers.iter().any(|answer| {
            let answer = &answer["response"];
            answer["behavior"] == "allow"
                || answer["hookSpecificOutput"]["permissionDecision"] == "allow"
                || answer["decision"] == "approve"
        });
        let outcome = state.answers.get(id).map(|(_, answer)| *answer);
        if approves && outcome != Some(CallbackOutcome::Approved) {
            violations.push(format!("`{id}` was approved, but its callback returned {outcome:?}"));
        }
    }
    for call in &state.ran {
        if !state.approved.contains(call) {
            violations.push(format!("tool call {call} ran without approval"));
        }
    }
}

/// Checks that no operation succeeds that the CLI did not grant.
fn check_operations(state: &RecordState, frames: &Frames, violations: &mut Vec<String>) {
    let mut granted: BTreeMap<&str, usize> = BTreeMap::new();
    for id in &frames.granted {
        if let Some(subtype) = frames.host_requests.get(id) {
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

/// Checks that messages are written once and that results belong to them.
fn check_sent(state: &RecordState, frames: &Frames, violations: &mut Vec<String>) {
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
            violations.push(format!("turn `{id}` has a result that the CLI did not send for it"));
        }
    }
}

/// Checks how the process was ended, for runs that kept their runtime.
pub(super) fn process(record: &Record) {
    let (abandoned, killed_at_once, gone) = {
        let state = record.lock();
        let wire = &state.wire;
        let gone = |reading: &ReaderLog| reading.end == Some(Err(ErrorKind::RuntimeGone));
        let gone = state.readings.iter().any(gone);
        (wire.abandoned, wire.killed.is_some() && wire.terminated.is_none(), gone)
    };
    if abandoned {
        record.violation("the host dropped the process while the CLI was running");
    }
    if killed_at_once {
        record.violation("the CLI was killed without being terminated first");
    }
    if gone {
        record.violation("an error reports that the runtime is gone, but it is running");
    }
}
