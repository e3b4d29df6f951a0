//! Splits bytes into lines.
//!
//! The framer owns the bytes of incomplete lines, so that a cancelled reader loses nothing. Long lines
//! are split off the read buffer without a copy; a line that is small compared to its buffer is copied,
//! so that a stored message does not keep the whole buffer in memory. Every byte is searched for a line
//! break only once.

use std::mem;

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// The default length limit of a line: a screenshot as base64 exceeds small limits.
pub const DEFAULT_MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// The size of each end of an oversized line that is kept.
pub const KEPT_OF_OVERSIZED: usize = 64 * 1024;

/// The initial and the maximum space for a read. It doubles when a read fills it.
const READ_SPACE: usize = 8 * 1024;
const MAX_READ_SPACE: usize = 256 * 1024;

/// The size from which allocations grow without a copy, if the system can remap their pages.
const MOVED_BY_PAGES: usize = 256 * 1024;

/// The size of a memory page on most machines.
const PAGE: usize = 4 * 1024;

/// A line that is smaller than this fraction of its read buffer is copied.
const COPIED_BELOW: usize = 4;

/// The size of the memory that is touched before a long line is read into it.
const TOUCHED_PAGES: usize = 64;

/// Splits a stream of bytes into lines.
///
/// Lines end with `\n`; a `\r` before it belongs to the line break; blank lines are skipped.
#[derive(Debug)]
pub struct Framer {
    buffer: BytesMut,
    /// The length of the prefix of the buffer without a line break.
    searched: usize,
    max_line_bytes: usize,
    read_space: usize,
    /// The size of the allocation that contains the buffer.
    allocated: usize,
    oversized: Option<OversizedSoFar>,
}

/// A line from the framer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a line is complete or oversized")]
pub enum Frame {
    /// A line without its line break. Keeps at most four times its own size in memory.
    Line(Bytes),
    /// A line that exceeds the length limit.
    Oversized(Oversized),
}

/// The size and both ends of a line that exceeds the length limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Oversized {
    /// The length of the line in bytes.
    pub size: u64,
    /// The beginning of the line.
    pub head: Bytes,
    /// The end of the line.
    pub tail: Bytes,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_LINE_BYTES)
    }
}

