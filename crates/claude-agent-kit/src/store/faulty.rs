//! A store for tests that fails when it is told to.

use std::sync::Mutex;

use crate::lock::lock;
use claude_session_store::{
    Append, Appended, EntryPage, Epoch, List, Load, MemoryStore, ProjectKey, SessionKey,
    SessionList, SessionStore, StoreError, StoreErrorKind, StoreFuture, Subpath,
};

/// A store in memory that fails after a number of requests, until it is repaired.
#[derive(Debug, Default)]
pub(crate) struct FaultyStore {
    pub(crate) inner: MemoryStore,
    /// The number of requests before the failure; `None` if there is none.
    pub(crate) requests_left: Mutex<Option<usize>>,
    /// Whether an append that fails has been stored.
    pub(crate) stores_failed_appends: bool,
    /// The number of entries and of bytes of each append.
    pub(crate) appends: Mutex<Vec<(usize, usize)>>,
    /// The number of entries of a page; 0 for the limit of the request.
    pub(crate) page: usize,
    /// The location; empty for none.
    pub(crate) location: String,
    /// Whether a deletion panics.
    pub(crate) panics: bool,
}

impl FaultyStore {
    pub(crate) fn at(location: &str) -> Self {
        Self { location: location.to_owned(), ..Self::default() }
    }

    pub(crate) fn fail_after(&self, requests: usize) {
        *lock(&self.requests_left) = Some(requests);
    }

    pub(crate) fn repair(&self) {
        *lock(&self.requests_left) = None;
    }

    fn check(&self) -> Result<(), StoreError> {
        match &mut *lock(&self.requests_left) {
            Some(0) => Err(StoreError::new(StoreErrorKind::Unavailable, "the store is down")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl SessionStore for FaultyStore {
    fn location(&self) -> Option<String> {
        Some(self.location.clone())
    }

    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            self.check()?;
            self.inner.claim(key).await
        })
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let bytes = append.entries.iter().map(|entry| entry.text().len()).sum();
            lock(&self.appends).push((append.entries.len(), bytes));
            let checked = self.check();
            if checked.is_err() && self.stores_failed_appends {
                self.inner.append(key, append).await?;
            }
            checked?;
            self.inner.append(key, append).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(async move {
            self.check()?;
            let load = if self.page > 0 { load.limit(self.page) } else { load };
            self.inner.load(key, load).await
        })
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        Box::pin(async move {
            self.check()?;
            self.inner.list(project, list).await
        })
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        Box::pin(async move {
            self.check()?;
            self.inner.subpaths(key).await
        })
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            self.check()?;
            self.inner.delete(key, subpath).await
        })
    }

    fn projects<'a>(
        &'a self,
        scope: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        Box::pin(async move {
            self.check()?;
            self.inner.projects(scope, after, limit).await
        })
    }

    fn delete_unchanged<'a>(
        &'a self,
        key: &'a SessionKey,
        modified_ms: u64,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            assert!(!self.panics, "the store is down");
            self.check()?;
            self.inner.delete_unchanged(key, modified_ms).await
        })
    }
}
