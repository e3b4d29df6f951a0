//! The client lines that a replay expects, and the orders in which they may arrive.
//!
//! A client is concurrent: its callbacks run in parallel with each other and with its prompts. The
//! interleaving of such lines in the recording is arbitrary, so a replay must not depend on it.
//! Everything here is derived from the order of the recorded lines, never from their times.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::compare;
use crate::recording::{Channel, Entry, EntryKind};

/// The recorded lines of the client, in recorded order.
pub(super) struct ExpectedLines {
    lines: Vec<ExpectedLine>,
    /// The index of the first line that may be unsettled.
    settled: usize,
    /// Maps the index of an entry to the index of its line.
    of_entry: HashMap<usize, usize>,
    requests: HashMap<String, CliRequest>,
    /// The entries at which the number of unanswered client messages becomes zero (`true`) or
    /// non-zero (`false`).
    quiet: Vec<(usize, bool)>,
    /// The last `result` of the CLI.
    last_result: Option<usize>,
}

struct ExpectedLine {
    entry: usize,
    kind: String,
    order: OrderKey,
    presence: Presence,
    is_settled: bool,
}

/// Determines which lines must come before a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum OrderKey {
    /// A response, which follows the recorded request with this id.
    Response(String),
    /// A message of an MCP server in the client, which follows those with the same key.
    ServerMessage(String),
    /// Any other line of the client, which follows all earlier groups. No line of the CLI separates
    /// the lines of one group.
    Own(usize),
}

/// Whether a line must arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    /// Required unless the client closes stdin instead.
    UntilClosed,
    /// May arrive, but the player does not wait for it.
    Optional,
}

#[derive(Debug)]
struct CliRequest {
    entry: usize,
    is_cancelled: bool,
    /// The lines that respond to it.
    responses: Vec<usize>,
}

/// The result of matching a line of the client against the recording.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineMatch {
    /// The line corresponds to this entry, provided that the contents are equal.
    Entry(usize),
    /// The line was not recorded, which a difference in timing explains.
    Timing,
    /// The line is not expected here.
    Unexpected,
}

impl ExpectedLines {
    pub(super) fn from_entries(entries: &[Entry]) -> Self {
        let mut builder = ExpectedLinesBuilder::default();
        for (index, entry) in entries.iter().enumerate() {
            match &entry.kind {
                EntryKind::Received(line) => builder.received(index, line),
                EntryKind::Sent(line) | EntryKind::Unfinished(Channel::Sent, line)
                    if !line.trim_ascii().is_empty() =>
                {
                    builder.sent(index, line);
                }
                _ => {}
            }
        }
        builder.finish()
    }

    /// Returns whether the player has to wait for the line of this entry.
    pub(super) fn waits_for(&self, entry: usize) -> bool {
        self.line(entry).is_some_and(|line| !line.is_settled && line.presence != Presence::Optional)
    }

    /// Marks the line of this entry as arrived or skipped.
    pub(super) fn settle(&mut self, entry: usize) {
        if let Some(line) = self.of_entry.get(&entry) {
            self.lines[*line].is_settled = true;
        }
        while self.lines.get(self.settled).is_some_and(|line| line.is_settled) {
            self.settled += 1;
        }
    }

    /// Returns whether the client may close stdin instead of sending the line of this entry.
    pub(super) fn may_be_missing(&self, entry: usize) -> bool {
        self.line(entry).is_some_and(|line| line.presence == Presence::UntilClosed)
    }

    /// Returns the first unsettled entry of the same kind as `line`, at any position.
    pub(super) fn of_kind(&self, line: &[u8]) -> Option<usize> {
        let kind = compare::kind(line);
        self.find(|line| line.kind == kind)
    }

    /// Matches a line that arrives while the player waits at this entry.
    pub(super) fn match_line(&self, line: &[u8], at: usize) -> LineMatch {
        let frame = serde_json::from_slice(line).unwrap_or_default();
        match order(&frame, 0, &self.requests) {
            OrderKey::Response(id) => self.match_response(&id, at),
            order @ OrderKey::ServerMessage(_) => self
                .find(|line| line.order == order)
                .map_or(LineMatch::Unexpected, LineMatch::Entry),
            OrderKey::Own(_) => self.match_own(line, at),
        }
    }

    fn match_response(&self, id: &str, at: usize) -> LineMatch {
        let Some(request) = self.requests.get(id).filter(|request| request.entry < at) else {
            return LineMatch::Unexpected;
        };
        let mut recorded = request.responses.iter().map(|line| &self.lines[*line]);
        if let Some(line) = recorded.find(|line| !line.is_settled) {
            return LineMatch::Entry(line.entry);
        }
        // The recorded client had not responded before the CLI cancelled the request, or before the
        // client closed stdin; this client was faster.
        let was_pending = self.last_result.is_none_or(|result| request.entry > result);
        if request.responses.is_empty() && (request.is_cancelled || was_pending) {
            LineMatch::Timing
        } else {
            LineMatch::Unexpected
        }
    }

