//! A host whose writers change records of a store, several in one write, and may be killed at any time.

use std::time::{Duration, Instant};

use claude_agent_kit::store::{
    Epoch, OwnerKey, RecordChange, RecordFilter, RecordKey, RecordKind, RecordList, RecordStore,
    RecordWrite, Sequence, StoreErrorKind,
};
use claude_agent_store::PostgresStore;
use serde_json::Value;
use tokio::task::JoinSet;

use super::appends::{
    BATCHES, Counts, Event, LIMIT, Outcome, REQUEST_TIMEOUT, SESSIONS, WRITERS, print,
};

/// Takes the owners of a scope over and writes the changes of all writers that were not acknowledged: the task of the
/// program `host`.
///
/// # Errors
/// Returns the violation, or the error of the store.
pub async fn run_host(task: &str) -> Outcome<()> {
    let task: Value = serde_json::from_str(task)?;
    let scope = task["scope"].as_str().ok_or("no scope")?.to_owned();
    let acknowledged: Counts = serde_json::from_value(task["acknowledged"].clone())?;
    let store = PostgresStore::open(task["store"].as_str().ok_or("no store")?).await?;
    let mut epochs = Vec::new();
    for session in 0..SESSIONS {
        epochs.push(store.claim_records(&owner(&scope, session)?).await?);
    }
    print(Event::Loaded(counts(&store, &scope).await?))?;
    let mut writers = JoinSet::new();
    for (number, first) in acknowledged.into_iter().enumerate() {
        let (scope, epoch) = (scope.clone(), epochs[number % SESSIONS]);
        writers.spawn(Writer { store: store.clone(), scope, epoch, number }.write(first));
    }
    while let Some(result) = writers.join_next().await {
        result??;
    }
    Ok(())
}

fn owner(scope: &str, session: usize) -> Outcome<OwnerKey> {
    Ok(OwnerKey::new(scope, &format!("owner {session}"))?)
}

/// Returns the key of the record that counts the changes of a writer.
fn counter(scope: &str, writer: usize) -> Outcome<RecordKey> {
    Ok(RecordKey::new(scope, RecordKind::Conversation, &format!("writer {writer}"))?)
}

/// A writer, which shares its owner with others.
struct Writer {
    store: PostgresStore,
    scope: String,
    epoch: Epoch,
    number: usize,
}

impl Writer {
    /// Writes changes. One that fails is repeated until it is acknowledged, one that is acknowledged never again.
    async fn write(self, first: usize) -> Outcome<()> {
        let owner = owner(&self.scope, self.number % SESSIONS)?;
        for number in first..BATCHES {
            let id = format!("{}-{number}", self.number);
            let message = RecordKey::new(&self.scope, RecordKind::Message, &id)?;
            let mut count = RecordChange::insert(counter(&self.scope, self.number)?, &owner, id)?;
            count.replaces = (number > 0).then_some(number as u64);
            // The message has to be there if and only if it is counted.
            let changes = [count, RecordChange::insert(message, &owner, "{}")?.open()];
            let was_stored = self.store(&owner, &changes).await?;
            print(Event::Acknowledged { writer: self.number, was_stored })?;
        }
        Ok(())
    }

    /// Returns whether the changes had been stored by an earlier try.
    async fn store(&self, owner: &OwnerKey, changes: &[RecordChange]) -> Outcome<bool> {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            let write = RecordWrite::new(changes).fence(owner, self.epoch);
            match tokio::time::timeout(REQUEST_TIMEOUT, self.store.write_records(write)).await {
                Ok(Ok(true)) => return Ok(false),
                // Nobody else changes these records.
                Ok(Ok(false)) => match tokio::time::timeout(REQUEST_TIMEOUT, self.count()).await {
                    Ok(Ok(count)) if count == changes[0].version() => return Ok(true),
                    Ok(Ok(count)) => {
                        return Err(format!("a write failed at the count {count}").into());
                    }
                    Ok(Err(_)) | Err(_) => print(Event::Failed)?,
                },
                Ok(Err(error)) if error.kind() != StoreErrorKind::Unavailable => {
                    return Err(format!("{}: {error}", error.kind()).into());
                }
                _ => print(Event::Failed)?,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err("a write fails again and again".into())
    }

    async fn count(&self) -> Outcome<u64> {
        let key = counter(&self.scope, self.number)?;
        let filter = RecordFilter::Id { scope: key.scope(), id: key.id() };
        let page = self.store.list_records(RecordList::new(key.kind(), filter)).await?;
        Ok(page.records.first().map_or(0, |record| record.version))
    }
}

/// Lists the records of a scope, and returns the number of changes of each writer.
///
/// # Errors
/// Returns an error when a message is missing, stored without being counted, or not in the order of its writer.
pub(super) async fn counts(store: &dyn RecordStore, scope: &str) -> Outcome<Counts> {
    let mut counts = [0; WRITERS];
    let filter = RecordFilter::In(scope);
    let counters = RecordList::new(RecordKind::Conversation, filter);
    for record in store.list_records(counters).await?.records {
        let writer = record.key.id().strip_prefix("writer ").and_then(|it| it.parse().ok());
        let writer: usize = writer.filter(|it| *it < WRITERS).ok_or("an unknown writer")?;
        counts[writer] = usize::try_from(record.version)?;
    }
    let (mut messages, mut after) = ([0; WRITERS], Sequence::default());
    loop {
        let list = RecordList::new(RecordKind::Message, filter).after(after).limit(70);
        let page = store.list_records(list).await?;
        for record in &page.records {
            let (writer, number) = record.key.id().split_once('-').ok_or("an unknown message")?;
            let (writer, number): (usize, usize) = (writer.parse()?, number.parse()?);
            if messages.get(writer) != Some(&number) {
                return Err(format!("{} after {messages:?}", record.key).into());
            }
            messages[writer] += 1;
        }
        after = page.last().unwrap_or(after);
        if !page.more {
            break;
        }
    }
    if messages == counts {
        Ok(counts)
    } else {
        Err(format!("the messages are {messages:?}, and {counts:?} are counted").into())
    }
}
