//! Records in the memory of this process.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Notify;

use super::key::{OwnerKey, RecordKey, RecordKind};
use super::list::{Record, RecordFilter, RecordList, RecordPage, RecordSelection, RecordWatch};
use super::store::RecordStore;
use super::write::RecordWrite;
use crate::memory::now_ms;
use crate::{Epoch, MemoryStore, Sequence, StoreError, StoreFuture, lock};

/// Every change wakes all callers, so that looking again is a precaution.
const POLL_INTERVAL: Duration = Duration::from_secs(60);

/// The records of a [`MemoryStore`].
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryRecords {
    table: Arc<Mutex<Table>>,
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Table {
    epochs: BTreeMap<OwnerKey, Epoch>,
    /// In the order of their sequence numbers.
    records: BTreeMap<Sequence, Record>,
    sequences: BTreeMap<RecordKey, Sequence>,
    last: u64,
}

impl Table {
    fn get(&self, key: &RecordKey) -> Option<&Record> {
        self.records.get(self.sequences.get(key)?)
    }

    fn write(&mut self, write: &RecordWrite<'_>) -> Result<bool, StoreError> {
        write.check()?;
        if let Some((owner, epoch)) = write.fence {
            let current = self.epochs.get(owner).copied().unwrap_or_default();
            if epoch != current {
                return Err(StoreError::records_superseded(owner, epoch, current));
            }
        }
        let is_current = |change: &super::RecordChange| {
            self.get(&change.key).map(|record| record.version) == change.replaces
        };
        if !write.changes.iter().all(is_current) {
            return Ok(false);
        }
        for change in write.changes {
            let next = Sequence::new(self.last + 1);
            let sequence = *self.sequences.entry(change.key.clone()).or_insert(next);
            self.last = self.last.max(sequence.get());
            let record = self.records.entry(sequence).or_insert_with(|| {
                let (key, owner) = (change.key.clone(), Arc::clone(&change.owner));
                Record::new(key, owner, 0, now_ms(), sequence, "")
            });
            record.version = change.version();
            record.is_open = change.is_open;
            record.due_at_ms = change.due_at_ms;
            record.body = Arc::clone(&change.body);
        }
        Ok(true)
    }

    fn list(&self, list: &RecordList<'_>) -> RecordPage {
        let mut page = RecordPage::new(now_ms());
        let mut add = |record: &Record| {
            if !list.contains(record, page.now_ms) {
                return true;
            }
            if page.records.len() >= list.limit.max(1) {
                page.more = true;
                return false;
            }
            page.records.push(record.clone());
            true
        };
        if let RecordFilter::Id { scope, id } = list.filter {
            let key = RecordKey::new(scope, list.kind, id).ok();
            if let Some(record) = key.and_then(|key| self.get(&key)) {
                add(record);
            }
        } else {
            let next = Sequence::new(list.after.get().saturating_add(1));
            for record in self.records.range(next..).map(|(_, record)| record) {
                if !add(record) {
                    break;
                }
            }
        }
        page
    }

    fn delete(
        &mut self,
        selection: RecordSelection<'_>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> u64 {
        let is_selected = |record: &&Record| {
            selection.contains(record) && kind.is_none_or(|kind| kind == record.key.kind())
        };
        let selected = self.records.values().filter(is_selected).take(limit.max(1));
        let selected: Vec<RecordKey> = selected.map(|record| record.key.clone()).collect();
        for key in &selected {
            if let Some(sequence) = self.sequences.remove(key) {
                self.records.remove(&sequence);
            }
        }
        selected.len() as u64
    }
}

impl RecordStore for MemoryStore {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            let mut table = lock(&self.records.table);
            let epoch = table.epochs.entry(owner.clone()).or_default();
            *epoch = Epoch::new(epoch.get() + 1);
            Ok(*epoch)
        })
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let is_written = lock(&self.records.table).write(&write)?;
            if is_written {
                self.records.changed.notify_waiters();
            }
            Ok(is_written)
        })
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move { Ok(lock(&self.records.table).list(&list)) })
    }

    fn records_changed<'a>(&'a self, watch: RecordWatch<'a>) -> StoreFuture<'a, ()> {
        // Created now, so that a change before the first poll wakes it.
        let mut changed = self.records.changed.notified();
        Box::pin(async move {
            let RecordWatch::Record { key, version } = watch else {
                changed.await;
                return Ok(());
            };
            loop {
                let current = lock(&self.records.table).get(key).map_or(0, |it| it.version);
                if current != version {
                    return Ok(());
                }
                changed.await;
                changed = self.records.changed.notified();
            }
        })
    }

    fn poll_interval(&self) -> Duration {
        POLL_INTERVAL
    }

    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let count = lock(&self.records.table).delete(selection, kind, limit);
            if count > 0 {
                self.records.changed.notify_waiters();
            }
            Ok(count)
        })
    }
}
