//! The arguments and results of the methods of a store.

use super::entry::{NewEntry, StoredEntry};
use super::key::{Epoch, Sequence, Subpath};
use claude_wire::id::SessionId;

/// The arguments of [`SessionStore::append`](super::SessionStore::append).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Append<'a> {
    /// The epoch of the owner. Default: none, the append is not fenced.
    pub epoch: Option<Epoch>,
    /// The entries, in order.
    pub entries: &'a [NewEntry],
    /// The new summary of the session. Default: none, the summary is kept.
    pub summary: Option<SummaryUpdate<'a>>,
}

impl<'a> Append<'a> {
    /// Creates an append of these entries, without an epoch and without a summary.
    pub fn new(entries: &'a [NewEntry]) -> Self {
        Self { epoch: None, entries, summary: None }
    }

    /// Sets the epoch of the owner.
    #[must_use]
    pub fn epoch(mut self, epoch: Epoch) -> Self {
        self.epoch = Some(epoch);
        self
    }

    /// Sets the new summary, which is applied if the last sequence number of the session is `after`.
    #[must_use]
    pub fn summary(mut self, after: Sequence, data: &'a str) -> Self {
        self.summary = Some(SummaryUpdate { after, data });
        self
    }
}

/// A new summary of a session.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct SummaryUpdate<'a> {
    /// The last sequence number of the session that the writer knows. If the session has another one, some
    /// entries are not part of the summary, and the store ignores it.
    pub after: Sequence,
    /// The summary as text, which the store keeps byte for byte.
    pub data: &'a str,
}

/// The result of [`SessionStore::append`](super::SessionStore::append).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Appended {
    /// The last sequence number of the session after the append.
    pub last: Sequence,
    /// The number of entries that were skipped because the session already had them.
    pub skipped: u64,
    /// The sequence number of each entry in order; of a skipped one that of the stored entry.
    pub sequences: Vec<Sequence>,
}

impl Appended {
    /// Creates a result.
    pub fn new(last: Sequence, skipped: u64, sequences: Vec<Sequence>) -> Self {
        Self { last, skipped, sequences }
    }
}

/// The transcripts of a session to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must support every variant")]
pub enum LoadScope<'a> {
    /// All transcripts, in the order of their sequence numbers.
    All,
    /// The main transcript.
    Main,
    /// The transcript with this subpath.
    Subpath(&'a Subpath),
}

/// The arguments of [`SessionStore::load`](super::SessionStore::load).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Load<'a> {
    /// The transcripts.
    pub subpath: LoadScope<'a>,
    /// The position to continue after. Default: 0, before the first entry.
    pub after: Sequence,
    /// The maximum number of entries; 0 counts as 1. Default: 1,000.
    pub limit: usize,
    /// The maximum number of bytes of text, unless a single entry has more. Default: 4 MiB.
    pub max_bytes: usize,
}

impl<'a> Load<'a> {
    /// Loads all transcripts of the session.
    pub fn all() -> Self {
        Self::scope(LoadScope::All)
    }

    /// Loads the main transcript.
    pub fn main() -> Self {
        Self::scope(LoadScope::Main)
    }

    /// Loads the transcript with this subpath.
    pub fn subpath(subpath: &'a Subpath) -> Self {
        Self::scope(LoadScope::Subpath(subpath))
    }

    fn scope(subpath: LoadScope<'a>) -> Self {
        Self { subpath, after: Sequence::new(0), limit: 1_000, max_bytes: 4 << 20 }
    }

    /// Continues after this position.
    #[must_use]
    pub fn after(mut self, after: Sequence) -> Self {
        self.after = after;
        self
    }

    /// Limits the number of entries of the page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Limits the bytes of text of the page.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: usize) -> Self {
        self.max_bytes = max_bytes;
        self
    }
}

/// A page of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryPage {
    /// The entries, in the order of their sequence numbers.
    pub entries: Vec<StoredEntry>,
    /// Whether there are more entries after the last one.
    pub more: bool,
}

impl EntryPage {
    /// Creates a page.
    pub fn new(entries: Vec<StoredEntry>, more: bool) -> Self {
        Self { entries, more }
    }
}

/// The arguments of [`SessionStore::list`](super::SessionStore::list).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct List<'a> {
    /// [`SessionList::next`] of the previous page. Default: none, the first page.
    pub cursor: Option<&'a str>,
    /// The maximum number of sessions; 0 counts as 1. Default: 100.
    pub limit: usize,
}

impl<'a> List<'a> {
    /// Creates a request for the first page.
    pub fn new() -> Self {
        Self { cursor: None, limit: 100 }
    }

    /// Continues after an earlier page.
    #[must_use]
    pub fn cursor(mut self, cursor: &'a str) -> Self {
        self.cursor = Some(cursor);
        self
    }

    /// Limits the number of sessions of the page.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

impl Default for List<'_> {
    fn default() -> Self {
        Self::new()
    }
}

/// A page of sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionList {
    /// The sessions, the most recently modified first.
    pub sessions: Vec<SessionRow>,
    /// The cursor of the next page, or `None` at the end. Only the store can interpret it.
    pub next: Option<String>,
}

impl SessionList {
    /// Creates a page.
    pub fn new(sessions: Vec<SessionRow>, next: Option<String>) -> Self {
        Self { sessions, next }
    }
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionRow {
    /// The session ID.
    pub session: SessionId,
    /// The time of the last append to the main transcript, in milliseconds since the Unix epoch, on the clock
    /// of the store. Strictly increases per session, also when that clock is set back.
    pub modified_ms: u64,
    /// The last sequence number of the main transcript.
    pub last: Sequence,
    /// The summary, if the session has one.
    pub summary: Option<Summary>,
}

impl SessionRow {
    /// Creates a row.
    pub fn new(
        session: SessionId,
        modified_ms: u64,
        last: Sequence,
        summary: Option<Summary>,
    ) -> Self {
        Self { session, modified_ms, last, summary }
    }
}

/// The summary of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The data, as it was appended.
    pub data: String,
    /// The last sequence number that the summary includes. If [`SessionRow::last`] is greater, entries of the
    /// main transcript after this one are not part of the summary.
    pub through: Sequence,
}

impl Summary {
    /// Creates a summary.
    pub fn new(data: String, through: Sequence) -> Self {
        Self { data, through }
    }
}
