//! A store in S3-compatible object storage.
//!
//! A session is one *head object*, and *parts* with older entries. The head has the epoch, the last sequence
//! number, the summary, the names of the parts, and the newest entries. Every change of a session is one write of
//! its head, with the condition that the head is still the one that the change was based on (`If-Match`, or
//! `If-None-Match: *` for a new one). So of two writers one succeeds, and the other one reads the head again and
//! repeats its change, or finds that it is fenced. Parts are written before the head that names them and never
//! changed. IDs of entries are in the index at the start of each part; a writer reads them once, and then knows
//! them.
//!
//! What can go wrong, and the outcome:
//! - *Missing*: the response to a write of the head is lost. A repetition fails its condition, and the writer finds
//!   its own `write` ID in the head. If it gives up or another one has written since, the next append finds the
//!   entries by their IDs. A part that a reader needs is gone: a compaction has replaced it, so the reader starts
//!   again with the new head; if that names it too, the session is corrupt.
//! - *Late*: a delayed write of the head fails its condition. A delayed write of a part is garbage.
//! - *Twice*: a repeated write has the same content and the same condition. `ETag`s never repeat, because every
//!   head has a new `write` ID.
//! - *Out of order*: writers of one host wait for each other; those of several are ordered by the condition.
//! - *Huge*: an append is split into parts of at most 8 MiB, and one write of the head makes all of them visible.
//!   Indexes and pages are bounded by that. The head is bounded by compaction, except for subpaths and the summary.
//! - *Malformed*: heads and indexes are checked when they are read, and lengths are not trusted.
//! - *Cancelled*, or the host is *dead*: before the write of the head nothing has changed, and parts without a head
//!   are deleted by the next compaction or deletion; afterwards everything is stored. The cached head is discarded
//!   before a write, so that a dropped future leaves nothing wrong.
//! - *Hostile* server: it can lose or forge entries like any other one; see `Encrypted`. It cannot make the store
//!   panic or allocate without limit. One that ignores conditions is rejected when the store is opened.

mod append;
mod block;
mod compact;
mod delete;
pub(crate) mod errors;
mod head;
mod http;
mod list;
mod load;
mod objects;
mod options;
mod probe;
mod session;

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use claude_session_store::{
    Append, Appended, EntryPage, Epoch, List, Load, ProjectKey, SessionKey, SessionList,
    SessionRow, SessionStore, StoreError, StoreFuture, StoredEntry, Subpath,
};

use self::block::{Index, IndexJson};
use self::errors::corrupt;
use self::head::{Head, Part};
use self::list::Lists;
use self::objects::{Objects, Read, unique};
pub use self::options::S3Options;
use self::session::{Session, Sessions, Versioned};

/// The number of parts that are read at once.
const PARALLEL: usize = 4;

