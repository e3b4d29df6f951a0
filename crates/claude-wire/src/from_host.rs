//! What the host writes: prompts and control frames.

use bytes::Bytes;
use serde::ser::{Serialize, Serializer};

use crate::control::{ControlCancel, ControlResponse, HostControlRequest, KeepAlive};
use crate::envelope::Envelope;
use crate::error::DecodeError;
use crate::from_cli::control;
use crate::message::{Malformed, UserMessage};

/// Answers are hardly ever longer.
const USUAL_LINE: usize = 256;

/// One line of the host.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FromHost {
    /// A prompt.
    User(Box<UserMessage>),
    /// A question to the CLI.
    Request(Box<HostControlRequest>),
    /// The answer to a question of the CLI.
    Response(Box<ControlResponse>),
    /// A question that no longer wants an answer.
    Cancel(ControlCancel),
    /// A sign of life.
    KeepAlive(KeepAlive),
}

impl FromHost {
    /// The line, with its line break.
    ///
    /// # Errors
    /// When a payload cannot be written as JSON.
    pub fn encode(&self) -> Result<Bytes, DecodeError> {
        // JSON text holds no raw line break: a string escapes it, and opaque payloads that came
        // from elsewhere have theirs removed.
        let mut line = Vec::with_capacity(USUAL_LINE);
        serde_json::to_writer(&mut line, self).map_err(DecodeError::from_json)?;
        let mut from = 0;
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &line[from..]) {
            line[from + found] = b' ';
            from += found + 1;
        }
        line.push(b'\n');
        Ok(line.into())
    }

    /// Decodes a line of a host, as a CLI does.
    ///
    /// # Errors
    /// [`Malformed`], when the line is none of these.
    pub fn decode(line: impl Into<Bytes>) -> Result<Self, Malformed> {
        let line = line.into();
        let kind = match Envelope::read(&line) {
            Ok(envelope) => envelope.kind.into_owned(),
            Err(error) => return Err(Malformed::new(line, error.reason())),
        };
        match kind.as_str() {
            "user" => control(&line).map(|message| Self::User(Box::new(message))),
            "control_request" => control(&line).map(|request| Self::Request(Box::new(request))),
            "control_response" => control(&line).map(|answer| Self::Response(Box::new(answer))),
            "control_cancel_request" => control(&line).map(Self::Cancel),
            "keep_alive" => control(&line).map(Self::KeepAlive),
            _ => Err(Malformed::new(line, format!("a host does not send `{kind}`"))),
        }
    }
}

impl Serialize for FromHost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::User(message) => message.serialize(serializer),
            Self::Request(request) => request.serialize(serializer),
            Self::Response(response) => response.serialize(serializer),
            Self::Cancel(cancel) => cancel.serialize(serializer),
            Self::KeepAlive(keep_alive) => keep_alive.serialize(serializer),
        }
    }
}
