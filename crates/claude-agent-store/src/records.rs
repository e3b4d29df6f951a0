//! What the databases of records have in common: rows, and the news of changes.

use std::sync::Arc;

use claude_session_store::record::{
    Record, RecordKey, RecordList, RecordPage, RecordWatch, UnreadableRecord,
};
use claude_session_store::{Sequence, StoreError};
use tokio::sync::broadcast;

use crate::sql::{Invalid, from_sql};

/// The number of changes that a slow waiter may miss before it looks for its own.
const CAPACITY: usize = 64;

/// A row of the table of records, in the scope and of the kind of its list.
pub(crate) struct Row<'a> {
    pub(crate) sequence: i64,
    pub(crate) scope: &'a str,
    pub(crate) id: &'a str,
    pub(crate) owner: &'a str,
    pub(crate) version: i64,
    pub(crate) is_open: bool,
    pub(crate) due_at_ms: Option<i64>,
    pub(crate) created_ms: i64,
    /// `None` if the column is not text.
    pub(crate) body: Option<&'a str>,
}

impl Row<'_> {
    /// Adds the record to a page. One that cannot be read is reported to operators; all other lists fail.
    pub(crate) fn add_to(
        self,
        page: &mut RecordPage,
        list: &RecordList<'_>,
        corrupt: fn(&str) -> StoreError,
    ) -> Result<(), StoreError> {
        // Without a place and a key, the page could not continue.
        let sequence = from_sql(self.sequence).map_err(|_| corrupt("number of a record"))?;
        let key = RecordKey::new(self.scope, list.kind, self.id);
        let key = key.map_err(|_| corrupt("key of a record"))?;
        let sequence = Sequence::new(sequence);
        match self.record(&key, sequence) {
            Ok(record) => page.records.push(record),
            Err(Invalid(what)) if !list.filter.reports_unreadable() => return Err(corrupt(what)),
            Err(Invalid(what)) => {
                page.unreadable.push(UnreadableRecord::new(key, sequence, corrupt(what)));
            }
        }
        Ok(())
    }

    fn record(self, key: &RecordKey, sequence: Sequence) -> Result<Record, Invalid> {
        let body = self.body.ok_or(Invalid("record"))?;
        let (version, created_ms) = (from_sql(self.version)?, from_sql(self.created_ms)?);
        let mut record = Record::new(key.clone(), self.owner, version, created_ms, sequence, body);
        record.is_open = self.is_open;
        record.due_at_ms = self.due_at_ms.map(from_sql).transpose()?;
        Ok(record)
    }
}

/// Tells the waiting callers of this process about changed records.
#[derive(Clone)]
pub(crate) struct Changes(broadcast::Sender<Arc<RecordKey>>);

impl Changes {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }

    pub(crate) fn send(&self, key: RecordKey) {
        // The send fails if no caller is waiting.
        drop(self.0.send(Arc::new(key)));
    }

    /// Begins to collect changes. A caller that reads records afterwards misses none.
    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription(self.0.subscribe())
    }
}

pub(crate) struct Subscription(broadcast::Receiver<Arc<RecordKey>>);

impl Subscription {
    /// Waits until a watched record has changed, or may have.
    pub(crate) async fn changed(mut self, watch: RecordWatch<'_>) {
        let is_awaited = |changed: &RecordKey| match watch {
            RecordWatch::Record { key, .. } => changed == key,
            RecordWatch::Scope { scope, kind } => {
                changed.scope() == scope && changed.kind() == kind
            }
            RecordWatch::Kind(kind) => changed.kind() == kind,
        };
        // An error means that changes were missed.
        while self.0.recv().await.is_ok_and(|changed| !is_awaited(&changed)) {}
    }
}
