//! The store in an SQLite file.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use claude_agent_kit::approval::{Approval, Approvals, Decision};
use claude_agent_kit::store::{
    Append, Epoch, List, Load, NewEntry, RecordFilter, RecordKind, RecordList, RecordStore,
    RecordWatch, Sequence, SessionStore, StoreErrorKind, Subpath,
};
use claude_agent_store::{SqliteOptions, SqliteStore};
use claude_session_store::conformance;
use rusqlite::Connection;
use support::{entry, key, kind, list, owner, texts, write};
use tempfile::TempDir;

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sqlite_store_conforms() {
    let directory = directory();
    let count = AtomicU32::new(0);
    let make = async || {
        let name = format!("{}.db", count.fetch_add(1, Ordering::Relaxed));
        SqliteStore::open(directory.path().join(name)).await.unwrap()
    };
    conformance::run(make).await.assert();
}

#[tokio::test(flavor = "multi_thread")]
async fn records_in_sqlite_conform() {
    let directory = directory();
    let count = AtomicU32::new(0);
    let hosts = async || {
        let name = format!("{}.db", count.fetch_add(1, Ordering::Relaxed));
        let path = directory.path().join(name);
        [SqliteStore::open(&path).await.unwrap(), SqliteStore::open(&path).await.unwrap()]
    };
    conformance::run_records(hosts).await.assert();
}

#[tokio::test]
async fn sessions_survive_the_store() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(store.path(), path);
    let old = store.claim(&key(1)).await.unwrap();
    let batch = [entry("1"), entry("2")];
    let append = Append::new(&batch).epoch(old).summary(Sequence::new(0), "{}");
    store.append(&key(1), append).await.unwrap();
    let row = store.list(key(1).project_key(), List::new()).await.unwrap();
    drop(store);

    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1", "2"]);
    assert_eq!(store.list(key(1).project_key(), List::new()).await.unwrap(), row);
    assert!(store.claim(&key(1)).await.unwrap() > old);
    let appended = store.append(&key(1), Append::new(&batch)).await.unwrap();
    assert_eq!(appended.skipped, 2);
}

#[tokio::test]
async fn full_database_rejects_appends_until_there_is_room() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let limited = SqliteOptions::new(&path).max_bytes(400_000);
    let store = SqliteStore::open_with(limited.clone()).await.unwrap();
    let text = |number: u32| format!("[{number},{:?}]", "x".repeat(5_000));
    let mut stored = 0;
    let error = loop {
        let (session, batch) = (key(stored % 2), [entry(&text(stored))]);
        match store.append(&session, Append::new(&batch)).await {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((error.kind(), error.is_retryable()), (StoreErrorKind::Full, true), "{error}");
    assert!(stored > 20, "{stored}");
    assert!(fs::metadata(&path).unwrap().len() <= 400_000);
    // Nothing is lost, nothing of the failed append is stored, and reads work.
    let all = async |store: &SqliteStore| {
        let (even, odd) = (texts(store, &key(0)).await, texts(store, &key(1)).await);
        even.len() + odd.len()
    };
    assert_eq!(all(&store).await, stored as usize);

    // A higher limit helps.
    drop(store);
    let raised = limited.clone().max_bytes(800_000);
    let store = SqliteStore::open_with(raised).await.unwrap();
    let batch = [entry(&text(stored))];
    store.append(&key(stored % 2), Append::new(&batch)).await.unwrap();
    assert_eq!(all(&store).await, stored as usize + 1);
    drop(store);

    // So does a deletion.
    let store = SqliteStore::open_with(limited).await.unwrap();
    let large = [entry(&format!("{:?}", "y".repeat(50_000)))];
    assert_eq!(kind(store.append(&key(1), Append::new(&large)).await), StoreErrorKind::Full);
    store.delete(&key(0), None).await.unwrap();
    store.append(&key(1), Append::new(&large)).await.unwrap();
}

/// One request that does not fit must not fail those that are committed together with it.
#[tokio::test(flavor = "multi_thread")]
async fn append_that_does_not_fit_fails_alone() {
    let directory = directory();
    let options = SqliteOptions::new(directory.path().join("sessions.db")).max_bytes(400_000);
    let store = SqliteStore::open_with(options).await.unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..40 {
        let store = store.clone();
        tasks.spawn(async move {
            let is_large = number % 10 == 5;
            let letters = if is_large { 1_000_000 } else { 100 };
            let batch = [entry(&format!("{:?}", "x".repeat(letters)))];
            (is_large, store.append(&key(number), Append::new(&batch)).await)
        });
    }
    while let Some(result) = tasks.join_next().await {
        let (is_large, result) = result.unwrap();
        match result {
            Ok(_) => assert!(!is_large),
            Err(error) => assert_eq!((error.kind(), is_large), (StoreErrorKind::Full, true)),
        }
    }
    let page = store.list(key(0).project_key(), List::new()).await.unwrap();
    assert_eq!(page.sessions.len(), 36);
}

#[tokio::test]
async fn newer_schema_is_rejected() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    drop(SqliteStore::open(&path).await.unwrap());
    let set = |version: i64| {
        let connection = Connection::open(&path).unwrap();
        connection.pragma_update(None, "user_version", version).unwrap();
    };
    set(99);
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert!(error.to_string().contains("schema version 99"), "{error}");
    set(3);
    SqliteStore::open(&path).await.unwrap();
}

