//! Errors of SQLite as errors of a store.

use std::path::Path;

use claude_session_store::{StoreError, StoreErrorKind};
use rusqlite::ErrorCode;

use crate::sql::Invalid;

/// The help for a schema that this crate has not written.
const CHANGED_SCHEMA: &str = "another program or a migration may have changed the schema: compare it with the schema of a \
                              new store before you restore a backup, which loses later entries";

/// Why a request failed.
#[derive(Debug)]
pub(super) enum Fault {
    /// The database failed. The transaction has to be rolled back.
    Database(rusqlite::Error),
    /// The store rejects the request, before it has changed anything.
    Request(StoreError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        Self::Request(error)
    }
}

impl From<Invalid> for Fault {
    fn from(Invalid(what): Invalid) -> Self {
        Self::Request(corrupt(what))
    }
}

impl Fault {
    /// Returns the error of the request.
    pub(super) fn into_error(self, path: &Path) -> StoreError {
        match self {
            Self::Database(error) => database(path, error),
            Self::Request(error) => error,
        }
    }
}

/// Returns the error of a request that failed in the database.
pub(crate) fn database(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.display();
    let (kind, help) = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => (
            StoreErrorKind::Full,
            "delete sessions, free disk space, or increase `SqliteOptions::max_bytes`",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            StoreErrorKind::Unavailable,
            "check for a process that keeps the database locked, or increase \
             `SqliteOptions::busy_timeout`",
        ),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::ConstraintViolation) => (
            StoreErrorKind::Corrupt,
            "stop all processes that use the file, and restore it from a backup",
        ),
        Some(ErrorCode::NotADatabase) => (
            StoreErrorKind::Corrupt,
            "pass the path of a session store, or of a file that does not exist",
        ),
        Some(ErrorCode::TooBig) => {
            (StoreErrorKind::Rejected, "split the request: SQLite supports texts of up to 1 GB")
        }
        // A missing table, or a value of another type: another program has changed the file.
        Some(ErrorCode::Unknown | ErrorCode::TypeMismatch | ErrorCode::SchemaChanged) | None => {
            (StoreErrorKind::Corrupt, CHANGED_SCHEMA)
        }
        Some(_) => (StoreErrorKind::Unavailable, "check the file, its directory and the disk"),
    };
    let message = format!("the session store \"{path}\" failed: {error}");
    StoreError::new(kind, message).with_help(help).caused_by(error)
}

/// Returns the error of a value in the database that no version of this crate writes.
pub(crate) fn corrupt(what: &str) -> StoreError {
    let message = format!("the session store contains an invalid {what}");
    StoreError::new(StoreErrorKind::Corrupt, message).with_help(
        "check whether another program has changed the file, and restore it from a backup",
    )
}

/// Returns the error of a file that cannot be created.
pub(crate) fn create(path: &Path, error: std::io::Error) -> StoreError {
    let message = format!("cannot open the session store \"{}\": {error}", path.display());
    StoreError::new(StoreErrorKind::Unavailable, message)
        .with_help("check that its directory exists and that the file is writable")
        .caused_by(error)
}

/// Returns the error of a file that another program uses.
pub(crate) fn foreign(path: &Path) -> StoreError {
    let message = format!("\"{}\" is a database of another program", path.display());
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help("use a separate file for the session store")
}

/// Returns the error of a schema that this version does not know.
pub(crate) fn newer(path: &Path, version: i64, supported: i64) -> StoreError {
    let message = format!(
        "the session store \"{}\" has schema version {version}, and this version of \
         claude-agent-store supports up to {supported}",
        path.display()
    );
    StoreError::new(StoreErrorKind::Rejected, message).with_help("update claude-agent-store")
}

/// Returns the error of a file system without shared memory.
pub(crate) fn no_log(path: &Path, mode: &str) -> StoreError {
    let message = format!(
        "cannot enable the write-ahead log of the session store \"{}\": the journal mode is \
         {mode:?}",
        path.display()
    );
    StoreError::new(StoreErrorKind::Rejected, message).with_help("use a local file system")
}

/// Returns the error of a thread that could not be started.
pub(crate) fn no_thread(error: std::io::Error) -> StoreError {
    let message = format!("cannot start the thread of the session store: {error}");
    StoreError::new(StoreErrorKind::Unavailable, message).caused_by(error)
}

/// Returns the error of a request whose thread has ended.
pub(crate) fn gone() -> StoreError {
    let message = "the thread of the session store has ended";
    StoreError::new(StoreErrorKind::Unavailable, message).with_help("open the store again")
}
