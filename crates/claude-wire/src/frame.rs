//! Bytes to lines.
//!
//! The framer owns the bytes that are not a whole line yet, so a reader that is cancelled loses
//! nothing. Long lines are cut out of the read buffer without a copy; a line that is small against
//! its buffer is copied, so that a message that is kept holds memory in proportion to its own size.
//! Every byte is searched for a line break once, however the chunks fall.

use std::mem;

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// The default of the longest line: one screenshot as base64 exceeds small limits.
pub const DEFAULT_MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// How much is kept of either end of a line that is too long.
pub const KEPT_OF_OVERSIZED: usize = 64 * 1024;

/// The space that is offered to a reader at first, and at most. It doubles when a read fills it.
const READ_SPACE: usize = 8 * 1024;
const MAX_READ_SPACE: usize = 256 * 1024;

/// Allocations of this size grow without a copy where the system can give their pages another
/// address, and without touching new memory for what is already there.
const MOVED_BY_PAGES: usize = 256 * 1024;

/// A page of memory, on most machines.
const PAGE: usize = 4 * 1024;

/// A line that has less than this part of its read buffer is copied.
const COPIED_BELOW: usize = 4;

/// So much of the room for a long line is touched before it is read into.
const TOUCHED_PAGES: usize = 64;

/// Cuts a stream of bytes into lines.
///
/// Lines end with `\n`; a `\r` before it belongs to the line break; blank lines are skipped.
#[derive(Debug)]
pub struct Framer {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line break.
    searched: usize,
    max_line_bytes: usize,
    read_space: usize,
    /// How large the memory is that the buffer is a part of.
    allocated: usize,
    oversized: Option<OversizedSoFar>,
}

/// What the framer gives out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a line is whole or it is not")]
pub enum Frame {
    /// A line without its line break. Holds at most four times its own size.
    Line(Bytes),
    /// A line that was longer than the limit.
    Oversized(Oversized),
}

/// What is kept of a line that was longer than the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Oversized {
    /// How long the line was.
    pub size: u64,
    /// Its beginning.
    pub head: Bytes,
    /// Its end.
    pub tail: Bytes,
}

impl Default for Framer {
    fn default() -> Self {
        Self::new(DEFAULT_MAX_LINE_BYTES)
    }
}

impl Framer {
    /// A framer that takes lines of up to `max_line_bytes`.
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

    /// Adds a chunk by copying it. A reader that can write into [`Framer::space`] saves the copy.
    ///
    /// All lines should have been taken with [`Framer::next_frame`] before: the limit holds for
    /// what waits for its line break.
    pub fn push(&mut self, chunk: &[u8]) {
        self.shed();
        self.make_room(chunk.len());
        self.buffer.extend_from_slice(chunk);
    }

    /// The buffer to append newly read bytes to, with room in it. All lines should have been taken
    /// before, as for [`Framer::push`].
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

    /// Has the system give the next pages now. Otherwise it does so while it copies from a pipe, and
    /// nobody can write into the pipe meanwhile.
    fn touch(&mut self) {
        let room = self.buffer.spare_capacity_mut();
        for page in room.chunks_mut(PAGE).take(TOUCHED_PAGES) {
            page[0].write(0);
        }
    }

    /// The next line that is whole.
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

    /// The last line, if the stream ended without a line break.
    pub fn finish(&mut self) -> Option<Frame> {
        self.searched = 0;
        let line = self.buffer.split();
        self.end_line(line)
    }

    /// The bytes that wait for the rest of their line, or to be taken.
    pub fn buffered(&self) -> usize {
        self.buffer.len() + self.oversized.as_ref().map_or(0, OversizedSoFar::kept)
    }

    /// The read buffer, if nothing in it waits. Who has nothing to read needs none, and another
    /// framer can be [lent](Framer::lend) it. One that a burst has made large is given back to the
    /// system: in it, a line that somebody keeps would hold far more than itself.
    pub fn take_spare(&mut self) -> Option<BytesMut> {
        if !self.buffer.is_empty() {
            return None;
        }
        // Even without room in it, it would hold the memory of lines that were taken.
        let buffer = mem::take(&mut self.buffer);
        if self.allocated > READ_SPACE {
            self.read_space = (self.read_space / 2).max(READ_SPACE);
            return None;
        }
        (buffer.capacity() > 0).then_some(buffer)
    }

    /// Gives it a buffer to read into, if it has none and one is found. What that holds is dropped.
    pub fn lend(&mut self, find: impl FnOnce() -> Option<BytesMut>) {
        if self.buffer.capacity() == 0
            && let Some(mut buffer) = find()
        {
            buffer.clear();
            // A part of the memory may be in use by lines; spare buffers have no more than this.
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

    /// Drops the middle of a line that is already too long, so that memory stays bounded.
    fn shed(&mut self) {
        // One byte more may be the `\r` of the line break.
        let too_long = self.searched > self.max_line_bytes + 1;
        if too_long || (self.oversized.is_some() && self.searched > 0) {
            let line = self.buffer.split_to(self.searched);
            self.searched = 0;
            self.oversized
                .get_or_insert_with(|| OversizedSoFar::new(self.max_line_bytes))
                .add(line);
        }
    }

    /// Makes room for `more` bytes, in memory that no line holds any more if there is some.
    ///
    /// Doubles up to the limit and not beyond it: the growth of `BytesMut` itself would take twice
    /// the limit for a line just under it.
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
            // Nothing else holds it, so it is not copied.
            BytesMut::from(Bytes::from(grown))
        };
    }
}

/// The two ends of a line that is too long, while it is still coming.
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
        // One byte more, for the `\r` that may be the last.
        let keep = self.keep + 1;
        let skipped = bytes.len().saturating_sub(keep);
        if skipped > 0 {
            self.tail.clear();
        }
        self.tail.extend_from_slice(&bytes[skipped..]);
        // Only now and then, so that each byte is moved a bounded number of times.
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