/// Keeps sessions in S3-compatible object storage, which any number of hosts can share.
///
/// An append is stored by the server before it returns. Hosts need no other service to agree on the owner of a
/// session: the server rejects the slower one of two concurrent writes. A clone shares the connections and what is
/// known of the sessions.
///
/// ```no_run
/// use claude_agent_kit::store::{SessionKey, SessionStore};
/// use claude_agent_store::{S3Options, S3Store};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = S3Options::new("s3://my-bucket/sessions?region=eu-central-1")?
///     .credentials_from_environment();
/// let store = S3Store::open_with(options).await?;
/// let key = SessionKey::new("tenant-1", "my-app", "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11")?;
/// let epoch = store.claim(&key).await?;
/// # Ok(())
/// # }
/// ```
///
/// # Requirements
/// A bucket on a server that supports conditional writes (`If-Match` and `If-None-Match`), is strongly consistent,
/// and whose `ETag`s change with the content. [`open_with`](Self::open_with) tests the conditions, and fails on a
/// server that ignores them. AWS, Cloudflare R2, MinIO and SeaweedFS document them; the tests run on SeaweedFS 4.48.
///
/// # Permissions
/// `s3:GetObject`, `s3:PutObject` and `s3:DeleteObject` for the objects below the prefix, and `s3:ListBucket` for
/// the bucket, which also makes a missing object distinguishable from a forbidden one.
///
/// # Requests
/// An append is one `PUT`, of the new entries and up to 64 KiB with those before them; for large appends three times
/// their size, up to 512 KiB. When there are more, a second `PUT` moves them to a part. A session has at most 16 parts and one more for each 2 MiB; when there would be more,
/// one append merges small parts, with a `GET` for each, a `PUT`, a `LIST` and a `DELETE`. The first append to a
/// session that was written elsewhere reads the head and the index of each part. A page of [`load`](SessionStore::load)
/// is a `GET` of the head, and one or two for each part of it. The first page of a [`list`](SessionStore::list) is a
/// `LIST` for each 1,000 sessions of the project, a `GET` for each session that has changed since the last list of
/// this store, and a `GET` for each row.
///
/// # Deletion
/// A deletion removes the objects, also those that a failed append has left behind. A small head without entries
/// stays, because an earlier owner must stay fenced. In a bucket with versioning, the server keeps earlier versions
/// until a lifecycle rule expires them (`NoncurrentVersionExpiration`). Rules must not expire current versions.
///
/// # Backup
/// Restore all objects of a session together, and stop all hosts before: epochs and sequence numbers are those of
/// the backup.
///
/// # Clocks
/// The times in lists are those of this host, corrected by the difference to the server's clock if that was more than
/// 5 s when the store was opened. Servers reject requests of a host whose clock is wrong by more than 15 minutes.
///
/// # Cancel safety
/// Whether a request whose future is dropped is executed is unknown. It is executed as a whole or not at all.
#[derive(Clone)]
pub struct S3Store {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    objects: Objects,
    sessions: Sessions,
    lists: Lists,
    /// How much the clock of the server is ahead.
    ahead_ms: i64,
}

impl S3Store {
    /// Connects to a server, and checks that it supports conditional writes with an object that is deleted again.
    ///
    /// # Errors
    /// Fails if an option is invalid, the server cannot be reached or rejects the credentials, the bucket does not
    /// exist, or the server does not support conditional writes.
    pub async fn open_with(options: S3Options) -> Result<Self, StoreError> {
        let objects = options.objects()?;
        let ahead_ms = probe::probe(&objects).await?;
        let sessions = Sessions::new(options.cache_bytes);
        let shared = Shared { objects, sessions, lists: Lists::default(), ahead_ms };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the number of HTTP requests that were sent since the store was opened, including repeated ones.
    pub fn request_count(&self) -> u64 {
        self.shared.objects.count()
    }
}

impl Shared {
    /// Returns the head as this host knows it, and whether it was just read.
    async fn known_head(
        &self,
        session: &Session,
        key: &SessionKey,
    ) -> Result<(Versioned, bool), StoreError> {
        match session.cached() {
            Some(cached) => Ok((cached, false)),
            None => Ok((self.fresh_head(session, key).await?, true)),
        }
    }

    /// Reads the head, if it has changed.
    async fn fresh_head(
        &self,
        session: &Session,
        key: &SessionKey,
    ) -> Result<Versioned, StoreError> {
        let cached = session.cached();
        let etag = cached.as_ref().and_then(|cached| cached.etag.as_deref());
        let found = match (self.objects.read(&self.objects.head(key), etag).await?, &cached) {
            (Read::Unchanged, Some(cached)) => cached.clone(),
            (Read::Unchanged, None) => return Err(corrupt("response")),
            (Read::Missing, _) => Versioned { head: Arc::new(Head::new(key)), etag: None },
            (Read::Object { bytes, etag }, _) => {
                let head = Arc::new(Head::from_bytes(key, &bytes)?);
                Versioned { head, etag: Some(etag) }
            }
        };
        session.replace_cached(etag, &found);
        Ok(found)
    }

