//! A store in an SQLite file.

pub(crate) mod errors;
mod jobs;
mod records;
mod requests;
mod schema;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use claude_session_store::{
    Append, Appended, EntryPage, Epoch, List, Load, ProjectKey, SessionKey, SessionList,
    SessionRow, SessionStore, StoreError, StoreFuture, Subpath,
};

use rusqlite::Connection;

use self::jobs::Jobs;
use self::requests::{OwnedAppend, OwnedLoad};
use crate::records::Changes;

/// Keeps sessions and [records](claude_session_store::record), such as approvals, in an SQLite file, which any number of processes of
/// one machine can share.
///
/// An append is synced to disk before it returns. The store has one thread, with a queue of 64 requests;
/// further requests wait. Appends that wait at the same time are committed together. A request whose
/// future is dropped before the thread has begun it is not executed. A clone shares the thread, which ends
/// when all clones are dropped.
///
/// Who waits for a change of a record learns of one by the same store or a clone of it at once. Changes by other processes
/// are looked for every half second, because SQLite has no notifications.
///
/// The file is created with access for its owner only. It must be on a local file system, because SQLite's
/// write-ahead log does not work on network file systems. Its companions with the suffixes `-wal` and `-shm`
/// belong to it: do not copy or delete a file without them while it is in use.
///
/// A deletion overwrites the texts in the file and empties the write-ahead log, so that they are in neither. While
/// another process reads or writes, the log cannot be emptied: the deletion succeeds all the same, and the texts stay
/// in the log until the next deletion, or until the last process closes the file.
///
/// A process that was stopped while it wrote keeps the file locked: others can open it and read, and their writes fail
/// with [`Unavailable`](claude_session_store::StoreErrorKind::Unavailable). Only a file of an earlier version, whose
/// schema has to be updated, cannot be opened then.
///
/// ```
/// use claude_agent_kit::store::{SessionKey, SessionStore};
/// use claude_agent_store::SqliteStore;
///
/// # async fn example(path: &std::path::Path) -> Result<(), claude_agent_kit::store::StoreError> {
/// let store = SqliteStore::open(path).await?;
/// let key = SessionKey::new("tenant-1", "my-app", "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11")?;
/// let epoch = store.claim(&key).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct SqliteStore {
    path: Arc<Path>,
    busy_timeout: Duration,
    jobs: Jobs,
    changes: Changes,
}

/// Options of a [`SqliteStore`].
#[derive(Clone, Debug)]
pub struct SqliteOptions {
    path: PathBuf,
    busy_timeout: Duration,
    max_bytes: Option<u64>,
}

impl SqliteOptions {
    /// Creates options for this file, which is created if it does not exist. Its directory must exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), busy_timeout: Duration::from_secs(5), max_bytes: None }
    }

    /// Sets how long a request waits for other processes that write to the file. Afterwards it fails with
    /// [`Unavailable`](claude_session_store::StoreErrorKind::Unavailable). Default: 5 s.
    #[must_use]
    pub fn busy_timeout(mut self, timeout: Duration) -> Self {
        self.busy_timeout = timeout;
        self
    }

    /// Limits the size of the file, without its write-ahead log. Appends that exceed the limit fail with
    /// [`Full`](claude_session_store::StoreErrorKind::Full) until sessions are deleted or the file is
    /// opened with a higher limit. A limit below the current size counts as the current size. Default: no
    /// limit.
    #[must_use]
    pub fn max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = Some(max_bytes);
        self
    }
}

impl SqliteStore {
    /// Opens a file with default options, and creates it if it does not exist.
    ///
    /// # Errors
    /// Fails like [`open_with`](Self::open_with).
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_with(SqliteOptions::new(path)).await
    }

    /// Opens a file, creates it if it does not exist, and updates an older schema.
    ///
    /// # Errors
    /// Fails if the file cannot be opened, is not a database or belongs to another program, or if a newer
    /// version of this crate has updated its schema.
    pub async fn open_with(options: SqliteOptions) -> Result<Self, StoreError> {
        let (path, busy_timeout) = (options.path.clone().into(), options.busy_timeout);
        Ok(Self { path, busy_timeout, jobs: Jobs::start(options).await?, changes: Changes::new() })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SessionStore for SqliteStore {
    fn location(&self) -> Option<String> {
        Some(format!("SQLite \"{}\"", self.path.display()))
    }

    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        let key = key.clone();
        Box::pin(self.jobs.write(move |connection| requests::claim(connection, &key)))
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        let (key, append) = (key.clone(), OwnedAppend::new(&append));
        Box::pin(self.jobs.write(move |connection| requests::append(connection, &key, &append)))
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        let (key, load) = (key.clone(), OwnedLoad::new(&load));
        Box::pin(self.jobs.read(move |connection| requests::load(connection, &key, &load)))
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        let (project, limit) = (project.clone(), list.limit);
        let cursor = list.cursor.map(str::to_owned);
        Box::pin(
            self.jobs.read(move |connection| {
                requests::list(connection, &project, cursor.as_deref(), limit)
            }),
        )
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<SessionRow>> {
        let key = key.clone();
        Box::pin(self.jobs.read(move |connection| requests::get(connection, &key)))
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        let key = key.clone();
        Box::pin(self.jobs.read(move |connection| requests::subpaths(connection, &key)))
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        let (key, subpath) = (key.clone(), subpath.cloned());
        let delete =
            move |connection: &Connection| requests::delete(connection, &key, subpath.as_ref());
        let busy_timeout = self.busy_timeout;
        Box::pin(async move {
            self.jobs.write(delete).await?;
            // Outside of a transaction.
            self.jobs.read(move |connection| requests::empty_log(connection, busy_timeout)).await
        })
    }

    fn projects<'a>(
        &'a self,
        scope: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        let (scope, after) = (scope.to_owned(), after.unwrap_or_default().to_owned());
        let projects =
            move |connection: &Connection| requests::projects(connection, &scope, &after, limit);
        Box::pin(self.jobs.read(projects))
    }

    fn delete_unchanged<'a>(
        &'a self,
        key: &'a SessionKey,
        modified_ms: u64,
    ) -> StoreFuture<'a, bool> {
        let key = key.clone();
        let delete = move |connection: &Connection| {
            requests::delete_unchanged(connection, &key, modified_ms)
        };
        let busy_timeout = self.busy_timeout;
        Box::pin(async move {
            let is_deleted = self.jobs.write(delete).await?;
            if is_deleted {
                let empty =
                    move |connection: &Connection| requests::empty_log(connection, busy_timeout);
                self.jobs.read(empty).await?;
            }
            Ok(is_deleted)
        })
    }
}
