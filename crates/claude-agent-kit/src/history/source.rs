//! Reads the entries of an open transcript by their places.

use std::cell::Cell;
use std::fs::File;
use std::path::PathBuf;

use bytes::Bytes;
use claude_wire::transcript::{Entry, EntryRef, MessageRef, MessageRole};

use super::errors;
use crate::error::Result;
use crate::session_files::open;

/// How many bytes are read together at most; a larger entry is read and decoded alone.
pub(super) const READ_BYTES: usize = 256 * 1024;
/// How many bytes are read at least where it is not known which entries follow.
const NEAR_BYTES: usize = 64 * 1024;

/// An open transcript.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl Source {
    /// Reads at an offset until the buffer is full or the transcript ends.
    ///
    /// # Errors
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo).
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let read = open::read_at(&self.file, buffer, offset);
        read.map_err(|error| errors::io("read", &self.path, error))
    }

    /// Decodes a large entry. Its bytes and what is decoded from them are not in memory at the same
    /// time, unless the bytes are wanted too.
    pub(super) fn decode_large(&self, span: Span, keep_raw: bool) -> Result<Entry> {
        if keep_raw {
            let mut bytes = vec![0; span.length as usize];
            if self.read_at(&mut bytes, span.offset)? < bytes.len() {
                return Err(errors::changed(&self.path));
            }
            return self.decode(Bytes::from(bytes));
        }
        let failed = Cell::new(None);
        let read = |buffer: &mut [u8], at: u64| {
            let read = self.read_at(buffer, span.offset.saturating_add(at));
            let is_read = matches!(read, Ok(count) if count == buffer.len());
            if let Err(error) = read {
                failed.set(Some(error));
            }
            is_read
        };
        let entry = Entry::decode_large(span.length.into(), &read);
        entry.map_err(|error| {
            failed.take().unwrap_or_else(|| errors::changed(&self.path).caused_by(error))
        })
    }

    fn decode(&self, bytes: Bytes) -> Result<Entry> {
        Entry::decode(bytes).map_err(|error| errors::changed(&self.path).caused_by(error))
    }
}

/// Where an entry is, and as what it is shown.
#[derive(Clone, Copy)]
pub(super) struct Span {
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) role: Option<MessageRole>,
    pub(super) is_local_command: bool,
}

impl Span {
    /// Returns whether the entry is read and decoded alone.
    pub(super) fn is_large(&self) -> bool {
        self.length as usize > READ_BYTES
    }

    /// Moves the span by the offset of the part of the file that was indexed.
    pub(super) fn shifted(mut self, by: u64) -> Self {
        self.offset += by;
        self
    }
}

impl From<EntryRef> for Span {
    fn from(entry: EntryRef) -> Self {
        // An index has no entries above 1 GiB.
        let length = u32::try_from(entry.len()).unwrap_or(u32::MAX);
        Self { offset: entry.offset(), length, role: None, is_local_command: false }
    }
}

impl From<MessageRef> for Span {
    fn from(message: MessageRef) -> Self {
        let is_local_command = message.is_local_command;
        Self { role: Some(message.role), is_local_command, ..Self::from(message.entry) }
    }
}

/// Reads entries by their places, several with one read where they are near to each other.
#[derive(Default)]
pub(super) struct SpanReader {
    start: u64,
    bytes: Vec<u8>,
}

impl SpanReader {
    /// Returns the bytes of an entry.
    ///
    /// # Errors
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo), also when the file is shorter than it was.
    pub(super) fn read(&mut self, source: &Source, span: Span) -> Result<&[u8]> {
        if !self.has(span) {
            self.fill(source, span, (span.length as usize).max(NEAR_BYTES))?;
        }
        self.get(span).ok_or_else(|| errors::changed(&source.path))
    }

    /// Reads this many bytes from the start of an entry on.
    pub(super) fn fill(&mut self, source: &Source, span: Span, length: usize) -> Result<()> {
        self.start = span.offset;
        // A buffer that one large entry needed is not kept.
        if self.bytes.capacity() > 2 * READ_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.resize(length, 0);
        let read = source.read_at(&mut self.bytes, span.offset);
        self.bytes.truncate(*read.as_ref().unwrap_or(&0));
        read?;
        Ok(())
    }

    pub(super) fn has(&self, span: Span) -> bool {
        self.get(span).is_some()
    }

    fn get(&self, span: Span) -> Option<&[u8]> {
        let from = usize::try_from(span.offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..from.checked_add(span.length as usize)?)
    }

    /// Decodes an entry, without keeping its bytes.
    pub(super) fn decode(&mut self, source: &Source, span: Span) -> Result<Entry> {
        if span.is_large() {
            return source.decode_large(span, false);
        }
        self.read(source, span)?;
        self.decode_buffered(source, span, false)
    }

    pub(super) fn decode_buffered(
        &self,
        source: &Source,
        span: Span,
        keep_raw: bool,
    ) -> Result<Entry> {
        let bytes = self.get(span).ok_or_else(|| errors::changed(&source.path))?;
        if keep_raw {
            return source.decode(Bytes::copy_from_slice(bytes));
        }
        Entry::decode_slice(bytes).map_err(|error| errors::changed(&source.path).caused_by(error))
    }
}
