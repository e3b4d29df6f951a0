//! Prompts.

use std::fmt;

use bytes::Bytes;
use claude_wire::FromHost;
use claude_wire::content::{Content, ContentBlock};
use claude_wire::id::{MessageId, SessionId};
use claude_wire::message::{Priority, UserMessage};

use crate::error::{Error, ErrorKind, Result};

/// A prompt: a text, or content blocks (text, images, documents).
///
/// ```
/// use claude_agent_kit::Prompt;
///
/// let prompt = Prompt::from("What is in this picture?");
/// assert_eq!(format!("{prompt:?}"), "Prompt(24 bytes)");
/// ```
#[derive(Clone, PartialEq)]
pub struct Prompt {
    content: Content,
    id: Option<MessageId>,
    priority: Option<Priority>,
}

impl Prompt {
    fn new(content: impl Into<Content>) -> Self {
        Self { content: content.into(), id: None, priority: None }
    }

    /// Sets the ID of the message. By default the SDK generates a random UUID.
    ///
    /// The ID can be any non-empty text and must be unique in the conversation.
    /// [`Session::send`](crate::Session::send) rejects an ID that was already used in the session. In a resumed
    /// conversation it depends on the transcript what a repeated ID does:
    ///
    /// - The model has not answered the first message, not even with a tool call: the message is processed, and the
    ///   model reads it twice. A host that was killed before the answer can send it again.
    /// - Any answer of the model follows it, even one that was cut off: the CLI does not process the message, and the
    ///   turn ends with [`NoResult`](crate::ErrorKind::NoResult).
    #[must_use]
    pub fn with_id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets when the CLI processes the message if a turn is running. Default: decided by the CLI.
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Returns the ID, if it was set.
    pub fn id(&self) -> Option<&MessageId> {
        self.id.as_ref()
    }

    /// Returns the content.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// Returns whether the prompt has no blocks or only whitespace. The API rejects such a prompt.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.content {
            Content::Text(text) => text.trim().is_empty(),
            content => content
                .blocks()
                .iter()
                .all(|block| block.as_text().is_some_and(|text| text.trim().is_empty())),
        }
    }

    /// Returns whether the ID is blank. The CLI treats a blank ID as missing, and the turn would never
    /// end.
    pub(crate) fn has_empty_id(&self) -> bool {
        self.id.as_ref().is_some_and(|id| id.as_str().trim().is_empty())
    }

    /// Encodes the prompt as a line for the CLI. The session ID is empty until it is known.
    ///
    /// # Errors
    /// Fails if a block cannot be serialized as JSON.
    pub(crate) fn line(
        &self,
        id: &MessageId,
        session: Option<&SessionId>,
        verbatim: bool,
    ) -> Result<Bytes> {
        let mut message = UserMessage::prompt(self.content.clone());
        message.uuid = Some(id.clone());
        message.priority.clone_from(&self.priority);
        message.client_composed = verbatim.then_some(true);
        message.session_id = Some(session.cloned().unwrap_or_else(|| SessionId::from("")));
        FromHost::User(Box::new(message)).encode().map_err(|error| {
            Error::new(
                ErrorKind::InvalidOptions,
                format!("failed to encode the prompt as JSON: {error}"),
            )
        })
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&String> for Prompt {
    fn from(text: &String) -> Self {
        Self::new(text.as_str())
    }
}

impl From<Vec<ContentBlock>> for Prompt {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self::new(blocks)
    }
}

impl From<Content> for Prompt {
    fn from(content: Content) -> Self {
        Self::new(content)
    }
}

impl fmt::Debug for Prompt {
    /// Omits the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.content {
            Content::Text(text) => write!(f, "Prompt({} bytes)", text.len()),
            content => write!(f, "Prompt({} blocks)", content.blocks().len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use claude_wire::content::ImageBlock;

    use super::*;

    fn line(prompt: impl Into<Prompt>, session: Option<&str>) -> String {
        let session = session.map(SessionId::from);
        let line = prompt.into().line(&MessageId::from("u-1"), session.as_ref(), false).unwrap();
        String::from_utf8(line.to_vec()).unwrap()
    }

    #[test]
    fn a_prompt_is_written_in_the_nested_form_with_its_id() {
        assert_eq!(
            line("Hi", None),
            concat!(
                r#"{"type":"user","message":{"role":"user","content":"Hi"},"#,
                r#""parent_tool_use_id":null,"session_id":"","uuid":"u-1"}"#,
                "\n"
            )
        );
        assert!(line("Hi", Some("s-1")).contains(r#""session_id":"s-1""#));
    }

    #[test]
    fn a_verbatim_prompt_is_marked_as_client_composed() {
        let id = MessageId::from("u-1");
        let line = Prompt::from("/help").line(&id, None, true).unwrap();
        assert!(String::from_utf8_lossy(&line).contains(r#""client_composed":true"#));
    }

    #[test]
    fn any_text_stays_one_line() {
        for text in ["a\nb", "a\r\nb", "a\0b", "\u{2028}", "\"}\n{\"type\":\"x\""] {
            let line = line(text, None);
            assert_eq!(line.find('\n'), Some(line.len() - 1), "{text:?}");
            assert!(!line.contains('\0'));
            let value: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(value["message"]["content"], text);
        }
    }

    #[test]
    fn blocks_are_written_as_a_list() {
        let image = ContentBlock::Image(ImageBlock::base64("image/png", "AAAA"));
        let line = line(vec![ContentBlock::text("What is it?"), image], None);
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            value["message"]["content"],
            serde_json::json!([
                {"type": "text", "text": "What is it?"},
                {"type": "image",
                 "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
            ])
        );
    }

    #[test]
    fn prompts_are_created_from_text_and_debug_output_omits_it() {
        let text = String::from("secret plan");
        let prompts: [Prompt; 4] = [
            "secret plan".into(),
            (&text).into(),
            Content::from("secret plan").into(),
            text.into(),
        ];
        for prompt in prompts {
            assert_eq!(prompt.content(), &Content::Text("secret plan".to_owned()));
            assert_eq!(format!("{prompt:?}"), "Prompt(11 bytes)");
        }
        let blocks = Prompt::from(vec![ContentBlock::text("secret plan")]);
        assert_eq!(format!("{blocks:?}"), "Prompt(1 blocks)");
    }
}
