//! The error for a client that deviates from the recording.

use std::error::Error;
use std::fmt;

/// The number of characters of a line that the message quotes.
const SHOWN: usize = 400;

/// The error returned when the client deviates from the recording.
#[derive(Clone, PartialEq, Eq)]
pub struct Mismatch {
    line: usize,
    expected: String,
    found: String,
    place: Option<String>,
}

impl Mismatch {
    pub(super) fn new(line: usize, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { line, expected: shown(expected.into()), found: shown(found.into()), place: None }
    }

    pub(super) fn at(mut self, place: Option<String>) -> Self {
        self.place = place;
        self
    }

    /// Returns the line of the recording file that did not match, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the expected line, with the ids of the recording.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Returns what the client sent.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Describes where two JSON lines differ: `` `/message/content` should be `"a"`, is `"b"` ``.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, expected, found, .. } = self;
        write!(f, "line {line} of the recording: expected {expected}, found {found}")?;
        if let Some(place) = &self.place {
            write!(f, "; {place}")?;
        }
        Ok(())
    }
}

/// The text, as `fn main() -> Result<…>` prints it.
impl fmt::Debug for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Mismatch {}

fn shown(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
        None => text,
    }
}
