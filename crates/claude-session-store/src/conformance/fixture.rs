//! The set-up of a check.

use std::fmt::Debug;
use std::sync::Arc;

use crate::{
    Append, Appended, Epoch, List, Load, NewEntry, ProjectKey, Sequence, SessionKey, SessionRow,
    SessionStore, StoreError, StoreErrorKind, StoredEntry, Subpath,
};

/// The result of a check.
pub(super) type Outcome = Result<(), Failure>;

/// Why a check failed.
#[derive(Debug)]
pub(super) struct Failure(pub(super) String);

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self(format!("unexpected error ({}): {error}", error.kind()))
    }
}

impl From<tokio::task::JoinError> for Failure {
    fn from(error: tokio::task::JoinError) -> Self {
        Self(format!("a task of the check panicked: {error}"))
    }
}

/// Fails the check unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err($crate::conformance::fixture::Failure(format!($($text)+)));
        }
    };
}
pub(super) use ensure;

/// Fails the check unless both values are equal.
pub(super) fn expect<T: PartialEq<U> + Debug + ?Sized, U: Debug + ?Sized>(
    what: &str,
    found: &T,
    expected: &U,
) -> Outcome {
    let shown = |value: String| value.chars().take(400).collect::<String>();
    let values = || (shown(format!("{expected:?}")), shown(format!("{found:?}")));
    ensure!(found == expected, "{what}: expected {}, found {}", values().0, values().1);
    Ok(())
}

/// Fails the check unless the result is an error of this kind.
pub(super) fn expect_error<T: Debug>(
    what: &str,
    result: Result<T, StoreError>,
    kind: StoreErrorKind,
) -> Outcome {
    match result {
        Ok(value) => Err(Failure(format!("{what}: expected an error ({kind}), found {value:?}"))),
        Err(error) => expect(what, &error.kind(), &kind),
    }
}

/// A new store and the keys that most checks use.
#[derive(Clone)]
pub(super) struct Fixture {
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) project: ProjectKey,
    pub(super) key: SessionKey,
}

impl Fixture {
    pub(super) fn new(store: Arc<dyn SessionStore>) -> Self {
        let project = project("scope", "project");
        let key = session(&project, 1);
        Self { store, project, key }
    }

    /// Returns the key of another session of the project.
    pub(super) fn session(&self, number: u32) -> SessionKey {
        session(&self.project, number)
    }

    /// Appends to the session of the fixture, without an epoch.
    pub(super) async fn append(&self, entries: &[NewEntry]) -> Result<Appended, StoreError> {
        self.store.append(&self.key, Append::new(entries)).await
    }

    /// Appends with an epoch.
    pub(super) async fn append_as(
        &self,
        epoch: Epoch,
        entries: &[NewEntry],
    ) -> Result<Appended, StoreError> {
        self.store.append(&self.key, Append::new(entries).epoch(epoch)).await
    }

    /// Returns the texts of the session of the fixture, page by page.
    pub(super) async fn texts(&self, load: Load<'_>) -> Result<Vec<String>, Failure> {
        Ok(texts(&self.load_from(&self.key, load).await?))
    }

    /// Returns the texts of all transcripts of a session.
    pub(super) async fn texts_of(&self, key: &SessionKey) -> Result<Vec<String>, Failure> {
        Ok(texts(&self.load_from(key, Load::all()).await?))
    }

    /// Returns all entries of a session, page by page.
    pub(super) async fn load_from(
        &self,
        key: &SessionKey,
        mut load: Load<'_>,
    ) -> Result<Vec<StoredEntry>, Failure> {
        let mut entries: Vec<StoredEntry> = Vec::new();
        loop {
            let page = self.store.load(key, load).await?;
            ensure!(!page.more || !page.entries.is_empty(), "an empty page has a next one");
            for entry in page.entries {
                ensure!(
                    entry.sequence > load.after,
                    "sequence numbers do not increase: {} after {}",
                    entry.sequence,
                    load.after
                );
                load.after = entry.sequence;
                entries.push(entry);
            }
            if !page.more {
                return Ok(entries);
            }
        }
    }

    /// Returns all listed sessions of a project, page by page.
    pub(super) async fn list(&self, project: &ProjectKey) -> Result<Vec<SessionRow>, Failure> {
        let (mut rows, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let mut list = List::new();
            list.cursor = cursor.as_deref();
            let page = self.store.list(project, list).await?;
            ensure!(
                page.next.is_none() || !page.sessions.is_empty(),
                "an empty page of sessions has a next one"
            );
            rows.extend(page.sessions);
            ensure!(rows.len() < 10_000, "the pages of sessions do not end");
            match page.next {
                Some(next) => cursor = Some(next),
                None => return Ok(rows),
            }
        }
    }

    /// Returns the IDs of all listed sessions of a project, sorted.
    pub(super) async fn listed(&self, project: &ProjectKey) -> Result<Vec<String>, Failure> {
        let rows = self.list(project).await?;
        let mut ids: Vec<String> = rows.iter().map(|row| row.session.to_string()).collect();
        ids.sort();
        Ok(ids)
    }

    /// Returns the row of the session of the fixture in the list.
    pub(super) async fn row(&self) -> Result<SessionRow, Failure> {
        let rows = self.list(&self.project).await?;
        let row = rows.into_iter().find(|row| row.session == *self.key.session());
        row.ok_or_else(|| Failure("the session is not listed".to_owned()))
    }
}

pub(super) fn texts(entries: &[StoredEntry]) -> Vec<String> {
    entries.iter().map(|entry| entry.text.to_string()).collect()
}

pub(super) fn sequences(entries: &[StoredEntry]) -> Vec<Sequence> {
    entries.iter().map(|entry| entry.sequence).collect()
}

pub(super) fn id(number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

pub(super) fn project(scope: &str, project: &str) -> ProjectKey {
    ProjectKey::new(scope, project).expect("a valid key")
}

pub(super) fn session(project: &ProjectKey, number: u32) -> SessionKey {
    project.session(&*id(number)).expect("a valid session ID")
}

pub(super) fn subpath(text: &str) -> Subpath {
    Subpath::new(text).expect("a valid subpath")
}

/// Returns an entry of the main transcript.
pub(super) fn entry(text: &str) -> NewEntry {
    entry_of(None, text)
}

/// Returns an entry of a transcript.
pub(super) fn entry_of(subpath: Option<&Subpath>, text: &str) -> NewEntry {
    NewEntry::new(subpath.cloned(), text, 0).expect("a JSON value")
}

/// Returns entries of the main transcript.
pub(super) fn entries(texts: &[&str]) -> Vec<NewEntry> {
    texts.iter().map(|text| entry(text)).collect()
}