/// The tables of version 1, the tables that version 2 added, and statements of a process of version 2.
const VERSION_1: &str = include_str!("support/sqlite_1.sql");
const VERSION_2: &str = include_str!("support/sqlite_2.sql");

/// Creates a file as version 2 of the schema left it: with a session, approvals, and an owner.
fn file_of_version_2(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "WAL").unwrap();
    connection.execute_batch(VERSION_1).unwrap();
    connection.execute_batch(VERSION_2).unwrap();
    connection
        .execute_batch("PRAGMA application_id = 0x636c6173; PRAGMA user_version = 2;")
        .unwrap();
    connection
        .execute(
            "INSERT INTO approval_owner VALUES ('scope', ?1, 7), ('other', 'x', 9)",
            [key(1).session().as_str()],
        )
        .unwrap();
    for (number, requested_at_ms) in [(1, 30), (2, 10), (3, 20)] {
        insert_as_version_2(&connection, &approval(number), requested_at_ms).unwrap();
    }
    connection
}

fn insert_as_version_2(
    connection: &Connection,
    approval: &Approval,
    requested_at_ms: i64,
) -> rusqlite::Result<usize> {
    let request = &approval.request;
    connection.execute(
        "INSERT INTO approval
             (scope, id, session, requested_at_ms, is_pending, is_open, version, body)
         VALUES (?1, ?2, ?3, ?4, 1, 1, ?5, ?6)",
        (
            &request.scope,
            request.id.as_str(),
            request.session_id.as_str(),
            requested_at_ms,
            1,
            serde_json::to_string(approval).unwrap(),
        ),
    )
}

#[tokio::test]
async fn file_of_version_2_is_updated() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    drop(file_of_version_2(&path));
    // Two hosts update the file, one after the other.
    for number in 1..=2 {
        let store = SqliteStore::open(&path).await.unwrap();
        let approvals = Approvals::new("scope", store.clone());
        assert_eq!(approvals.pending().await.unwrap(), [2, 3, 1].map(approval));
        let page = list(&store, RecordFilter::In("scope")).await.unwrap();
        let times: Vec<u64> = page.records.iter().map(|record| record.created_ms).collect();
        assert_eq!(times, [10, 20, 30]);
        // An owner of version 2 stays fenced.
        let session = owner(key(1).session());
        assert_eq!(store.claim_records(&session).await.unwrap(), Epoch::new(7 + number));
        let late = write(&store, &approval(4), Some(Epoch::new(7))).await;
        assert_eq!(kind(late), StoreErrorKind::Superseded);
        store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
        assert_eq!(texts(&store, &key(1)).await, ["1"]);
    }
    let store = SqliteStore::open(&path).await.unwrap();
    let approvals = Approvals::new("scope", store);
    let id = approval(1).request.id;
    let decided = approvals.decide(&id, Decision::allow("ana@example.com")).await.unwrap();
    assert_eq!(approvals.get(&id).await.unwrap(), Some(decided));
    let connection = Connection::open(&path).unwrap();
    let version: i64 =
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 3);
}

/// A process of version 2 that has the file open goes on with transcripts. Its requests for approvals fail, so that calls
/// are denied: two copies could both be used.
#[tokio::test]
async fn process_of_version_2_does_not_see_a_second_copy_of_approvals() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let old = file_of_version_2(&path);
    let store = SqliteStore::open(&path).await.unwrap();
    assert_eq!(list(&store, RecordFilter::Open).await.unwrap().records.len(), 3);
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    let text: String = old.query_row("SELECT text FROM entry", [], |row| row.get(0)).unwrap();
    assert_eq!(text, "1");
    old.execute("UPDATE session SET epoch = epoch + 1", []).unwrap();
    assert!(insert_as_version_2(&old, &approval(9), 1).is_err());
    for statement in [
        "SELECT body FROM approval",
        "UPDATE approval SET version = 2",
        "UPDATE approval_owner SET epoch = epoch + 1",
    ] {
        assert!(old.execute_batch(statement).is_err(), "{statement}");
    }
    assert_eq!(list(&store, RecordFilter::Open).await.unwrap().records.len(), 3);
}