impl Framer {
    /// Creates a framer for lines of up to `max_line_bytes`.
    pub fn new(max_line_bytes: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            max_line_bytes,
            read_space: READ_SPACE,
            allocated: 0,
            oversized: None,
        }
    }

    /// Appends a copy of a chunk. A reader that writes into [`Framer::space`] avoids the copy.
    ///
    /// Take all lines with [`Framer::next_frame`] before: the limit applies to the bytes without a line
    /// break.
    pub fn push(&mut self, chunk: &[u8]) {
        self.shed();
        self.make_room(chunk.len());
        self.buffer.extend_from_slice(chunk);
    }

    /// Returns the buffer with free space, to which the reader appends bytes. Take all lines before, as
    /// for [`Framer::push`].
    pub fn space(&mut self) -> &mut BytesMut {
        self.shed();
        let room = self.buffer.capacity() - self.buffer.len();
        if room == 0 && !self.buffer.is_empty() {
            self.read_space = (2 * self.read_space).min(MAX_READ_SPACE);
        }
        if room < READ_SPACE / 8 {
            self.make_room(self.read_space);
        }
        if self.buffer.len() >= MOVED_BY_PAGES {
            self.touch();
        }
        &mut self.buffer
    }

    /// Makes the system allocate the next pages now. Otherwise it does so while it copies from a pipe,
    /// which blocks writers of the pipe.
    fn touch(&mut self) {
        let room = self.buffer.spare_capacity_mut();
        for page in room.chunks_mut(PAGE).take(TOUCHED_PAGES) {
            page[0].write(0);
        }
    }

    /// Returns the next complete line.
    pub fn next_frame(&mut self) -> Option<Frame> {
        loop {
            let Some(found) = memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                return None;
            };
            let end = self.searched + found;
            self.searched = 0;
            let mut line = self.buffer.split_to(end + 1);
            line.truncate(end);
            if let Some(frame) = self.end_line(line) {
                return Some(frame);
            }
        }
    }

    /// Returns the last line, if the stream ended without a line break.
    pub fn finish(&mut self) -> Option<Frame> {
        self.searched = 0;
        let line = self.buffer.split();
        self.end_line(line)
    }

    /// Returns the number of buffered bytes.
    pub fn buffered(&self) -> usize {
        self.buffer.len() + self.oversized.as_ref().map_or(0, OversizedSoFar::kept)
    }

    /// Returns the read buffer if it is empty, so that another framer can be [lent](Framer::lend) it. A
    /// buffer that a burst has enlarged is freed instead, because a stored line would keep much more than
    /// its own size in memory.
    pub fn take_spare(&mut self) -> Option<BytesMut> {
        if !self.buffer.is_empty() {
            return None;
        }
        // Even a full buffer would keep the memory of lines that were taken.
        let buffer = mem::take(&mut self.buffer);
        if self.allocated > READ_SPACE {
            self.read_space = (self.read_space / 2).max(READ_SPACE);
            return None;
        }
        (buffer.capacity() > 0).then_some(buffer)
    }

    /// Lends the framer a buffer, if it has none. The content of the buffer is discarded.
    pub fn lend(&mut self, find: impl FnOnce() -> Option<BytesMut>) {
        if self.buffer.capacity() == 0
            && let Some(mut buffer) = find()
        {
            buffer.clear();
            // Lines may use a part of the memory; spare buffers are not larger than this.
            self.allocated = buffer.capacity().max(READ_SPACE);
            self.buffer = buffer;
        }
    }

    fn end_line(&mut self, mut line: BytesMut) -> Option<Frame> {
        let length = line.len() - usize::from(line.last() == Some(&b'\r'));
        if self.oversized.is_some() || length > self.max_line_bytes {
            let mut oversized =
                self.oversized.take().unwrap_or_else(|| OversizedSoFar::new(self.max_line_bytes));
            oversized.add(line);
            return Some(Frame::Oversized(oversized.finish()));
        }
        line.truncate(length);
        let blank = line.iter().all(u8::is_ascii_whitespace);
        if blank {
            return None;
        }
        let is_small = line.len() < self.allocated / COPIED_BELOW;
        Some(Frame::Line(if is_small { Bytes::copy_from_slice(&line) } else { line.freeze() }))
    }

    /// Discards the middle of a line that exceeds the limit, so that memory stays limited.
    fn shed(&mut self) {
        // One more byte may be the `\r` of the line break.
        let too_long = self.searched > self.max_line_bytes + 1;
        if too_long || (self.oversized.is_some() && self.searched > 0) {
            let line = self.buffer.split_to(self.searched);
            self.searched = 0;
            self.oversized
                .get_or_insert_with(|| OversizedSoFar::new(self.max_line_bytes))
                .add(line);
        }
    }

    /// Makes room for `more` bytes, and reuses memory that no line uses.
    ///
    /// Doubles up to the limit and not beyond it, whereas `BytesMut` itself would take twice the limit for
    /// a line just below it.
    fn make_room(&mut self, more: usize) {
        if self.buffer.try_reclaim(more) {
            return;
        }
        let doubled = (2 * self.buffer.len()).min(self.max_line_bytes + READ_SPACE);
        let room = doubled.max(self.buffer.len() + more);
        self.allocated = room;
        self.buffer = if self.buffer.len() < MOVED_BY_PAGES {
            let mut larger = BytesMut::with_capacity(room);
            larger.extend_from_slice(&self.buffer);
            larger
        } else {
            let mut grown = Vec::from(mem::take(&mut self.buffer));
            grown.reserve_exact(room - grown.len());
            self.allocated = grown.capacity();
            // The memory is not shared, so it is not copied.
            BytesMut::from(Bytes::from(grown))
        };
    }
}

/// Both ends of an oversized line that is not complete yet.
#[derive(Debug)]
struct OversizedSoFar {
    keep: usize,
    size: u64,
    head: BytesMut,
    tail: BytesMut,
}

impl OversizedSoFar {
    fn new(max_line_bytes: usize) -> Self {
        Self {
            keep: KEPT_OF_OVERSIZED.min(max_line_bytes.div_ceil(2)),
            size: 0,
            head: BytesMut::new(),
            tail: BytesMut::new(),
        }
    }

    fn kept(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    fn add(&mut self, mut bytes: BytesMut) {
        self.size += bytes.len() as u64;
        let missing = (self.keep - self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes.split_to(missing));
        // One more byte, because the last may be a `\r`.
        let keep = self.keep + 1;
        let skipped = bytes.len().saturating_sub(keep);
        if skipped > 0 {
            self.tail.clear();
        }
        self.tail.extend_from_slice(&bytes[skipped..]);
        // Only occasionally, so that each byte is moved a limited number of times.
        if self.tail.len() > 4 * keep {
            self.trim(keep);
        }
    }

    fn trim(&mut self, keep: usize) {
        let surplus = self.tail.len().saturating_sub(keep);
        self.tail = BytesMut::from(&self.tail[surplus..]);
    }

    fn finish(mut self) -> Oversized {
        if self.tail.last() == Some(&b'\r') {
            self.tail.truncate(self.tail.len() - 1);
            self.size -= 1;
        }
        self.trim(self.keep);
        Oversized { size: self.size, head: self.head.freeze(), tail: self.tail.freeze() }
    }
}
