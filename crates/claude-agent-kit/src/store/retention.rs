//! Deletes old sessions and records.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::pages::{Bounds, list_after, list_page};
use super::store_name::StoreName;
use super::upload::{limited, panicked};
use crate::approval::Approvals;
use crate::panics;
use claude_session_store::record::RecordStore;
use claude_session_store::{ProjectKey, SessionKey, SessionRow, SessionStore, StoreError, now_ms};

/// How many sessions are deleted at once.
const CONCURRENCY: usize = 4;

/// How many sessions are listed with one request.
const SESSIONS: usize = 100;

/// How many projects are listed together.
const PROJECTS: usize = 100;

/// After so many failures, the rest is left for the next time.
const MAX_FAILURES: usize = 100;

/// Deletes the sessions and the records of a scope, such as approvals, that are older than a time. Run it every day, in one process or in
/// several:
///
/// ```
/// use std::time::Duration;
///
/// use claude_agent_kit::store::{MemoryStore, Retention};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let day = Duration::from_secs(24 * 3600);
/// let store = MemoryStore::new();
/// let retention = Retention::new("tenant-1").sessions(store.clone(), 90 * day).records(store, 365 * day);
/// let report = retention.run().await.into_result()?;
/// println!("deleted {} sessions and {} records", report.sessions, report.records);
/// # Ok(())
/// # }
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(example()).unwrap();
/// ```
///
/// # Sessions
/// A session is deleted as a whole, with its subagents, if the last entry of its main transcript was stored longer ago
/// than the age. A session that gets an entry meanwhile is kept: stores compare the time and delete in one step. A host
/// that has an old session open without having stored anything is fenced: its next entry fails with
/// [`Superseded`](crate::store::StoreErrorKind::Superseded). Sessions whose main transcript has no entries are not listed by stores and
/// not deleted. As after [`SessionStore::delete`], the epoch of the session stays. Files on the disks of hosts are
/// not deleted.
///
/// # Records
/// An approval, message, tool call or step report is deleted if it was created longer ago than the age, unless it is
/// [open](crate::store::Record::is_open). Records of other kinds are used again and again, and kept. An approval is open while it can be used: one that is pending or decided until it is used, withdrawn or
/// [expired](crate::approval::Approval::is_expired), and one whose call was started until its outcome is recorded. With both
/// stores, the open approvals of a session are deleted together with the session, because no run could use them. The
/// closed ones say who decided what, and have their own age.
///
/// # Age
/// An age of zero deletes everything of the scope except open records, and sessions without a main transcript. Ages are
/// measured on the clock of the store of records, and for sessions on the clock of this host: choose
/// hours or days rather than seconds.
#[derive(Clone)]
#[must_use = "a retention does nothing until `run` is called"]
pub struct Retention {
    scope: Arc<str>,
    sessions: Option<(Arc<dyn SessionStore>, Duration)>,
    project: Option<Arc<str>>,
    records: Option<(Approvals, Duration)>,
}

/// What a [`Retention`] has deleted.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct RetentionReport {
    /// The number of deleted sessions.
    pub sessions: u64,
    /// The number of sessions that were kept because they were changed meanwhile.
    pub changed: u64,
    /// The number of deleted records.
    pub records: u64,
    /// What could not be deleted. After 100 failures, the rest is left for the next time.
    pub failures: Vec<RetentionFailure>,
}

/// Something that could not be deleted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RetentionFailure {
    /// The session; `None` if a list failed, or the deletion of records of several sessions.
    pub session: Option<SessionKey>,
    /// Why it could not be deleted.
    pub error: StoreError,
}

impl RetentionReport {
    /// Returns the report, or its first failure.
    ///
    /// # Errors
    /// Fails if something could not be deleted.
    pub fn into_result(mut self) -> Result<Self, StoreError> {
        if self.failures.is_empty() { Ok(self) } else { Err(self.failures.swap_remove(0).error) }
    }

    fn fail(&mut self, session: Option<SessionKey>, error: StoreError) {
        self.failures.push(RetentionFailure { session, error });
    }
}

impl Retention {
    /// Creates a retention for a scope, which deletes nothing yet.
    pub fn new(scope: impl Into<Arc<str>>) -> Self {
        Self { scope: scope.into(), sessions: None, project: None, records: None }
    }

    /// Deletes sessions of this store whose last change is longer ago than `age`. Replaces an earlier store. Default: no
    /// sessions are deleted.
    pub fn sessions(mut self, store: impl SessionStore, age: Duration) -> Self {
        self.sessions = Some((Arc::new(store), age));
        self
    }

    /// Deletes sessions of this project only. Default: of all projects of the scope.
    pub fn project(mut self, project: impl Into<Arc<str>>) -> Self {
        self.project = Some(project.into());
        self
    }