    fn match_own(&self, line: &[u8], at: usize) -> LineMatch {
        let kind = compare::kind(line);
        let next = self.unsettled().find(|line| matches!(line.order, OrderKey::Own(_)));
        match next {
            Some(next) => self
                .find(|line| line.order == next.order && line.kind == kind)
                .map_or(LineMatch::Unexpected, LineMatch::Entry),
            // If no message is unanswered, a stopping client knows only from the CLI's lines whether a
            // turn is running, and it may have read more or fewer of them than the recorded client.
            None if kind == INTERRUPT && self.is_quiet(at) => LineMatch::Timing,
            None => LineMatch::Unexpected,
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

/// Collects the expected lines while the recording is scanned.
#[derive(Default)]
struct ExpectedLinesBuilder {
    lines: Vec<ExpectedLine>,
    requests: HashMap<String, CliRequest>,
    quiet: Vec<(usize, bool)>,
    last_result: Option<usize>,
    group: usize,
    /// The messages of the client that the CLI has not answered yet.
    unanswered: HashSet<String>,
    /// Whether the CLI reports the lifecycle of each message. If not, a result answers all of them.
    reports_lifecycle: bool,
}

impl ExpectedLinesBuilder {
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
                self.reports_lifecycle = true;
                if matches!(text(&frame["state"]), "completed" | "cancelled") {
                    self.unanswered.remove(text(&frame["command_uuid"]));
                }
            }
            "result" => {
                self.last_result = Some(entry);
                if !self.reports_lifecycle {
                    self.unanswered.clear();
                }
                for id in frame["user_message_uuids"].as_array().into_iter().flatten() {
                    self.unanswered.remove(text(id));
                }
            }
            _ => return,
        }
        // Before the first result, no difference in reading speed can matter.
        self.note_quiet(entry, self.last_result.is_some() && self.unanswered.is_empty());
    }

    fn sent(&mut self, entry: usize, line: &[u8]) {
        let frame: Value = serde_json::from_slice(line).unwrap_or_default();
        let order = order(&frame, self.group, &self.requests);
        let mut presence = Presence::Required;
        if let OrderKey::Response(id) = &order
            && let Some(request) = self.requests.get_mut(id)
        {
            request.responses.push(self.lines.len());
            // The response and the cancellation crossed; a client that reads faster sends no response.
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

    fn finish(self) -> ExpectedLines {
        let Self { lines, requests, quiet, last_result, .. } = self;
        let of_entry = lines.iter().enumerate().map(|(line, of)| (of.entry, line)).collect();
        let mut expected =
            ExpectedLines { lines, settled: 0, of_entry, requests, quiet, last_result };
        expected.relax_final_lines();
        expected
    }
}

impl ExpectedLines {
    /// Makes lines optional that depend on how much of stdout the client has read when it stops: an
    /// interrupt of a turn that the CLI started, and responses to requests after the last result.
    fn relax_final_lines(&mut self) {
        let last_own = self.lines.iter().rposition(|line| matches!(line.order, OrderKey::Own(_)));
        if let Some(last) = last_own
            && self.lines[last].kind == INTERRUPT
            && self.is_quiet(self.lines[last].entry)
        {
            self.lines[last].presence = Presence::UntilClosed;
        }
        let Some(result) = self.last_result else { return };
        for line in &mut self.lines {
            if let OrderKey::Response(id) = &line.order
                && line.presence == Presence::Required
                && self.requests.get(id).is_some_and(|request| request.entry > result)
            {
                line.presence = Presence::UntilClosed;
            }
        }
    }
}

/// Returns the order key of a client line in this group, given the requests of the CLI.
fn order(frame: &Value, group: usize, requests: &HashMap<String, CliRequest>) -> OrderKey {
    let request = &frame["request"];
    let responds_to = text(&frame["response"]["request_id"]);
    match (text(&frame["type"]), text(&request["subtype"])) {
        ("control_response", _) if requests.contains_key(responds_to) => {
            OrderKey::Response(responds_to.to_owned())
        }
        ("control_request", "mcp_message") => {
            let message = &request["message"];
            let key = [
                &request["server_name"],
                &message["method"],
                &message["id"],
                &message["params"]["progressToken"],
            ];
            OrderKey::ServerMessage(key.map(Value::to_string).join(" "))
        }
        _ => OrderKey::Own(group),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