/// The first version had no approvals.
#[tokio::test]
async fn file_of_version_1_is_updated() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch(VERSION_1).unwrap();
    connection
        .execute_batch("PRAGMA application_id = 0x636c6173; PRAGMA user_version = 1;")
        .unwrap();
    drop(connection);
    let store = SqliteStore::open(&path).await.unwrap();
    assert!(write(&store, &approval(1), None).await.unwrap());
    assert_eq!(list(&store, RecordFilter::Open).await.unwrap().records.len(), 1);
}

/// Returns an approval as the kit would request it.
fn approval(number: u32) -> Approval {
    let text = format!(
        r#"{{"request":{{"id":"{number:08x}-0000-4000-8000-000000000000","scope":"scope",
             "session_id":"{}","tool_use_id":"toolu_1","tool_name":"Bash","input":{{}},
             "requested_at_ms":1}},"status":"pending","is_parked":false,"version":1}}"#,
        key(1).session()
    );
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn approvals_survive_the_store() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let session = owner(key(1).session());
    let old = store.claim_records(&session).await.unwrap();
    let request = approval(1);
    assert!(write(&store, &request, Some(old)).await.unwrap());
    let id = &request.request.id;
    let decision = Decision::allow("ana@example.com");
    let decided = Approvals::new("scope", store.clone()).decide(id, decision).await.unwrap();
    drop(store);

    let store = SqliteStore::open(&path).await.unwrap();
    let approvals = Approvals::new("scope", store.clone());
    assert_eq!(approvals.get(id).await.unwrap(), Some(decided));
    assert!(store.claim_records(&session).await.unwrap() > old);
    assert_eq!(kind(write(&store, &request, Some(old)).await), StoreErrorKind::Superseded);
}

/// Without looking again: the store tells its own clones.
#[tokio::test]
async fn change_by_a_clone_ends_a_watch() {
    let directory = directory();
    let store = SqliteStore::open(directory.path().join("sessions.db")).await.unwrap();
    write(&store, &approval(1), None).await.unwrap();
    let key = approval(1).to_change().unwrap().key;
    let watches = [
        RecordWatch::Record { key: &key, version: 1 },
        RecordWatch::Scope { scope: "scope", kind: RecordKind::Approval },
        RecordWatch::Kind(RecordKind::Approval),
    ];
    // Before the change, although they are polled after it.
    let watches = watches.map(|watch| store.records_changed(watch));
    let others =
        ["other", "scope"].map(|scope| RecordWatch::Scope { scope, kind: RecordKind::Budget });
    let others = others.map(|watch| store.records_changed(watch));
    Approvals::new("scope", store.clone())
        .decide(&approval(1).request.id, Decision::allow("ana@example.com"))
        .await
        .unwrap();
    for watch in watches {
        tokio::time::timeout(Duration::from_secs(30), watch).await.unwrap().unwrap();
    }
    for watch in others {
        let waited = tokio::time::timeout(Duration::from_millis(20), watch).await;
        assert!(waited.is_err(), "a change of another kind ended a wait");
    }
}

