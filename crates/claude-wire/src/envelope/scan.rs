//! Reads the envelope from the beginning of a line.

use std::borrow::Cow;

use super::Envelope;
use crate::error::DecodeError;
use crate::repair;
use crate::scan::{self, ScanError, Scanner};
use crate::schema::Reader;

/// Reads the relevant fields of a line, up to the point where it is broken.
pub(super) fn scan(line: &[u8]) -> (Envelope<'_>, Result<(), DecodeError>) {
    let mut envelope = Envelope::default();
    let mut scanner = Scanner::new(line);
    let is_whole = read_object(&mut envelope, Place::Line, &mut scanner).is_ok()
        && scanner.peek() == Err(ScanError::Eof);
    (envelope, if is_whole { Ok(()) } else { Err(error_of(line)) })
}

/// The error of a line that is not a JSON object, in the words of `serde_json`.
#[cold]
fn error_of(line: &[u8]) -> DecodeError {
    let text = String::from_utf8_lossy(line);
    let mut reader = Reader::new(&text);
    if reader.peek() == Some(b'{') && reader.skip().is_ok() && reader.end().is_ok() {
        return DecodeError::new("invalid unicode code point");
    }
    let mut reader = Reader::new(&text);
    DecodeError::from_json(reader.mismatch("an object with a `type`"))
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
    serde_json::from_str(&repair::valid(json.as_bytes())).ok().map(Cow::Owned)
}

/// The maximum number of strings that are read from a list.
const MAX_STRINGS: usize = 64 * 1024;

/// Returns the first strings of a JSON list.
fn strings(json: &str) -> Vec<Cow<'_, str>> {
    let entries = Reader::new(json).raw_items().unwrap_or_default();
    let mut strings = Vec::new();
    for entry in entries {
        if strings.len() < MAX_STRINGS {
            strings.extend(string(entry.get()));
        }
    }
    strings
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
fn read_object<'a>(
    envelope: &mut Envelope<'a>,
    place: Place,
    scanner: &mut Scanner<'a>,
) -> scan::Result<()> {
    let mut is_first = true;
    while let Some(name) = scanner.key(is_first)? {
        is_first = false;
        let name = text(&name)?;
        if let Some(place) = place.inside(envelope, name) {
            // Only the line itself must be an object.
            match scanner.peek()? {
                b'{' => read_object(envelope, place, scanner)?,
                _ => scanner.skip()?,
            }
        } else if place.wants(name) {
            set(envelope, name, text(scanner.raw()?)?);
        } else {
            scanner.skip()?;
        }
    }
    Ok(())
}

fn text(bytes: &[u8]) -> scan::Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| ScanError::Syntax)
}
