//! What the store knows of the sessions that it has used, so that most requests are about new entries only.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use claude_session_store::{EntryId, SessionKey, Subpath};
use sha2::{Digest as _, Sha256};

use super::block::Index;
use super::head::Head;

/// The memory of a session, whatever it contains.
const BASE_WEIGHT: usize = 1_024;

/// The memory of an entry's ID.
const ID_WEIGHT: usize = 48;

/// A head and the `ETag` of its object, which does not exist without one.
#[derive(Clone, Debug)]
pub(super) struct Versioned {
    pub(super) head: Arc<Head>,
    pub(super) etag: Option<String>,
}

/// What is known of one session. All of it may be outdated, because other hosts write too.
#[derive(Default)]
pub(super) struct Session {
    /// `None` while it is not known, such as during a write.
    cached: Mutex<Option<Versioned>>,
    /// The index of the part that was loaded last.
    index: Mutex<Option<(String, Arc<Index>)>>,
    /// Locked by a writer, so that the writers of one host do not compete.
    pub(super) ids: tokio::sync::Mutex<Ids>,
    /// An estimate of the memory.
    weight: AtomicUsize,
}

impl Session {
    pub(super) fn cached(&self) -> Option<Versioned> {
        lock(&self.cached).clone()
    }

    pub(super) fn set_cached(&self, cached: Option<Versioned>) {
        *lock(&self.cached) = cached;
    }

    /// Replaces the cached head, unless it has changed since it was read.
    pub(super) fn replace_cached(&self, before: Option<&str>, new: &Versioned) {
        let mut cached = lock(&self.cached);
        if cached.as_ref().and_then(|it| it.etag.as_deref()) == before {
            *cached = Some(new.clone());
        }
    }

    pub(super) fn index(&self, part: &str) -> Option<Arc<Index>> {
        let index = lock(&self.index);
        index.as_ref().filter(|(id, _)| id == part).map(|(_, index)| Arc::clone(index))
    }

    pub(super) fn set_index(&self, part: &str, index: &Arc<Index>) {
        *lock(&self.index) = Some((part.to_owned(), Arc::clone(index)));
    }

    /// Estimates the memory again. The number of IDs is unknown while a writer has them.
    fn weigh(&self) -> usize {
        let head = lock(&self.cached).as_ref().map_or(0, |it| it.head.weight());
        let index = lock(&self.index).as_ref().map_or(0, |(_, index)| index.records.len() * 160);
        let ids = self.ids.try_lock().map_or(0, |ids| ids.digests.len() * ID_WEIGHT);
        let weight = BASE_WEIGHT + head + index + ids;
        self.weight.store(weight, Ordering::Relaxed);
        weight
    }
}

/// The IDs of the entries of a session, as digests.
#[derive(Default)]
pub(super) struct Ids {
    pub(super) generation: u64,
    /// The last sequence number whose ID is known.
    pub(super) through: u64,
    pub(super) digests: HashMap<u128, u64>,
}

/// Returns the digest of the ID of an entry in its transcript.
pub(super) fn digest(subpath: Option<&Subpath>, id: &EntryId) -> u128 {
    let mut digest = Sha256::new();
    // Neither contains control characters.
    digest.update(subpath.map(Subpath::as_str).unwrap_or_default());
    digest.update([0]);
    digest.update(id.as_str());
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest.finalize()[..16]);
    u128::from_be_bytes(bytes)
}

/// The sessions, of which those that were not used for the longest time are forgotten.
pub(super) struct Sessions {
    limit: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    /// Counts the uses.
    time: u64,
    sessions: HashMap<SessionKey, (u64, Arc<Session>)>,
}

impl Sessions {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: Mutex::default() }
    }

    /// Returns a session. Two values of one session can exist if it was forgotten in between, which is harmless.
    pub(super) fn get(&self, key: &SessionKey) -> Arc<Session> {
        let mut used = lock(&self.used);
        used.time += 1;
        let time = used.time;
        let entry = used.sessions.entry(key.clone()).or_default();
        entry.0 = time;
        Arc::clone(&entry.1)
    }

    /// Forgets sessions until the others fit into the memory, but not this one.
    pub(super) fn shrink(&self, key: &SessionKey, session: &Session) {
        session.weigh();
        let mut used = lock(&self.used);
        let weight = |session: &Session| session.weight.load(Ordering::Relaxed).max(BASE_WEIGHT);
        let mut total: usize = used.sessions.values().map(|(_, session)| weight(session)).sum();
        while total > self.limit && used.sessions.len() > 1 {
            let others = used.sessions.iter().filter(|(other, _)| *other != key);
            let Some(oldest) = others.min_by_key(|(_, (time, _))| *time) else { break };
            let oldest = oldest.0.clone();
            if let Some((_, session)) = used.sessions.remove(&oldest) {
                total = total.saturating_sub(weight(&session));
            }
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u32) -> SessionKey {
        SessionKey::new("s", "p", format!("{number:08x}-0000-4000-8000-000000000000")).unwrap()
    }

    #[test]
    fn sessions_that_were_not_used_for_the_longest_time_are_forgotten() {
        let sessions = Sessions::new(3 * BASE_WEIGHT);
        let first = sessions.get(&key(1));
        for number in 2..=3 {
            sessions.get(&key(number));
        }
        assert!(Arc::ptr_eq(&first, &sessions.get(&key(1))));
        let fourth = sessions.get(&key(4));
        sessions.shrink(&key(4), &fourth);
        assert_eq!(lock(&sessions.used).sessions.len(), 3);
        assert!(Arc::ptr_eq(&first, &sessions.get(&key(1))));
        // The last one stays, although it is too large.
        for number in 0..1_000 {
            fourth.ids.try_lock().unwrap().digests.insert(number, 1);
        }
        sessions.shrink(&key(4), &fourth);
        assert_eq!(lock(&sessions.used).sessions.len(), 1);
        assert!(Arc::ptr_eq(&fourth, &sessions.get(&key(4))));
    }

    #[test]
    fn digests_depend_on_the_transcript() {
        let (a, id) = (Subpath::new("a").unwrap(), EntryId::unique());
        assert_ne!(digest(None, &id), digest(Some(&a), &id));
        assert_eq!(digest(Some(&a), &id), digest(Some(&a), &id.clone()));
    }
}
