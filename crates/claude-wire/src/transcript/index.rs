//! The index of a transcript: bytes in, rows out.

use std::mem;

use memchr::memchr;

use super::build::{self, Built};
use super::cancel::Cancel;
use super::facts::Facts;
use super::issue::{Issue, IssueKind, sort_issues};
use super::key::Key;
use super::row::{self, EntryRef, ParentPlace, ParentRef, Row};
use super::rows::Rows;
use super::salvage::{self, Part};
use super::tree::Tree;

/// A line buffer up to this size is kept for the next line.
const KEPT_BUFFER: usize = 256 * 1024;

/// The longest line that is read by default: 256 MiB.
pub const DEFAULT_MAX_LINE_BYTES: usize = 256 * 1024 * 1024;

/// An index of the entries of one transcript, built from its bytes chunk by chunk.
///
/// The index holds 48 bytes per entry, 24 per line that cannot be read, and 12 to 16 for each parent
/// that is not just before its entry and for each identifier beyond the first tool call of an entry. It also buffers the line that is not
/// complete yet; lines that are whole within a chunk are read in place.
///
/// ```
/// use claude_wire::transcript::{Entry, Index};
///
/// let transcript = concat!(
///     r#"{"parentUuid":null,"type":"user","uuid":"u1","message":{"role":"user","content":"Hi"}}"#,
///     "\n",
///     r#"{"parentUuid":"u1","type":"assistant","uuid":"a1","message":{"id":"m","content":[]}}"#,
///     "\n",
/// );
/// let mut index = Index::new();
/// for chunk in transcript.as_bytes().chunks(64) {
///     index.feed(chunk);
/// }
/// index.finish();
/// let conversation = index.tree().conversation();
/// assert_eq!(conversation.len(), 2);
/// let first = usize::try_from(conversation[0].offset())?;
/// let entry = Entry::decode(transcript[first..first + conversation[0].len()].to_owned())?;
/// assert_eq!(entry.uuid().as_deref(), Some("u1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    pub(super) rows: Rows,
    /// Parents that are not among the entries just before.
    pub(super) other_parents: Vec<Key>,
    pub(super) boundaries: Vec<Boundary>,
    /// Tool calls beyond the first of an entry.
    pub(super) more_tools: Vec<(u32, u64)>,
    pub(super) issues: Vec<Issue>,
    pub(super) line: PartialLine,
    max_line_bytes: usize,
}

/// The line that is not complete yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PartialLine {
    /// The offset of its first byte.
    pub(super) start: u64,
    bytes: Vec<u8>,
    /// The bytes of it that were dropped, because it is longer than the limit.
    dropped: u64,
}

impl PartialLine {
    fn len(&self) -> u64 {
        to_u64(self.bytes.len()) + self.dropped
    }
}

/// The entries that a compaction preserved.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Boundary {
    pub(super) row: u32,
    pub(super) logical_parent: Option<Key>,
    pub(super) preserved: Preserved,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Preserved {
    Nothing,
    Messages { anchor: Key, uuids: Box<[Key]> },
    Segment { anchor: Key, head: Key, tail: Key },
}

impl Boundary {
    fn memory(&self) -> usize {
        match &self.preserved {
            Preserved::Messages { uuids, .. } => size_of_val::<[Key]>(uuids),
            Preserved::Nothing | Preserved::Segment { .. } => 0,
        }
    }
}

/// Where the CLI continues when it resumes a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checkpoint {
    pub(super) leaf: Option<Key>,
    /// Whether it was set on purpose, by a rewind or by clearing the conversation.
    pub is_explicit: bool,
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

impl Index {
    /// Creates an empty index that reads lines of up to [`DEFAULT_MAX_LINE_BYTES`].
    pub fn new() -> Self {
        Self::with_max_line_bytes(DEFAULT_MAX_LINE_BYTES)
    }

