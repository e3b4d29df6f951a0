//! Why a transcript cannot be changed or copied.

use std::fmt;

use crate::visible::visible_message;

/// Why a session cannot be renamed, tagged or forked.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TranscriptError {
    /// The title is blank.
    EmptyTitle,
    /// The tag is blank, or has only invisible characters.
    EmptyTag,
    /// The transcript has no messages.
    NoMessages,
    /// The message up to which to fork is not in the transcript.
    MessageNotFound(String),
}

impl fmt::Display for TranscriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyTitle => f.write_str("title is empty"),
            Self::EmptyTag => f.write_str("tag is empty; help: pass `None` to remove the tag"),
            Self::NoMessages => f.write_str("the session has no messages to fork"),
            Self::MessageNotFound(uuid) => {
                write!(f, "message \"{}\" is not in the session", visible_message(uuid))
            }
        }
    }
}

/// The text, as `fn main() -> Result<…>` prints it.
impl fmt::Debug for TranscriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for TranscriptError {}
