//! Syntax errors of a script.

use std::error::Error;
use std::fmt;

/// The number of characters that are shown before and after an error.
const SHOWN: usize = 60;

/// A syntax error in a script file.
///
/// The message contains the position, what was expected, what was found, and the line:
///
/// ```text
/// line 2, column 3: expected a step of an answer or a section, found `sya`; did you mean `say`?
///   sya "Hello."
///   ^
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ScriptError {
    line: usize,
    column: usize,
    expected: String,
    found: String,
    nearest: Option<&'static str>,
    source_line: String,
}

impl ScriptError {
    pub(super) fn new(text: &str, at: usize, expected: impl Into<String>, found: String) -> Self {
        let before = &text[..at];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let source_line = text[line_start..].lines().next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: text[line_start..at].chars().count() + 1,
            expected: expected.into(),
            found,
            nearest: None,
            source_line: source_line.to_owned(),
        }
    }

    pub(super) fn with_nearest(mut self, word: Option<&'static str>) -> Self {
        self.nearest = word;
        self
    }

    /// Returns the line of the error, counted from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Returns the column of the error in characters, counted from 1.
    pub fn column(&self) -> usize {
        self.column
    }

    /// Returns what was expected.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Returns what was found instead.
    pub fn found(&self) -> &str {
        &self.found
    }

    /// Returns the known word that is most similar to a misspelled one.
    pub fn nearest(&self) -> Option<&str> {
        self.nearest
    }

    /// Returns the line, cut to the surroundings of the error, and a second line with a caret.
    fn excerpt(&self) -> (String, String) {
        let first = (self.column - 1).saturating_sub(SHOWN);
        let shown: String = self.source_line.chars().skip(first).take(2 * SHOWN).collect();
        // Keeps tabs, so that the caret is aligned for any tab width.
        let indent = |c: char| if c == '\t' { '\t' } else { ' ' };
        let before = self.column - 1 - first;
        let caret = shown.chars().map(indent).chain(std::iter::repeat(' ')).take(before);
        (shown.trim_end().to_owned(), caret.chain(['^']).collect())
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, column, expected, found, .. } = self;
        write!(f, "line {line}, column {column}: expected {expected}, found {found}")?;
        if let Some(word) = self.nearest {
            write!(f, "; did you mean `{word}`?")?;
        }
        if !self.source_line.trim().is_empty() {
            let (line, caret) = self.excerpt();
            write!(f, "\n{line}\n{caret}")?;
        }
        Ok(())
    }
}

/// The text, as `fn main() -> Result<…>` prints it.
impl fmt::Debug for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for ScriptError {}
