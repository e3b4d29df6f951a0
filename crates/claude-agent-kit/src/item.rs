//! What a stream gives.

use claude_wire::Message;

use crate::warning::Warning;

/// What a stream gives: a message of the CLI, or a warning about one.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "hosts match on it in every loop")]
pub enum Item {
    /// A message.
    Message(Message),
    /// A warning: something went on although it was not as it should be.
    Warning(Warning),
}

impl Item {
    /// The message, if it is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Warning(_) => None,
        }
    }

    /// The warning, if it is one.
    pub fn warning(&self) -> Option<&Warning> {
        match self {
            Self::Warning(warning) => Some(warning),
            Self::Message(_) => None,
        }
    }
}
