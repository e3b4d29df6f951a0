//! Parses a `.wire` file.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::{Channel, Entry, EntryKind, FORMAT, Header, Recording};

/// The error returned by [`Recording::parse`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The invalid line, counted from 1.
    pub line: usize,
    /// The reason why the line is invalid.
    pub reason: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

/// The text, as `fn main() -> Result<…>` prints it.
impl fmt::Debug for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for ParseError {}

pub(super) fn recording(file: &[u8]) -> Result<Recording, ParseError> {
    let mut lines = lines(file).enumerate();
    let header = match lines.next() {
        Some((_, line)) => header(line).map_err(|reason| ParseError { line: 1, reason })?,
        None => return Err(ParseError { line: 1, reason: "the file is empty".to_owned() }),
    };
    let mut entries = Vec::new();
    for (index, line) in lines {
        entries.push(entry(line).map_err(|reason| ParseError { line: index + 1, reason })?);
    }
    Ok(Recording { header, entries })
}

/// Splits at `\n` only: a `\r` before it belongs to the recorded line.
fn lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let file = file.strip_suffix(b"\n").unwrap_or(file);
    file.split(|byte| *byte == b'\n').skip(usize::from(file.is_empty()))
}

fn header(line: &[u8]) -> Result<Header, String> {
    let json = line
        .strip_prefix(b"## ")
        .ok_or("a recording must start with `## ` and its header".to_owned())?;
    let header: Header =
        serde_json::from_slice(json).map_err(|error| format!("invalid header: {error}"))?;
    if (1..=FORMAT).contains(&header.format) {
        Ok(header)
    } else {
        Err(format!("unsupported format {}; the newest supported one is {FORMAT}", header.format))
    }
}

fn entry(line: &[u8]) -> Result<Entry, String> {
    let (mark, rest) = word(line);
    let (time, text) = word(rest);
    let at = seconds(time)?;
    let bytes = || Bytes::copy_from_slice(text);
    let kind = match mark {
        b">>" if text == b"EOF" => EntryKind::StdinClosed,
        b">>" | b">=" => EntryKind::Sent(bytes()),
        b"<<" => EntryKind::Received(bytes()),
        b"!!" => EntryKind::Stderr(bytes()),
        b">~" => EntryKind::Unfinished(Channel::Sent, bytes()),
        b"<|" => EntryKind::StdoutClosed,
        b"<~" => EntryKind::Unfinished(Channel::Received, bytes()),
        b"!~" => EntryKind::Unfinished(Channel::Stderr, bytes()),
        b"EXIT" => EntryKind::Exited(String::from_utf8_lossy(text).parse()?),
        _ => return Err(format!("unknown mark `{}`", String::from_utf8_lossy(mark))),
    };
    Ok(Entry { at, kind })
}

/// Splits at the first space.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(space) => (&line[..space], &line[space + 1..]),
        None => (line, &[]),
    }
}

/// Parses a number of seconds exactly, without the rounding of a float.
fn seconds(text: &[u8]) -> Result<Duration, String> {
    let invalid = || format!("`{}` is not a time in seconds", String::from_utf8_lossy(text));
    let text = std::str::from_utf8(text).map_err(|_| invalid())?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return Err(invalid());
    }
    let nanos = format!("{fraction:0<9}").parse().map_err(|_| invalid())?;
    Ok(Duration::new(whole.parse().map_err(|_| invalid())?, nanos))
}
