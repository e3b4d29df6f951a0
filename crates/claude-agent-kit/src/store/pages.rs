//! Reads a session from a store page by page, with limits: a faulty store could go on for ever.

use std::time::Duration;

use tokio::time::Instant;

use super::error::{StoreError, StoreErrorKind};
use super::key::{Sequence, SessionKey};
use super::request::{EntryPage, Load};
use super::write_session::load_page;
use super::{SessionStore, StoreFuture};

/// The bytes of all entries of a session.
const MAX_BYTES: u64 = 2048 * 1024 * 1024;

/// The number of pages of a session.
const MAX_PAGES: u64 = 100_000;

/// The time for reading a session.
const MAX_TIME: Duration = Duration::from_secs(600);

/// The position in a session that is being read.
#[derive(Debug)]
pub(crate) struct Pages {
    after: Sequence,
    bytes: u64,
    count: u64,
    began: Instant,
    is_over: bool,
}

impl Pages {
    pub(crate) fn new() -> Self {
        Self::after(Sequence::new(0))
    }

    /// Starts after an entry.
    pub(crate) fn after(after: Sequence) -> Self {
        Self { after, bytes: 0, count: 0, began: Instant::now(), is_over: false }
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
            let page = load_page(store, key, load.after(self.after)).await?;
            self.is_over = !page.more;
            if let Some(last) = page.entries.last() {
                self.after = last.sequence;
            }
            self.count += 1;
            for entry in &page.entries {
                self.bytes += entry.text.len() as u64 + 1;
            }
            if self.bytes > MAX_BYTES {
                return Err(too_large("2048 MiB of entries"));
            }
            if page.more && self.count >= MAX_PAGES {
                return Err(too_large("100,000 pages"));
            }
            if page.more && self.began.elapsed() > MAX_TIME {
                return Err(too_large("it returned within 10 minutes"));
            }
            Ok(Some(page))
        })
    }
}

pub(crate) fn too_large(limit: &str) -> StoreError {
    let message = format!(
        "the store has more of the session than {limit}; help: check the store, or delete the session"
    );
    StoreError::new(StoreErrorKind::Rejected, message)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::entry::{EntryId, StoredEntry};
    use super::super::key::{Epoch, ProjectKey, Subpath};
    use super::super::request::{Append, Appended, List, SessionList};
    use super::*;

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
            unreachable!()
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
}
