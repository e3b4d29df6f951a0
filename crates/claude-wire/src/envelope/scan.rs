//! Reads the envelope from the beginning of a line.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::Envelope;
use crate::error::DecodeError;
use crate::repair;
use crate::scalars::ignore_scalars;
use crate::schema::Key;

/// Reads the relevant fields of a line, up to the point where it is broken.
pub(super) fn scan(line: &[u8]) -> (Envelope<'_>, Result<(), DecodeError>) {
    let mut envelope = Envelope::default();
    let mut deserializer = serde_json::Deserializer::from_slice(line);
    let end = Level { envelope: &mut envelope, place: Place::Line }
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
        .map_err(DecodeError::from_json);
    (envelope, end)
}

/// Sets the field `name` from its JSON text, if the envelope has the field and the value is valid.
pub(super) fn set<'a>(envelope: &mut Envelope<'a>, name: &str, value: &'a str) {
    match name {
        "type" if envelope.kind.is_empty() => {
            if let Some(kind) = string(value) {
                envelope.kind = kind;
            }
        }
        "user_message_uuid" if envelope.user_messages.is_empty() => {
            envelope.user_messages.extend(string(value));
        }
        "user_message_uuids" => envelope.user_messages = strings(value),
        "is_error" => envelope.is_error = value == "true",
        "sdk_host_only" => envelope.sdk_host_only = value == "true",
        _ => {
            if let Some(field) = text_field(envelope, name) {
                *field = field.take().or_else(|| string(value));
            }
        }
    }
}

fn text_field<'e, 'a>(
    envelope: &'e mut Envelope<'a>,
    name: &str,
) -> Option<&'e mut Option<Cow<'a, str>>> {
    Some(match name {
        "subtype" => &mut envelope.subtype,
        "request_id" => &mut envelope.request_id,
        "uuid" => &mut envelope.uuid,
        "session_id" => &mut envelope.session_id,
        "state" => &mut envelope.state,
        "command_uuid" => &mut envelope.command_uuid,
        "task_id" => &mut envelope.task_id,
        "task_type" => &mut envelope.task_type,
        "status" => &mut envelope.status,
        _ => return None,
    })
}

/// The field names of [`set`].
fn wanted(name: &str) -> bool {
    const NAMES: &[&str] = &[
        "type",
        "subtype",
        "request_id",
        "uuid",
        "session_id",
        "state",
        "command_uuid",
        "user_message_uuid",
        "user_message_uuids",
        "task_id",
        "task_type",
        "status",
        "is_error",
        "sdk_host_only",
    ];
    NAMES.contains(&name)
}

/// Returns the string value of a JSON text, if it is a string.
fn string(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    let repaired = repair::repaired(json.as_bytes());
    serde_json::from_slice(repaired.as_deref().unwrap_or(json.as_bytes())).ok().map(Cow::Owned)
}

/// The maximum number of strings that are read from a list.
const MAX_STRINGS: usize = 64 * 1024;

/// Returns the first strings of a JSON list.
fn strings(json: &str) -> Vec<Cow<'_, str>> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer.deserialize_seq(Strings).unwrap_or_default()
}

struct Strings;

impl<'a> Visitor<'a> for Strings {
    type Value = Vec<Cow<'a, str>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of strings")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut strings = Vec::new();
        while let Some(entry) = seq.next_element::<&'a RawValue>()? {
            if strings.len() < MAX_STRINGS {
                strings.extend(string(entry.get()));
            }
        }
        Ok(strings)
    }
}

/// The kind of an object in a line, which determines the relevant fields.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Line,
    /// The request or response of a control frame.
    Control,
    /// The changes of a task.
    Patch,
}

impl Place {
    fn wants(self, name: &str) -> bool {
        match self {
            Self::Line => wanted(name),
            Self::Control => matches!(name, "subtype" | "request_id"),
            Self::Patch => name == "status",
        }
    }

    /// Returns the kind of the nested object `name`, if it is relevant.
    fn inside(self, envelope: &Envelope<'_>, name: &str) -> Option<Self> {
        let control = matches!(&*envelope.kind, "" | "control_request" | "control_response");
        match name {
            _ if self != Self::Line => None,
            "request" | "response" if control => Some(Self::Control),
            "patch" => Some(Self::Patch),
            _ => None,
        }
    }
}

/// Reads an object into the envelope field by field, so that fields before a broken part are kept.
struct Level<'e, 'a> {
    envelope: &'e mut Envelope<'a>,
    place: Place,
}

impl<'a> DeserializeSeed<'a> for Level<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.place {
            Place::Line => deserializer.deserialize_map(self),
            // Only the line itself must be an object.
            Place::Control | Place::Patch => deserializer.deserialize_any(self),
        }
    }
}

impl<'a> Visitor<'a> for Level<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with a `type`")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<Key<'a>>()? {
            let name = key.as_str();
            if let Some(place) = self.place.inside(self.envelope, name) {
                map.next_value_seed(Level { envelope: self.envelope, place })?;
            } else if self.place.wants(name) {
                let value: &'a RawValue = map.next_value()?;
                set(self.envelope, name, value.get());
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    ignore_scalars!();
}
