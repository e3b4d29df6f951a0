//! Reads from a store page by page, with limits: a faulty store could go on for ever.

use std::time::Duration;

use tokio::time::Instant;

use super::upload::limited;
use super::write_session::load_page;
use claude_session_store::{
    EntryPage, List, Load, ProjectKey, Sequence, SessionKey, SessionList, SessionRow, SessionStore,
    StoreError, StoreErrorKind, StoreFuture,
};

/// The bytes of all pages.
const MAX_BYTES: u64 = 2048 * 1024 * 1024;

/// The number of pages.
const MAX_PAGES: u64 = 100_000;

/// The time for all pages.
const MAX_TIME: Duration = Duration::from_secs(600);

/// What a store may return on all pages of a session or of a list.
#[derive(Debug)]
pub(crate) struct Bounds {
    /// What the pages are of.
    of: &'static str,
    bytes: u64,
    count: u64,
    /// The time of the requests. What the host does between them does not count.
    took: Duration,
}

impl Bounds {
    /// Starts to read a list.
    pub(crate) fn list() -> Self {
        Self::of("list")
    }

    fn of(of: &'static str) -> Self {
        Self { of, bytes: 0, count: 0, took: Duration::ZERO }
    }

    /// Counts a page that was requested at `began`, and after which there may be more.
    pub(crate) fn add(
        &mut self,
        bytes: usize,
        more: bool,
        began: Instant,
    ) -> Result<(), StoreError> {
        self.count += 1;
        self.took += began.elapsed();
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.bytes > MAX_BYTES {
            return Err(too_large(self.of, "2048 MiB"));
        }
        if more && self.count >= MAX_PAGES {
            return Err(too_large(self.of, "100,000 pages"));
        }
        if more && self.took > MAX_TIME {
            return Err(too_large(self.of, "it returned within 10 minutes"));
        }
        Ok(())
    }
}

/// The position in a session that is being read.
#[derive(Debug)]
pub(crate) struct Pages {
    after: Sequence,
    bounds: Bounds,
    is_over: bool,
}

impl Pages {
    pub(crate) fn new() -> Self {
        Self::after(Sequence::new(0))
    }

    /// Starts after an entry.
    pub(crate) fn after(after: Sequence) -> Self {
        Self { after, bounds: Bounds::of("session"), is_over: false }
    }

    /// Loads the next page; `None` after the last one.
    pub(crate) fn next<'a>(
        &'a mut self,
        store: &'a dyn SessionStore,
        key: &'a SessionKey,
        load: Load<'a>,
    ) -> StoreFuture<'a, Option<EntryPage>> {
        Box::pin(async move {
            if self.is_over {
                return Ok(None);
            }
            let began = Instant::now();
            let page = load_page(store, key, load.after(self.after)).await?;
            self.is_over = !page.more;
            if let Some(last) = page.entries.last() {
                self.after = last.sequence;
            }
            let bytes = page.entries.iter().map(|entry| entry.text.len() + 1).sum();
            self.bounds.add(bytes, page.more, began)?;
            Ok(Some(page))
        })
    }
}

/// Requests the page of a list that begins at a cursor.
pub(crate) fn list_after(cursor: Option<&str>, limit: usize) -> List<'_> {
    let mut list = List::new().limit(limit);
    list.cursor = cursor;
    list
}

/// Loads a page of the sessions of a project.
pub(crate) fn list_page<'a>(
    bounds: &'a mut Bounds,
    store: &'a dyn SessionStore,
    project: &'a ProjectKey,
    list: List<'a>,
) -> StoreFuture<'a, SessionList> {
    Box::pin(async move {
        let began = Instant::now();
        let listed = limited(store, store.list(project, list)).await?;
        let size = |row: &SessionRow| {
            let summary = row.summary.as_ref().map_or(0, |summary| summary.data.len());
            row.session.as_str().len() + summary + 1
        };
        bounds.add(listed.sessions.iter().map(size).sum(), listed.next.is_some(), began)?;
        Ok(listed)
    })
}

pub(crate) fn too_large(of: &str, limit: &str) -> StoreError {
    let message = format!("the store has more of the {of} than {limit}");
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help("check the store, or delete what is no longer needed")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::latest::latest;
    use super::super::retention::Retention;
    use super::*;
    use claude_session_store::{Append, Appended, EntryId, Epoch, StoredEntry, Subpath};

    /// A store whose session has no end.
    struct Endless {
        text: Arc<str>,
        delay: Duration,
    }

    impl SessionStore for Endless {
        fn claim<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Epoch> {
            unreachable!()
        }

        fn append<'a>(&'a self, _: &'a SessionKey, _: Append<'a>) -> StoreFuture<'a, Appended> {
            unreachable!()
        }

        fn load<'a>(&'a self, _: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
            Box::pin(async move {
                tokio::time::sleep(self.delay).await;
                let next = Sequence::new(load.after.get() + 1);
                let entry = StoredEntry::new(next, None, EntryId::unique(), self.text.clone());
                Ok(EntryPage::new(vec![entry], true))
            })
        }

        fn list<'a>(&'a self, _: &'a ProjectKey, _: List<'a>) -> StoreFuture<'a, SessionList> {
            Box::pin(async move {
                tokio::time::sleep(self.delay).await;
                Ok(SessionList::new(Vec::new(), Some("again".to_owned())))
            })
        }

        fn subpaths<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
            unreachable!()
        }

        fn delete<'a>(&'a self, _: &'a SessionKey, _: Option<&'a Subpath>) -> StoreFuture<'a, ()> {
            unreachable!()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_pages_and_time_are_limited() {
        let id = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";
        let key = SessionKey::new("tenant", "project", id).unwrap();
        let long: Arc<str> = "x".repeat(16 * 1024 * 1024).into();
        for (text, delay, limit) in [
            (&long, Duration::ZERO, "2048 MiB"),
            (&Arc::from("{}"), Duration::ZERO, "100,000 pages"),
            (&Arc::from("{}"), Duration::new(10, 0), "10 minutes"),
        ] {
            let store = Endless { text: text.clone(), delay };
            let mut pages = Pages::new();
            let error = loop {
                match pages.next(&store, &key, Load::all()).await {
                    Ok(page) => assert!(page.is_some()),
                    Err(error) => break error,
                }
            };
            assert!(error.to_string().contains(limit), "{error}");
            assert!(!error.is_retryable(), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn lists_are_limited() {
        let project = ProjectKey::new("tenant", "project").unwrap();
        for (delay, limit) in
            [(Duration::ZERO, "100,000 pages"), (Duration::new(10, 0), "10 minutes")]
        {
            let store = Endless { text: "{}".into(), delay };
            let error = latest(&store, &project, None).await.unwrap_err();
            assert!(error.to_string().contains(limit), "{error}");
            let retention = Retention::new("tenant").project("project");
            let report = retention.sessions(store, Duration::ZERO).run().await;
            let error = report.into_result().unwrap_err();
            assert!(error.to_string().contains(limit), "{error}");
        }
    }
}
