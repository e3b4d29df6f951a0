//! Records: everything that must be durable and is not an entry of a transcript, such as approvals.
//!
//! A [`RecordStore`] keeps [`Record`]s by kind, scope, owner and ID, and does not interpret their texts. Four rules make
//! records safe to share between processes and machines:
//!
//! - **Writes are compared.** Each record has a version, and a change names the version that it replaces. Several
//!   changes in one [`RecordWrite`] are written together or not at all.
//! - **An owner can be fenced.** [`RecordStore::claim_records`] returns a new [`Epoch`](crate::Epoch) of an owner, such as
//!   a session or an engine, and writes with an older one fail. This epoch is independent of the one of a transcript.
//!   Writes without an epoch, such as those of senders and approvers, are only compared.
//! - **The store has the clock.** Times of creation are those of the store, each list has its time, and records that are
//!   due are found by it, so that the clocks of hosts do not matter.
//! - **Changes can be waited for**, with [`RecordStore::records_changed`].
//!
//! ```
//! # #[cfg(feature = "memory")] {
//! use claude_session_store::MemoryStore;
//! use claude_session_store::record::{
//!     OwnerKey, RecordChange, RecordFilter, RecordKey, RecordKind, RecordList, RecordStore, RecordWrite,
//! };
//!
//! # async fn example() -> Result<(), claude_session_store::StoreError> {
//! let store = MemoryStore::new();
//! let owner = OwnerKey::new("tenant-1", "conversation-7")?;
//! let key = RecordKey::new("tenant-1", RecordKind::Message, "message-1")?;
//!
//! let insert = [RecordChange::insert(key.clone(), &owner, r#"{"text":"hello"}"#)?.open()];
//! assert!(store.write_records(RecordWrite::new(&insert)).await?);
//! // The same ID again: nothing is written.
//! assert!(!store.write_records(RecordWrite::new(&insert)).await?);
//!
//! let list = RecordList::new(RecordKind::Message, RecordFilter::OpenOf(&owner));
//! let page = store.list_records(list).await?;
//! let record = &page.records[0];
//! let done = [RecordChange::update(record, r#"{"text":"hello","done":true}"#)];
//! assert!(store.write_records(RecordWrite::new(&done)).await?);
//! assert!(store.list_records(list).await?.records.is_empty());
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(example()).unwrap();
//! # }
//! ```

mod key;
mod list;
#[cfg(feature = "memory")]
mod memory;
mod store;
mod write;

pub use key::{FLEET_SCOPE, OwnerKey, RecordKey, RecordKind};
pub use list::{
    Record, RecordFilter, RecordList, RecordPage, RecordSelection, RecordWatch, UnreadableRecord,
};
pub use store::RecordStore;
pub use write::{RecordChange, RecordWrite};

#[cfg(feature = "memory")]
pub(crate) use memory::MemoryRecords;
