//! The error of decoding.

use std::fmt;

use crate::visible::visible_message;

/// The reason why a text could not be decoded. The message contains the field and the position.
#[derive(Clone, PartialEq, Eq)]
pub struct DecodeError {
    reason: String,
}

impl DecodeError {
    /// Takes the error by value, for `map_err`.
    #[expect(clippy::needless_pass_by_value, reason = "the signature for `map_err`")]
    #[cold]
    pub(crate) fn from_json(error: serde_json::Error) -> Self {
        Self { reason: without_values(&error) }
    }

    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// Returns the reason and the position.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Returns the message of an error without the invalid value, which may be private.
pub(crate) fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    // serde writes `invalid type: string "x", expected …`, and numbers in backticks.
    let kinds = ["invalid type: ", "invalid value: "];
    let from = kinds.iter().find_map(|kind| text.find(kind));
    let Some((from, to)) = from.zip(text.rfind(", expected ")).filter(|(from, to)| from < to)
    else {
        return text;
    };
    match text[from..to].find(['`', '"']) {
        Some(value) => format!("{}{}", text[..from + value].trim_end(), &text[to..]),
        None => text,
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        visible_message(&self.reason).fmt(f)
    }
}

/// The text, as `fn main() -> Result<…>` prints it.
impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for DecodeError {}
