//! Which lines of the client a recording has, and what their order may be in a replay.
//!
//! A client may do things at the same time: its callbacks run beside each other and beside its
//! prompts. How such lines were interleaved in the recording is chance, so a replay must not depend
//! on it. Everything here follows from the order of the recorded lines, nothing from their times.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::compare;
use crate::recording::{Channel, Entry, What};

/// The lines of the client, in recorded order.
pub(super) struct Expected {
    lines: Vec<ExpectedLine>,
    /// Every line before this one is settled.
    settled: usize,
    /// From an entry to its line.
    of_entry: HashMap<usize, usize>,
    requests: HashMap<String, CliRequest>,
    /// Entries from which on no message of the client waits for its result, and those at which one
    /// begins to.
    quiet: Vec<(usize, bool)>,
    /// The last `result` of the CLI.
    last_result: Option<usize>,
}

struct ExpectedLine {
    entry: usize,
    kind: String,
    order: Order,
    presence: Presence,
    is_settled: bool,
}

/// What a line must come after.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Order {
    /// A response: after the recorded request of this id.
    Response(String),
    /// A message of an MCP server of the client: after those with the same key.
    ServerMessage(String),
    /// Anything else that the client begins: after the groups before. Lines of one group have no
    /// line of the CLI between them.
    Own(usize),
}

/// Whether a line has to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// Unless the client closes its input instead.
    UntilClosed,
    /// May come, but is not waited for.
    Optional,
}

#[derive(Debug)]
struct CliRequest {
    entry: usize,
    is_cancelled: bool,
    /// The lines that respond to it.
    responses: Vec<usize>,
}

/// Where a line of the client belongs.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is this entry of the recording, if the rest is equal too.
    Entry(usize),
    /// It is not in the recording, which may be chance.
    Chance,
    /// It does not belong here.
    Nowhere,
}

impl Expected {
    pub(super) fn of(entries: &[Entry]) -> Self {
        let mut reading = Reading::default();
        for (index, entry) in entries.iter().enumerate() {
            match &entry.what {
                What::Received(line) => reading.received(index, line),
                What::Sent(line) | What::Unfinished(Channel::Sent, line)
                    if !line.trim_ascii().is_empty() =>
                {
                    reading.sent(index, line);
                }
                _ => {}
            }
        }
        reading.finish()
    }

    /// Whether the player has to wait for the line of this entry.
    pub(super) fn waits_for(&self, entry: usize) -> bool {
        self.line(entry).is_some_and(|line| !line.is_settled && line.presence != Presence::Optional)
    }

    /// The line of this entry has come, or never will.
    pub(super) fn settle(&mut self, entry: usize) {
        if let Some(line) = self.of_entry.get(&entry) {
            self.lines[*line].is_settled = true;
        }
        while self.lines.get(self.settled).is_some_and(|line| line.is_settled) {
            self.settled += 1;
        }
    }

    /// Whether the client may close its input instead of saying the line of this entry.
    pub(super) fn may_be_missing(&self, entry: usize) -> bool {
        self.line(entry).is_some_and(|line| line.presence == Presence::UntilClosed)
    }

    /// The first line of the same kind that has not come, wherever it stands.
    pub(super) fn of_kind(&self, said: &[u8]) -> Option<usize> {
        let kind = compare::kind(said);
        self.find(|line| line.kind == kind)
    }

    /// Where a line belongs that comes while the player waits at this entry.
    pub(super) fn place(&self, said: &[u8], at: usize) -> Place {
        let frame = serde_json::from_slice(said).unwrap_or_default();
        match order(&frame, 0, &self.requests) {
            Order::Response(id) => self.place_of_response(&id, at),
            order @ Order::ServerMessage(_) => {
                self.find(|line| line.order == order).map_or(Place::Nowhere, Place::Entry)
            }
            Order::Own(_) => self.place_of_own(said, at),
        }
    }

    fn place_of_response(&self, id: &str, at: usize) -> Place {
        let Some(request) = self.requests.get(id).filter(|request| request.entry < at) else {
            return Place::Nowhere;
        };
        let mut recorded = request.responses.iter().map(|line| &self.lines[*line]);
        if let Some(line) = recorded.find(|line| !line.is_settled) {
            return Place::Entry(line.entry);
        }
        // The recorded client had not answered when the CLI no longer asked, or when it closed its
        // input; this one was faster.
        let was_pending = self.last_result.is_none_or(|result| request.entry > result);
        if request.responses.is_empty() && (request.is_cancelled || was_pending) {
            Place::Chance
        } else {
            Place::Nowhere
        }
    }

    fn place_of_own(&self, said: &[u8], at: usize) -> Place {
        let kind = compare::kind(said);
        let next = self.unsettled().find(|line| matches!(line.order, Order::Own(_)));
        match next {
            Some(next) => self
                .find(|line| line.order == next.order && line.kind == kind)
                .map_or(Place::Nowhere, Place::Entry),
            // A client that stops while nothing of its own is unanswered knows from the CLI's
            // lines alone whether a turn runs, and it may have read more or fewer of them.
            None if kind == INTERRUPT && self.is_quiet(at) => Place::Chance,
            None => Place::Nowhere,
        }
    }

    fn is_quiet(&self, at: usize) -> bool {
        let after = self.quiet.partition_point(|(entry, _)| *entry < at);
        after.checked_sub(1).is_some_and(|before| self.quiet[before].1)
    }

