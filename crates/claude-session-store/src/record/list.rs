//! Records that are stored, and which of them to list, to wait for, and to delete.

use std::sync::Arc;

use super::key::{OwnerKey, RecordKey, RecordKind};
use crate::{Sequence, StoreError};

/// A record as a store has it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The key.
    pub key: RecordKey,
    /// The owner, in the scope of the key.
    pub owner: Arc<str>,
    /// Counts the changes, from 1.
    pub version: u64,
    /// Whether something is still to be done about it.
    pub is_open: bool,
    /// The time at which something is to be done about it, on the clock of the store.
    pub due_at_ms: Option<u64>,
    /// The time at which it was created, in milliseconds since the Unix epoch, on the clock of the store.
    pub created_ms: u64,
    /// Its place among all records of the store: one that is created after another one was stored has a greater number.
    /// Records that are created at the same time may become visible in another order.
    pub sequence: Sequence,
    /// The text.
    pub body: Arc<str>,
}

impl Record {
    /// Creates a record, in a store.
    pub fn new(
        key: RecordKey,
        owner: impl Into<Arc<str>>,
        version: u64,
        created_ms: u64,
        sequence: Sequence,
        body: impl Into<Arc<str>>,
    ) -> Self {
        let (owner, body) = (owner.into(), body.into());
        Self { key, owner, version, is_open: false, due_at_ms: None, created_ms, sequence, body }
    }
}

/// Which records of a kind to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must support every variant")]
pub enum RecordFilter<'a> {
    /// The one of a scope with this ID.
    Id {
        /// The scope.
        scope: &'a str,
        /// The ID.
        id: &'a str,
    },
    /// All of an owner.
    Of(&'a OwnerKey),
    /// The open ones of an owner.
    OpenOf(&'a OwnerKey),
    /// All of a scope.
    In(&'a str),
    /// The open ones of a scope.
    OpenIn(&'a str),
    /// The open ones of all scopes.
    Open,
    /// The open ones of all scopes that are due, on the clock of the store.
    Due,
}

impl RecordFilter<'_> {
    /// Returns whether a list with this filter skips and reports records that cannot be read. With the other filters,
    /// it fails.
    pub fn reports_unreadable(self) -> bool {
        match self {
            Self::Id { .. } | Self::Of(_) | Self::OpenOf(_) => false,
            Self::In(_) | Self::OpenIn(_) | Self::Open | Self::Due => true,
        }
    }
}

/// A request for records, for [`RecordStore::list_records`](super::RecordStore::list_records).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecordList<'a> {
    /// The kind.
    pub kind: RecordKind,
    /// Which records to list.
    pub filter: RecordFilter<'a>,
    /// Continues after this record. The default is before all.
    pub after: Sequence,
    /// The maximum number of records; at least 1.
    pub limit: usize,
}

impl<'a> RecordList<'a> {
    /// Lists the first 100 records.
    pub fn new(kind: RecordKind, filter: RecordFilter<'a>) -> Self {
        Self { kind, filter, after: Sequence::default(), limit: 100 }
    }

    /// Continues after a record.
    #[must_use]
    pub fn after(self, after: Sequence) -> Self {
        Self { after, ..self }
    }

    /// Sets the maximum number of records.
    #[must_use]
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Returns whether a record belongs in this list at this time.
    pub fn contains(&self, record: &Record, now_ms: u64) -> bool {
        let scope = record.key.scope();
        let is_of = |owner: &OwnerKey| *record.owner == *owner.owner() && scope == owner.scope();
        let is_selected = match self.filter {
            RecordFilter::Id { scope: wanted, id } => wanted == scope && id == record.key.id(),
            RecordFilter::Of(owner) => is_of(owner),
            RecordFilter::OpenOf(owner) => is_of(owner) && record.is_open,
            RecordFilter::In(wanted) => wanted == scope,
            RecordFilter::OpenIn(wanted) => wanted == scope && record.is_open,
            RecordFilter::Open => record.is_open,
            RecordFilter::Due => {
                record.is_open && record.due_at_ms.is_some_and(|due| due <= now_ms)
            }
        };
        is_selected && record.key.kind() == self.kind && record.sequence > self.after
    }
}

/// A page of records.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RecordPage {
    /// The records, in the order of their [sequence numbers](Record::sequence).
    pub records: Vec<Record>,
    /// The records between them that cannot be read, in the same order; only with filters that
    /// [report them](RecordFilter::reports_unreadable). They count toward [`RecordList::limit`].
    pub unreadable: Vec<UnreadableRecord>,
    /// Whether more records follow.
    pub more: bool,
    /// The time in milliseconds since the Unix epoch, on the clock of the store.
    pub now_ms: u64,
}

impl RecordPage {
    /// Creates an empty page.
    pub fn new(now_ms: u64) -> Self {
        Self { now_ms, ..Self::default() }
    }

    /// Returns the number of records, readable or not.
    pub fn len(&self) -> usize {
        self.records.len() + self.unreadable.len()
    }

    /// Returns whether the page has no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the last record of the page, readable or not, after which the next page continues.
    pub fn last(&self) -> Option<Sequence> {
        let unreadable = self.unreadable.last().map(|unreadable| unreadable.sequence);
        self.records.last().map(|record| record.sequence).max(unreadable)
    }
}

/// A stored record that cannot be read, because it is damaged or its encryption key is unknown.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UnreadableRecord {
    /// The key.
    pub key: RecordKey,
    /// Its place in the list.
    pub sequence: Sequence,
    /// Why it cannot be read.
    pub error: StoreError,
}

impl UnreadableRecord {
    /// Creates the report of a record that cannot be read.
    pub fn new(key: RecordKey, sequence: Sequence, error: StoreError) -> Self {
        Self { key, sequence, error }
    }
}

/// What to wait for: changes by writes; deletions need not end a wait. For [`RecordStore::records_changed`](super::RecordStore::records_changed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must support every variant")]
pub enum RecordWatch<'a> {
    /// Another version of a record than this one; 0 if it did not exist.
    Record {
        /// The key.
        key: &'a RecordKey,
        /// The version that is known.
        version: u64,
    },
    /// A change of any record of a kind in a scope after the call.
    Scope {
        /// The scope.
        scope: &'a str,
        /// The kind.
        kind: RecordKind,
    },
    /// A change of any record of a kind after the call.
    Kind(RecordKind),
}

/// Which records to delete, for [`RecordStore::delete_records`](super::RecordStore::delete_records).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a store must support every variant")]
pub enum RecordSelection<'a> {
    /// All of an owner.
    Of(&'a OwnerKey),
    /// The open ones of an owner.
    OpenOf(&'a OwnerKey),
    /// Those of a scope that are not open, and were created before this time on the clock of the store.
    ClosedBefore {
        /// The scope.
        scope: &'a str,
        /// The time, in milliseconds since the Unix epoch.
        time_ms: u64,
    },
    /// All of a scope.
    In(&'a str),
}

impl RecordSelection<'_> {
    /// Returns whether a record is selected.
    pub fn contains(&self, record: &Record) -> bool {
        let scope = record.key.scope();
        let is_of = |owner: &OwnerKey| *record.owner == *owner.owner() && scope == owner.scope();
        match self {
            Self::Of(owner) => is_of(owner),
            Self::OpenOf(owner) => is_of(owner) && record.is_open,
            Self::ClosedBefore { scope: wanted, time_ms } => {
                *wanted == scope && !record.is_open && record.created_ms < *time_ms
            }
            Self::In(wanted) => *wanted == scope,
        }
    }
}
