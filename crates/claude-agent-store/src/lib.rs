//! Stores for [`claude-agent-kit`](https://docs.rs/claude-agent-kit): durable sessions that can move between machines,
//! and tool-call approvals that can wait for days.
//!
//! A [`SessionStore`](claude_session_store::SessionStore) keeps the transcripts of sessions, and a
//! [`RecordStore`](claude_session_store::record::RecordStore) everything else that must be durable, such as approvals. This crate has
//! implementations of both traits, each with its own feature:
//!
//! | item | feature | default |
//! |---|---|---|
#![cfg_attr(
    feature = "sqlite",
    doc = "| [`SqliteStore`]: one file, for any number of processes of a machine | `sqlite` | yes |"
)]
#![cfg_attr(
    feature = "postgres",
    doc = "| [`PostgresStore`]: a PostgreSQL database, for any number of hosts | `postgres` | no |"
)]
#![cfg_attr(
    feature = "s3",
    doc = "| [`S3Store`]: S3-compatible object storage, for any number of hosts | `s3` | no |"
)]
#![cfg_attr(
    feature = "encryption",
    doc = "| [`Encrypted`]: encrypts the entries and records of another store | `encryption` | no |"
)]
//!
#![cfg_attr(
    feature = "sqlite",
    doc = r#"
```no_run
use claude_agent_kit::store::StoreOptions;
use claude_agent_kit::{Options, query};
use claude_agent_store::SqliteStore;

# async fn example() -> Result<(), Box<dyn std::error::Error>> {
let store = SqliteStore::open("sessions.db").await?;
let options = Options::new().store(StoreOptions::new("tenant-1", store).project("support"));
let answer = query("Remember the number 42.", options).await?.collect().await;
assert_eq!(answer.stored, Some(true));
# Ok(())
# }
```
"#
)]
//!
//! | task | start with | chapter |
//! |---|---|---|
//! | mirror and resume conversations | [`Options::store`](https://docs.rs/claude-agent-kit/latest/claude_agent_kit/struct.Options.html#method.store) | [session stores](https://docs.rs/claude-agent-kit/latest/claude_agent_kit/guide/moving_sessions/) in the guide of the kit |
//! | keep approvals | [`Approvals`](https://docs.rs/claude-agent-kit/latest/claude_agent_kit/approval/struct.Approvals.html) with a store of this crate | [approvals](https://docs.rs/claude-agent-kit/latest/claude_agent_kit/guide/approvals/) in the guide of the kit |
//! | write a store of your own | [`claude_session_store`], and the checks of its feature `conformance` | |
//! | list and delete stored conversations | [`History::in_store`](https://docs.rs/claude-agent-kit/latest/claude_agent_kit/history/struct.History.html#method.in_store) | [history](https://docs.rs/claude-agent-kit/latest/claude_agent_kit/guide/history/) in the guide of the kit |
#![cfg_attr(
    any(feature = "postgres", feature = "s3"),
    doc = "| set up PostgreSQL or S3: roles, TLS, poolers, sizing, backups | | [stores on servers](guide::store_servers) |"
)]
// Marks items with the feature that they need on docs.rs, which builds with nightly.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "encryption")]
mod encryption;
#[cfg(any(feature = "postgres", feature = "s3"))]
pub mod guide;
#[cfg(test)]
#[cfg(all(feature = "encryption", feature = "postgres", feature = "s3", feature = "sqlite"))]
mod messages;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod records;
#[cfg(feature = "s3")]
mod s3;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "encryption")]
pub use encryption::{Encrypted, EncryptionKey, Keyring};
#[cfg(feature = "postgres")]
pub use postgres::{PostgresOptions, PostgresStore};
#[cfg(feature = "s3")]
pub use s3::{S3Options, S3Store};
#[cfg(feature = "sqlite")]
pub use sqlite::{SqliteOptions, SqliteStore};

/// Compiles the example of the README.
#[cfg(all(doctest, feature = "sqlite"))]
#[doc = include_str!("../README.md")]
struct Readme;