    fn line(&self, entry: usize) -> Option<&ExpectedLine> {
        self.of_entry.get(&entry).map(|line| &self.lines[*line])
    }

    fn find(&self, wanted: impl Fn(&ExpectedLine) -> bool) -> Option<usize> {
        self.unsettled().find(|line| wanted(line)).map(|line| line.entry)
    }

    fn unsettled(&self) -> impl Iterator<Item = &ExpectedLine> {
        self.lines[self.settled..].iter().filter(|line| !line.is_settled)
    }
}

const INTERRUPT: &str = "control_request/interrupt";

/// How far a recording was read.
#[derive(Default)]
struct Reading {
    lines: Vec<ExpectedLine>,
    requests: HashMap<String, CliRequest>,
    quiet: Vec<(usize, bool)>,
    last_result: Option<usize>,
    group: usize,
    /// The messages of the client that the CLI still works on.
    unanswered: HashSet<String>,
    /// Whether the CLI says what becomes of each message. If not, a result answers all of them.
    names_messages: bool,
}

impl Reading {
    fn received(&mut self, entry: usize, line: &[u8]) {
        self.group += 1;
        let frame: Value = serde_json::from_slice(line).unwrap_or_default();
        match text(&frame["type"]) {
            "control_request" => {
                let request = CliRequest { entry, is_cancelled: false, responses: Vec::new() };
                self.requests.entry(text(&frame["request_id"]).to_owned()).or_insert(request);
            }
            "control_cancel_request" => {
                if let Some(request) = self.requests.get_mut(text(&frame["request_id"])) {
                    request.is_cancelled = true;
                }
            }
            "command_lifecycle" => {
                self.names_messages = true;
                if matches!(text(&frame["state"]), "completed" | "cancelled") {
                    self.unanswered.remove(text(&frame["command_uuid"]));
                }
            }
            "result" => {
                self.last_result = Some(entry);
                if !self.names_messages {
                    self.unanswered.clear();
                }
                for id in frame["user_message_uuids"].as_array().into_iter().flatten() {
                    self.unanswered.remove(text(id));
                }
            }
            _ => return,
        }
        // Before the first result there is nothing that could have been read more or less of.
        self.note_quiet(entry, self.last_result.is_some() && self.unanswered.is_empty());
    }

    fn sent(&mut self, entry: usize, line: &[u8]) {
        let frame: Value = serde_json::from_slice(line).unwrap_or_default();
        let order = order(&frame, self.group, &self.requests);
        let mut presence = Presence::Required;
        if let Order::Response(id) = &order
            && let Some(request) = self.requests.get_mut(id)
        {
            request.responses.push(self.lines.len());
            // The response and the cancellation crossed: a client that reads faster sends none.
            if request.is_cancelled {
                presence = Presence::Optional;
            }
        }
        if frame["type"] == "user" {
            self.unanswered.insert(text(&frame["uuid"]).to_owned());
            self.note_quiet(entry, false);
        }
        let kind = compare::kind(line);
        self.lines.push(ExpectedLine { entry, kind, order, presence, is_settled: false });
    }

    fn note_quiet(&mut self, entry: usize, is_quiet: bool) {
        if self.quiet.last().is_none_or(|(_, before)| *before != is_quiet) {
            self.quiet.push((entry, is_quiet));
        }
    }

    fn finish(self) -> Expected {
        let Self { lines, requests, quiet, last_result, .. } = self;
        let of_entry = lines.iter().enumerate().map(|(line, of)| (of.entry, line)).collect();
        let mut expected = Expected { lines, settled: 0, of_entry, requests, quiet, last_result };
        expected.release_the_end();
        expected
    }
}

impl Expected {
    /// What a client that stops says last depends on how much of the CLI it has read: whether a
    /// turn of the CLI's own is interrupted, whether a request behind the last result is answered.
    fn release_the_end(&mut self) {
        let last_own = self.lines.iter().rposition(|line| matches!(line.order, Order::Own(_)));
        if let Some(last) = last_own
            && self.lines[last].kind == INTERRUPT
            && self.is_quiet(self.lines[last].entry)
        {
            self.lines[last].presence = Presence::UntilClosed;
        }
        let Some(result) = self.last_result else { return };
        for line in &mut self.lines {
            if let Order::Response(id) = &line.order
                && line.presence == Presence::Required
                && self.requests.get(id).is_some_and(|request| request.entry > result)
            {
                line.presence = Presence::UntilClosed;
            }
        }
    }
}

/// What a line of the client must come after, if this is its group and these are the requests of
/// the CLI.
fn order(frame: &Value, group: usize, requests: &HashMap<String, CliRequest>) -> Order {
    let request = &frame["request"];
    let responds_to = text(&frame["response"]["request_id"]);
    match (text(&frame["type"]), text(&request["subtype"])) {
        ("control_response", _) if requests.contains_key(responds_to) => {
            Order::Response(responds_to.to_owned())
        }
        ("control_request", "mcp_message") => {
            let message = &request["message"];
            let key = [
                &request["server_name"],
                &message["method"],
                &message["id"],
                &message["params"]["progressToken"],
            ];
            Order::ServerMessage(key.map(Value::to_string).join(" "))
        }
        _ => Order::Own(group),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
