//! Changes of records.

use std::sync::Arc;

use super::key::{OwnerKey, RecordKey};
use super::list::Record;
use crate::{Epoch, StoreError};

/// The maximum number of changes in one write.
const MAX_CHANGES: usize = 1_000;

/// A change of one record, for [`RecordWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordChange {
    /// The key.
    pub key: RecordKey,
    /// The owner, in the scope of the key. It never changes.
    pub owner: Arc<str>,
    /// The version that the stored record must have; `None` if it must not exist.
    pub replaces: Option<u64>,
    /// Whether the record is open: something is still to be done about it.
    pub is_open: bool,
    /// The time at which something is to be done about it, in milliseconds since the Unix epoch, on the clock of the
    /// store; at most `i64::MAX`.
    pub due_at_ms: Option<u64>,
    /// The new text.
    pub body: Arc<str>,
}

impl RecordChange {
    /// Creates a record that is not open and has no due time. The time of its creation is that of the store.
    ///
    /// # Errors
    /// Fails if the owner is in another scope than the key.
    pub fn insert(
        key: RecordKey,
        owner: &OwnerKey,
        body: impl Into<Arc<str>>,
    ) -> Result<Self, StoreError> {
        if key.scope() != owner.scope() {
            return Err(StoreError::rejected(format!(
                "{key} and its owner are in different scopes"
            )));
        }
        let owner = owner.owner().into();
        let (replaces, is_open, due_at_ms) = (None, false, None);
        Ok(Self { key, owner, replaces, is_open, due_at_ms, body: body.into() })
    }

    /// Replaces a record by one that is not open and has no due time.
    pub fn update(record: &Record, body: impl Into<Arc<str>>) -> Self {
        Self {
            key: record.key.clone(),
            owner: Arc::clone(&record.owner),
            replaces: Some(record.version),
            is_open: false,
            due_at_ms: None,
            body: body.into(),
        }
    }

    /// Makes the record open.
    #[must_use]
    pub fn open(self) -> Self {
        Self { is_open: true, ..self }
    }

    /// Sets the due time.
    #[must_use]
    pub fn due_at_ms(self, time: Option<u64>) -> Self {
        Self { due_at_ms: time, ..self }
    }

    /// Returns the version that the record has afterwards: 1 for a new one, one more otherwise.
    pub fn version(&self) -> u64 {
        self.replaces.map_or(1, |replaced| replaced.saturating_add(1))
    }
}

/// Changes that are written together or not at all, for [`RecordStore::write_records`](super::RecordStore::write_records).
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecordWrite<'a> {
    /// The changes, at most 1,000, each of another record. Without any, only the epoch is checked.
    pub changes: &'a [RecordChange],
    /// The owner and the epoch that it must have; `None` for writes from any host. The records may have other owners.
    pub fence: Option<(&'a OwnerKey, Epoch)>,
}

/// Whether the due time does not fit into the numbers of databases.
fn has_no_time(change: &RecordChange) -> bool {
    change.due_at_ms.is_some_and(|due| i64::try_from(due).is_err())
}

impl<'a> RecordWrite<'a> {
    /// Writes changes from any host.
    pub fn new(changes: &'a [RecordChange]) -> Self {
        Self { changes, fence: None }
    }

    /// Requires that an owner has this epoch.
    #[must_use]
    pub fn fence(self, owner: &'a OwnerKey, epoch: Epoch) -> Self {
        Self { fence: Some((owner, epoch)), ..self }
    }

    /// Checks what every store rejects.
    ///
    /// # Errors
    /// Fails if there are more than 1,000 changes, two of one record, or a due time that databases cannot store.
    pub fn check(&self) -> Result<(), StoreError> {
        let count = self.changes.len();
        if count > MAX_CHANGES {
            return Err(StoreError::rejected(format!(
                "a write of {count} records exceeds the limit of {MAX_CHANGES}"
            )));
        }
        if let Some(change) = self.changes.iter().find(|change| has_no_time(change)) {
            return Err(StoreError::rejected(format!(
                "the due time of {} is too late",
                change.key
            )));
        }
        let mut keys: Vec<&RecordKey> = self.changes.iter().map(|change| &change.key).collect();
        keys.sort_unstable();
        match keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(StoreError::rejected(format!("a write has {} twice", pair[0]))),
            None => Ok(()),
        }
    }
}
