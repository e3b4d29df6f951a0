//! The lines that the CLI writes: messages and control frames.

use bytes::Bytes;

use crate::control::{
    CliControlRequest, ControlCancel, ControlResponse, KeepAlive, TranscriptMirror,
};
use crate::envelope::Envelope;
use crate::error::without_values;
use crate::message::{Malformed, Message};
use crate::repair;
use crate::schema::{self, Decode, Placeholder, Reader, Slot};

/// One line of the CLI.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FromCli {
    /// A message.
    Message(Message),
    /// A control request to the host. If its body cannot be decoded, the request is `Undecodable`, and
    /// the host can still respond to it.
    Request(Box<CliControlRequest>),
    /// The response to a control request of the host.
    Response(Box<ControlResponse>),
    /// The cancellation of a control request.
    Cancel(ControlCancel),
    /// A keep-alive message.
    KeepAlive(KeepAlive),
    /// Transcript entries for a session store.
    TranscriptMirror(TranscriptMirror),
}

impl FromCli {
    /// Decodes a line, given without its line break.
    ///
    /// # Errors
    /// [`Malformed`] if the line is not a JSON object with a string `type`, or is a control frame
    /// without a request ID.
    pub fn decode(line: impl Into<Bytes>) -> Result<Self, Malformed> {
        Self::decode_bytes(line.into())
    }

    fn decode_bytes(line: Bytes) -> Result<Self, Malformed> {
        // The message decoder repairs or rejects a line without an envelope.
        let kind = Envelope::read(&line).map(|envelope| envelope.kind.into_owned());
        match kind.as_deref().unwrap_or_default() {
            "control_request" => control(&line).map(|request| Self::Request(Box::new(request))),
            "control_response" => {
                let response: ControlResponse = control(&line)?;
                if response.request_id().is_none() {
                    return Err(Malformed::new(line, "control response without `request_id`"));
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

impl CliControlRequest {
    /// Decodes a line with a control request of the CLI. A body that cannot be decoded is
    /// [`Undecodable`](crate::control::CliRequest::Undecodable), so that the host can still respond.
    ///
    /// # Errors
    /// [`Malformed`] if the line is not a control request with a request ID.
    pub fn decode(line: &Bytes) -> Result<Self, Malformed> {
        control(line)
    }
}

impl ControlResponse {
    /// Decodes a line with the response to a control request.
    ///
    /// # Errors
    /// [`Malformed`] if the line is not a control response.
    pub fn decode(line: &Bytes) -> Result<Self, Malformed> {
        control(line)
    }
}

/// Decodes a control frame; on a second attempt with broken characters repaired and an undecodable
/// body isolated.
pub(crate) fn control<T: Decode + Placeholder>(line: &Bytes) -> Result<T, Malformed> {
    let mut frame = T::placeholder();
    read_control(line, &mut frame)?;
    Ok(frame)
}

fn read_control(line: &Bytes, slot: &mut dyn Slot) -> Result<(), Malformed> {
    // UTF-8 is checked once for the whole line: given bytes, serde_json checks each string.
    if let Ok(text) = std::str::from_utf8(line)
        && schema::fill_all(slot, Reader::new(text)).is_ok()
    {
        return Ok(());
    }
    slot.reset();
    schema::fill_all(slot, Reader::isolating(&repair::valid(line)))
        .map_err(|error| Malformed::new(line.clone(), without_values(&error)))
}
