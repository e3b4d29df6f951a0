//! Seeded runs in which the server is killed in the middle of appends, and started again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::store::{
    Append, Load, NewEntry, SessionKey, SessionStore, StoreError, StoreErrorKind,
};
use claude_agent_store::{PostgresOptions, PostgresStore};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::server::{PASSWORD, Server};

const SESSIONS: u64 = 2;
const WRITERS: u64 = 3;
const BATCHES: u64 = 40;

/// What happened in a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Played {
    /// How often the server was killed.
    pub(crate) kills: u64,
    /// Appends that were acknowledged.
    pub(crate) acknowledged: u64,
    /// Appends that failed, so that their effect was unknown, and were repeated.
    pub(crate) repeated: u64,
    /// Repeated appends that had been stored before.
    pub(crate) found: u64,
}

impl Played {
    pub(crate) fn add(&mut self, other: &Self) {
        self.kills += other.kills;
        self.acknowledged += other.acknowledged;
        self.repeated += other.repeated;
        self.found += other.found;
    }
}

/// Plays a run: several writers of several sessions, and a server that is killed once to three times.
///
/// # Errors
/// Returns the violation.
pub(crate) fn play(server: &mut Server, seed: u64) -> Result<Played, String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let options = PostgresOptions::new(&server.url())
        .map_err(text)?
        .password(PASSWORD)
        .schema(format!("kills_{seed}"))
        .request_timeout(Duration::from_secs(20));
    let store = Arc::new(runtime.block_on(PostgresStore::open_with(options)).map_err(text)?);
    let (count, mut counted) = watch::channel(0_u64);
    let mut writers = JoinSet::new();
    for writer in 0..SESSIONS * WRITERS {
        let (store, count) = (store.clone(), count.clone());
        writers.spawn_on(write(store, writer, count), runtime.handle());
    }
    drop(count);
    let mut played = Played::default();
    let all = SESSIONS * WRITERS * BATCHES;
    let mut random = seed;
    for _ in 0..=next(&mut random) % 3 {
        let now = *counted.borrow();
        let at = now + next(&mut random) % (all - now).max(1);
        // An error means that all writers have ended.
        let reached = runtime.block_on(counted.wait_for(|count| *count >= at)).is_ok();
        // Within an append, not always directly after one.
        let pause = Duration::from_micros(next(&mut random) % 3_000);
        std::thread::sleep(pause);
        if reached {
            server.kill();
            server.restart()?;
            played.kills += 1;
        }
    }
    while let Some(result) = runtime.block_on(writers.join_next()) {
        played.add(&result.map_err(|error| error.to_string())??);
    }
    runtime.block_on(check(&store)).map_err(|error| format!("seed {seed}: {error}"))?;
    Ok(played)
}

#[allow(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn text(error: StoreError) -> String {
    error.to_string()
}

/// Returns the next random number (`SplitMix64`).
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn key(session: u64) -> Result<SessionKey, String> {
    let id = format!("{session:08x}-0000-4000-8000-000000000000");
    SessionKey::new("scope", "project", &*id).map_err(text)
}

/// Returns the texts of a batch: `[writer,batch,number]`.
fn batch(writer: u64, batch: u64) -> [String; 3] {
    [0, 1, 2].map(|number| format!("[{writer},{batch},{number}]"))
}

/// Appends batches. One that fails is repeated until it is acknowledged, one that is acknowledged never again.
async fn write(
    store: Arc<PostgresStore>,
    writer: u64,
    count: watch::Sender<u64>,
) -> Result<Played, String> {
    let key = key(writer % SESSIONS)?;
    let mut played = Played::default();
    for number in 0..BATCHES {
        let entries = batch(writer, number).map(|text| NewEntry::new(None, text, 0));
        let entries: Vec<NewEntry> = entries.into_iter().collect::<Result<_, _>>().map_err(text)?;
        let appended = loop {
            match store.append(&key, Append::new(&entries)).await {
                Ok(appended) => break appended,
                Err(error) if error.kind() == StoreErrorKind::Unavailable => played.repeated += 1,
                Err(error) => return Err(format!("{}: {error}", error.kind())),
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        if !matches!(appended.skipped, 0 | 3) {
            return Err(format!("{} entries of a batch of 3 were stored", appended.skipped));
        }
        played.found += u64::from(appended.skipped == 3);
        played.acknowledged += 1;
        count.send_modify(|count| *count += 1);
    }
    Ok(played)
}

/// Checks that every batch is stored once, whole, and in the order of its writer.
async fn check(store: &PostgresStore) -> Result<(), String> {
    for session in 0..SESSIONS {
        let (key, mut load, mut found) = (key(session)?, Load::all(), Vec::new());
        loop {
            let page = store.load(&key, load).await.map_err(text)?;
            for entry in &page.entries {
                if entry.sequence.get() != load.after.get() + 1 {
                    return Err(format!("{} after {}", entry.sequence, load.after));
                }
                load.after = entry.sequence;
                found.push(entry.text.to_string());
            }
            if !page.more {
                break;
            }
        }
        let mut expected: HashMap<u64, u64> = HashMap::new();
        for entries in found.chunks(3) {
            let writer = entries[0].trim_start_matches('[').split(',').next();
            let writer = writer.and_then(|writer| writer.parse().ok()).unwrap_or_default();
            let number = expected.entry(writer).or_default();
            if entries != batch(writer, *number) {
                return Err(format!("found {entries:?} for batch {number} of writer {writer}"));
            }
            *number += 1;
        }
        if expected.len() as u64 != WRITERS || expected.values().any(|number| *number != BATCHES) {
            return Err(format!("the numbers of stored batches are {expected:?}"));
        }
    }
    Ok(())
}
