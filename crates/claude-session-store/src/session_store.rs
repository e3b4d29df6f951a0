//! The trait of session stores.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crate::{
    Append, Appended, EntryPage, Epoch, List, Load, ProjectKey, SessionKey, SessionList,
    SessionRow, StoreError, Subpath,
};

/// The future returned by the methods of a [`SessionStore`].
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Stores the transcripts of sessions.
///
/// A store is shared by all sessions of a host, as `Arc<dyn SessionStore>`, and usually by several hosts.
/// Every method may be called concurrently, for the same session too.
///
/// # Implementing a store
/// - A method that fails has changed nothing, or has failed with [`StoreErrorKind::Unavailable`](crate::StoreErrorKind::Unavailable): then its
///   effect is unknown, and the caller tries again. A retried append stores nothing twice.
/// - Dropping a future may cancel the request or let it complete.
/// - Keys are compared byte for byte: case, accents and Unicode normalization matter.
///
/// The module `conformance` (a feature) checks all rules.
pub trait SessionStore: Send + Sync + 'static {
    /// Returns where the store keeps its sessions, for errors: a path or a server, such as `SQLite "/srv/sessions.db"`,
    /// without credentials. The default implementation returns `None`, and errors say "the session store".
    fn location(&self) -> Option<String> {
        None
    }

    /// Takes ownership of a session and returns its new epoch, which is greater than all earlier ones.
    ///
    /// The last claimer wins. The claim is atomic: of two concurrent ones, each gets its own epoch. A session
    /// can be claimed before it has entries, and is then not listed.
    ///
    /// # Errors
    /// Fails if the store cannot be reached or cannot be written to.
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch>;

    /// Appends entries to a session in order, all of them or none. They are durable when the method returns.
    ///
    /// - An entry whose subpath and ID the session already has is skipped; so is the second of two such
    ///   entries in one append.
    /// - All transcripts of a session share one counter of sequence numbers.
    /// - With [`Append::epoch`], the append is rejected if the session has been claimed since. Without one, it
    ///   is accepted from any host, which is meant for titles and tags.
    /// - [`Append::summary`] replaces the summary of the session if its `after` equals the session's last
    ///   sequence number before this append, and is ignored otherwise.
    /// - Without entries, only the epoch is checked.
    ///
    /// # Errors
    /// Fails with [`StoreErrorKind::Superseded`](crate::StoreErrorKind::Superseded) if the epoch is not the current one.
    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended>;

    /// Returns entries after a sequence number, in order, of one transcript or of the whole session.
    ///
    /// A page ends at [`Load::limit`] entries or before the one that would exceed [`Load::max_bytes`] of
    /// text. It has at least one entry if there is one. A session that does not exist has no entries.
    ///
    /// # Errors
    /// Fails if the store cannot be reached, or if an entry cannot be read.
    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage>;

    /// Returns the sessions of a project that have a main transcript, the most recently modified first.
    ///
    /// A session that is modified between two pages moves to the front and may be missing from later pages.
    /// No session is listed twice.
    ///
    /// # Errors
    /// Fails with [`StoreErrorKind::Rejected`](crate::StoreErrorKind::Rejected) if the cursor is not one of this store.
    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList>;

    /// Returns what [`list`](Self::list) returns of one session; `None` if it is not listed.
    ///
    /// The default implementation searches the lists; a store that can look the session up should do so.
    ///
    /// # Errors
    /// Fails if the store cannot be reached.
    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<SessionRow>> {
        Box::pin(async move {
            let mut cursor: Option<String> = None;
            loop {
                let list = List { cursor: cursor.as_deref(), ..List::new() };
                let page = self.list(key.project_key(), list).await?;
                let found = page.sessions.into_iter().find(|row| row.session == *key.session());
                if found.is_some() || page.next.is_none() {
                    return Ok(found);
                }
                cursor = page.next;
            }
        })
    }

    /// Returns the subpaths of a session that have entries, sorted, without the main transcript.
    ///
    /// # Errors
    /// Fails if the store cannot be reached.
    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>>;

    /// Deletes a session with all its transcripts, or with a subpath one transcript of it.
    ///
    /// The epoch and the sequence numbers do not start again afterwards, so an earlier owner stays fenced. A
    /// session or transcript that does not exist is not an error.
    ///
    /// # Errors
    /// Fails if the store cannot be reached or cannot be written to.
    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()>;

    /// Returns the first `limit` projects of a scope with listed sessions, sorted by bytes, after the project `after`.
    /// A store may also return projects whose sessions were deleted. `Retention` of the kit needs it.
    ///
    /// # Errors
    /// Fails if the store cannot be reached. The default implementation fails with [`StoreErrorKind::Rejected`](crate::StoreErrorKind::Rejected).
    fn projects<'a>(
        &'a self,
        scope: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        let _ = (scope, after, limit);
        Box::pin(async { Err(StoreError::deletion_unsupported("SessionStore::projects")) })
    }

    /// Deletes a session with all its transcripts if it is listed with this [time](SessionRow::modified_ms), and claims
    /// it: a host that still has it open is fenced, so that it does not store the rest of a conversation whose
    /// beginning is gone. Comparison, deletion and claim are one atomic step. Returns whether the session was
    /// deleted. `Retention` of the kit needs it.
    ///
    /// # Errors
    /// Fails if the store cannot be reached or cannot be written to. The default implementation fails with
    /// [`StoreErrorKind::Rejected`](crate::StoreErrorKind::Rejected).
    fn delete_unchanged<'a>(
        &'a self,
        key: &'a SessionKey,
        modified_ms: u64,
    ) -> StoreFuture<'a, bool> {
        let _ = (key, modified_ms);
        Box::pin(async { Err(StoreError::deletion_unsupported("SessionStore::delete_unchanged")) })
    }
}

/// A shared store is a store.
impl<S: SessionStore + ?Sized> SessionStore for Arc<S> {
    fn location(&self) -> Option<String> {
        (**self).location()
    }

    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        (**self).claim(key)
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        (**self).append(key, append)
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        (**self).load(key, load)
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        (**self).list(project, list)
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<SessionRow>> {
        (**self).get(key)
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        (**self).subpaths(key)
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        (**self).delete(key, subpath)
    }

    fn projects<'a>(
        &'a self,
        scope: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        (**self).projects(scope, after, limit)
    }

    fn delete_unchanged<'a>(
        &'a self,
        key: &'a SessionKey,
        modified_ms: u64,
    ) -> StoreFuture<'a, bool> {
        (**self).delete_unchanged(key, modified_ms)
    }
}
