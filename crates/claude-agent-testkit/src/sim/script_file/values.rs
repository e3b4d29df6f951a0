//! Parses strings, numbers, durations, sizes and JSON.

use std::str::FromStr;
use std::time::Duration;

use serde_json::Value;

use super::ScriptError;
use super::cursor::Cursor;

/// Reads values from the current line.
pub(super) trait ReadValue {
    /// Reads a quoted string.
    fn text(&mut self) -> Result<String, ScriptError>;
    /// Reads a quoted string that may contain arbitrary bytes.
    fn bytes(&mut self) -> Result<Vec<u8>, ScriptError>;
    /// Reads a quoted string verbatim, including the quotes.
    fn literal(&mut self) -> Result<String, ScriptError>;
    /// Reads a word or a quoted string.
    fn name(&mut self, expected: &'static str) -> Result<String, ScriptError>;
    /// Reads a number in a range.
    fn number<T: FromStr + PartialOrd>(
        &mut self,
        range: impl std::ops::RangeBounds<T>,
        expected: &'static str,
    ) -> Result<T, ScriptError>;
    /// Reads a duration such as `200ms` or `2s`.
    fn duration(&mut self) -> Result<Duration, ScriptError>;
    /// Reads a number of bytes such as `10`, `64kb` or `10mb`.
    fn size(&mut self) -> Result<usize, ScriptError>;
    /// Reads a version such as `2.1.325`.
    fn version(&mut self) -> Result<String, ScriptError>;
    /// Reads a JSON object, if one starts here.
    fn object(&mut self) -> Result<Option<Value>, ScriptError>;
}

impl ReadValue for Cursor<'_> {
    fn text(&mut self) -> Result<String, ScriptError> {
        let bytes = decoded(self, ByteEscapes::Rejected)?;
        // Without byte escapes, the result is always valid UTF-8.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn bytes(&mut self) -> Result<Vec<u8>, ScriptError> {
        decoded(self, ByteEscapes::Allowed)
    }

    fn literal(&mut self) -> Result<String, ScriptError> {
        let (_, inner) = self.quoted()?;
        Ok(format!("\"{inner}\""))
    }

    fn name(&mut self, expected: &'static str) -> Result<String, ScriptError> {
        match self.next() {
            Some('"') => self.text(),
            _ => Ok(self.word(expected)?.1.to_owned()),
        }
    }

    fn number<T: FromStr + PartialOrd>(
        &mut self,
        range: impl std::ops::RangeBounds<T>,
        expected: &'static str,
    ) -> Result<T, ScriptError> {
        let (start, word) = self.word(expected)?;
        let number = word.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| self.error_at(start, expected))
    }

    fn duration(&mut self) -> Result<Duration, ScriptError> {
        let expected = "a duration such as `200ms` or `2s`";
        let (start, word) = self.word(expected)?;
        let (count, unit) = count_and_unit(word);
        let duration = match (count, unit) {
            (Some(count), "ms") => Some(Duration::from_millis(count)),
            (Some(count), "s") => Some(Duration::from_secs(count)),
            _ => None,
        };
        duration.ok_or_else(|| self.error_at(start, expected))
    }

    fn size(&mut self) -> Result<usize, ScriptError> {
        let expected = "a size such as `10`, `64kb` or `10mb`";
        let (start, word) = self.word(expected)?;
        let (count, unit) = count_and_unit(word);
        let factor: Option<u64> = match unit {
            "" => Some(1),
            "kb" => Some(1024),
            "mb" => Some(1024 * 1024),
            _ => None,
        };
        let size = count.zip(factor).and_then(|(count, factor)| count.checked_mul(factor));
        let size = size.and_then(|size| usize::try_from(size).ok());
        size.ok_or_else(|| self.error_at(start, expected))
    }

    fn version(&mut self) -> Result<String, ScriptError> {
        let expected = "a version such as `2.1.325`";
        let (start, word) = self.word(expected)?;
        let numbers: Vec<&str> = word.split('.').collect();
        let whole = numbers.len() == 3 && numbers.iter().all(|part| part.parse::<u32>().is_ok());
        if whole { Ok(word.to_owned()) } else { Err(self.error_at(start, expected)) }
    }

    fn object(&mut self) -> Result<Option<Value>, ScriptError> {
        if self.next() != Some('{') {
            return Ok(None);
        }
        self.has_more_on_line();
        let (start, rest) = (self.position(), self.rest());
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.advance(values.byte_offset());
                Ok(Some(value))
            }
            Some(Err(error)) if !error.is_eof() => {
                let at = start + offset_of(rest, error.line(), error.column());
                let reason = error.to_string();
                let reason = reason.split(" at line ").next().unwrap_or_default();
                Err(self.error_at(at, format!("valid JSON ({reason})")))
            }
            // Points at the start of the unclosed object, which helps more than the end of the file.
            _ => Err(self.error_at(start, "a complete JSON object")),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum ByteEscapes {
    Allowed,
    Rejected,
}

