//! Decodes large entries without holding their bytes.

use bytes::Bytes;
use memchr::{memchr, memchr2};

use super::entry::{Entry, EntryBody};
use crate::error::without_values;
use crate::message::Malformed;
use crate::repair;
use crate::schema::{Gap, LongStrings, ReadAt, Reader, decode_all};

/// How many bytes are read at a time.
const CHUNK_BYTES: usize = 256 * 1024;
/// Strings up to this length are decoded as in any other entry.
const SHORT_BYTES: usize = 64 * 1024;

impl Entry {
    /// Decodes a large entry of `length` bytes without holding them: long strings are read piece by
    /// piece, so that memory is needed for what is decoded only. [`raw`](Self::raw) is `None`.
    ///
    /// `read` fills a buffer with the bytes of the entry from an offset on, and returns whether it
    /// could. Every byte is read twice. Millions of short values need twice their size, and so does an
    /// entry with invalid UTF-8 outside of long strings.
    ///
    /// # Errors
    /// Returns [`Malformed`], with the entry without its long strings, when bytes cannot be read or are
    /// not a JSON object with a string `type`.
    ///
    /// ```
    /// use claude_wire::transcript::{Entry, EntryBody};
    ///
    /// let line = br#"{"type":"custom-title","customTitle":"Build"}"#;
    /// let entry = Entry::decode_large(line.len() as u64, &|buffer, offset| {
    ///     let offset = offset as usize;
    ///     buffer.copy_from_slice(&line[offset..offset + buffer.len()]);
    ///     true
    /// })?;
    /// assert!(matches!(entry.body, EntryBody::CustomTitle(_)));
    /// # Ok::<(), claude_wire::Malformed>(())
    /// ```
    pub fn decode_large(
        length: u64,
        read: &dyn Fn(&mut [u8], u64) -> bool,
    ) -> Result<Self, Malformed> {
        decode(length, read, CHUNK_BYTES, SHORT_BYTES)
    }
}

fn decode(length: u64, read: &ReadAt<'_>, chunk: usize, short: usize) -> Result<Entry, Malformed> {
    let mut outline = Outline::new(short);
    let mut buffer = vec![0; chunk];
    let mut offset = 0;
    while offset < length {
        let wanted = usize::try_from(length - offset).map_or(chunk, |rest| rest.min(chunk));
        if !read(&mut buffer[..wanted], offset) {
            return Err(unreadable(outline.text));
        }
        outline.add(&buffer[..wanted]);
        offset += wanted as u64;
    }
    drop(buffer);
    let Outline { text, gaps, .. } = outline;
    let Ok(text) = String::from_utf8(text) else { return decode_whole(length, read) };
    let long = LongStrings::new(&text, &gaps, read, chunk);
    let body = decode_all::<EntryBody>(Reader::new(&text).with_long(&long));
    if let Ok(body) = body
        && !long.is_failed()
    {
        return Ok(Entry::without_raw(body, long.is_repaired()));
    }
    if long.is_failed() { Err(unreadable(text.into())) } else { repair(text, &gaps, read, chunk) }
}

/// Decodes an entry that is undecodable in part, or has broken characters in short strings.
#[cold]
fn repair(text: String, gaps: &[Gap], read: &ReadAt<'_>, chunk: usize) -> Result<Entry, Malformed> {
    // Replacements have the length of what they replace, so that gaps stay where they are.
    let repaired = repair::repaired(text.as_bytes());
    let is_repaired = repaired.is_some();
    let text = repaired.unwrap_or(text);
    let long = LongStrings::new(&text, gaps, read, chunk);
    let body = decode_all::<EntryBody>(Reader::isolating(&text).with_long(&long));
    let reason = match body {
        _ if long.is_failed() => return Err(unreadable(text.into())),
        Ok(EntryBody::Undecodable(undecodable)) if undecodable.kind.is_none() => undecodable.reason,
        Ok(body) => return Ok(Entry::without_raw(body, is_repaired || long.is_repaired())),
        Err(error) => without_values(&error),
    };
    Err(Malformed::new(Bytes::from(text), reason))
}

/// Decodes an entry with invalid UTF-8 in its outline.
#[cold]
fn decode_whole(length: u64, read: &ReadAt<'_>) -> Result<Entry, Malformed> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
    if read(&mut bytes, 0) { Entry::decode_slice(&bytes) } else { Err(unreadable(bytes)) }
}

fn unreadable(outline: Vec<u8>) -> Malformed {
    Malformed::new(Bytes::from(outline), "a part of it cannot be read")
}

/// The text of an entry with empty strings in place of long ones.
#[derive(Default)]
struct Outline {
    text: Vec<u8>,
    gaps: Vec<Gap>,
    short: usize,
    /// How many bytes of the entry were added.
    offset: u64,
    string: Option<OpenString>,
}

/// A string whose end was not read yet.
#[derive(Clone, Copy)]
struct OpenString {
    /// The position of its first quote in the text.
    at: usize,
    /// Where its contents begin.
    start: u64,
    is_long: bool,
    /// Whether the next byte is escaped.
    is_escaped: bool,
}

