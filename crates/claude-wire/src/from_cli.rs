//! What the CLI writes: messages and control frames.

use bytes::Bytes;

use crate::control::{
    CliControlRequest, ControlCancel, ControlResponse, KeepAlive, TranscriptMirror,
};
use crate::envelope::Envelope;
use crate::error::without_values;
use crate::message::{Malformed, Message};
use crate::repair;
use crate::schema::{self, Decode};

/// One line of the CLI.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FromCli {
    /// A message for the user of the SDK.
    Message(Message),
    /// A question to the host. Where its body does not decode, the question itself is
    /// `Undecodable` and can still be answered.
    Request(Box<CliControlRequest>),
    /// The answer to a question of the host.
    Response(Box<ControlResponse>),
    /// A question that no longer wants an answer.
    Cancel(ControlCancel),
    /// A sign of life.
    KeepAlive(KeepAlive),
    /// Lines for a session store.
    TranscriptMirror(TranscriptMirror),
}

impl FromCli {
    /// Decodes a line, given without its line break.
    ///
    /// # Errors
    /// [`Malformed`], when the line is not a JSON object with a string `type`, or a control frame
    /// that names no request.
    pub fn decode(line: impl Into<Bytes>) -> Result<Self, Malformed> {
        let line = line.into();
        // A line that the envelope cannot make out is for the message decoder to mend or refuse.
        let kind = Envelope::read(&line).map(|envelope| envelope.kind.into_owned());
        match kind.as_deref().unwrap_or_default() {
            "control_request" => control(&line).map(|request| Self::Request(Box::new(request))),
            "control_response" => {
                let response: ControlResponse = control(&line)?;
                if response.request_id().is_none() {
                    return Err(Malformed::new(line, "a control response without `request_id`"));
                }
                Ok(Self::Response(Box::new(response)))
            }
            "control_cancel_request" => control(&line).map(Self::Cancel),
            "keep_alive" => control(&line).map(Self::KeepAlive),
            "transcript_mirror" => control(&line).map(Self::TranscriptMirror),
            _ => Message::decode(line).map(Self::Message),
        }
    }
}

/// Decodes a control frame; on a second try with broken characters mended and a body that does not
/// fit isolated.
pub(crate) fn control<T: Decode>(line: &Bytes) -> Result<T, Malformed> {
    // UTF-8 is checked once for the whole line: given bytes, serde_json checks each string.
    if let Ok(text) = std::str::from_utf8(line)
        && let Ok(frame) = schema::from_text(text)
    {
        return Ok(frame);
    }
    let mended = repair::repaired(line);
    let text = String::from_utf8_lossy(mended.as_deref().unwrap_or(line));
    schema::from_text_isolating(&text)
        .map_err(|error| Malformed::new(line.clone(), without_values(&error)))
}
