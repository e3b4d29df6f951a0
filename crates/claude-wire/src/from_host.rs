//! The lines that the host writes: prompts and control frames.

use bytes::Bytes;
use serde::ser::{Serialize, Serializer};

use crate::control::{ControlCancel, ControlResponse, HostControlRequest, KeepAlive};
use crate::envelope::Envelope;
use crate::error::DecodeError;
use crate::from_cli::control;
use crate::id::RequestId;
use crate::json::Json;
use crate::message::{Malformed, UserMessage};
use crate::schema::{Encode, View};

/// The initial capacity; most responses are shorter.
const USUAL_LINE: usize = 256;

/// One line of the host.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum FromHost {
    /// A prompt.
    User(Box<UserMessage>),
    /// A control request to the CLI.
    Request(Box<HostControlRequest>),
    /// The response to a control request of the CLI.
    Response(Box<ControlResponse>),
    /// The cancellation of a control request.
    Cancel(ControlCancel),
    /// A keep-alive message.
    KeepAlive(KeepAlive),
}

impl FromHost {
    /// Encodes the line, including its line break.
    ///
    /// # Errors
    /// If a payload cannot be encoded as JSON.
    pub fn encode(&self) -> Result<Bytes, DecodeError> {
        let mut line = Vec::with_capacity(USUAL_LINE);
        serde_json::to_writer(&mut line, &self.view()).map_err(DecodeError::from_json)?;
        Ok(finished(line))
    }

    /// Encodes [`ControlResponse::success`] like [`encode`](Self::encode), but faster, because the CLI
    /// waits for it.
    ///
    /// # Errors
    /// If the request ID cannot be encoded as JSON.
    pub fn encode_success(request: &RequestId, answer: &Json) -> Result<Bytes, DecodeError> {
        const BEFORE: &[u8] =
            br#"{"type":"control_response","response":{"subtype":"success","request_id":"#;
        const BETWEEN: &[u8] = br#","response":"#;
        let (id, answer) = (request.as_str(), answer.text().as_bytes());
        let length = BEFORE.len() + id.len() + BETWEEN.len() + answer.len() + 8;
        let mut line = Vec::with_capacity(length);
        line.extend_from_slice(BEFORE);
        serde_json::to_writer(&mut line, &View::Text(id)).map_err(DecodeError::from_json)?;
        line.extend_from_slice(BETWEEN);
        line.extend_from_slice(answer);
        line.extend_from_slice(b"}}");
        Ok(finished(line))
    }

    /// Decodes a line of a host, as a CLI does.
    ///
    /// # Errors
    /// [`Malformed`] if the line is not a line of a host.
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
            _ => Err(Malformed::new(line, format!("unexpected type `{kind}` from a host"))),
        }
    }
}

/// Encodes JSON text as a line. Raw line breaks in opaque payloads are removed; strings contain none,
/// because JSON escapes them.
fn finished(mut text: Vec<u8>) -> Bytes {
    let mut from = 0;
    while let Some(found) = memchr::memchr2(b'\n', b'\r', &text[from..]) {
        text[from + found] = b' ';
        from += found + 1;
    }
    text.push(b'\n');
    text.into()
}

impl Encode for FromHost {
    fn view(&self) -> View<'_> {
        match self {
            Self::User(message) => message.view(),
            Self::Request(request) => request.view(),
            Self::Response(response) => response.view(),
            Self::Cancel(cancel) => cancel.view(),
            Self::KeepAlive(keep_alive) => keep_alive.view(),
        }
    }
}

impl Serialize for FromHost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.view().serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use crate::control::ControlResponse;
    use crate::id::RequestId;
    use crate::json::Json;

    use super::FromHost;

    #[test]
    fn an_answer_put_together_by_hand_is_the_one_of_the_types() {
        let answers = ["{}", "null", "[1,2]", r#"{"text":"a\nb\"c"}"#, "{\n\r\"a\" :\n1 }"];
        for answer in answers {
            for id in ["cli_1", "", "a\"b\\c\n", "\u{1f600}\u{0}"] {
                let (id, answer) = (RequestId::from(id), Json::from_text(answer).unwrap());
                let by_hand = FromHost::encode_success(&id, &answer).unwrap();
                let response = ControlResponse::success(id, answer);
                assert_eq!(by_hand, FromHost::Response(Box::new(response)).encode().unwrap());
            }
        }
    }
}