    /// Deletes closed records of this store that were created longer ago than `age`. Replaces an earlier store. Default: no
    /// records are deleted.
    pub fn records(mut self, store: impl RecordStore, age: Duration) -> Self {
        self.records = Some((Approvals::new(self.scope.clone(), store), age));
        self
    }

    /// Deletes what is old enough. What cannot be deleted is in the report, and does not keep the rest from being
    /// deleted.
    ///
    /// # Cancel safety
    /// If the future is dropped, some sessions and records are deleted, each as a whole. It can be run again.
    pub async fn run(&self) -> RetentionReport {
        let mut report = RetentionReport::default();
        if let Some((store, age)) = &self.sessions {
            // Everything, whatever the clock of the store says.
            let before_ms =
                if age.is_zero() { u64::MAX } else { now_ms().saturating_sub(milliseconds(*age)) };
            if let Err(error) = self.delete_sessions(store, before_ms, &mut report).await {
                report.fail(None, error);
            }
        }
        if let Some((approvals, age)) = &self.records {
            match delete_records(approvals, milliseconds(*age)).await {
                Ok(count) => report.records += count,
                Err(error) => report.fail(None, error),
            }
        }
        report
    }

    async fn delete_sessions(
        &self,
        store: &Arc<dyn SessionStore>,
        before_ms: u64,
        report: &mut RetentionReport,
    ) -> Result<(), StoreError> {
        if let Some(project) = &self.project {
            let project = ProjectKey::new(&self.scope, project)?;
            return self.delete_from(store, &project, before_ms, report).await;
        }
        let (mut bounds, mut after): (Bounds, Option<String>) = (Bounds::list(), None);
        loop {
            let began = Instant::now();
            let page = store.projects(&self.scope, after.as_deref(), PROJECTS);
            let names = limited(&**store, page).await?;
            bounds.add(names.iter().map(String::len).sum(), !names.is_empty(), began)?;
            for name in &names {
                let project = ProjectKey::new(&self.scope, name)?;
                self.delete_from(store, &project, before_ms, report).await?;
                if report.failures.len() >= MAX_FAILURES {
                    return Ok(());
                }
            }
            let last = names.into_iter().next_back();
            // A page that does not go on would be requested forever.
            if last.is_none() || last <= after {
                return Ok(());
            }
            after = last;
        }
    }