    /// Creates an empty index that skips lines longer than `max_line_bytes` and reports them as
    /// [`IssueKind::Oversized`]. Limits above 1 GiB count as 1 GiB.
    pub fn with_max_line_bytes(max_line_bytes: usize) -> Self {
        Self {
            rows: Rows::default(),
            other_parents: Vec::new(),
            boundaries: Vec::new(),
            more_tools: Vec::new(),
            issues: Vec::new(),
            line: PartialLine::default(),
            max_line_bytes: max_line_bytes.min(row::MAX_LENGTH),
        }
    }

    /// Adds the next bytes of the transcript. Where chunks begin and end does not matter.
    pub fn feed(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr(b'\n', bytes) {
            let before = self.line.len();
            if before == 0 {
                self.read_line(&bytes[..end], false);
            } else {
                self.buffer(&bytes[..end]);
                self.end_partial_line(false);
            }
            self.line.start += before + to_u64(end + 1);
            bytes = &bytes[end + 1..];
        }
        self.buffer(bytes);
    }

    /// Reads the last line if it has no line break.
    ///
    /// A program that follows a growing transcript calls it only when no more bytes will come: a
    /// line that is still being written counts as [`IssueKind::Torn`] here.
    pub fn finish(&mut self) {
        let length = self.line.len();
        if length > 0 {
            self.end_partial_line(true);
            self.line.start += length;
        }
    }

    /// Returns how many bytes of the transcript were read, including those that are buffered.
    pub fn position(&self) -> u64 {
        self.line.start + self.line.len()
    }

    /// Returns how many bytes wait for the end of their line.
    pub fn pending(&self) -> u64 {
        self.line.len()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all entries in the order of the file, state entries and subagents included.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = EntryRef> {
        (0..self.row_count()).map(|index| self.entry(index))
    }

    /// Returns the entry at `index`, counted from zero.
    pub fn get(&self, index: usize) -> Option<EntryRef> {
        let index = u32::try_from(index).ok()?;
        (index < self.row_count()).then(|| self.entry(index))
    }

    /// Returns what is wrong with single lines, in the order of the file. [`Tree::issues`] adds
    /// the entries that are repeated or not part of the conversation.
    pub fn issues(&self) -> Vec<Issue> {
        let mut issues = self.issues.clone();
        for row in self.rows.iter() {
            for (flag, kind) in [
                (row::SPLICED, IssueKind::Spliced),
                (row::NUL_PREFIXED, IssueKind::NulPrefixed),
                (row::REPAIRED, IssueKind::Repaired),
            ] {
                if row.has(flag) {
                    issues.push(Issue::new(row.offset(), row.length(), kind));
                }
            }
        }
        sort_issues(&mut issues);
        issues
    }

    /// Builds the tree of the entries that were read so far. Takes four bytes per entry, and time
    /// in proportion to the number of entries.
    pub fn tree(&self) -> Tree<'_> {
        Tree::new(self, Cancel::default())
    }

    /// Builds the tree as [`tree`](Self::tree) does, for a caller that may no longer want the results.
    /// Once `is_cancelled` has returned true, this and every function of the tree return soon, with
    /// results that must not be used. It is called for every entry, and must go on to return true.
    ///
    /// ```
    /// use claude_wire::transcript::Index;
    ///
    /// let mut index = Index::new();
    /// index.feed(b"{\"type\":\"user\",\"uuid\":\"u1\",\"message\":{\"content\":\"Hi\"}}\n");
    /// assert_eq!(index.cancellable_tree(&|| false).conversation().len(), 1);
    /// assert_eq!(index.cancellable_tree(&|| true).conversation().len(), 0);
    /// ```
    pub fn cancellable_tree<'i>(&'i self, is_cancelled: &'i (dyn Fn() -> bool + Sync)) -> Tree<'i> {
        Tree::new(self, Cancel::new(is_cancelled))
    }

