//! Reads JSON text into wire types.
//!
//! One concrete reader for all of them: a serde visitor would be compiled for every struct and
//! every deserializer. The structure of objects and lists is read here; numbers, opaque values and
//! strings with escapes are left to `serde_json`.

use std::borrow::Cow;

use serde::de::{Deserialize, Error as _, IgnoredAny};
use serde_json::value::RawValue;

use super::field::{Items, SetText};
use super::long::LongStrings;
use super::structs::Shape;
use crate::json::{Extra, Json};
use crate::plain::plain_length;
use crate::unescape::unescape;

/// Decoding keeps the error type of `serde_json`, which contains the position.
pub(crate) type Error = serde_json::Error;

/// The nesting that `serde_json` allows.
const MAX_NESTING: u8 = 128;

/// How deep content may be nested in content. Messages need two levels; without a limit a line of
/// nested tool results would overflow the stack, because nesting is counted again wherever a part
/// is isolated.
const MAX_CONTENT: u8 = 32;

/// A cursor over JSON text.
#[derive(Debug)]
pub(crate) struct Reader<'de> {
    text: &'de str,
    at: usize,
    nesting: u8,
    content: u8,
    isolating: bool,
    /// Where the keys of tags are that came late and were taken by unions, for all open objects. Not
    /// in `Entries`, which would then need code for its drop in every type that is decoded.
    taken: Vec<usize>,
    /// The strings that the text has as empty ones.
    long: Option<&'de LongStrings<'de>>,
}

impl<'de> Reader<'de> {
    pub(crate) fn new(text: &'de str) -> Self {
        Self {
            text,
            at: 0,
            nesting: 0,
            content: 0,
            isolating: false,
            taken: Vec::new(),
            long: None,
        }
    }

    /// Sets the strings that the text has as empty ones.
    pub(crate) fn with_long(self, long: &'de LongStrings<'de>) -> Self {
        Self { long: Some(long), ..self }
    }

    /// Replaces a part that does not decode by `Undecodable`. Only on a second attempt, because
    /// isolating a part means reading it twice.
    pub(crate) fn isolating(text: &'de str) -> Self {
        Self { isolating: true, ..Self::new(text) }
    }

    /// A reader of a part of this text.
    pub(crate) fn part(&self, raw: &'de RawValue) -> Self {
        Self { text: raw.get(), at: 0, nesting: 0, taken: Vec::new(), ..*self }
    }

    pub(crate) fn is_isolating(&self) -> bool {
        self.isolating
    }

