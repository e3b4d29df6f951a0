//! Maps the ids of a recording to the ids that the client uses in a replay.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::recording::{EntryKind, Recording};

/// The ids that the client generated, in the recording and in the replay.
#[derive(Debug, Default)]
pub(super) struct IdMap {
    bindings: [IdBindings; 3],
}

/// The ids of one kind. Equal strings of different kinds are different ids.
#[derive(Debug, Default)]
struct IdBindings {
    /// The recorded ids that the client generated.
    client_ids: HashSet<String>,
    /// Maps a recorded id to the one that the client uses in the replay.
    to_client: HashMap<String, String>,
    /// The ids that the client uses in the replay.
    taken: HashSet<String>,
}

/// What an id identifies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdKind {
    /// A control request of the client.
    Request,
    /// A hook callback.
    Callback,
    /// A message, a session, or anything else with a UUID.
    Entity,
}

/// The side that wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineSender {
    Client,
    Cli,
}

impl IdMap {
    /// Finds the ids that the client generated: those that no earlier line of the CLI contains.
    pub(super) fn from_recording(recording: &Recording) -> Self {
        let mut ids = Self::default();
        let mut seen: [HashSet<Vec<u8>>; 3] = Default::default();
        for entry in &recording.entries {
            match &entry.kind {
                EntryKind::Received(line) => {
                    let line_type = type_of(line);
                    for (kind, id) in ids_in(line, &line_type) {
                        seen[kind as usize].insert(line[id].to_vec());
                    }
                }
                EntryKind::Sent(line) => {
                    let Ok(value) = serde_json::from_slice::<Value>(line) else { continue };
                    let line_type = value["type"].as_str().unwrap_or_default();
                    each_text("", &value, &mut |key, text| {
                        if let Some(kind) = introduced_kind(key, line_type, text)
                            && !seen[kind as usize].contains(text.as_bytes())
                        {
                            ids.bindings[kind as usize].client_ids.insert(text.to_owned());
                        }
                    });
                }
                _ => {}
            }
        }
        ids
    }

    /// Binds the session in the recorded arguments to the one in `arguments`.
    pub(super) fn bind_sessions(&mut self, recorded: &[String], arguments: &[String]) {
        for flag in ["--session-id", "--resume", "-r"] {
            if let (Some(recorded), Some(now)) =
                (flag_value(flag, recorded), flag_value(flag, arguments))
            {
                let sessions = &mut self.bindings[IdKind::Entity as usize];
                sessions.client_ids.insert(recorded.to_owned());
                sessions.bind(recorded, now);
            }
        }
    }

    /// Binds `now` to the recorded id, if the client generated the id and may introduce it in this
    /// field.
    pub(super) fn bind(&mut self, key: &str, line_type: &str, recorded: &str, now: &str) {
        let Some(kind) = introduced_kind(key, line_type, recorded) else { return };
        // In fields whose name does not mark them as ids, only a UUID counts as an id.
        let by_name = introduced_kind(key, line_type, "any").is_some();
        if by_name || is_uuid(now.as_bytes()) {
            self.bindings[kind as usize].bind(recorded, now);
        }
    }

    /// Returns a recorded string of a client line with the ids of the replay.
    pub(super) fn map_text<'a>(
        &self,
        key: &str,
        line_type: &str,
        recorded: &'a str,
    ) -> Cow<'a, str> {
        let kind = id_kind(key, line_type, LineSender::Client);
        if let Some(now) = kind.and_then(|kind| self.current(kind, recorded.as_bytes())) {
            return Cow::Owned(now.to_owned());
        }
        let replaced = self.replace(recorded.as_bytes(), uuids(recorded.as_bytes()), str::to_owned);
        // UUIDs are ASCII and are replaced by strings, so the result is valid UTF-8.
        replaced.map_or(Cow::Borrowed(recorded), |bytes| {
            Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
        })
    }

    /// Returns a recorded line of the CLI's stdout with the ids of the replay.
    pub(super) fn map_stdout(&self, line: &Bytes) -> Bytes {
        if self.bindings.iter().all(|kind| kind.to_client.is_empty()) {
            return line.clone();
        }
        let escaped = |id: &str| {
            let literal = Value::from(id).to_string();
            literal[1..literal.len() - 1].to_owned()
        };
        let replaced = self.replace(line, ids_in(line, &type_of(line)), escaped);
        replaced.map_or_else(|| line.clone(), Bytes::from)
    }

    /// Returns a recorded line of stderr with the ids of the replay. Only UUIDs are replaced, because
    /// other ids cannot be distinguished from words.
    pub(super) fn map_stderr(&self, line: &Bytes) -> Bytes {
        let replaced = self.replace(line, uuids(line), str::to_owned);
        replaced.map_or_else(|| line.clone(), Bytes::from)
    }

    fn current(&self, kind: IdKind, recorded: &[u8]) -> Option<&str> {
        let recorded = std::str::from_utf8(recorded).ok()?;
        self.bindings[kind as usize].to_client.get(recorded).map(String::as_str)
    }

    /// Replaces the ids at these ranges; returns `None` if nothing changed.
    fn replace(
        &self,
        text: &[u8],
        places: impl IntoIterator<Item = (IdKind, Range<usize>)>,
        written: impl Fn(&str) -> String,
    ) -> Option<Vec<u8>> {
        let mut changed = Vec::new();
        let mut copied = 0;
        for (kind, place) in places {
            let Some(now) = self.current(kind, &text[place.clone()]) else { continue };
            changed.extend_from_slice(&text[copied..place.start]);
            changed.extend_from_slice(written(now).as_bytes());
            copied = place.end;
        }
        changed.extend_from_slice(&text[copied..]);
        (copied > 0).then_some(changed)
    }
}

