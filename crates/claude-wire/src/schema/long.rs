//! Long strings that are left out of the text which is decoded, and read when they are needed. So the
//! text and what is decoded from it are not in memory at the same time.

use std::cell::Cell;
use std::{fmt, str};

use serde_json::value::RawValue;

use crate::json::Json;
use crate::unescape::escaped;

/// Fills a buffer from an offset on, and returns whether it could.
pub(crate) type ReadAt<'a> = dyn Fn(&mut [u8], u64) -> bool + 'a;

/// The length of a surrogate pair, the longest escape.
const LONGEST_ESCAPE: usize = 12;

/// A string that the text has as an empty one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gap {
    /// The position of its first quote in the text.
    pub(crate) at: usize,
    /// Where its contents are in the source, without the quotes.
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The strings that a text does not have.
pub(crate) struct LongStrings<'a> {
    /// The address of the text. Readers of parts know where they are by theirs.
    base: usize,
    gaps: &'a [Gap],
    read: &'a ReadAt<'a>,
    chunk_bytes: usize,
    is_failed: Cell<bool>,
    is_repaired: Cell<bool>,
}

impl<'a> LongStrings<'a> {
    pub(crate) fn new(
        text: &str,
        gaps: &'a [Gap],
        read: &'a ReadAt<'a>,
        chunk_bytes: usize,
    ) -> Self {
        let base = text.as_ptr().addr();
        let (is_failed, is_repaired) = (Cell::new(false), Cell::new(false));
        Self { base, gaps, read, chunk_bytes, is_failed, is_repaired }
    }

    /// Returns whether a string could not be read. It was then decoded in part.
    pub(crate) fn is_failed(&self) -> bool {
        self.is_failed.get()
    }

    /// Returns whether broken characters were replaced in a string.
    pub(crate) fn is_repaired(&self) -> bool {
        self.is_repaired.get()
    }

    /// The string whose first quote begins `text`, a part of the text; `None` if it is not left out.
    pub(super) fn string(&self, text: &str) -> Option<String> {
        let gap =
            self.gaps_in(text).first().filter(|gap| self.base + gap.at == text.as_ptr().addr());
        gap.map(|gap| {
            let mut string = String::with_capacity(to_usize(gap.end - gap.start));
            self.pieces(*gap, |piece, is_last| self.unescape(piece, is_last, &mut string));
            string.shrink_to_fit();
            string
        })
    }

    /// The value of a part of the text, with the strings that are left out in it.
    pub(super) fn json(&self, raw: &RawValue) -> Json {
        let (part, gaps) = (raw.get(), self.gaps_in(raw.get()));
        if gaps.is_empty() {
            return raw.to_owned().into();
        }
        let long: u64 = gaps.iter().map(|gap| gap.end - gap.start).sum();
        let mut text = String::with_capacity(part.len() + to_usize(long));
        let mut from = 0;
        for gap in gaps {
            let quote = self.base + gap.at + 1 - part.as_ptr().addr();
            text.push_str(&part[from..quote]);
            from = quote;
            self.pieces(*gap, |piece, is_last| Some(self.push(piece, is_last, &mut text)));
        }
        text.push_str(&part[from..]);
        Json::from_text(text).unwrap_or_else(|_| {
            self.is_failed.set(true);
            Json::null()
        })
    }

    fn gaps_in(&self, text: &str) -> &'a [Gap] {
        let start = text.as_ptr().addr().wrapping_sub(self.base);
        let gaps = &self.gaps[self.gaps.partition_point(|gap| gap.at < start)..];
        &gaps[..gaps.partition_point(|gap| gap.at < start.saturating_add(text.len()))]
    }

    /// Reads a string piece by piece. `take` returns how many bytes at the end of a piece it leaves
    /// for the next one; `None` if the piece is not part of a string.
    fn pieces(&self, gap: Gap, mut take: impl FnMut(&[u8], bool) -> Option<usize>) {
        let mut chunk = vec![0; self.chunk_bytes.max(2 * LONGEST_ESCAPE)];
        let (mut offset, mut left) = (gap.start, 0);
        while offset < gap.end {
            let end = left + (chunk.len() - left).min(to_usize(gap.end - offset));
            let is_read = (self.read)(&mut chunk[left..end], offset);
            offset += (end - left) as u64;
            let taken = if is_read { take(&chunk[..end], offset == gap.end) } else { None };
            let Some(rest) = taken else {
                self.is_failed.set(true);
                return;
            };
            chunk.copy_within(end - rest..end, 0);
            left = rest;
        }
    }

    /// Appends a piece with its escapes resolved.
    fn unescape(&self, mut piece: &[u8], is_last: bool, text: &mut String) -> Option<usize> {
        loop {
            let plain = memchr::memchr(b'\\', piece).unwrap_or(piece.len());
            let (plain, escape) = piece.split_at(plain);
            let left = self.push(plain, is_last || !escape.is_empty(), text);
            if escape.is_empty() {
                return Some(left);
            }
            if escape.len() < LONGEST_ESCAPE && !is_last {
                return Some(escape.len());
            }
            let (character, length) = match escaped(escape) {
                Some(found) => found,
                // A lone surrogate.
                None if escape.starts_with(br"\u") && escape.len() >= LONGEST_ESCAPE / 2 => {
                    self.is_repaired.set(true);
                    (char::REPLACEMENT_CHARACTER, LONGEST_ESCAPE / 2)
                }
                None => return None,
            };
            text.push(character);
            piece = &escape[length..];
        }
    }

    /// Appends bytes, with U+FFFD for what is not UTF-8.
    fn push(&self, mut bytes: &[u8], is_last: bool, text: &mut String) -> usize {
        loop {
            let error = match str::from_utf8(bytes) {
                Ok(valid) => {
                    text.push_str(valid);
                    return 0;
                }
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            text.push_str(str::from_utf8(valid).unwrap_or_default());
            if error.error_len().is_none() && !is_last {
                return rest.len();
            }
            self.is_repaired.set(true);
            text.push(char::REPLACEMENT_CHARACTER);
            bytes = &rest[error.error_len().unwrap_or(rest.len())..];
        }
    }
}

impl fmt::Debug for LongStrings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LongStrings").field("gaps", &self.gaps).finish_non_exhaustive()
    }
}

/// A length that fits into memory.
fn to_usize(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}
