//! The fields that a client acts on, read without validating the rest of the line.
//!
//! A `result` with an undecodable body must still end its turn, and a control request must still get a
//! response. So the envelope contains only the few relevant fields, and keeps those it has found if the
//! line is broken further on.

mod scan;
mod tail;

use std::borrow::Cow;

use crate::error::DecodeError;
use crate::frame::Oversized;

/// The relevant fields of a line.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// `type`.
    pub kind: Cow<'a, str>,
    /// `subtype`; of a control frame that of its request or response.
    pub subtype: Option<Cow<'a, str>>,
    /// `request_id`; of a control response the one inside it, else the outer one.
    pub request_id: Option<Cow<'a, str>>,
    /// `uuid`.
    pub uuid: Option<Cow<'a, str>>,
    /// `session_id`.
    pub session_id: Option<Cow<'a, str>>,
    /// `state` of the session or of a user message.
    pub state: Option<Cow<'a, str>>,
    /// `command_uuid`: the user message whose state it is.
    pub command_uuid: Option<Cow<'a, str>>,
    /// `user_message_uuids`, or the one `user_message_uuid`.
    pub user_messages: Vec<Cow<'a, str>>,
    /// `task_id`.
    pub task_id: Option<Cow<'a, str>>,
    /// `task_type`.
    pub task_type: Option<Cow<'a, str>>,
    /// `status` of a task, also inside a patch.
    pub status: Option<Cow<'a, str>>,
    /// `is_error`.
    pub is_error: bool,
    /// `sdk_host_only`: the line is for the SDK and not for its user.
    pub sdk_host_only: bool,
}

impl<'a> Envelope<'a> {
    /// Reads the envelope of a line.
    ///
    /// Lines of which a client needs only the type, and requests, which are decoded completely anyway,
    /// are recognized by their first bytes and the last one, without reading the rest.
    ///
    /// # Errors
    /// If the line is not a JSON object with a string `type`.
    pub fn read(line: &'a [u8]) -> Result<Self, DecodeError> {
        let needs_only_type = |kind: &&str| PASSED_ON.contains(kind) || *kind == "control_request";
        if let Some(kind) = leading_type(line).filter(needs_only_type)
            && line.trim_ascii_end().ends_with(b"}")
        {
            return Ok(Self { kind: Cow::Borrowed(kind), ..Self::default() });
        }
        Self::read_fields(line)
    }

    /// Reads all fields of the envelope of a line.
    ///
    /// # Errors
    /// If the line is not a JSON object with a string `type`.
    pub fn read_fields(line: &'a [u8]) -> Result<Self, DecodeError> {
        let (envelope, end) = scan::scan(line);
        match (envelope.kind.is_empty(), end) {
            (false, Ok(())) => Ok(envelope),
            (_, Err(error)) => Err(error),
            (true, Ok(())) => Err(DecodeError::new("object without a string `type`")),
        }
    }

    /// Returns whether a client can pass the line on to its readers without acting on its content.
    pub fn is_passed_on(&self) -> bool {
        PASSED_ON.contains(&&*self.kind)
    }

    /// Reads the envelope of a line of which only both ends are known. The `kind` is empty if neither
    /// contains it.
    pub fn of_oversized(line: &'a Oversized) -> Self {
        let (mut envelope, _cut) = scan::scan(&line.head);
        tail::complete(&mut envelope, &line.tail);
        envelope
    }
}

/// The types that a client can pass on without acting on their content.
const PASSED_ON: &[&str] = &["assistant", "stream_event", "user", "tool_progress"];

/// Returns the type of a line that starts with it, as nearly all do.
fn leading_type(line: &[u8]) -> Option<&str> {
    let rest = line.strip_prefix(br#"{"type":""#)?;
    let end = memchr::memchr(b'"', rest)?;
    let kind = std::str::from_utf8(&rest[..end]).ok()?;
    (!kind.contains('\\')).then_some(kind)
}