/// Splits a word into a number and the letters after it.
fn count_and_unit(word: &str) -> (Option<u64>, &str) {
    let digits = word.find(|c: char| !c.is_ascii_digit()).unwrap_or(word.len());
    let (count, unit) = word.split_at(digits);
    (count.parse().ok(), unit)
}

/// Returns the byte offset of a line and a column. The column is in bytes and counted from 1; 0 is the
/// start of the line.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let line_start: usize =
        text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut at = (line_start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn decoded(cursor: &mut Cursor<'_>, bytes: ByteEscapes) -> Result<Vec<u8>, ScriptError> {
    let (start, inner) = cursor.quoted()?;
    let mut plain = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(escape) = rest.find('\\') {
        plain.extend_from_slice(&rest.as_bytes()[..escape]);
        rest = &rest[escape..];
        let at = start + inner.len() - rest.len();
        let length =
            unescape(rest, bytes, &mut plain).map_err(|expected| cursor.error_at(at, expected))?;
        rest = &rest[length..];
    }
    plain.extend_from_slice(rest.as_bytes());
    Ok(plain)
}

/// Decodes the escape at the start of `text`, and returns its length.
fn unescape(text: &str, bytes: ByteEscapes, plain: &mut Vec<u8>) -> Result<usize, &'static str> {
    let simple = match text.as_bytes().get(1) {
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'b') => 8,
        Some(b'f') => 12,
        Some(same @ (b'"' | b'\\' | b'/')) => *same,
        Some(b'u') => return unescape_unicode(text, plain),
        Some(b'x') if bytes == ByteEscapes::Allowed => {
            let byte = hex(text, 2, 2).and_then(|byte| u8::try_from(byte).ok());
            plain.push(byte.ok_or("`\\x` and two hexadecimal digits")?);
            return Ok(4);
        }
        Some(b'x') => return Err("a JSON escape (`\\x` is only valid in `bytes` and `line`)"),
        _ => return Err("a JSON escape such as `\\n`"),
    };
    plain.push(simple);
    Ok(2)
}

fn unescape_unicode(text: &str, plain: &mut Vec<u8>) -> Result<usize, &'static str> {
    let first = hex(text, 2, 4).ok_or("`\\u` and four hexadecimal digits")?;
    let (code, length) = match first {
        0xd800..=0xdbff => {
            let second = text.get(6..8).filter(|mark| *mark == "\\u").and_then(|_| hex(text, 8, 4));
            let second = second.filter(|second| (0xdc00..=0xdfff).contains(second));
            let second = second.ok_or("both halves of a surrogate pair (`raw` takes one)")?;
            (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
        }
        _ => (first, 6),
    };
    let character =
        char::from_u32(code).ok_or("both halves of a surrogate pair (`raw` takes one)")?;
    plain.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(length)
}

fn hex(text: &str, from: usize, digits: usize) -> Option<u32> {
    let text = text.get(from..from + digits)?;
    // `from_str_radix` would accept a sign.
    let all = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    all.then(|| u32::from_str_radix(text, 16).ok()).flatten()
}
