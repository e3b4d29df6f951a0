//! A cursor over JSON that reads little of it and skips the rest quickly.
//!
//! Accepts what `serde_json` accepts: keys and strings that are skipped may hold invalid UTF-8 and
//! lone surrogate escapes, strings that are read may not.

use std::borrow::Cow;

use crate::plain::plain_length;

/// Why a record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanError {
    /// The bytes end within the record.
    Eof,
    /// The bytes are not JSON.
    Syntax,
}

pub(crate) type Result<T> = std::result::Result<T, ScanError>;

/// The JSON text of a value, which may hold invalid UTF-8.
pub(crate) type Raw<'a> = &'a [u8];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The first byte of the next token.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Ok(byte);
            }
            self.at += 1;
        }
        Err(ScanError::Eof)
    }

    #[inline]
    fn expect(&mut self, byte: u8) -> Result<()> {
        if self.peek()? != byte {
            return Err(ScanError::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    /// Reads the next key of an object, whose `{` is next if `is_first`; `None` at its end. Escapes
    /// are resolved.
    #[inline]
    pub(crate) fn key(&mut self, is_first: bool) -> Result<Option<Cow<'a, [u8]>>> {
        if is_first {
            self.expect(b'{')?;
        }
        if !self.next_element(b'}', is_first)? {
            return Ok(None);
        }
        let (raw, has_escapes) = self.string()?;
        let key = if has_escapes {
            let raw = std::str::from_utf8(raw).map_err(|_| ScanError::Syntax)?;
            let key: String = serde_json::from_str(raw).map_err(|_| ScanError::Syntax)?;
            Cow::Owned(key.into_bytes())
        } else {
            // Not checked for UTF-8, which would take as long as finding its end.
            Cow::Borrowed(&raw[1..raw.len() - 1])
        };
        self.expect(b':')?;
        Ok(Some(key))
    }

    /// Returns whether an array, whose `[` is next if `is_first`, has another item.
    pub(crate) fn item(&mut self, is_first: bool) -> Result<bool> {
        if is_first {
            self.expect(b'[')?;
        }
        self.next_element(b']', is_first)
    }

    #[inline]
    fn next_element(&mut self, end: u8, is_first: bool) -> Result<bool> {
        let next = self.peek()?;
        if next == end {
            self.at += 1;
            return Ok(false);
        }
        if is_first {
            return Ok(true);
        }
        self.expect(b',')?;
        // No comma at the end.
        if self.peek()? == end { Err(ScanError::Syntax) } else { Ok(true) }
    }

    /// Skips a string and returns it with its quotes, and whether it holds escapes.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<(Raw<'a>, bool)> {
        if self.peek()? != b'"' {
            return Err(ScanError::Syntax);
        }
        let start = self.at;
        self.at += 1;
        let mut has_escapes = false;
        loop {
            self.at += plain_length(&self.bytes[self.at..]);
            match self.bytes.get(self.at) {
                None => return Err(ScanError::Eof),
                Some(b'"') => {
                    self.at += 1;
                    return Ok((&self.bytes[start..self.at], has_escapes));
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.escape()?;
                }
                // A control character.
                Some(_) => return Err(ScanError::Syntax),
            }
        }
    }

    fn escape(&mut self) -> Result<()> {
        self.at += 2;
        match self.bytes.get(self.at - 1) {
            None => Err(ScanError::Eof),
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') => {
                let digits = self.bytes.get(self.at..self.at + 4).ok_or(ScanError::Eof)?;
                self.at += 4;
                if digits.iter().all(u8::is_ascii_hexdigit) {
                    Ok(())
                } else {
                    Err(ScanError::Syntax)
                }
            }
            Some(_) => Err(ScanError::Syntax),
        }
    }

    /// Skips a value and returns its text.
    pub(crate) fn raw(&mut self) -> Result<Raw<'a>> {
        self.peek()?;
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Skips a value.
    #[inline]
    pub(crate) fn skip(&mut self) -> Result<()> {
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' | b'[' => self.skip_nested(),
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Result<()> {
        match self.peek()? {
            b'n' => self.literal(b"null"),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            _ => self.number(),
        }
    }

    fn literal(&mut self, literal: &[u8]) -> Result<()> {
        for byte in literal {
            match self.bytes.get(self.at) {
                None => return Err(ScanError::Eof),
                Some(found) if found == byte => self.at += 1,
                Some(_) => return Err(ScanError::Syntax),
            }
        }
        Ok(())
    }

    fn number(&mut self) -> Result<()> {
        self.at += usize::from(self.bytes[self.at] == b'-');
        if self.bytes.get(self.at) == Some(&b'0') {
            self.at += 1;
            if self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
                return Err(ScanError::Syntax);
            }
        } else {
            self.digits()?;
        }
        if self.bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    /// Skips at least one digit. A number that is cut off is a syntax error, as for `serde_json`.
    fn digits(&mut self) -> Result<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(ScanError::Syntax) } else { Ok(()) }
    }

    /// Skips an object or an array.
    fn skip_nested(&mut self) -> Result<()> {
        // The open brackets, one bit each: whether it is an object. The lowest bit is the innermost.
        let (mut open, mut depth, mut is_first) = (0_u64, 0_u32, true);
        // The bits of the outer brackets, if there are more than one word has.
        let mut outer: Vec<u64> = Vec::new();
        loop {
            if is_first {
                if depth > 0 && depth.is_multiple_of(u64::BITS) {
                    outer.push(open);
                }
                open = open << 1 | u64::from(self.bytes[self.at] == b'{');
                depth += 1;
                self.at += 1;
            }
            let is_object = open & 1 == 1;
            if !self.next_element(if is_object { b'}' } else { b']' }, is_first)? {
                open >>= 1;
                depth -= 1;
                is_first = false;
                if depth == 0 {
                    return Ok(());
                }
                if depth.is_multiple_of(u64::BITS) {
                    open = outer.pop().unwrap_or_default();
                }
                continue;
            }
            if is_object {
                self.string()?;
                self.expect(b':')?;
            }
            match self.peek()? {
                b'{' | b'[' => is_first = true,
                b'"' => {
                    self.string()?;
                    is_first = false;
                }
                _ => {
                    self.scalar()?;
                    is_first = false;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::{Deserialize, IgnoredAny};

    use super::{ScanError, Scanner};

    fn skip(bytes: &[u8]) -> Result<usize, ScanError> {
        let mut scanner = Scanner::new(bytes);
        scanner.skip().map(|()| scanner.position())
    }

    fn skip_with_serde(bytes: &[u8]) -> Result<usize, ScanError> {
        let mut values = serde_json::Deserializer::from_slice(bytes);
        match IgnoredAny::deserialize(&mut values) {
            Ok(_) => Ok(values.into_iter::<IgnoredAny>().byte_offset()),
            Err(error) if error.is_eof() => Err(ScanError::Eof),
            Err(_) => Err(ScanError::Syntax),
        }
    }

    #[track_caller]
    fn check(bytes: &[u8]) {
        assert_eq!(skip(bytes), skip_with_serde(bytes), "{}", bytes.escape_ascii());
    }

    #[test]
    fn values_are_skipped_as_by_serde_json() {
        let long = format!("\"{}\"", "a".repeat(100));
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        let open = "{\"a\":".repeat(70);
        for text in [
            "null",
            "nul",
            "nulk",
            "true",
            "false ",
            "0",
            "01",
            "-",
            "-0",
            "1.",
            "1.5",
            "1.5e",
            "1e+",
            "1e-3",
            "1E5",
            "-a",
            "+1",
            "",
            " ",
            "[",
            "]",
            "[]",
            "[1]",
            "[1,]",
            "[1 2]",
            "[,]",
            "{}",
            "{,}",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1"#,
            r#"{"a":1,}"#,
            r#"{"a":1,"b":[{}]} x"#,
            "{1:2}",
            r#""\n\u00e9\ud800""#,
            r#""\x""#,
            r#""\u12""#,
            r#""\u12g4""#,
            r#""\"#,
            "\"\t\"",
            r#"{"a":[1,{"b":"}]"}],"c":null}"#,
            "[}",
            "{]",
            &long,
            &deep,
            &open,
        ] {
            check(text.as_bytes());
        }
        check(b"\"\xff\"");
    }

    #[test]
    fn every_special_byte_ends_a_plain_run_at_every_position() {
        for at in 0..200 {
            for special in [b'"', b'\\', 0, 0x1f] {
                let mut bytes = vec![b'a'; 210];
                bytes[at] = special;
                assert_eq!(super::plain_length(&bytes), at);
            }
        }
        assert_eq!(super::plain_length(&[0xff; 177]), 177);
    }

    proptest! {
        #[test]
        fn damaged_values_are_skipped_as_by_serde_json(
            text in "[\\[\\]{}:,\"\\\\ a0-9.eE+-]{0,24}",
            value in r#"(\{"a":(1|"b\\\\n"|\[null,-1.5e3\]|\{"c":\{\}\})(,"d":true){0,2}\}){1,2}"#,
            cut in 0_usize..40,
            place in 0_usize..40,
            byte in any::<u8>(),
        ) {
            check(text.as_bytes());
            let mut bytes = value.into_bytes();
            check(&bytes[..cut.min(bytes.len())]);
            let place = place.min(bytes.len() - 1);
            bytes[place] = byte;
            check(&bytes);
        }
    }
}
