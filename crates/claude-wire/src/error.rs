//! Why something did not decode.

use std::fmt;

/// Why a text did not decode into a type. The message names the field and the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    reason: String,
}

impl DecodeError {
    /// By value, as `map_err` wants it.
    #[expect(clippy::needless_pass_by_value, reason = "the shape that `map_err` takes")]
    pub(crate) fn from_json(error: serde_json::Error) -> Self {
        Self { reason: without_values(&error) }
    }

    pub(crate) fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// What did not fit, and where.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// What an error says, without the text that did not fit: that is somebody's data.
pub(crate) fn without_values(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match (text.find(" \""), text.rfind("\", expected")) {
        (Some(from), Some(to)) if from < to => format!("{}{}", &text[..from], &text[to + 1..]),
        _ => text,
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for DecodeError {}
