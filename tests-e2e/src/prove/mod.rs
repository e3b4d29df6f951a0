//! Experiments that are repeated many times on the real CLI, under load.
//!
//! `cargo xtask prove <area>` repeats each as often as `docs/proofs.md` states; the tests a tenth as often.

#[cfg(target_os = "linux")]
pub mod appends;
pub mod approval_seeds;
pub mod approvals;
pub mod deferred;
pub mod killed_hosts;
mod load;
#[cfg(target_os = "linux")]
pub mod postgres;
pub mod s3;
pub mod stores;

use std::sync::Arc;

use claude_agent_kit::store::{SessionStore, StoreError, StoreErrorKind};
use claude_agent_store::{PostgresStore, SqliteStore};

pub use load::Load;

/// A claim with its experiment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Area {
    /// The name of the area.
    pub name: &'static str,
    /// The claim.
    pub claim: &'static str,
    /// The number of repetitions.
    pub repetitions: usize,
}

/// Faults of PostgreSQL and its hosts, in [`postgres`](self).
pub const POSTGRES: Area = Area {
    name: "postgres",
    claim: "if PostgreSQL or a host is killed during appends, or their connections stall, nothing acknowledged is \
            lost, nothing is stored twice, and the next host loads all of it",
    repetitions: 200,
};

/// Every area.
pub const AREAS: [Area; 8] = [
    deferred::AREA,
    stores::AREA,
    killed_hosts::SQLITE,
    killed_hosts::POSTGRES,
    POSTGRES,
    s3::AREA,
    approvals::AREA,
    approval_seeds::AREA,
];

/// Opens the store at a URL: `sqlite:PATH` or `postgres://…`.
///
/// # Errors
/// Returns an error when there is no such kind of store, or it cannot be opened.
pub async fn open_store(url: &str) -> Result<Arc<dyn SessionStore>, StoreError> {
    Ok(match url.split_once(':') {
        Some(("sqlite", path)) => Arc::new(SqliteStore::open(path).await?),
        Some(("postgres", _)) => Arc::new(PostgresStore::open(url).await?),
        _ => return Err(StoreError::new(StoreErrorKind::Rejected, "unknown kind of store")),
    })
}
