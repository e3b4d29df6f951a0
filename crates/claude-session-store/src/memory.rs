//! A store in the memory of this process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use super::entry::{EntryId, StoredEntry};
use super::error::StoreError;
use super::key::{Epoch, ProjectKey, Sequence, SessionKey, Subpath};
use super::request::{
    Append, Appended, EntryPage, List, Load, LoadScope, SessionList, SessionRow, Summary,
};
use super::{SessionStore, StoreFuture};
use crate::lock;
use crate::record::MemoryRecords;
use claude_wire::id::SessionId;

/// Keeps sessions and [records](crate::record) in memory, for tests and for hosts with a single process.
///
/// A clone shares them. The memory is not limited: entries are kept until they are deleted, and a
/// deleted or claimed session keeps a small record with its epoch.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    projects: Arc<Mutex<Projects>>,
    pub(crate) records: MemoryRecords,
}

impl MemoryStore {
    /// Creates an empty store.
    pub fn new() -> Self {
        Self::default()
    }
}

/// The projects: few, in comparison to their sessions.
#[derive(Debug, Default)]
struct Projects(Vec<(ProjectKey, StoredProject)>);

impl Projects {
    fn get(&self, key: &ProjectKey) -> Option<&StoredProject> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, project)| project)
    }

    fn get_mut(&mut self, key: &ProjectKey) -> Option<&mut StoredProject> {
        self.0.iter_mut().find(|(known, _)| known == key).map(|(_, project)| project)
    }

    fn get_or_add(&mut self, key: &ProjectKey) -> &mut StoredProject {
        let known = self.0.iter().position(|(known, _)| known == key);
        let at = known.unwrap_or_else(|| {
            self.0.push((key.clone(), StoredProject::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }

    fn session(&self, key: &SessionKey) -> Option<&StoredSession> {
        self.get(key.project_key())?.sessions.get(key.session())
    }
}

#[derive(Debug, Default)]
struct StoredProject {
    sessions: HashMap<SessionId, StoredSession>,
}

#[derive(Debug, Default)]
struct StoredSession {
    epoch: Epoch,
    last: Sequence,
    /// The last entry of the main transcript, if there is one.
    last_of_main: Option<Sequence>,
    modified_ms: u64,
    /// In the order of their sequence numbers.
    entries: Vec<StoredEntry>,
    ids: HashMap<(Option<Subpath>, EntryId), Sequence>,
    summary: Option<Summary>,
}

impl StoredSession {
    fn append(&mut self, append: &Append<'_>) -> Appended {
        let before = self.last;
        let mut sequences = Vec::with_capacity(append.entries.len());
        let mut skipped = 0;
        for entry in append.entries {
            let id = (entry.subpath().cloned(), entry.id().clone());
            if let Some(stored) = self.ids.get(&id) {
                sequences.push(*stored);
                skipped += 1;
                continue;
            }
            self.last = Sequence::new(self.last.get() + 1);
            if id.0.is_none() {
                self.last_of_main = Some(self.last);
            }
            let (subpath, entry_id) = id.clone();
            let text = Arc::clone(entry.text());
            self.entries.push(StoredEntry::new(self.last, subpath, entry_id, text));
            self.ids.insert(id, self.last);
            sequences.push(self.last);
        }
        if let Some(update) = append.summary.filter(|update| update.after == before) {
            self.summary = Some(Summary::new(update.data.to_owned(), self.last));
        }
        Appended::new(self.last, skipped, sequences)
    }

    fn load(&self, load: &Load<'_>) -> EntryPage {
        let start = self.entries.partition_point(|entry| entry.sequence <= load.after);
        let is_wanted = |entry: &&StoredEntry| match load.subpath {
            LoadScope::All => true,
            LoadScope::Main => entry.subpath.is_none(),
            LoadScope::Subpath(subpath) => entry.subpath.as_ref() == Some(subpath),
        };
        page(self.entries[start..].iter().filter(is_wanted), load)
    }

    fn subpaths(&self) -> Vec<Subpath> {
        let mut subpaths = Vec::new();
        for entry in &self.entries {
            if let Some(subpath) = &entry.subpath {
                subpaths.push(subpath.clone());
            }
        }
        subpaths.sort();
        subpaths.dedup();
        subpaths
    }

    /// Removes one transcript.
    fn remove(&mut self, subpath: &Subpath) {
        self.entries.retain(|entry| entry.subpath.as_ref() != Some(subpath));
        self.ids.retain(|(other, _), _| other.as_ref() != Some(subpath));
    }

    /// Removes all transcripts and keeps what fences earlier owners.
    fn clear(&mut self) {
        self.entries.clear();
        self.ids.clear();
        self.last_of_main = None;
        self.summary = None;
    }
}

fn page<'a>(entries: impl Iterator<Item = &'a StoredEntry>, load: &Load<'_>) -> EntryPage {
    let mut page = EntryPage::default();
    let mut bytes = 0_usize;
    for entry in entries {
        bytes = bytes.saturating_add(entry.text.len());
        let is_full = page.entries.len() >= load.limit || bytes > load.max_bytes;
        if is_full && !page.entries.is_empty() {
            page.more = true;
            break;
        }
        page.entries.push(entry.clone());
    }
    page
}

impl StoredProject {
    fn append(&mut self, key: &SessionKey, append: &Append<'_>) -> Result<Appended, StoreError> {
        let (current, last) = match self.sessions.get(key.session()) {
            Some(session) => (session.epoch, session.last),
            None => Default::default(),
        };
        if let Some(epoch) = append.epoch.filter(|epoch| *epoch != current) {
            return Err(StoreError::superseded(key, epoch, current));
        }
        if append.entries.is_empty() {
            return Ok(Appended::new(last, 0, Vec::new()));
        }
        let session = self.sessions.entry(key.session().clone()).or_default();
        let main_before = session.last_of_main;
        let appended = session.append(append);
        if session.last_of_main != main_before {
            session.modified_ms = now_ms().max(session.modified_ms + 1);
        }
        Ok(appended)
    }

    fn list(&self, request: &List<'_>) -> Result<SessionList, StoreError> {
        let before = match request.cursor {
            Some(cursor) => {
                Some(read_cursor(cursor).ok_or_else(|| StoreError::invalid_cursor(cursor))?)
            }
            None => None,
        };
        let mut listed = Vec::new();
        for (id, session) in &self.sessions {
            let row = (session.modified_ms, id);
            let is_after = before.as_ref().is_none_or(|(time, id)| row < (*time, id));
            if session.last_of_main.is_some() && is_after {
                listed.push(row);
            }
        }
        listed.sort_by(|one, other| other.cmp(one));
        let limit = request.limit.max(1);
        let rows: Vec<SessionRow> =
            listed.iter().take(limit).filter_map(|(_, id)| self.row(id)).collect();
        let cursor = |row: &SessionRow| format!("{}.{}", row.modified_ms, row.session);
        let next = (listed.len() > rows.len()).then(|| rows.last().map(cursor)).flatten();
        Ok(SessionList::new(rows, next))
    }

    /// Returns what is listed of a session.
    fn row(&self, id: &SessionId) -> Option<SessionRow> {
        let session = self.sessions.get(id)?;
        let summary = session.summary.clone();
        Some(SessionRow::new(id.clone(), session.modified_ms, session.last_of_main?, summary))
    }

    fn delete(&mut self, key: &SessionKey, subpath: Option<&Subpath>) {
        let Some(session) = self.sessions.get_mut(key.session()) else { return };
        match subpath {
            Some(subpath) => session.remove(subpath),
            None => session.clear(),
        }
    }
}

impl StoredProject {
    /// Deletes a session that was last modified at this time, and claims it.
    fn delete_unchanged(&mut self, key: &SessionKey, modified_ms: u64) -> bool {
        let session = self.sessions.get_mut(key.session());
        let is_same = |session: &&mut StoredSession| {
            session.last_of_main.is_some() && session.modified_ms == modified_ms
        };
        let Some(session) = session.filter(is_same) else { return false };
        session.clear();
        session.epoch = Epoch::new(session.epoch.get() + 1);
        true
    }
}

/// Reads the position in the list of sessions that a cursor names.
fn read_cursor(cursor: &str) -> Option<(u64, SessionId)> {
    let (modified_ms, session) = cursor.split_once('.')?;
    Some((modified_ms.parse().ok()?, SessionId::from(session)))
}

/// Returns the time of this machine in milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

impl SessionStore for MemoryStore {
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async {
            let mut projects = lock(&self.projects);
            let project = projects.get_or_add(key.project_key());
            let session = project.sessions.entry(key.session().clone()).or_default();
            session.epoch = Epoch::new(session.epoch.get() + 1);
            Ok(session.epoch)
        })
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let mut projects = lock(&self.projects);
            projects.get_or_add(key.project_key()).append(key, &append)
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(async move {
            let projects = lock(&self.projects);
            Ok(projects.session(key).map(|session| session.load(&load)).unwrap_or_default())
        })
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        Box::pin(async move {
            match lock(&self.projects).get(project) {
                Some(project) => project.list(&list),
                None => StoredProject::default().list(&list),
            }
        })
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<SessionRow>> {
        Box::pin(async move {
            let projects = lock(&self.projects);
            Ok(projects.get(key.project_key()).and_then(|project| project.row(key.session())))
        })
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        Box::pin(async {
            let projects = lock(&self.projects);
            Ok(projects.session(key).map(StoredSession::subpaths).unwrap_or_default())
        })
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            if let Some(project) = lock(&self.projects).get_mut(key.project_key()) {
                project.delete(key, subpath);
            }
            Ok(())
        })
    }

    fn projects<'a>(
        &'a self,
        scope: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        Box::pin(async move {
            let projects = lock(&self.projects);
            let mut names = Vec::new();
            for (key, _) in &projects.0 {
                if key.scope() == scope && after.is_none_or(|after| key.project() > after) {
                    names.push(key.project().to_owned());
                }
            }
            names.sort();
            names.truncate(limit.max(1));
            Ok(names)
        })
    }

    fn delete_unchanged<'a>(
        &'a self,
        key: &'a SessionKey,
        modified_ms: u64,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let mut projects = lock(&self.projects);
            let project = projects.get_mut(key.project_key());
            Ok(project.is_some_and(|project| project.delete_unchanged(key, modified_ms)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::entry::NewEntry;
    use super::super::error::StoreErrorKind;
    use super::*;

    const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

    fn key() -> SessionKey {
        SessionKey::new("tenant", "project", ID).unwrap()
    }

    fn entries(texts: &[&str]) -> Vec<NewEntry> {
        texts.iter().map(|text| NewEntry::new(None, *text, 0).unwrap()).collect()
    }

    fn texts(page: &EntryPage) -> Vec<&str> {
        page.entries.iter().map(|entry| &*entry.text).collect()
    }

    #[tokio::test]
    async fn a_repeated_append_skips_the_stored_entries() {
        let (store, key) = (MemoryStore::new(), key());
        let appended = store.append(&key, Append::new(&entries(&["1", "2"]))).await.unwrap();
        assert_eq!((appended.last, appended.skipped), (Sequence::new(2), 0));
        let appended = store.append(&key, Append::new(&entries(&["2", "3"]))).await.unwrap();
        assert_eq!((appended.last, appended.skipped), (Sequence::new(3), 1));
        assert_eq!(appended.sequences, [Sequence::new(2), Sequence::new(3)]);
        let page = store.load(&key, Load::all()).await.unwrap();
        assert_eq!(texts(&page), ["1", "2", "3"]);
    }

    #[tokio::test]
    async fn an_earlier_epoch_is_rejected_also_after_a_delete() {
        let (store, key) = (MemoryStore::new(), key());
        let old = store.claim(&key).await.unwrap();
        let new = store.claim(&key).await.unwrap();
        assert!(new > old);
        for _ in 0..2 {
            let batch = entries(&["1"]);
            let error = store.append(&key, Append::new(&batch).epoch(old)).await.unwrap_err();
            assert_eq!(error.kind(), StoreErrorKind::Superseded);
            assert_eq!(store.load(&key, Load::all()).await.unwrap(), EntryPage::default());
            store.delete(&key, None).await.unwrap();
        }
        assert!(store.append(&key, Append::new(&entries(&["1"])).epoch(new)).await.is_ok());
    }

    #[tokio::test]
    async fn a_page_ends_at_its_limits() {
        let (store, key) = (MemoryStore::new(), key());
        store.append(&key, Append::new(&entries(&["100", "200", "300"]))).await.unwrap();
        for load in [Load::all(), Load::main()] {
            for (load, expected) in [
                (load, &["100", "200", "300"][..]),
                (load.limit(2), &["100", "200"]),
                (load.limit(0), &["100"]),
                (load.max_bytes(0), &["100"]),
                (load.max_bytes(6), &["100", "200"]),
                (load.after(Sequence::new(2)), &["300"]),
                (load.after(Sequence::new(u64::MAX)), &[]),
            ] {
                let page = store.load(&key, load).await.unwrap();
                assert_eq!(texts(&page), expected, "{load:?}");
                let is_last = expected.last().is_none_or(|text| *text == "300");
                assert_eq!(page.more, !is_last, "{load:?}");
            }
        }
    }

    #[tokio::test]
    async fn sessions_are_listed_in_pages_with_the_newest_first() {
        let store = MemoryStore::new();
        let project = ProjectKey::new("tenant", "project").unwrap();
        let id = |number: u32| format!("{number:08}-0000-4000-8000-000000000000");
        for number in [3, 1, 2, 3] {
            let key = project.session(&*id(number)).unwrap();
            let entry = NewEntry::with_id(None, EntryId::unique(), "{}").unwrap();
            store.append(&key, Append::new(&[entry])).await.unwrap();
        }
        let (mut cursor, mut found) = (None, Vec::new());
        loop {
            let list = List { cursor: cursor.as_deref(), limit: 1 };
            let page = store.list(&project, list).await.unwrap();
            found.extend(page.sessions.into_iter().map(|row| (row.modified_ms, row.session)));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert!(found.is_sorted_by_key(|(modified_ms, _)| std::cmp::Reverse(*modified_ms)));
        let ids: BTreeSet<String> = found.iter().map(|(_, id)| id.to_string()).collect();
        assert_eq!((ids, found.len()), ([1, 2, 3].map(id).into(), 3));
        let error = store.list(&project, List::new().cursor("x")).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected);
    }
}
