//! Which id of the client stands for which recorded one.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

use crate::recording::{Recording, What};

/// The ids that the client invented, in the recording and now.
#[derive(Debug, Default)]
pub(super) struct Ids {
    families: [Tied; 3],
}

/// Ids of one family: equal texts of different families are different ids.
#[derive(Debug, Default)]
struct Tied {
    /// The recorded ids that the client had made up.
    invented: HashSet<String>,
    /// From the recorded id to the one that the client uses now.
    to_client: HashMap<String, String>,
    /// The ids that the client uses now.
    taken: HashSet<String>,
}

/// What an id belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    /// A control request of the client.
    Request,
    /// A hook callback.
    Callback,
    /// A message, a session, or whatever else has a uuid.
    Thing,
}

/// Who wrote a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    Client,
    Cli,
}

impl Ids {
    /// Finds the ids that the client made up: those that the CLI had not said before.
    pub(super) fn of(recording: &Recording) -> Self {
        let mut ids = Self::default();
        let mut said: [HashSet<Vec<u8>>; 3] = Default::default();
        for entry in &recording.entries {
            match &entry.what {
                What::Received(line) => {
                    let kind = type_of(line);
                    for (family, id) in ids_in(line, &kind) {
                        said[family as usize].insert(line[id].to_vec());
                    }
                }
                What::Sent(line) => {
                    let Ok(value) = serde_json::from_slice::<Value>(line) else { continue };
                    let kind = value["type"].as_str().unwrap_or_default();
                    each_text("", &value, &mut |key, text| {
                        if let Some(family) = introduces(key, kind, text)
                            && !said[family as usize].contains(text.as_bytes())
                        {
                            ids.families[family as usize].invented.insert(text.to_owned());
                        }
                    });
                }
                _ => {}
            }
        }
        ids
    }

    /// Ties the session that the recorded arguments name to the one that these name.
    pub(super) fn tie_sessions(&mut self, recorded: &[String], arguments: &[String]) {
        for flag in ["--session-id", "--resume", "-r"] {
            if let (Some(recorded), Some(now)) = (after(flag, recorded), after(flag, arguments)) {
                let sessions = &mut self.families[Family::Thing as usize];
                sessions.invented.insert(recorded.to_owned());
                sessions.tie(recorded, now);
            }
        }
    }

    /// Ties two ids if the recorded one is the client's own and this is where it names one.
    pub(super) fn tie(&mut self, key: &str, line_type: &str, recorded: &str, now: &str) {
        let Some(family) = introduces(key, line_type, recorded) else { return };
        // Elsewhere than in the fields that are ids by their name, a text is one by its looks.
        let by_name = introduces(key, line_type, "any").is_some();
        if by_name || is_uuid(now.as_bytes()) {
            self.families[family as usize].tie(recorded, now);
        }
    }