impl IdBindings {
    fn bind(&mut self, recorded: &str, now: &str) {
        let free = !self.to_client.contains_key(recorded) && !self.taken.contains(now);
        if free && !now.is_empty() && self.client_ids.contains(recorded) {
            self.taken.insert(now.to_owned());
            self.to_client.insert(recorded.to_owned(), now.to_owned());
        }
    }
}

/// Returns the kind of the id in this field, if the client can have generated it.
///
/// Both sides number their own requests, so the owner of a request id depends on the sender of the
/// line.
fn id_kind(key: &str, line_type: &str, sender: LineSender) -> Option<IdKind> {
    match key {
        "request_id" => match (sender, line_type) {
            (LineSender::Client, "control_request" | "control_cancel_request")
            | (LineSender::Cli, "control_response") => Some(IdKind::Request),
            _ => None,
        },
        "callback_id" | "hookCallbackIds" => Some(IdKind::Callback),
        _ if key == "uuid" || key.ends_with("_uuid") || key.ends_with("_id") => {
            Some(IdKind::Entity)
        }
        _ => None,
    }
}

/// Returns the kind of the id that the client may introduce in this field, if the text is an id.
fn introduced_kind(key: &str, line_type: &str, text: &str) -> Option<IdKind> {
    let by_name = matches!(key, "request_id" | "hookCallbackIds" | "uuid" | "session_id");
    let is_id = if by_name { !text.is_empty() } else { is_uuid(text.as_bytes()) };
    id_kind(key, line_type, LineSender::Client).filter(|_| is_id)
}

/// Calls `visit` with every string and its key.
fn each_text<'a>(key: &'a str, value: &'a Value, visit: &mut impl FnMut(&'a str, &'a str)) {
    match value {
        Value::String(text) => visit(key, text),
        Value::Array(values) => values.iter().for_each(|value| each_text(key, value, visit)),
        Value::Object(fields) => {
            fields.iter().for_each(|(key, value)| each_text(key, value, visit));
        }
        _ => {}
    }
}

/// Returns the value of a flag.
fn flag_value<'a>(flag: &str, arguments: &'a [String]) -> Option<&'a str> {
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        if argument == flag {
            return arguments.next().map(String::as_str);
        }
        if let Some(value) = argument.strip_prefix(flag).and_then(|rest| rest.strip_prefix('=')) {
            return Some(value);
        }
    }
    None
}

fn type_of(line: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Head {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_slice::<Head>(line).map(|head| head.kind).unwrap_or_default()
}

/// Returns the ranges of the ids in a line of the CLI: the whole value of an id field, and UUIDs
/// anywhere.
fn ids_in(line: &[u8], line_type: &str) -> Vec<(IdKind, Range<usize>)> {
    let mut ids = Vec::new();
    let mut key: &[u8] = b"";
    let mut at = 0;
    while let Some(quote) = line[at..].iter().position(|byte| *byte == b'"') {
        let start = at + quote + 1;
        let end = start + string_length(&line[start..]);
        at = (end + 1).min(line.len());
        let text = &line[start..end];
        if line[at..].trim_ascii_start().starts_with(b":") {
            key = text;
        } else if let Ok(key) = std::str::from_utf8(key)
            && let Some(kind) = id_kind(key, line_type, LineSender::Cli)
            // A UUID is found below, unless the field is for ids of another kind.
            && (kind != IdKind::Entity || !is_uuid(text))
        {
            ids.push((kind, start..end));
            continue;
        }
        let inside = uuids(text);
        ids.extend(inside.map(|(kind, id)| (kind, start + id.start..start + id.end)));
    }
    ids
}

/// Returns the length of the JSON string that starts here, after its opening quote.
fn string_length(line: &[u8]) -> usize {
    let mut escaped = false;
    let end = line.iter().position(|byte| match byte {
        b'"' if !escaped => true,
        _ => {
            escaped = *byte == b'\\' && !escaped;
            false
        }
    });
    end.unwrap_or(line.len())
}

const UUID: usize = 36;

/// Returns the ranges of the UUIDs in a text.
fn uuids(text: &[u8]) -> impl Iterator<Item = (IdKind, Range<usize>)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + UUID <= text.len() {
            if is_uuid(&text[at..at + UUID]) {
                at += UUID;
                return Some((IdKind::Entity, at - UUID..at));
            }
            at += 1;
        }
        None
    })
}

fn is_uuid(text: &[u8]) -> bool {
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    // Checks two dashes first, because nearly every text fails there.
    text.len() == UUID && text[8] == b'-' && text[13] == b'-' && text.iter().enumerate().all(fits)
}
