//! The set-up of a check of records.

use std::sync::Arc;

use crate::record::{
    OwnerKey, Record, RecordChange, RecordFilter, RecordKey, RecordKind, RecordList, RecordStore,
    RecordWatch, RecordWrite,
};
use crate::{Epoch, Sequence, StoreError};

pub(super) use super::super::fixture::{Failure, Outcome, ensure, expect, expect_error, id};

/// The scope and the kind that most checks use.
pub(super) const SCOPE: &str = "scope";
pub(super) const KIND: RecordKind = RecordKind::Message;

/// Two handles of a new store.
#[derive(Clone)]
pub(in super::super) struct Fixture {
    pub(super) hosts: [Arc<dyn RecordStore>; 2],
}

impl Fixture {
    pub(in super::super) fn new(hosts: [Arc<dyn RecordStore>; 2]) -> Self {
        Self { hosts }
    }

    /// Returns one of the two handles.
    pub(super) fn host(&self, number: u32) -> &dyn RecordStore {
        let [one, other] = &self.hosts;
        if number.is_multiple_of(2) { &**one } else { &**other }
    }

    /// Claims an owner of the usual scope.
    pub(super) async fn claim(&self, number: u32) -> Result<Epoch, StoreError> {
        self.host(0).claim_records(&owner(number)).await
    }

    pub(super) async fn write(&self, changes: &[RecordChange]) -> Result<bool, StoreError> {
        self.host(0).write_records(RecordWrite::new(changes)).await
    }

    /// Writes as the owner with this number, in this epoch.
    pub(super) async fn write_as(
        &self,
        host: u32,
        changes: &[RecordChange],
        number: u32,
        epoch: Epoch,
    ) -> Result<bool, StoreError> {
        let owner = owner(number);
        self.host(host).write_records(RecordWrite::new(changes).fence(&owner, epoch)).await
    }

    /// Inserts a record that does not exist, and returns it as it is stored.
    pub(super) async fn insert(&self, change: RecordChange) -> Result<Record, Failure> {
        let is_written = self.write(std::slice::from_ref(&change)).await?;
        expect("whether a new record was stored", &is_written, &true)?;
        let stored = self.read(&change.key).await?;
        stored.ok_or_else(|| Failure("a new record is missing".to_owned()))
    }

    /// Stores the next version of a record, and returns it.
    pub(super) async fn update(&self, record: &Record, body: &str) -> Result<Record, Failure> {
        let change = RecordChange::update(record, body).open();
        let is_written = self.write(&[change]).await?;
        expect("whether a change was stored", &is_written, &true)?;
        let stored = self.read(&record.key).await?;
        stored.ok_or_else(|| Failure("a changed record is missing".to_owned()))
    }

    /// Returns the record of the usual scope with this number, as the other host sees it.
    pub(super) async fn get(&self, number: u32) -> Result<Option<Record>, Failure> {
        self.read(&key(number)).await
    }

    pub(super) async fn read(&self, key: &RecordKey) -> Result<Option<Record>, Failure> {
        let filter = RecordFilter::Id { scope: key.scope(), id: key.id() };
        let mut found = self.list_of(key.kind(), filter, 100).await?;
        ensure!(found.len() <= 1, "one ID has {} records", found.len());
        Ok(found.pop())
    }

    /// Returns all records of the usual kind, page by page.
    pub(super) async fn list(
        &self,
        filter: RecordFilter<'_>,
        limit: usize,
    ) -> Result<Vec<Record>, Failure> {
        self.list_of(KIND, filter, limit).await
    }

    pub(super) async fn list_of(
        &self,
        kind: RecordKind,
        filter: RecordFilter<'_>,
        limit: usize,
    ) -> Result<Vec<Record>, Failure> {
        let (mut found, mut after) = (Vec::new(), Sequence::default());
        loop {
            let list = RecordList::new(kind, filter).after(after).limit(limit);
            let page = self.host(1).list_records(list).await?;
            ensure!(page.len() <= limit.max(1), "a page exceeds its limit");
            let foreign = page.records.iter().find(|record| !list.contains(record, page.now_ms));
            ensure!(foreign.is_none(), "a page has a record that was not requested: {foreign:?}");
            ensure!(page.unreadable.is_empty(), "a record cannot be read: {:?}", page.unreadable);
            ensure!(!page.more || !page.is_empty(), "an empty page has a next one");
            let sequences: Vec<Sequence> =
                page.records.iter().map(|record| record.sequence).collect();
            ensure!(sequences.is_sorted_by(|one, next| one < next), "a page is not sorted");
            after = page.last().unwrap_or(after);
            found.extend(page.records);
            ensure!(found.len() < 10_000, "the pages do not end");
            if !page.more {
                return Ok(found);
            }
        }
    }
}

/// Waits until a record has another version than a known one, as one of the hosts sees it.
pub(super) async fn changed(host: &dyn RecordStore, known: &Record) -> Result<Record, Failure> {
    let key = &known.key;
    loop {
        let filter = RecordFilter::Id { scope: key.scope(), id: key.id() };
        let found = host.list_records(RecordList::new(key.kind(), filter)).await?.records.pop();
        let found = found.ok_or_else(|| Failure("a record is gone".to_owned()))?;
        if found.version != known.version {
            return Ok(found);
        }
        wait(host, RecordWatch::Record { key, version: known.version }).await?;
    }
}

/// Waits as callers do: until the store says so, or for its interval.
pub(super) async fn wait(host: &dyn RecordStore, watch: RecordWatch<'_>) -> Result<(), StoreError> {
    let changed = host.records_changed(watch);
    let interval = host.poll_interval();
    tokio::time::timeout(interval, changed).await.unwrap_or(Ok(()))
}

pub(super) fn owner(number: u32) -> OwnerKey {
    OwnerKey::new(SCOPE, &id(number)).expect("a short key")
}

pub(super) fn key(number: u32) -> RecordKey {
    RecordKey::new(SCOPE, KIND, &id(number)).expect("a short key")
}

/// Returns the insertion of an open record of owner 1.
pub(super) fn pending(number: u32) -> RecordChange {
    record(number, 1, "{}").open()
}

/// Returns the insertion of a record that is not open.
pub(super) fn record(number: u32, owned_by: u32, body: &str) -> RecordChange {
    RecordChange::insert(key(number), &owner(owned_by), body).expect("one scope")
}

/// Returns the update of a version that may not exist.
pub(super) fn update_of(change: &RecordChange, replaces: Option<u64>, body: &str) -> RecordChange {
    let mut update = change.clone();
    (update.replaces, update.body) = (replaces, body.into());
    update
}

/// Returns the numbers in the IDs of records.
pub(super) fn numbers(records: &[Record]) -> Vec<u32> {
    let number = |record: &Record| {
        let digits = record.key.id().split('-').next().unwrap_or_default();
        u32::from_str_radix(digits, 16).unwrap_or(u32::MAX)
    };
    records.iter().map(number).collect()
}

/// Checks that a record is as it was written.
pub(super) fn expect_record(found: Option<&Record>, written: &RecordChange) -> Outcome {
    let Some(found) = found else { return Err(Failure(format!("{} is missing", written.key))) };
    expect("the key", &found.key, &written.key)?;
    expect("the owner", &found.owner, &written.owner)?;
    expect("the version", &found.version, &written.version())?;
    expect("whether it is open", &found.is_open, &written.is_open)?;
    expect("the due time", &found.due_at_ms, &written.due_at_ms)?;
    expect("the body", &found.body, &written.body)
}
