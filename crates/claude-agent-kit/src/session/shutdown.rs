//! The end of all sessions of a process.

use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::time::Duration;

use super::{Session, Shared};
use crate::lock::lock;

/// Sessions that may still live.
static SESSIONS: LazyLock<Mutex<Vec<Weak<Shared>>>> = LazyLock::new(Mutex::default);

pub(super) fn register(session: &Arc<Shared>) {
    let mut sessions = lock(&SESSIONS);
    // Dead ones are let go here, so that the list is no longer than twice those that live.
    if sessions.len() == sessions.capacity() {
        sessions.retain(|session| session.strong_count() > 0);
    }
    sessions.push(Arc::downgrade(session));
}

/// Stops every session of this process, all at once, and waits until they have ended or the time
/// is up. Says how many had not ended by then; their CLIs are still being ended.
///
/// # Cancel safety
/// Dropping the future does not stop the ends that were begun.
pub async fn shutdown_all(deadline: Duration) -> usize {
    let sessions: Vec<Session> = {
        let sessions = lock(&SESSIONS);
        let alive = sessions.iter().filter_map(Weak::upgrade);
        alive.map(Shared::borrowed).collect()
    };
    let ends: Vec<_> = sessions
        .iter()
        .cloned()
        .map(|session| tokio::spawn(async move { session.stop().await }))
        .collect();
    let now = tokio::time::Instant::now();
    // Longer than a clock can show is as long as it takes.
    let until = now.checked_add(deadline).unwrap_or(now + Duration::from_secs(365 * 24 * 3600));
    let mut left = 0;
    for end in ends {
        left += usize::from(tokio::time::timeout_at(until, end).await.is_err());
    }
    left
}
