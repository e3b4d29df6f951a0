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

/// Returns what an error says without the value that does not fit, which is somebody's data.
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
        f.write_str(&self.reason)
    }
}

impl std::error::Error for DecodeError {}