impl Outline {
    fn new(short: usize) -> Self {
        Self { short, ..Self::default() }
    }

    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = match self.string {
                None => self.add_structure(bytes),
                Some(string) => self.add_string(string, bytes),
            };
            self.offset += count as u64;
            bytes = &bytes[count..];
        }
    }

    /// Adds everything up to the first quote, and returns how many bytes that is.
    fn add_structure(&mut self, bytes: &[u8]) -> usize {
        let quote = memchr(b'"', bytes);
        let count = quote.map_or(bytes.len(), |at| at + 1);
        self.text.extend_from_slice(&bytes[..count]);
        if quote.is_some() {
            let (at, start) = (self.text.len() - 1, self.offset + count as u64);
            self.string = Some(OpenString { at, start, is_long: false, is_escaped: false });
        }
        count
    }

    /// Adds a part of a string, and returns how many bytes that is.
    fn add_string(&mut self, mut string: OpenString, bytes: &[u8]) -> usize {
        let special = if string.is_escaped { Some(0) } else { memchr2(b'"', b'\\', bytes) };
        let count = special.map_or(bytes.len(), |at| at + 1);
        let is_end = !string.is_escaped && special.is_some_and(|at| bytes[at] == b'"');
        string.is_escaped = !string.is_escaped && special.is_some() && !is_end;
        if !string.is_long {
            self.text.extend_from_slice(&bytes[..count]);
            string.is_long = self.text.len() - string.at > self.short + 2;
            if string.is_long {
                self.text.truncate(string.at + 1);
            }
        }
        if is_end && string.is_long {
            self.text.push(b'"');
            let end = self.offset + count as u64 - 1;
            self.gaps.push(Gap { at: string.at, start: string.start, end });
        }
        self.string = Some(string).filter(|_| !is_end);
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Entry, Malformed, decode};

    fn decode_from(bytes: &[u8], chunk: usize, short: usize) -> Result<Entry, Malformed> {
        let read = |buffer: &mut [u8], offset: u64| {
            let offset = usize::try_from(offset).unwrap();
            buffer.copy_from_slice(&bytes[offset..offset + buffer.len()]);
            true
        };
        decode(bytes.len() as u64, &read, chunk, short)
    }

    /// What an entry says. Values that are kept as text may have lone surrogates.
    fn value(entry: &Entry) -> serde_json::Value {
        let text = serde_json::to_vec(entry).unwrap();
        serde_json::from_str(&crate::repair::valid(&text)).unwrap()
    }

    #[track_caller]
    fn check(bytes: &[u8], chunk: usize, short: usize) {
        let large = decode_from(bytes, chunk, short);
        match Entry::decode_slice(bytes) {
            Ok(entry) => {
                let large = large.unwrap();
                assert_eq!(value(&large), value(&entry), "{}", bytes.escape_ascii());
                assert_eq!((large.kind(), large.raw()), (entry.kind(), None));
                assert_eq!(large.is_repaired(), entry.is_repaired(), "{}", bytes.escape_ascii());
            }
            Err(_) => assert!(large.is_err(), "{}", bytes.escape_ascii()),
        }
    }

    const ENTRIES: [&str; 8] = [
        r#"{"type":"user","uuid":"u1","message":{"role":"user","content":"plain \n text"},"x":{"a":["long text",""]}}"#,
        r#"{"uuid":"u1","message":{"content":[{"type":"text","text":"é\u00e9\ud83d\ude00 \"quoted\" \\"}]},"type":"assistant"}"#,
        r#"{"type":"user","toolUseResult":{"stdout":"one\ttwo","list":["a","b",{"c":"ddddddd"}]},"uuid":"u1"}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a result"}]}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"text","text":7,"more":"undecodable"}]}}"#,
        r#"{"type":"user","uuid":"lone \ud83d surrogate","message":{"content":"lone \ud83d\n \ude00"}}"#,
        r#"{"type":"some-state","a long key here":"and its value","usage":{"n":"x"}}"#,
        r#"{"type":7,"a":"not an entry"}"#,
    ];

    #[test]
    fn large_entries_are_decoded_as_any_other() {
        for entry in ENTRIES {
            for chunk in 1..30 {
                for short in [0, 1, 5, 9, 1000] {
                    check(entry.as_bytes(), chunk, short);
                }
            }
        }
    }

    #[test]
    fn invalid_characters_are_replaced() {
        for (bad, is_short) in
            [(&b"\xff"[..], false), (b"\xe2\x82", false), (b"\xf0\x9f\x98", true)]
        {
            let before: &[u8] = br#"{"type":"user","uuid":""#;
            let (middle, end) =
                (&br#"","message":{"content":"some longer text "#[..], &br#""}}"#[..]);
            let parts = [before, if is_short { bad } else { b"" }, middle, bad, b"\\n", bad, end];
            for chunk in 1..30 {
                check(&parts.concat(), chunk, 8);
            }
        }
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_an_error() {
        let line = ENTRIES[2].as_bytes();
        // Each of the reads in turn fails: of the outline, of a text, of a value.
        for failing in 0..20 {
            let reads = std::cell::Cell::new(0);
            let read = |buffer: &mut [u8], offset: u64| {
                let offset = usize::try_from(offset).unwrap();
                buffer.copy_from_slice(&line[offset..offset + buffer.len()]);
                reads.set(reads.get() + 1);
                reads.get() != failing + 1
            };
            let decoded = decode(line.len() as u64, &read, 32, 4);
            assert_eq!(decoded.is_err(), reads.get() > failing, "read {failing}");
        }
    }

    proptest! {
        #[test]
        fn random_texts_are_decoded_as_in_any_other_entry(
            text in r#"([a-zé€😀]|\\[nt\\/"]|\\u[0-9a-c][0-9a-f]{3}|\\ud8[0-9a-f]{2}|\\udc[0-9a-f]{2}){0,40}"#,
            chunk in 1..64_usize,
            short in 0..32_usize,
        ) {
            let line = format!(
                r#"{{"type":"user","message":{{"content":"{text}"}},"toolUseResult":["{text}","x"]}}"#
            );
            check(line.as_bytes(), chunk, short);
        }
    }
}