    /// Returns the newest checkpoint of the CLI: the entry at which the conversation continues when
    /// it is resumed.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let row = self.rows.iter().rev().find(|row| row.has(row::HAS_LEAF))?;
        Some(Checkpoint { leaf: self.parent_key(row), is_explicit: row.has(row::EXPLICIT) })
    }

    /// Returns the memory that the index holds in bytes, without the line that is buffered.
    pub fn memory(&self) -> usize {
        let boundaries: usize = self.boundaries.iter().map(Boundary::memory).sum();
        self.rows.memory()
            + self.other_parents.capacity() * size_of::<Key>()
            + boundaries
            + self.boundaries.capacity() * size_of::<Boundary>()
            + self.more_tools.capacity() * size_of::<(u32, u64)>()
            + self.issues.capacity() * size_of::<Issue>()
    }

    pub(super) fn row_count(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn entry(&self, index: u32) -> EntryRef {
        EntryRef { index, row: self.rows[index] }
    }

    fn buffer(&mut self, bytes: &[u8]) {
        let line = &mut self.line;
        if line.dropped > 0 || line.bytes.len() + bytes.len() > self.max_line_bytes {
            line.dropped += to_u64(line.bytes.len() + bytes.len());
            line.bytes = Vec::new();
        } else {
            line.bytes.extend_from_slice(bytes);
        }
    }

    /// Reads the buffered line. The caller moves its start on.
    fn end_partial_line(&mut self, is_last: bool) {
        let length = self.line.len();
        let mut bytes = mem::take(&mut self.line.bytes);
        if mem::take(&mut self.line.dropped) > 0 {
            let (offset, kind) = (self.line.start, IssueKind::Oversized);
            self.issues.push(Issue { offset, len: length, kind });
        } else {
            self.read_line(&bytes, is_last);
        }
        if bytes.capacity() <= KEPT_BUFFER {
            bytes.clear();
            self.line.bytes = bytes;
        }
    }
}

impl Index {
    fn read_line(&mut self, line: &[u8], is_last: bool) {
        let start = self.line.start;
        if line.len() > self.max_line_bytes {
            self.issues.push(Issue::new(start, line.len(), IssueKind::Oversized));
            return;
        }
        salvage::split(line, is_last, &mut |at, part| {
            let offset = start + to_u64(at);
            match part {
                Part::Record { facts, length, flags } => self.add(facts, offset, length, flags),
                Part::Bad { length, kind } => self.issues.push(Issue::new(offset, length, kind)),
            }
        });
    }

    fn add(&mut self, facts: &Facts<'_>, offset: u64, length: usize, flags: u32) {
        // An index of more entries than this would take 100 GB.
        let index = self.row_count();
        if index >= row::MAX_ROWS {
            return;
        }
        let Built { mut row, parent, more_tools } = build::row(facts, offset, length, flags);
        self.more_tools.extend(more_tools.into_iter().map(|tool| (index, tool)));
        if let Some(parent) = parent {
            row.parent = self.parent_ref(parent);
        }
        if row.has(row::BOUNDARY) {
            self.boundaries.push(build::boundary(facts, index));
        }
        self.rows.push(row);
    }
}

impl Index {
    /// Finds a place for the key of a parent.
    pub(super) fn parent_ref(&mut self, key: Key) -> ParentRef {
        /// Parallel tool calls are the farthest that parents mostly are.
        const LOOK_BACK: u32 = 16;
        let count = self.row_count();
        let mut near = (count.saturating_sub(LOOK_BACK)..count).rev();
        let is_parent = |at: &u32| self.rows[*at].has(row::HAS_ID) && self.rows[*at].id == key;
        if let Some(at) = near.find(is_parent) {
            return ParentRef::new(ParentPlace::Row(at));
        }
        // No longer than the rows.
        let position = u32::try_from(self.other_parents.len()).unwrap_or_default();
        self.other_parents.push(key);
        ParentRef::new(ParentPlace::Other(position))
    }

    /// The key of the parent that an entry names.
    pub(super) fn parent_key(&self, row: &Row) -> Option<Key> {
        if !row.has(row::HAS_PARENT) {
            return None;
        }
        Some(match row.parent.place() {
            ParentPlace::Row(at) => self.rows[at].id,
            ParentPlace::Other(position) => self.other_parents[position as usize],
        })
    }
}

fn to_u64(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
