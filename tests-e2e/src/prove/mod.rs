//! Experiments that are repeated many times on the real CLI, under load.
//!
//! `cargo xtask prove <area>` repeats each as often as `docs/proofs.md` states. The tests repeat them less often, most of
//! them a tenth as often.

#[cfg(target_os = "linux")]
pub mod appends;
pub mod approval_seeds;
pub mod approvals;
pub mod continuations;
pub mod deferred;
pub mod killed_hosts;
mod load;
#[cfg(unix)]
pub mod lost_sessions;
#[cfg(target_os = "linux")]
pub mod record_writes;
#[cfg(target_os = "linux")]
pub mod server_faults;
pub mod stores;
pub mod two_hosts;

use std::sync::Arc;

use claude_agent_kit::store::{SessionStore, StoreError, StoreErrorKind};
use claude_agent_store::{PostgresStore, SqliteStore};
#[cfg(target_os = "linux")]
use claude_agent_store::{S3Options, S3Store};
#[cfg(target_os = "linux")]
use tests_servers::s3;

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

/// Faults of PostgreSQL and its hosts, played by `server_faults`.
pub const POSTGRES: Area = Area {
    name: "postgres",
    claim: "if PostgreSQL or a host is killed during appends, or their connections stall, nothing acknowledged is \
            lost, nothing is stored twice, and the next host loads all of it",
    repetitions: 200,
};

/// Faults of PostgreSQL and its hosts while they write records, played by `server_faults`.
pub const RECORDS: Area = Area {
    name: "records",
    claim: "if PostgreSQL or a host is killed during writes of records, or their connections stall, no acknowledged change is \
            lost, none is made twice, each write is complete or absent, and no earlier owner changes anything",
    repetitions: 200,
};

/// Faults of an S3 server and its hosts, played by `server_faults`.
pub const S3: Area = Area {
    name: "s3",
    claim: "if an S3 server or a host is killed during appends and compactions, or their connections stall, nothing \
            acknowledged is lost, nothing is stored twice, and the next host loads all of it",
    repetitions: 200,
};

/// Hosts that lose their session, played by `lost_sessions`.
pub const LOST_SESSIONS: Area = Area {
    name: "lost-sessions",
    claim: "the CLI of a host that lost its session starts no tool later than 1.5 s after the host knew",
    repetitions: 20,
};

/// Every area.
pub const AREAS: [Area; 12] = [
    deferred::AREA,
    stores::AREA,
    killed_hosts::SQLITE,
    killed_hosts::POSTGRES,
    POSTGRES,
    RECORDS,
    S3,
    approvals::AREA,
    approval_seeds::AREA,
    continuations::AREA,
    LOST_SESSIONS,
    two_hosts::AREA,
];

/// Opens the store at a URL: `sqlite:PATH`, `postgres://…`, or `s3://…` on a server of the tests.
///
/// # Errors
/// Returns an error when there is no such kind of store, or it cannot be opened.
pub async fn open_store(url: &str) -> Result<Arc<dyn SessionStore>, StoreError> {
    Ok(match url.split_once(':') {
        Some(("sqlite", path)) => Arc::new(SqliteStore::open(path).await?),
        Some(("postgres", _)) => Arc::new(PostgresStore::open(url).await?),
        #[cfg(target_os = "linux")]
        Some(("s3", _)) => {
            let options = S3Options::new(url)?.credentials(s3::ACCESS_KEY, s3::SECRET_KEY);
            Arc::new(S3Store::open_with(options).await?)
        }
        _ => return Err(StoreError::new(StoreErrorKind::Rejected, "unknown kind of store")),
    })
}
