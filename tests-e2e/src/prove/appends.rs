//! A host whose writers append batches of entries to sessions of a store, and may be killed at any time.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use claude_agent_kit::store::{
    Append, Epoch, Load, NewEntry, SessionKey, SessionStore, StoreErrorKind,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

pub(super) type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

pub(super) const SESSIONS: usize = 2;
/// The writers of all sessions.
pub(super) const WRITERS: usize = 6;
/// The batches of a writer.
pub(super) const BATCHES: usize = 40;
/// A stalled request is given up and repeated.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(1);
/// Longer than any fault lasts.
pub(super) const LIMIT: Duration = Duration::from_secs(120);

/// The number of batches of each writer.
pub(super) type Counts = [usize; WRITERS];

/// What a host prints, one line each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The host has claimed the sessions, and found these batches.
    Loaded(Counts),
    /// The store has acknowledged the next batch of this writer, which had been stored before or not.
    Acknowledged { writer: usize, was_stored: bool },
    /// An append has failed, and is repeated.
    Failed,
}

impl Event {
    fn to_line(self) -> String {
        match self {
            Self::Loaded(counts) => json!({ "loaded": counts }),
            Self::Acknowledged { writer, was_stored } => {
                json!({ "acknowledged": writer, "was_stored": was_stored })
            }
            Self::Failed => json!({ "failed": true }),
        }
        .to_string()
    }

    /// Reads a line.
    pub(super) fn from_line(line: &str) -> Result<Self, String> {
        let value: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if let Ok(counts) = serde_json::from_value(value["loaded"].clone()) {
            return Ok(Self::Loaded(counts));
        }
        let writer = value["acknowledged"].as_u64().and_then(|writer| writer.try_into().ok());
        match (writer, value["was_stored"].as_bool(), value["failed"].as_bool()) {
            (Some(writer), Some(was_stored), _) if writer < WRITERS => {
                Ok(Self::Acknowledged { writer, was_stored })
            }
            (_, _, Some(true)) => Ok(Self::Failed),
            _ => Err(format!("a host printed {line}")),
        }
    }
}

/// Takes the sessions of a scope over and appends the batches of all writers that were not acknowledged: the task
/// of the program `host`.
///
/// # Errors
/// Returns the violation, or the error of the store.
pub async fn run_host(task: &str) -> Outcome<()> {
    let task: Value = serde_json::from_str(task)?;
    let scope = task["scope"].as_str().ok_or("no scope")?.to_owned();
    let filler = "x".repeat(serde_json::from_value(task["filler"].clone())?);
    let acknowledged: Counts = serde_json::from_value(task["acknowledged"].clone())?;
    let store = super::open_store(task["store"].as_str().ok_or("no store")?).await?;
    let mut epochs = Vec::new();
    for session in 0..SESSIONS {
        epochs.push(store.claim(&key(&scope, session)?).await?);
    }
    print(Event::Loaded(counts(&*store, &scope).await?))?;
    let mut writers = JoinSet::new();
    for (writer, first) in acknowledged.into_iter().enumerate() {
        let (key, epoch) = (key(&scope, writer % SESSIONS)?, epochs[writer % SESSIONS]);
        let writer =
            Writer { store: store.clone(), key, epoch, number: writer, filler: filler.clone() };
        writers.spawn(writer.write(first));
    }
    while let Some(result) = writers.join_next().await {
        result??;
    }
    Ok(())
}

/// Returns the task of a host. Entries have a filler of this length.
pub(super) fn task(store: &str, scope: &str, filler: usize, acknowledged: &Counts) -> String {
    json!({ "store": store, "scope": scope, "filler": filler, "acknowledged": acknowledged })
        .to_string()
}

#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(super) fn print(event: Event) -> std::io::Result<()> {
    // In one write, also if the host is killed meanwhile.
    println!("{}", event.to_line());
    std::io::stdout().flush()
}

fn key(scope: &str, session: usize) -> Outcome<SessionKey> {
    let id = format!("{session:08x}-0000-4000-8000-000000000000");
    Ok(SessionKey::new(scope, "project", &*id)?)
}

/// Returns the texts of a batch: `[writer,batch,number,"filler"]`.
fn batch(writer: usize, batch: usize, filler: &str) -> [String; 3] {
    [0, 1, 2].map(|number| format!("[{writer},{batch},{number},{filler:?}]"))
}

/// A writer, which shares its session with others.
struct Writer {
    store: Arc<dyn SessionStore>,
    key: SessionKey,
    epoch: Epoch,
    number: usize,
    filler: String,
}

impl Writer {
    /// Appends batches. One that fails is repeated until it is acknowledged, one that is acknowledged never again.
    async fn write(self, first: usize) -> Outcome<()> {
        for number in first..BATCHES {
            let entries = batch(self.number, number, &self.filler);
            let entries = entries.into_iter().map(|text| NewEntry::new(None, text, 0));
            let skipped = self.append(&entries.collect::<Result<Vec<_>, _>>()?).await?;
            if !matches!(skipped, 0 | 3) {
                return Err(format!("{skipped} entries of a batch of 3 were stored").into());
            }
            print(Event::Acknowledged { writer: self.number, was_stored: skipped == 3 })?;
        }
        Ok(())
    }

    /// Returns how many of the entries had been stored.
    async fn append(&self, entries: &[NewEntry]) -> Outcome<u64> {
        let began = Instant::now();
        while began.elapsed() < LIMIT {
            let append = self.store.append(&self.key, Append::new(entries).epoch(self.epoch));
            match tokio::time::timeout(REQUEST_TIMEOUT, append).await {
                Ok(Ok(appended)) => return Ok(appended.skipped),
                Ok(Err(error)) if error.kind() != StoreErrorKind::Unavailable => {
                    return Err(format!("{}: {error}", error.kind()).into());
                }
                _ => print(Event::Failed)?,
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Err("an append fails again and again".into())
    }
}

/// Loads the sessions of a scope, and returns the number of batches of each writer.
///
/// # Errors
/// Returns an error when a batch is stored twice, in part, or not in the order of its writer.
pub(super) async fn counts(store: &dyn SessionStore, scope: &str) -> Outcome<Counts> {
    let mut counts: BTreeMap<usize, usize> = (0..WRITERS).map(|writer| (writer, 0)).collect();
    for session in 0..SESSIONS {
        let (key, mut load, mut found) = (key(scope, session)?, Load::all(), Vec::new());
        loop {
            let page = store.load(&key, load).await?;
            for entry in &page.entries {
                if entry.sequence.get() != load.after.get() + 1 {
                    return Err(format!("{} after {}", entry.sequence, load.after).into());
                }
                load.after = entry.sequence;
                found.push(entry.text.to_string());
            }
            if !page.more {
                break;
            }
        }
        for entries in found.chunks(3) {
            let (writer, _, _, filler): (usize, usize, usize, String) =
                serde_json::from_str(&entries[0])?;
            let number = counts.get_mut(&writer).ok_or("an unknown writer")?;
            if entries != batch(writer, *number, &filler) || writer % SESSIONS != session {
                let shown: Vec<&str> = entries.iter().filter_map(|entry| entry.get(..9)).collect();
                return Err(format!("{shown:?} after {number} batches of writer {writer}").into());
            }
            *number += 1;
        }
    }
    Ok(std::array::from_fn(|writer| counts[&writer]))
}