    /// Checks that only whitespace is left.
    pub(crate) fn end(&mut self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.syntax()),
        }
    }

    /// The first byte of the next token.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes the next token if it is this punctuation.
    #[inline]
    fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn eat_literal(&mut self, literal: &str) -> bool {
        self.peek();
        let is_next = self.text.as_bytes()[self.at..].starts_with(literal.as_bytes());
        if is_next {
            self.at += literal.len();
        }
        is_next
    }

    pub(crate) fn null(&mut self) -> bool {
        self.peek() == Some(b'n') && self.eat_literal("null")
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Error> {
        match self.peek() {
            Some(b't') if self.eat_literal("true") => Ok(true),
            Some(b'f') if self.eat_literal("false") => Ok(false),
            _ => Err(self.mismatch("a boolean")),
        }
    }

    /// A string, borrowed from the text unless it holds escapes.
    pub(crate) fn string(&mut self) -> Result<Cow<'de, str>, Error> {
        if self.peek() != Some(b'"') {
            return Err(self.mismatch("a string"));
        }
        let start = self.at;
        let bytes = self.text.as_bytes();
        let end = start + 1 + plain_length(&bytes[start + 1..]);
        if bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            if self.long.is_some() && end == start + 1 {
                return Ok(self.long_string(start));
            }
            return Ok(Cow::Borrowed(&self.text[start + 1..end]));
        }
        self.escaped(start, end)
    }

    /// Reads a string with a meaning.
    pub(crate) fn text(&mut self, target: &mut dyn SetText) -> Result<(), Error> {
        target.set_text(&self.string()?);
        Ok(())
    }

    #[cold]
    fn long_string(&self, start: usize) -> Cow<'de, str> {
        let string = self.long.and_then(|long| long.string(&self.text[start..]));
        string.map_or(Cow::Borrowed(""), Cow::Owned)
    }

    #[cold]
    fn escaped(&mut self, start: usize, mut end: usize) -> Result<Cow<'de, str>, Error> {
        let bytes = self.text.as_bytes();
        while let Some(found) = memchr::memchr2(b'"', b'\\', &bytes[end.min(bytes.len())..]) {
            end += found;
            if bytes[end] == b'"' {
                let string = match unescape(&self.text[start + 1..end]) {
                    Some(string) => string,
                    None => serde_json::from_str(&self.text[start..=end])
                        .map_err(|error| self.moved(&error, start))?,
                };
                self.at = end + 1;
                return Ok(Cow::Owned(string));
            }
            end += 2;
        }
        Err(self.syntax())
    }

    /// A count, if the next token is one that needs no more than this: counts are most numbers.
    pub(crate) fn count(&mut self) -> Option<u64> {
        /// Fewer digits than overflow a `u64`.
        const MAX_DIGITS: usize = 18;
        let bytes = &self.text.as_bytes()[self.at..];
        let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_whole = !matches!(bytes.get(digits), Some(b'.' | b'e' | b'E'));
        if !is_whole || digits > MAX_DIGITS || digits == 0 || (digits > 1 && bytes[0] == b'0') {
            return None;
        }
        self.at += digits;
        Some(bytes[..digits].iter().fold(0, |count, byte| count * 10 + u64::from(byte - b'0')))
    }

    /// A number for a machine type.
    pub(crate) fn unsigned(&mut self) -> Result<u64, Error> {
        self.stream()
    }

    /// The error of a number that its machine type cannot hold.
    #[cold]
    pub(crate) fn out_of_range(&self, number: u64, expected: &str) -> Error {
        self.error(&format!("invalid value: integer `{number}`, expected {expected}"))
    }

    /// The text of the next value, which is checked to be JSON.
    pub(crate) fn raw(&mut self) -> Result<&'de RawValue, Error> {
        self.stream()
    }

    /// The next value as text.
    pub(crate) fn json(&mut self) -> Result<Json, Error> {
        self.raw().map(|raw| self.owned(raw))
    }

    /// A part of the text as a value.
    pub(crate) fn owned(&self, raw: &RawValue) -> Json {
        self.long.map_or_else(|| raw.to_owned().into(), |long| long.json(raw))
    }

    /// Reads the next value with `serde_json`.
    pub(crate) fn stream<T: Deserialize<'de>>(&mut self) -> Result<T, Error> {
        let mut values = serde_json::Deserializer::from_str(&self.text[self.at..]).into_iter::<T>();
        let value = values.next();
        let length = values.byte_offset();
        match value {
            Some(Ok(value)) => {
                self.at += length;
                Ok(value)
            }
            Some(Err(error)) if error.is_data() => Err(self.moved(&error, self.at)),
            _ => Err(self.syntax()),
        }
    }

    /// Skips the next value.
    pub(crate) fn skip(&mut self) -> Result<(), Error> {
        match self.peek() {
            Some(b'"') => {
                let end = self.at + 1 + plain_length(&self.text.as_bytes()[self.at + 1..]);
                if self.text.as_bytes().get(end) == Some(&b'"') {
                    self.at = end + 1;
                    return Ok(());
                }
            }
            Some(b'n') if self.eat_literal("null") => return Ok(()),
            _ => {}
        }
        self.stream::<IgnoredAny>().map(drop)
    }

    fn enter(&mut self) -> Result<(), Error> {
        if self.nesting == MAX_NESTING {
            return Err(self.error("recursion limit exceeded"));
        }
        self.nesting += 1;
        self.at += 1;
        Ok(())
    }

    /// Begins an object, called `expected` in an error message.
    pub(crate) fn object(&mut self, expected: &str) -> Result<Entries<'_, 'de>, Error> {
        if self.peek() != Some(b'{') {
            return Err(self.mismatch(expected));
        }
        self.enter()?;
        let taken_from = self.taken.len();
        Ok(Entries { reader: self, is_first: true, last: 0, key_at: 0, taken_from })
    }

    /// Reads an object into a struct.
    pub(crate) fn fill(&mut self, target: &mut dyn Fill, shape: &Shape) -> Result<(), Error> {
        self.object(shape.name)?.fill(target, shape)
    }

    /// Begins a list.
    pub(crate) fn list(&mut self, expected: &str) -> Result<(), Error> {
        if self.peek() != Some(b'[') {
            return Err(self.mismatch(expected));
        }
        self.enter()
    }

    /// Reads a list.
    pub(crate) fn items(&mut self, items: &mut dyn Items) -> Result<(), Error> {
        self.list("a sequence")?;
        let mut is_first = true;
        while self.next_item(is_first)? {
            items.read_next(self)?;
            is_first = false;
        }
        Ok(())
    }

    /// The texts of the items of a list.
    pub(crate) fn raw_items(&mut self) -> Result<Vec<&'de RawValue>, Error> {
        self.list("a sequence")?;
        let mut items = Vec::new();
        while self.next_item(items.is_empty())? {
            items.push(self.raw()?);
        }
        Ok(items)
    }

    /// Whether the list has another item, which is then next.
    pub(crate) fn next_item(&mut self, is_first: bool) -> Result<bool, Error> {
        if self.eat(b']') {
            self.nesting -= 1;
            return Ok(false);
        }
        if is_first || (self.eat(b',') && self.peek() != Some(b']')) {
            return Ok(true);
        }
        Err(self.syntax())
    }

    /// Reads a list one level of content deeper.
    pub(crate) fn nested_content(&mut self, items: &mut dyn Items) -> Result<(), Error> {
        if self.content == MAX_CONTENT {
            return Err(self.error(&format!("more than {MAX_CONTENT} levels of content")));
        }
        self.content += 1;
        let result = self.items(items);
        self.content -= 1;
        result
    }

    /// An error at the current position.
    #[cold]
    pub(crate) fn error(&self, message: &str) -> Error {
        self.error_at(message, self.at + 1)
    }

    fn error_at(&self, message: &str, at: usize) -> Error {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |found| found + 1);
        // serde_json takes the position from the end of the message.
        Error::custom(format_args!("{message} at line {line} column {column}"))
    }

    /// An error of `serde_json` in a part of the text, at its position in the whole.
    #[cold]
    fn moved(&self, error: &Error, start: usize) -> Error {
        let message = error.to_string();
        let position = format!(" at line {} column {}", error.line(), error.column());
        self.error_at(message.strip_suffix(&position).unwrap_or(&message), start + error.column())
    }

    /// The error of a value that is not what it should be; the value itself is not shown.
    #[cold]
    pub(crate) fn mismatch(&mut self, expected: &str) -> Error {
        if let Err(error) = serde_json::from_str::<IgnoredAny>(self.text) {
            return error;
        }
        let kind = match self.peek() {
            Some(b'"') => "string",
            Some(b'{') => "map",
            Some(b'[') => "sequence",
            Some(b't' | b'f') => "boolean",
            Some(b'n') => "null",
            _ => self.number_kind(),
        };
        self.error(&format!("invalid type: {kind}, expected {expected}"))
    }

    fn number_kind(&self) -> &'static str {
        let is_part = |byte: &&u8| matches!(**byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9');
        let mut number = self.text.as_bytes()[self.at..].iter().take_while(is_part);
        if number.any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
            "floating point"
        } else {
            "integer"
        }
    }

    /// The error of text that is not JSON, in the words of `serde_json`.
    #[cold]
    pub(crate) fn syntax(&self) -> Error {
        match serde_json::from_str::<IgnoredAny>(self.text) {
            Err(error) => error,
            Ok(_) => self.error("expected value"),
        }
    }
}