#[tokio::test]
async fn damaged_approvals_are_reported_as_corrupt() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    write(&store, &approval(1), None).await.unwrap();
    let approvals = Approvals::new("scope", store);
    let other = Connection::open(&path).unwrap();
    let id = &approval(1).request.id;
    for change in [
        "UPDATE record SET body = CAST(x'ff' AS TEXT)",
        "UPDATE record SET body = '{}'",
        "UPDATE record SET version = -1",
        "DROP TABLE record",
    ] {
        other.execute_batch(change).unwrap();
        assert_eq!(kind(approvals.get(id).await), StoreErrorKind::Corrupt, "{change}");
    }
    assert_eq!(kind(approvals.pending().await), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn damaged_approvals_do_not_hide_the_others() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    for number in 1..=9 {
        write(&store, &approval(number), None).await.unwrap();
    }
    let approvals = Approvals::new("scope", store.clone());
    let other = Connection::open(&path).unwrap();
    // The text of another request is damage too.
    other
        .execute_batch(
            "UPDATE record SET body = '{}' WHERE id LIKE '00000005%';
             UPDATE record SET body = CAST(x'ff' AS TEXT) WHERE id LIKE '00000009%';
             UPDATE record SET body = replace(body, '00000001-', '00000008-')
             WHERE id LIKE '00000001%'",
        )
        .unwrap();
    let damaged = [approval(1), approval(5), approval(9)].map(|damaged| damaged.request.id);
    let listed = approvals.list_pending().await.unwrap();
    assert_eq!(listed.approvals, [2, 3, 4, 6, 7, 8].map(approval));
    assert_eq!(approvals.pending().await.unwrap(), listed.approvals);
    let mut unreadable: Vec<_> = listed.unreadable.iter().map(|it| it.id.clone()).collect();
    unreadable.sort();
    assert_eq!(unreadable, damaged);
    for id in &damaged {
        // By its ID, it fails.
        assert_eq!(kind(approvals.get(id).await), StoreErrorKind::Corrupt);
    }
    // Pages count damaged records, and continue after them.
    let (mut after, mut found) = (Sequence::default(), 0);
    loop {
        let list = RecordList::new(RecordKind::Approval, RecordFilter::OpenIn("scope"));
        let page = store.list_records(list.after(after).limit(1)).await.unwrap();
        found += 1;
        assert_eq!(page.len(), 1);
        after = page.last().unwrap();
        if !page.more {
            break;
        }
    }
    assert_eq!(found, 9);
    // A run that looks for its own requests must not miss one: its list fails.
    let session = owner(key(1).session());
    assert_eq!(kind(list(&store, RecordFilter::OpenOf(&session)).await), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn current_file_is_opened_while_another_process_writes() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    drop(store);
    // A process that was stopped in a transaction.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE; UPDATE session SET epoch = epoch + 1").unwrap();
    let options = SqliteOptions::new(&path).busy_timeout(Duration::from_millis(1));
    let store = SqliteStore::open_with(options).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1"]);
    let appended = store.append(&key(1), Append::new(&[entry("2")])).await;
    assert_eq!(kind(appended), StoreErrorKind::Unavailable);
    other.execute_batch("ROLLBACK").unwrap();
    store.append(&key(1), Append::new(&[entry("2")])).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1", "2"]);
}

#[tokio::test]
async fn deleted_texts_are_not_in_the_files() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let contains = |text: &str| {
        let files = fs::read_dir(directory.path()).unwrap();
        let bytes: Vec<u8> =
            files.flat_map(|file| fs::read(file.unwrap().path()).unwrap()).collect();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    let planted = |session: u32| format!("planted-{session}-4711");
    let subpath = Subpath::new("subagents/a").unwrap();
    for session in 1..=3 {
        for number in 0..50 {
            let text = format!(r#"{{"number":{number},"text":"{}"}}"#, planted(session));
            let main = (session != 3).then(|| NewEntry::new(None, &*text, 0).unwrap());
            let sub = NewEntry::new(Some(subpath.clone()), &*text, 0).unwrap();
            let entries: Vec<NewEntry> = main.into_iter().chain([sub]).collect();
            let append = Append::new(&entries).summary(Sequence::new(2 * number), &text);
            store.append(&key(session), append).await.unwrap();
        }
        assert!(contains(&planted(session)));
    }
    store.delete(&key(1), None).await.unwrap();
    assert!(!contains(&planted(1)) && contains(&planted(2)));
    store.delete(&key(3), Some(&subpath)).await.unwrap();

    // A process that reads an earlier state needs the log: the deletion succeeds, and a later one empties it.
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN; SELECT count(*) FROM entry").unwrap();
    store.delete(&key(2), None).await.unwrap();
    assert_eq!(texts(&store, &key(2)).await, [""; 0]);
    assert!(contains(&planted(2)));
    other.execute_batch("COMMIT").unwrap();
    store.delete(&key(2), None).await.unwrap();
    assert!(!contains(&planted(2)));
}

#[tokio::test]
async fn databases_of_other_programs_are_not_changed() {
    let directory = directory();
    let path = directory.path().join("other.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE mine (a)").unwrap();
    assert_eq!(kind(SqliteStore::open(&path).await), StoreErrorKind::Rejected);
    let tables = "SELECT count(*) FROM sqlite_schema";
    assert_eq!(other.query_row(tables, [], |row| row.get::<_, i64>(0)).unwrap(), 1);

    let path = directory.path().join("marked.db");
    let other = Connection::open(&path).unwrap();
    other.pragma_update(None, "application_id", 7).unwrap();
    assert_eq!(kind(SqliteStore::open(&path).await), StoreErrorKind::Rejected);

    let path = directory.path().join("notes.txt");
    fs::write(
        &path,
        "not a database, but long enough to be read as the header of one. ".repeat(99),
    )
    .unwrap();
    assert_eq!(kind(SqliteStore::open(&path).await), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn damaged_entries_are_reported_as_corrupt() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    let other = Connection::open(&path).unwrap();
    for change in [
        "UPDATE entry SET text = CAST(x'ff' AS TEXT)",
        "UPDATE entry SET text = '1', entry_id = ''",
        "UPDATE entry SET entry_id = 'a'; UPDATE transcript SET subpath = '../../etc'",
        "DROP TABLE entry",
    ] {
        other.execute_batch(change).unwrap();
        let loaded = store.load(&key(1), Load::all()).await;
        assert_eq!(kind(loaded), StoreErrorKind::Corrupt, "{change}");
    }
}

#[tokio::test]
async fn missing_directory_is_named_in_the_error() {
    let directory = directory();
    let path = directory.path().join("missing/sessions.db");
    let error = SqliteStore::open(&path).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("missing"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn files_are_accessible_to_their_owner_only() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = directory();
    let store = SqliteStore::open(directory.path().join("sessions.db")).await.unwrap();
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    let mut names = Vec::new();
    for file in fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["sessions.db", "sessions.db-shm", "sessions.db-wal"]);
}

/// Locks the database like another process that writes to it.
fn locked(path: &Path) -> Connection {
    let other = Connection::open(path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[tokio::test]
async fn locked_database_is_unavailable_and_readable() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let options = SqliteOptions::new(&path).busy_timeout(Duration::from_millis(50));
    let store = SqliteStore::open_with(options).await.unwrap();
    store.append(&key(1), Append::new(&[entry("1")])).await.unwrap();
    let other = locked(&path);
    let error = store.append(&key(1), Append::new(&[entry("2")])).await.unwrap_err();
    assert_eq!((error.kind(), error.is_retryable()), (StoreErrorKind::Unavailable, true));
    assert_eq!(texts(&store, &key(1)).await, ["1"]);
    other.execute_batch("ROLLBACK").unwrap();
    store.append(&key(1), Append::new(&[entry("2")])).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["1", "2"]);
}

#[tokio::test]
async fn requests_that_are_abandoned_while_the_database_is_locked_are_not_executed() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let other = locked(&path);
    let mut requests = Vec::new();
    for number in 0..200 {
        let store = store.clone();
        requests.push(tokio::spawn(async move {
            let batch = [entry(&number.to_string())];
            store.append(&key(1), Append::new(&batch)).await
        }));
    }
    tokio::task::yield_now().await;
    assert!(requests.iter().all(|request| !request.is_finished()));
    // All but the first, which has begun or will begin.
    for request in &requests[1..] {
        request.abort();
    }
    for request in requests.drain(1..) {
        assert!(request.await.unwrap_err().is_cancelled());
    }
    other.execute_batch("ROLLBACK").unwrap();
    requests.remove(0).await.unwrap().unwrap();
    store.append(&key(1), Append::new(&[entry("\"last\"")])).await.unwrap();
    assert_eq!(texts(&store, &key(1)).await, ["0", "\"last\""]);
}

/// Returns the number of descriptors of this file in this process.
#[cfg(target_os = "linux")]
fn open_files(path: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap();
    links
        .filter(|link| fs::read_link(link.as_ref().unwrap().path()).is_ok_and(|to| to == path))
        .count()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn dropped_store_closes_its_file() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let copy = store.clone();
    drop(store);
    copy.claim(&key(1)).await.unwrap();
    assert!(open_files(&path) > 0);
    drop(copy);
    let start = Instant::now();
    while open_files(&path) > 0 {
        assert!(start.elapsed() < Duration::from_secs(30), "the file is still open");
        tokio::task::yield_now().await;
    }
    // The last connection removes the write-ahead log.
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn deleted_entries_are_overwritten() {
    let directory = directory();
    let path = directory.path().join("sessions.db");
    let store = SqliteStore::open(&path).await.unwrap();
    let secret = "a text that must not remain";
    store.append(&key(1), Append::new(&[entry(&format!("{secret:?}"))])).await.unwrap();
    let checkpoint = || {
        let other = Connection::open(&path).unwrap();
        other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let bytes = fs::read(&path).unwrap();
        bytes.windows(secret.len()).any(|window| window == secret.as_bytes())
    };
    assert!(checkpoint());
    store.delete(&key(1), None).await.unwrap();
    assert!(!checkpoint());
}
