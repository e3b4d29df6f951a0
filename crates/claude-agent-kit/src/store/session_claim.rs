//! The claim of a run on its session.

use std::sync::Arc;

use super::upload::limited;
use claude_session_store::{Append, Epoch, SessionKey, SessionStore, StoreFuture};

/// The claim of a run on a session, as its session store knows it.
#[derive(Clone)]
pub(crate) struct SessionClaim {
    store: Arc<dyn SessionStore>,
    pub(crate) key: SessionKey,
    epoch: Epoch,
}

impl SessionClaim {
    pub(super) fn new(store: Arc<dyn SessionStore>, key: SessionKey, epoch: Epoch) -> Self {
        Self { store, key, epoch }
    }

    /// Fails with [`StoreErrorKind::Superseded`](super::StoreErrorKind::Superseded) if another host has claimed the
    /// session since.
    pub(crate) fn check(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let append = Append::new(&[]).epoch(self.epoch);
            limited(&*self.store, self.store.append(&self.key, append)).await.map(drop)
        })
    }
}

impl std::fmt::Debug for SessionClaim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionClaim")
            .field("key", &self.key)
            .field("epoch", &self.epoch)
            .finish_non_exhaustive()
    }
}
