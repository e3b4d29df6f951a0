//! Session stores keep conversations outside of the machine that runs the CLI.
//!
//! A [`SessionStore`] holds the entries of transcripts, byte for byte, under a [`SessionKey`]: a scope that
//! the host chooses (such as a tenant), a project and a session. Each session has a main transcript and one
//! transcript per [`Subpath`], such as those of subagents. [`MemoryStore`] keeps everything in memory; the
//! crate `claude-agent-store` has stores for databases, encryption, and a conformance suite for stores of
//! your own.
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
//! use claude_agent_kit::store::{
//!     Append, Load, MemoryStore, NewEntry, SessionKey, SessionStore, StoreErrorKind,
//! };
//!
//! # async fn example() -> Result<(), claude_agent_kit::store::StoreError> {
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
//! ```

pub(crate) mod batch;
#[cfg(test)]
pub(crate) mod faulty;
mod latest;
mod local;
mod options;
pub(crate) mod pages;
mod place;
pub(crate) mod position;
pub(crate) mod recover;
pub(crate) mod restore;
pub(crate) mod retention;
mod session_claim;
mod store_name;
mod summary;
pub(crate) mod upload;
pub(crate) mod write_session;

pub use claude_session_store::record::{
    OwnerKey, Record, RecordChange, RecordFilter, RecordKey, RecordKind, RecordList, RecordPage,
    RecordSelection, RecordStore, RecordWatch, RecordWrite, UnreadableRecord,
};
pub use claude_session_store::{
    Append, Appended, EntryId, EntryPage, Epoch, List, Load, LoadScope, MemoryStore, NewEntry,
    Occurrences, ProjectKey, Sequence, SessionKey, SessionList, SessionRow, SessionStore,
    StoreError, StoreErrorKind, StoreFuture, StoredEntry, Subpath, Summary, SummaryUpdate,
};
pub use options::{StoreFailurePolicy, StoreOptions};
pub use recover::{Recovered, RecoveryOutcome, recover};
pub use retention::{Retention, RetentionFailure, RetentionReport};

pub(crate) use crate::session_files::private_folder::PrivateFolder;
pub(crate) use restore::{MirrorStart, restore};
pub(crate) use session_claim::SessionClaim;
pub(crate) use store_name::StoreName;
pub(crate) use upload::{LocalFile, OwnedSessions, Stored, Target};