    /// Deletes the old sessions of a project.
    async fn delete_from(
        &self,
        store: &Arc<dyn SessionStore>,
        project: &ProjectKey,
        before_ms: u64,
        report: &mut RetentionReport,
    ) -> Result<(), StoreError> {
        let (mut bounds, mut cursor): (Bounds, Option<String>) = (Bounds::list(), None);
        let mut deletions = JoinSet::new();
        loop {
            let list = list_after(cursor.as_deref(), SESSIONS);
            // The newest are first. The position of the next page does not depend on those that are deleted.
            let page = list_page(&mut bounds, &**store, project, list).await?;
            for row in page.sessions {
                if row.modified_ms > before_ms || report.failures.len() >= MAX_FAILURES {
                    continue;
                }
                while deletions.len() >= CONCURRENCY {
                    join(&mut deletions, report).await;
                }
                let key = project.session(row.session.clone())?;
                let approvals = self.records.as_ref().map(|(approvals, _)| approvals.clone());
                deletions.spawn(delete_session(store.clone(), key, row, approvals));
            }
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        while !deletions.is_empty() {
            join(&mut deletions, report).await;
        }
        Ok(())
    }
}

/// The result of one deletion.
struct Deletion {
    key: SessionKey,
    is_deleted: bool,
    approvals: u64,
    error: Option<StoreError>,
}

async fn delete_session(
    store: Arc<dyn SessionStore>,
    key: SessionKey,
    row: SessionRow,
    approvals: Option<Approvals>,
) -> Deletion {
    let deleting = limited(&*store, store.delete_unchanged(&key, row.modified_ms));
    let deleted = panics::caught(deleting).await;
    let broken = |name| panicked(name, &format!("deleted session {}", key.session()));
    let deleted = deleted.unwrap_or_else(|| Err(broken(StoreName::Sessions(&*store))));
    let (is_deleted, mut error) = match deleted {
        Ok(is_deleted) => (is_deleted, None),
        Err(error) => (false, Some(error)),
    };
    let mut count = 0;
    if let Some(approvals) = approvals.filter(|_| is_deleted) {
        let deleted = panics::caught(approvals.delete_open(key.session())).await;
        match deleted.unwrap_or_else(|| Err(broken(approvals.store_name()))) {
            Ok(deleted) => count = deleted,
            Err(failure) => error = Some(failure),
        }
    }
    Deletion { key, is_deleted, approvals: count, error }
}

/// Waits for one deletion.
async fn join(deletions: &mut JoinSet<Deletion>, report: &mut RetentionReport) {
    // Panics of the stores are caught, and nothing aborts the tasks.
    let Some(Ok(deletion)) = deletions.join_next().await else { return };
    report.sessions += u64::from(deletion.is_deleted);
    report.records += deletion.approvals;
    match deletion.error {
        Some(error) => report.fail(Some(deletion.key), error),
        None => report.changed += u64::from(!deletion.is_deleted),
    }
}

async fn delete_records(approvals: &Approvals, age_ms: u64) -> Result<u64, StoreError> {
    // What has expired is closed first, so that the deletion finds it.
    let now_ms = approvals.expire_before(age_ms).await?;
    let before_ms = if age_ms == 0 { u64::MAX } else { now_ms.saturating_sub(age_ms) };
    approvals.delete_closed(before_ms).await
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retention")
            .field("scope", &self.scope)
            .field("project", &self.project)
            .field("sessions", &self.sessions.as_ref().map(|(_, age)| age))
            .field("records", &self.records.as_ref().map(|(_, age)| age))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::faulty::FaultyStore;
    use super::*;
    use crate::approval::Approval;
    use claude_session_store::record::RecordWrite;
    use claude_session_store::{
        Append, Appended, EntryId, EntryPage, Epoch, List, Load, MemoryStore, NewEntry, Sequence,
        SessionList, StoreErrorKind, StoreFuture, Subpath,
    };

    fn key(number: u32) -> SessionKey {
        let id = format!("{number:08x}-0000-4000-8000-000000000000");
        SessionKey::new("tenant", "project", &*id).unwrap()
    }

    async fn append(store: &dyn SessionStore, number: u32) {
        let entries = [NewEntry::with_id(None, EntryId::unique(), "{}").unwrap()];
        store.append(&key(number), Append::new(&entries)).await.unwrap();
    }

    async fn count(store: &dyn SessionStore) -> usize {
        let list = List::new().limit(1_000);
        store.list(key(1).project_key(), list).await.unwrap().sessions.len()
    }

    fn approval(number: u32, of: u32, status: &str) -> Approval {
        serde_json::from_value(json!({
            "request": {
                "id": format!("{number:08x}-0000-4000-8000-000000000001"),
                "scope": "tenant",
                "session_id": key(of).session(),
                "tool_use_id": "toolu_1",
                "tool_name": "Bash",
                "input": { "command": "make" },
                "requested_at_ms": 1_000,
            },
            "status": status,
            "is_parked": true,
            "version": 1,
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn open_approvals_are_deleted_with_their_session() {
        let store = MemoryStore::new();
        append(&store, 1).await;
        for (number, of, status) in [
            (1, 1, "pending"),
            (2, 1, "started"),
            (3, 1, "finished"),
            (4, 2, "pending"),
            (5, 2, "finished"),
        ] {
            let approval = approval(number, of, status);
            let change = [approval.to_change().unwrap()];
            store.write_records(RecordWrite::new(&change)).await.unwrap();
        }
        let century = Duration::from_secs(100 * 365 * 24 * 3600);
        let retention = Retention::new("tenant").sessions(store.clone(), Duration::ZERO);
        let report = retention.records(store.clone(), century).run().await.into_result().unwrap();
        assert_eq!((report.sessions, report.records), (1, 2));
        // The record of who decided what has its own age. The other session is not in the store, and could be on a disk.
        let approvals = Approvals::new("tenant", store.clone());
        assert_eq!(approvals.pending().await.unwrap().len(), 1);
        let report = Retention::new("tenant").records(store, Duration::ZERO).run().await;
        assert_eq!(report.into_result().unwrap().records, 2);
        assert_eq!(approvals.pending().await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_session_that_cannot_be_deleted_does_not_keep_the_others() {
        let store = Arc::new(FaultyStore::default());
        for number in 0..250 {
            append(&*store, number).await;
        }
        // The projects, three pages, and some sessions between them.
        store.fail_after(20);
        let retention = Retention::new("tenant").sessions(store.clone(), Duration::ZERO);
        let report = retention.run().await;
        assert!(!report.failures.is_empty() && report.failures.len() <= MAX_FAILURES + CONCURRENCY);
        assert!(report.sessions > 0 && report.clone().into_result().is_err(), "{report:?}");
        store.repair();
        assert_eq!(count(&*store).await as u64, 250 - report.sessions);
        let rest = retention.run().await.into_result().unwrap();
        assert_eq!(rest.sessions, 250 - report.sessions);
        assert_eq!(count(&*store).await, 0);
    }

    #[tokio::test]
    async fn a_panic_of_the_store_names_the_store_and_the_session_and_not_its_message() {
        let store = FaultyStore { panics: true, ..FaultyStore::at("db.example.com") };
        append(&store, 1).await;
        let retention = Retention::new("tenant").sessions(store, Duration::ZERO);
        let [failure] = &retention.run().await.failures[..] else { panic!() };
        assert_eq!(failure.session, Some(key(1)));
        let text = format!(
            "the session store (db.example.com) panicked while it deleted session {}",
            key(1).session()
        );
        assert_eq!(failure.error.message(), text);
        assert!(std::error::Error::source(&failure.error).is_none());
    }

    #[test]
    fn a_runtime_without_timers_is_an_error() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let retention = Retention::new("tenant").sessions(MemoryStore::new(), Duration::ZERO);
        let error = runtime.block_on(retention.run()).into_result().unwrap_err();
        assert!(!error.is_retryable(), "{error}");
        assert!(error.to_string().contains("has no timers; help: call `enable_all`"), "{error}");
    }

    #[tokio::test]
    async fn a_dropped_run_deletes_sessions_as_a_whole() {
        let store = MemoryStore::new();
        for number in 0..50 {
            append(&store, number).await;
        }
        let retention = Retention::new("tenant").sessions(store.clone(), Duration::ZERO);
        // Whether it ends before does not matter.
        drop(tokio::time::timeout(Duration::from_micros(100), retention.run()).await);
        let listed = count(&store).await;
        let mut loaded = 0;
        for number in 0..50 {
            loaded += store.load(&key(number), Load::all()).await.unwrap().entries.len();
        }
        assert_eq!(loaded, listed);
        assert_eq!(retention.run().await.into_result().unwrap().sessions, listed as u64);
    }

    /// A store with two sessions, which were changed before and after an hour ago.
    #[derive(Default)]
    struct Dated {
        deleted: std::sync::Mutex<Vec<SessionKey>>,
    }

    impl Dated {
        fn modified_ms(number: u32) -> u64 {
            let minutes = if number == 1 { 61 } else { 59 };
            now_ms() - minutes * 60_000
        }
    }

    impl SessionStore for Dated {
        fn claim<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Epoch> {
            unreachable!()
        }

        fn append<'a>(&'a self, _: &'a SessionKey, _: Append<'a>) -> StoreFuture<'a, Appended> {
            unreachable!()
        }

        fn load<'a>(&'a self, _: &'a SessionKey, _: Load<'a>) -> StoreFuture<'a, EntryPage> {
            unreachable!()
        }

        fn list<'a>(&'a self, _: &'a ProjectKey, _: List<'a>) -> StoreFuture<'a, SessionList> {
            let row = |number| {
                let modified = Self::modified_ms(number);
                SessionRow::new(key(number).session().clone(), modified, Sequence::new(1), None)
            };
            Box::pin(async move { Ok(SessionList::new(vec![row(2), row(1)], None)) })
        }

        fn subpaths<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
            unreachable!()
        }

