//! The traits and values of session stores: conversations, and [records](record) such as [approvals](approval), outside of
//! the machine that runs the CLI.
//!
//! Implement [`SessionStore`] for a store of your own, and [`RecordStore`](record::RecordStore) if it keeps
//! records. Programs that only use stores depend on `claude-agent-kit`, which re-exports this crate.
//!
//! A [`SessionStore`] holds the entries of transcripts, byte for byte, under a [`SessionKey`]: a scope that
//! the host chooses (such as a tenant), a project and a session. Each session has a main transcript and one
//! transcript per [`Subpath`], such as those of subagents. `MemoryStore` (feature `memory`) keeps everything in memory; the
//! crate `claude-agent-store` has stores for databases, and encryption. The feature `conformance` has the checks that a
//! store of your own must pass.
//!
//! Three rules make a store safe to share between machines:
//!
//! - **Appends are idempotent.** Every entry has an [`EntryId`] that is derived from its content, so a batch
//!   can be sent again after a timeout without storing an entry twice.
//! - **Entries are ordered.** Every stored entry has a [`Sequence`], and [`SessionStore::load`] continues
//!   after any of them.
//! - **A session has one owner.** [`SessionStore::claim`] returns a new [`Epoch`], and appends with an older
//!   one fail with [`StoreErrorKind::Superseded`], so that a host which was cut off cannot write into a
//!   conversation that another host continues.
//!
//! ```
//! # #[cfg(feature = "memory")] {
//! use claude_session_store::{
//!     Append, Load, MemoryStore, NewEntry, SessionKey, SessionStore, StoreErrorKind,
//! };
//!
//! # async fn example() -> Result<(), claude_session_store::StoreError> {
//! let store = MemoryStore::new();
//! let key = SessionKey::new("tenant-1", "my-app", "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11")?;
//!
//! let epoch = store.claim(&key).await?;
//! let entries = [NewEntry::new(None, r#"{"type":"user"}"#, 0)?];
//! store.append(&key, Append::new(&entries).epoch(epoch)).await?;
//! // A retry stores nothing twice.
//! store.append(&key, Append::new(&entries).epoch(epoch)).await?;
//! assert_eq!(store.load(&key, Load::all()).await?.entries.len(), 1);
//!
//! // Another host takes over; the first one can no longer write.
//! store.claim(&key).await?;
//! let error = store.append(&key, Append::new(&entries).epoch(epoch)).await.unwrap_err();
//! assert_eq!(error.kind(), StoreErrorKind::Superseded);
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
//! # }
//! ```
//!
//! | feature | adds |
//! |---|---|
//! | `memory` | `MemoryStore`, and random IDs |
//! | `random` | `EntryId::unique` |
//! | `conformance` | the checks that every store must pass |
// Marks items with the feature that they need on docs.rs, which builds with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod approval;
#[cfg(feature = "conformance")]
pub mod conformance;
mod entry;
mod error;
#[doc(hidden)]
pub mod json_object;
mod key;
#[cfg(feature = "memory")]
mod memory;
pub mod record;
mod request;
mod session_store;

pub use entry::{EntryId, NewEntry, Occurrences, StoredEntry};
pub use error::{StoreError, StoreErrorKind};
pub use key::{Epoch, ProjectKey, Sequence, SessionKey, Subpath};
#[cfg(feature = "memory")]
pub use memory::MemoryStore;
#[cfg(feature = "memory")]
#[doc(hidden)]
pub use memory::now_ms;
pub use request::{
    Append, Appended, EntryPage, List, Load, LoadScope, SessionList, SessionRow, Summary,
    SummaryUpdate,
};
pub use session_store::{SessionStore, StoreFuture};

pub use claude_wire::id::SessionId;

#[cfg(feature = "memory")]
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, ignoring poisoning: a store leaves no inconsistent state behind.
#[cfg(feature = "memory")]
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
