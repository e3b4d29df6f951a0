//! The failure of a scenario.

use std::error::Error;
use std::fmt;
use std::io;

/// An expectation that was not met, with everything that was seen.
#[derive(Debug)]
pub struct Failure {
    expected: String,
    seen: String,
}

impl Failure {
    pub(crate) fn new(expected: impl Into<String>, seen: impl Into<String>) -> Self {
        Self { expected: expected.into(), seen: seen.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected: {}\nseen:\n{}", self.expected, self.seen)
    }
}

impl Error for Failure {}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new("no I/O error", error.to_string())
    }
}
