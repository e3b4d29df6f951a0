//! From the bytes of a `.wire` file to a recording.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::{Channel, Entry, FORMAT, Header, Recording, What};

/// Why a file is not a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
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

/// Cuts at `\n` alone: a `\r` before it belongs to the recorded line.
fn lines(file: &[u8]) -> impl Iterator<Item = &[u8]> {
    let file = file.strip_suffix(b"\n").unwrap_or(file);
    file.split(|byte| *byte == b'\n').skip(usize::from(file.is_empty()))
}

fn header(line: &[u8]) -> Result<Header, String> {
    let json = line
        .strip_prefix(b"## ")
        .ok_or("a recording starts with `## ` and its header".to_owned())?;
    let header: Header =
        serde_json::from_slice(json).map_err(|error| format!("the header: {error}"))?;
    if (1..=FORMAT).contains(&header.format) {
        Ok(header)
    } else {
        Err(format!("format {} is unknown; the newest known one is {FORMAT}", header.format))
    }
}

fn entry(line: &[u8]) -> Result<Entry, String> {
    let (mark, rest) = word(line);
    let (time, text) = word(rest);
    let at = seconds(time)?;
    let bytes = || Bytes::copy_from_slice(text);
    let what = match mark {
        b">>" if text == b"EOF" => What::InputClosed,
        b">>" | b">=" => What::Sent(bytes()),
        b"<<" => What::Received(bytes()),
        b"!!" => What::Stderr(bytes()),
        b">~" => What::Unfinished(Channel::Sent, bytes()),
        b"<|" => What::OutputClosed,
        b"<~" => What::Unfinished(Channel::Received, bytes()),
        b"!~" => What::Unfinished(Channel::Stderr, bytes()),
        b"EXIT" => What::Exited(String::from_utf8_lossy(text).parse()?),
        _ => return Err(format!("`{}` is no mark", String::from_utf8_lossy(mark))),
    };
    Ok(Entry { at, what })
}

/// The bytes up to the first space, and those after it.
fn word(line: &[u8]) -> (&[u8], &[u8]) {
    match line.iter().position(|byte| *byte == b' ') {
        Some(space) => (&line[..space], &line[space + 1..]),
        None => (line, &[]),
    }
}

/// Exact, unlike a detour over a float.
fn seconds(text: &[u8]) -> Result<Duration, String> {
    let wrong = || format!("`{}` is not a time in seconds", String::from_utf8_lossy(text));
    let text = std::str::from_utf8(text).map_err(|_| wrong())?;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
        return Err(wrong());
    }
    let nanos = format!("{fraction:0<9}").parse().map_err(|_| wrong())?;
    Ok(Duration::new(whole.parse().map_err(|_| wrong())?, nanos))
}