        fn delete<'a>(&'a self, _: &'a SessionKey, _: Option<&'a Subpath>) -> StoreFuture<'a, ()> {
            unreachable!()
        }

        fn delete_unchanged<'a>(&'a self, key: &'a SessionKey, _: u64) -> StoreFuture<'a, bool> {
            self.deleted.lock().unwrap().push(key.clone());
            Box::pin(async { Ok(true) })
        }
    }

    #[tokio::test]
    async fn sessions_are_deleted_by_their_last_change() {
        let store = Arc::new(Dated::default());
        let retention = Retention::new("tenant").project("project");
        let retention = retention.sessions(store.clone(), Duration::from_secs(3600));
        assert_eq!(retention.run().await.into_result().unwrap().sessions, 1);
        assert_eq!(*store.deleted.lock().unwrap(), [key(1)]);
    }

    /// A store of a user, without the methods for retention.
    struct Plain;

    impl SessionStore for Plain {
        fn claim<'a>(&'a self, _: &'a SessionKey) -> StoreFuture<'a, Epoch> {
            unreachable!()
        }

        fn append<'a>(&'a self, _: &'a SessionKey, _: Append<'a>) -> StoreFuture<'a, Appended> {
            unreachable!()
        }

        fn load<'a>(&'a self, _: &'a SessionKey, _: Load<'a>) -> StoreFuture<'a, EntryPage> {
            unreachable!()
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

    #[tokio::test]
    async fn a_store_without_the_methods_says_so() {
        let report = Retention::new("tenant").sessions(Plain, Duration::ZERO).run().await;
        let error = report.into_result().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Rejected);
        assert!(error.to_string().contains("`SessionStore::projects`"), "{error}");
    }
}