/// A struct whose fields are filled one after the other.
pub(crate) trait Fill {
    fn fill(&mut self, index: usize, reader: &mut Reader<'_>) -> Result<(), Error>;

    fn extra(&mut self) -> &mut Extra;
}

/// The entries of an object, of which a union may already have taken its tag.
#[derive(Debug)]
pub(crate) struct Entries<'r, 'de> {
    pub(crate) reader: &'r mut Reader<'de>,
    is_first: bool,
    /// The field that came last: the next one usually follows it.
    last: usize,
    key_at: usize,
    /// The first entry of `Reader::taken` that belongs to this object.
    taken_from: usize,
}

impl<'de> Entries<'_, 'de> {
    /// The next key; its value must be read before the next call.
    pub(crate) fn next_key(&mut self) -> Result<Option<Cow<'de, str>>, Error> {
        loop {
            if self.reader.eat(b'}') {
                self.reader.nesting -= 1;
                return Ok(None);
            }
            if !self.is_first && !self.reader.eat(b',') {
                return Err(self.reader.syntax());
            }
            self.is_first = false;
            if self.reader.peek() != Some(b'"') {
                return Err(self.reader.syntax());
            }
            self.key_at = self.reader.at;
            let key = self.reader.string()?;
            if !self.reader.eat(b':') {
                return Err(self.reader.syntax());
            }
            if !self.reader.taken[self.taken_from..].contains(&self.key_at) {
                self.reader.peek();
                return Ok(Some(key));
            }
            self.reader.skip()?;
        }
    }

    /// Fills the fields of `target`; an error naming the first that is required and did not come.
    pub(crate) fn fill(&mut self, target: &mut dyn Fill, shape: &Shape) -> Result<(), Error> {
        let mut came = 0_u128;
        while let Some(index) = self.next_field(shape.fields, shape.tags, target.extra())? {
            target.fill(index, self.reader)?;
            came |= bit(index);
        }
        for (index, name) in shape.fields.iter().enumerate() {
            if shape.required[index] && came & bit(index) == 0 {
                return Err(Error::missing_field(name));
            }
        }
        Ok(())
    }

    /// The index of the next field that is in `names`. Skips `tags`; all others go to `extra`.
    pub(crate) fn next_field(
        &mut self,
        names: &[&str],
        tags: &[(&str, &str)],
        extra: &mut Extra,
    ) -> Result<Option<usize>, Error> {
        while let Some(key) = self.next_key()? {
            let found = names[self.last..].iter().position(|name| *name == key);
            let found = match found {
                Some(found) => Some(self.last + found),
                None => names[..self.last].iter().position(|name| *name == key),
            };
            if let Some(index) = found {
                self.last = index;
                return Ok(Some(index));
            }
            if tags.iter().any(|(tag, _)| *tag == key) {
                self.reader.skip()?;
            } else {
                extra.push(key.into_owned(), self.reader.json()?);
            }
        }
        self.reader.taken.truncate(self.taken_from);
        Ok(None)
    }

    /// The value of a union's tag, wherever it is: the first of several equal tags counts. `None`
    /// if there is none. The entries before it are read again afterwards.
    pub(crate) fn take_tag(&mut self, tag: &str) -> Result<Option<Cow<'de, str>>, Error> {
        let (at, is_first, nesting) = (self.reader.at, self.is_first, self.reader.nesting);
        let mut is_late = false;
        while let Some(key) = self.next_key()? {
            if key != tag {
                is_late = true;
                self.reader.skip()?;
                continue;
            }
            let value = self.reader.string();
            if !is_late {
                return value.map(Some);
            }
            let value =
                value.map_err(|_| self.reader.error(&format!("`{tag}` is not a string")))?;
            self.reader.taken.push(self.key_at);
            (self.reader.at, self.is_first) = (at, is_first);
            return Ok(Some(value));
        }
        (self.reader.at, self.is_first, self.reader.nesting) = (at, is_first, nesting);
        Ok(None)
    }
}

/// The mark of a field that came. No struct has more fields than there are bits.
fn bit(index: usize) -> u128 {
    1 << index
}