    /// Writes a head that is based on another one. Returns `None` if that is not the current one any more.
    async fn commit(
        &self,
        session: &Session,
        key: &SessionKey,
        base: &Versioned,
        mut head: Head,
    ) -> Result<Option<Versioned>, StoreError> {
        head.write = unique();
        let bytes = head.to_bytes()?;
        // Unknown until the response, also if this future is dropped.
        session.set_cached(None);
        let path = self.objects.head(key);
        let written = self.objects.write_if(&path, bytes, base.etag.as_deref()).await?;
        let new = if let Some(etag) = written {
            Versioned { head: Arc::new(head), etag: Some(etag) }
        } else {
            let found = self.fresh_head(session, key).await?;
            if found.head.write != head.write {
                return Ok(None);
            }
            // This write, of which the first response was lost.
            found
        };
        session.set_cached(Some(new.clone()));
        Ok(Some(new))
    }

    /// Reads the index of a part; `None` if it does not exist.
    async fn read_index(&self, key: &SessionKey, part: &Part) -> Result<Option<Index>, StoreError> {
        let path = self.objects.parts(key).join(&*part.id);
        match self.objects.read_range(&path, 0..part.index_bytes).await? {
            Read::Object { bytes, .. } => read_index(part, &bytes).map(Some),
            Read::Missing | Read::Unchanged => Ok(None),
        }
    }

    /// Reads all entries of a part; `None` if it does not exist.
    async fn read_entries(
        &self,
        key: &SessionKey,
        part: &Part,
    ) -> Result<Option<Vec<StoredEntry>>, StoreError> {
        let path = self.objects.parts(key).join(&*part.id);
        let Read::Object { bytes, .. } = self.objects.read(&path, None).await? else {
            return Ok(None);
        };
        let at = usize::try_from(part.index_bytes).unwrap_or(usize::MAX);
        let (index, texts) = bytes.split_at_checked(at).ok_or_else(|| corrupt("part"))?;
        read_index(part, index)?.entries(texts).map(Some)
    }

    /// Returns the time on the clock of the server.
    fn now_ms(&self) -> u64 {
        now_ms().saturating_add_signed(self.ahead_ms)
    }
}

fn read_index(part: &Part, bytes: &[u8]) -> Result<Index, StoreError> {
    block::read_line::<IndexJson>(bytes, "part")?.check(part.first, part.last)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for S3Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Store")
            .field("target", &self.shared.objects.target())
            .finish_non_exhaustive()
    }
}

impl SessionStore for S3Store {
    fn location(&self) -> Option<String> {
        Some(format!("S3 {}", self.shared.objects.target()))
    }

    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        Box::pin(append::claim(&self.shared, key))
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(append::append(&self.shared, key, append))
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(load::load(&self.shared, key, load))
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        Box::pin(list::list(&self.shared, project, list))
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<SessionRow>> {
        Box::pin(list::get(&self.shared, key))
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        Box::pin(async move {
            let session = self.shared.sessions.get(key);
            let head = self.shared.fresh_head(&session, key).await?.head;
            Ok(head.subpaths.iter().cloned().collect())
        })
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(delete::delete(&self.shared, key, subpath))
    }

    fn projects<'a>(
        &'a self,
        scope: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        Box::pin(async move {
            let mut projects = list::projects(&self.shared, scope).await?;
            projects.retain(|project| after.is_none_or(|after| project.as_str() > after));
            projects.truncate(limit.max(1));
            Ok(projects)
        })
    }

    fn delete_unchanged<'a>(
        &'a self,
        key: &'a SessionKey,
        modified_ms: u64,
    ) -> StoreFuture<'a, bool> {
        Box::pin(delete::delete_unchanged(&self.shared, key, modified_ms))
    }
}