    /// A recorded text of a field of the client, as the client says it now.
    pub(super) fn text<'a>(&self, key: &str, line_type: &str, recorded: &'a str) -> Cow<'a, str> {
        let family = family(key, line_type, Speaker::Client);
        if let Some(now) = family.and_then(|family| self.now(family, recorded.as_bytes())) {
            return Cow::Owned(now.to_owned());
        }
        let replaced = self.replace(recorded.as_bytes(), uuids(recorded.as_bytes()), str::to_owned);
        // Uuids are replaced by texts, at places between characters, so this stays a text.
        replaced.map_or(Cow::Borrowed(recorded), |bytes| {
            Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
        })
    }

    /// A recorded line of the CLI's stdout with the ids that the client uses now.
    pub(super) fn output(&self, line: &Bytes) -> Bytes {
        if self.families.iter().all(|family| family.to_client.is_empty()) {
            return line.clone();
        }
        let escaped = |id: &str| {
            let literal = Value::from(id).to_string();
            literal[1..literal.len() - 1].to_owned()
        };
        let replaced = self.replace(line, ids_in(line, &type_of(line)), escaped);
        replaced.map_or_else(|| line.clone(), Bytes::from)
    }

    /// The same for stderr, which is prose: uuids alone can be told from words.
    pub(super) fn errors(&self, line: &Bytes) -> Bytes {
        let replaced = self.replace(line, uuids(line), str::to_owned);
        replaced.map_or_else(|| line.clone(), Bytes::from)
    }

    fn now(&self, family: Family, recorded: &[u8]) -> Option<&str> {
        let recorded = std::str::from_utf8(recorded).ok()?;
        self.families[family as usize].to_client.get(recorded).map(String::as_str)
    }

    /// The text with the ids at these places replaced, if any was.
    fn replace(
        &self,
        text: &[u8],
        places: impl IntoIterator<Item = (Family, Range<usize>)>,
        written: impl Fn(&str) -> String,
    ) -> Option<Vec<u8>> {
        let mut changed = Vec::new();
        let mut copied = 0;
        for (family, place) in places {
            let Some(now) = self.now(family, &text[place.clone()]) else { continue };
            changed.extend_from_slice(&text[copied..place.start]);
            changed.extend_from_slice(written(now).as_bytes());
            copied = place.end;
        }
        changed.extend_from_slice(&text[copied..]);
        (copied > 0).then_some(changed)
    }
}

impl Tied {
    fn tie(&mut self, recorded: &str, now: &str) {
        let free = !self.to_client.contains_key(recorded) && !self.taken.contains(now);
        if free && !now.is_empty() && self.invented.contains(recorded) {
            self.taken.insert(now.to_owned());
            self.to_client.insert(recorded.to_owned(), now.to_owned());
        }
    }
}

/// What the id in this field belongs to, if it can be one that the client made up.
///
/// Both sides number their own requests, so whose a request id is depends on who speaks.
fn family(key: &str, line_type: &str, speaker: Speaker) -> Option<Family> {
    match key {
        "request_id" => match (speaker, line_type) {
            (Speaker::Client, "control_request" | "control_cancel_request")
            | (Speaker::Cli, "control_response") => Some(Family::Request),
            _ => None,
        },
        "callback_id" | "hookCallbackIds" => Some(Family::Callback),
        _ if key == "uuid" || key.ends_with("_uuid") || key.ends_with("_id") => Some(Family::Thing),
        _ => None,
    }
}

/// The family of the id that the client may make up in this field, if the text is one.
fn introduces(key: &str, line_type: &str, text: &str) -> Option<Family> {
    let by_name = matches!(key, "request_id" | "hookCallbackIds" | "uuid" | "session_id");
    let is_id = if by_name { !text.is_empty() } else { is_uuid(text.as_bytes()) };
    family(key, line_type, Speaker::Client).filter(|_| is_id)
}

/// Calls `visit` with every text and the key under which it stands.
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

/// The value after a flag.
fn after<'a>(flag: &str, arguments: &'a [String]) -> Option<&'a str> {
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

/// Where ids stand in a line of the CLI: whole values of fields for ids, and uuids anywhere.
fn ids_in(line: &[u8], line_type: &str) -> Vec<(Family, Range<usize>)> {
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
            && let Some(family) = family(key, line_type, Speaker::Cli)
            // A uuid in any field belongs to a thing, unless the field says otherwise.
            && (family != Family::Thing || !is_uuid(text))
        {
            ids.push((family, start..end));
            continue;
        }
        let inside = uuids(text);
        ids.extend(inside.map(|(family, id)| (family, start + id.start..start + id.end)));
    }
    ids
}

/// How long the string is whose opening quote stands before.
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

/// Where uuids stand in a text.
fn uuids(text: &[u8]) -> impl Iterator<Item = (Family, Range<usize>)> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at + UUID <= text.len() {
            if is_uuid(&text[at..at + UUID]) {
                at += UUID;
                return Some((Family::Thing, at - UUID..at));
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
    // The dashes first: nearly every text fails there.
    text.len() == UUID && text[8] == b'-' && text[13] == b'-' && text.iter().enumerate().all(fits)
}
