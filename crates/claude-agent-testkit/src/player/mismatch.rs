//! What the client should have said, and what it said.

use std::error::Error;
use std::fmt;

/// How much of a line is repeated.
const SHOWN: usize = 400;

/// The client did not say what was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
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

    /// The line of the recording, counted from 1, that the client did not follow.
    pub fn line(&self) -> usize {
        self.line
    }

    /// What was expected, in the ids of the recording.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// What came from the client.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Where two JSON lines differ, and how: `` `/message/content` should be `"a"`, is `"b"` ``.
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

impl Error for Mismatch {}

fn shown(text: String) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
        None => text,
    }
}
