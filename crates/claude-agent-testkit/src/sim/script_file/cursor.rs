//! A position in a script, and access to the words after it.

use super::ScriptError;
use super::spelling::nearest;

/// Words and their meanings.
pub(super) type Table<T> = &'static [(&'static str, T)];

/// The number of characters that an error quotes from the script.
const MAX_FOUND: usize = 30;

#[derive(Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text: text.strip_prefix('\u{feff}').unwrap_or(text), at: 0 }
    }

    pub(super) fn position(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Advances to the next word on any line; returns whether there is one.
    pub(super) fn has_more(&mut self) -> bool {
        while !self.has_more_on_line() && !self.rest().is_empty() {
            self.at += 1;
        }
        !self.rest().is_empty()
    }

    /// Advances to the next word of the line; returns whether there is one.
    pub(super) fn has_more_on_line(&mut self) -> bool {
        self.at = self.next_position();
        !self.rest().is_empty() && !self.rest().starts_with('\n')
    }

    /// Returns the position of the next word of the line, after whitespace and a comment, or of the end
    /// of the line.
    pub(super) fn next_position(&self) -> usize {
        let blank = |c: char| c.is_whitespace() && c != '\n';
        let rest = self.rest().trim_start_matches(blank);
        let end_of_line = rest.find('\n').unwrap_or(rest.len());
        let comment = if rest.starts_with('#') { end_of_line } else { 0 };
        self.text.len() - rest.len() + comment
    }

    /// Returns the next character of the line that is not whitespace.
    pub(super) fn next(&self) -> Option<char> {
        self.text[self.next_position()..].chars().next()
    }

    /// Returns the next word of the line without taking it, or an empty string.
    pub(super) fn peek(&self) -> &'a str {
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '{' | '[' | '#');
        let rest = &self.text[self.next_position()..];
        &rest[..rest.find(ends).unwrap_or(rest.len())]
    }

    /// Takes the next word of the line and returns its position.
    pub(super) fn word(&mut self, expected: &'static str) -> Result<(usize, &'a str), ScriptError> {
        let (start, word) = (self.next_position(), self.peek());
        if word.is_empty() {
            return Err(self.missing_error(expected));
        }
        self.at = start + word.len();
        Ok((start, word))
    }

    /// Takes this word if it is the next one.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let is_next = self.peek() == word;
        if is_next {
            self.at = self.next_position() + word.len();
        }
        is_next
    }

    /// Takes the next word if the table contains it.
    pub(super) fn take_from<T: Copy>(&mut self, table: Table<T>) -> Option<T> {
        let (word, meaning) = table.iter().find(|(word, _)| *word == self.peek())?;
        self.take_word(word);
        Some(*meaning)
    }

    /// Takes the next word, which the table must contain. For a misspelled word, the error suggests a
    /// word from the table or from `others`, which are also valid at this position.
    pub(super) fn choose<T: Copy>(
        &mut self,
        table: Table<T>,
        others: &[&'static str],
        expected: &'static str,
    ) -> Result<T, ScriptError> {
        self.take_from(table).ok_or_else(|| {
            let known = table.iter().map(|(word, _)| *word).chain(others.iter().copied());
            let nearest = nearest(self.peek(), known);
            self.missing_error(expected).with_nearest(nearest)
        })
    }

    /// Takes a quoted string and returns its undecoded contents and their position.
    pub(super) fn quoted(&mut self) -> Result<(usize, &'a str), ScriptError> {
        let start = self.next_position() + 1;
        if !self.text[start - 1..].starts_with('"') {
            return Err(self.missing_error("a quoted string"));
        }
        let end = find_quote(&self.text[start..]).map_err(|at| {
            self.error_at(start + at, "a closing quote before the end of the line")
        })?;
        self.at = start + end + 1;
        Ok((start, &self.text[start..start + end]))
    }

    /// Creates an error for this position.
    pub(super) fn error_at(&self, at: usize, expected: impl Into<String>) -> ScriptError {
        ScriptError::new(self.text, at, expected, describe_found(&self.text[at..]))
    }

    /// Creates an error for a missing word. At the end of a line, its position is before whitespace and
    /// a comment.
    fn missing_error(&self, expected: &'static str) -> ScriptError {
        let next = self.next_position();
        let rest = &self.text[next..];
        let ended = rest.is_empty() || rest.starts_with('\n');
        ScriptError::new(
            self.text,
            if ended { self.at } else { next },
            expected,
            describe_found(rest),
        )
    }
}

/// Returns the position of the closing quote, or of the end of the line as an error.
fn find_quote(text: &str) -> Result<usize, usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' => return Err(at - usize::from(text[..at].ends_with('\r'))),
            '"' if !escaped => return Ok(at),
            _ => escaped = c == '\\' && !escaped,
        }
    }
    Err(text.len())
}

/// Describes what was found at the start of `text`.
fn describe_found(text: &str) -> String {
    let length = match text.chars().next() {
        None => return "the end of the script".to_owned(),
        Some('\n' | '\r' | '#') => return "the end of the line".to_owned(),
        Some('"') => find_quote(&text[1..]).map_or_else(|at| at + 1, |at| at + 2),
        // An invalid escape inside a string.
        Some('\\') => text.char_indices().nth(2).map_or(text.len(), |(at, _)| at),
        Some(_) => text.find(char::is_whitespace).unwrap_or(text.len()).max(1),
    };
    let piece = text.get(..length).unwrap_or(text);
    match piece.char_indices().nth(MAX_FOUND) {
        Some((cut, _)) => format!("`{}…`", &piece[..cut]),
        None => format!("`{piece}`"),
    }
}
