//! The requests of a store as statements.

use std::collections::HashMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use claude_session_store::{
    Append, Appended, EntryPage, Epoch, Load, NewEntry, ProjectKey, Sequence, SessionKey,
    SessionList, SessionRow, StoreError, Subpath,
};
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, params};

use super::errors::{Fault, corrupt};
use crate::sql::{self, entry, from_sql, position, sequence, subpath_of, to_sql};

/// [`Append`] for another thread.
pub(super) struct OwnedAppend {
    epoch: Option<Epoch>,
    entries: Vec<NewEntry>,
    summary: Option<(Sequence, String)>,
}

impl OwnedAppend {
    pub(super) fn new(append: &Append<'_>) -> Self {
        Self {
            epoch: append.epoch,
            entries: append.entries.to_vec(),
            summary: append.summary.map(|update| (update.after, update.data.to_owned())),
        }
    }
}

/// [`Load`] for another thread.
pub(super) struct OwnedLoad {
    /// All transcripts, or the one with this subpath, which is empty for the main one.
    subpath: Option<String>,
    after: Sequence,
    limit: usize,
    max_bytes: usize,
}

impl OwnedLoad {
    pub(super) fn new(load: &Load<'_>) -> Self {
        let subpath = subpath_of(load.subpath).map(str::to_owned);
        Self { subpath, after: load.after, limit: load.limit, max_bytes: load.max_bytes }
    }
}

pub(super) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

pub(super) fn claim(connection: &Connection, key: &SessionKey) -> Result<Epoch, Fault> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO session (scope, project, session, epoch) VALUES (?1, ?2, ?3, 1)
         ON CONFLICT (scope, project, session) DO UPDATE SET epoch = epoch + 1
         RETURNING epoch",
    )?;
    let parameters = (key.scope(), key.project(), key.session().as_str());
    let epoch: i64 = statement.query_row(parameters, |row| row.get(0))?;
    Ok(Epoch::new(from_sql(epoch)?))
}

/// The row of a session.
#[derive(Default)]
struct SessionState {
    id: Option<i64>,
    epoch: i64,
    last: i64,
    modified_ms: i64,
}

fn session(connection: &Connection, key: &SessionKey) -> Result<SessionState, Fault> {
    let mut statement = connection.prepare_cached(
        "SELECT id, epoch, last, modified_ms FROM session
         WHERE scope = ?1 AND project = ?2 AND session = ?3",
    )?;
    let parameters = (key.scope(), key.project(), key.session().as_str());
    let state = statement.query_row(parameters, |row| {
        Ok(SessionState {
            id: Some(row.get(0)?),
            epoch: row.get(1)?,
            last: row.get(2)?,
            modified_ms: row.get(3)?,
        })
    });
    Ok(state.optional()?.unwrap_or_default())
}

fn create_session(connection: &Connection, key: &SessionKey) -> Result<i64, Fault> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO session (scope, project, session) VALUES (?1, ?2, ?3) RETURNING id",
    )?;
    let parameters = (key.scope(), key.project(), key.session().as_str());
    Ok(statement.query_row(parameters, |row| row.get(0))?)
}

/// Returns the transcript of a session with this subpath, which is created if it does not exist.
fn find_or_create_transcript(
    connection: &Connection,
    session: i64,
    subpath: &str,
) -> Result<i64, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT id FROM transcript WHERE session = ?1 AND subpath = ?2")?;
    let found = statement.query_row((session, subpath), |row| row.get(0)).optional()?;
    if let Some(id) = found {
        return Ok(id);
    }
    let mut statement = connection
        .prepare_cached("INSERT INTO transcript (session, subpath) VALUES (?1, ?2) RETURNING id")?;
    Ok(statement.query_row((session, subpath), |row| row.get(0))?)
}

pub(super) fn append(
    connection: &Connection,
    key: &SessionKey,
    append: &OwnedAppend,
) -> Result<Appended, Fault> {
    let state = session(connection, key)?;
    let current = Epoch::new(from_sql(state.epoch)?);
    if let Some(epoch) = append.epoch.filter(|epoch| *epoch != current) {
        return Err(StoreError::superseded(key, epoch, current).into());
    }
    if append.entries.is_empty() {
        return Ok(Appended::new(sequence(state.last)?, 0, Vec::new()));
    }
    let id = match state.id {
        Some(id) => id,
        None => create_session(connection, key)?,
    };
    let inserted = insert(connection, id, state.last, &append.entries)?;
    if let Some(main_last) = inserted.main_last {
        let modified_ms = now_ms().max(state.modified_ms + 1);
        let mut statement = connection
            .prepare_cached("UPDATE session SET main_last = ?2, modified_ms = ?3 WHERE id = ?1")?;
        statement.execute((id, main_last, modified_ms))?;
    }
    if inserted.last != state.last {
        let mut statement =
            connection.prepare_cached("UPDATE session SET last = ?2 WHERE id = ?1")?;
        statement.execute((id, inserted.last))?;
    }
    if let Some((_, data)) =
        append.summary.as_ref().filter(|(after, _)| to_sql(after.get()) == state.last)
    {
        let mut statement = connection.prepare_cached(
            "UPDATE session SET summary = ?2, summary_through = ?3 WHERE id = ?1",
        )?;
        statement.execute((id, data, inserted.last))?;
    }
    Ok(Appended::new(sequence(inserted.last)?, inserted.skipped, inserted.sequences))
}

/// The result of an insertion.
struct Inserted {
    last: i64,
    /// The last new entry of the main transcript.
    main_last: Option<i64>,
    skipped: u64,
    sequences: Vec<Sequence>,
}

/// Inserts the entries that the session does not have, with sequence numbers after `last`.
fn insert(
    connection: &Connection,
    session: i64,
    last: i64,
    entries: &[NewEntry],
) -> Result<Inserted, Fault> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO entry (session, transcript, sequence, entry_id, text)
         VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (transcript, entry_id) DO NOTHING",
    )?;
    let mut find = connection
        .prepare_cached("SELECT sequence FROM entry WHERE transcript = ?1 AND entry_id = ?2")?;
    let mut transcripts: HashMap<&str, i64> = HashMap::new();
    let sequences = Vec::with_capacity(entries.len());
    let mut inserted = Inserted { last, main_last: None, skipped: 0, sequences };
    for entry in entries {
        let subpath = entry.subpath().map(Subpath::as_str).unwrap_or_default();
        let transcript = if let Some(id) = transcripts.get(subpath) {
            *id
        } else {
            let id = find_or_create_transcript(connection, session, subpath)?;
            *transcripts.entry(subpath).or_insert(id)
        };
        let (id, next) = (entry.id().as_str(), inserted.last + 1);
        let is_new = insert.execute(params![session, transcript, next, id, &**entry.text()])? == 1;
        if is_new {
            inserted.last = next;
            inserted.main_last = if subpath.is_empty() { Some(next) } else { inserted.main_last };
            inserted.sequences.push(sequence(next)?);
        } else {
            let stored = find.query_row((transcript, id), |row| row.get(0))?;
            inserted.skipped += 1;
            inserted.sequences.push(sequence(stored)?);
        }
    }
    Ok(inserted)
}

/// Selects the entries of a session after a sequence number.
const LOAD_ALL: &str = "SELECT entry.sequence, transcript.subpath, entry.entry_id, entry.text
     FROM entry JOIN transcript ON transcript.id = entry.transcript
     WHERE entry.session = ?1 AND entry.sequence > ?2
     ORDER BY entry.sequence LIMIT ?3";

/// Selects the entries of a transcript after a sequence number.
const LOAD_ONE: &str = "SELECT entry.sequence, transcript.subpath, entry.entry_id, entry.text
     FROM transcript JOIN entry ON entry.transcript = transcript.id
     WHERE transcript.session = ?1 AND transcript.subpath = ?2 AND entry.sequence > ?3
     ORDER BY entry.sequence LIMIT ?4";

pub(super) fn load(
    connection: &Connection,
    key: &SessionKey,
    load: &OwnedLoad,
) -> Result<EntryPage, Fault> {
    let Some(session) = session(connection, key)?.id else { return Ok(EntryPage::default()) };
    let after = to_sql(load.after.get());
    // One more, to know whether there are more.
    let limit = to_sql(load.limit.max(1) as u64).saturating_add(1);
    let Some(subpath) = &load.subpath else {
        let mut statement = connection.prepare_cached(LOAD_ALL)?;
        return page(statement.query((session, after, limit))?, load);
    };
    let mut statement = connection.prepare_cached(LOAD_ONE)?;
    page(statement.query((session, subpath, after, limit))?, load)
}

fn page(mut rows: rusqlite::Rows<'_>, load: &OwnedLoad) -> Result<EntryPage, Fault> {
    let mut page = EntryPage::default();
    let mut bytes = 0_usize;
    while let Some(row) = rows.next()? {
        let text = text(row, 3)?;
        bytes = bytes.saturating_add(text.len());
        let is_full = page.entries.len() >= load.limit.max(1) || bytes > load.max_bytes;
        if is_full && !page.entries.is_empty() {
            page.more = true;
            break;
        }
        page.entries.push(entry(row.get(0)?, self::text(row, 1)?, self::text(row, 2)?, text)?);
    }
    Ok(page)
}

/// Returns a column as text, without copying it.
pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Fault> {
    Ok(row.get_ref(column)?.as_str().map_err(|_| corrupt("text"))?)
}

/// Selects the sessions of a project before a position, the newest first.
const LIST: &str = "SELECT session, modified_ms, main_last, summary, summary_through FROM session
     WHERE scope = ?1 AND project = ?2 AND main_last IS NOT NULL
         AND (modified_ms, session) < (?3, ?4)
     ORDER BY modified_ms DESC, session DESC LIMIT ?5";

const GET: &str = "SELECT session, modified_ms, main_last, summary, summary_through FROM session
     WHERE scope = ?1 AND project = ?2 AND session = ?3 AND main_last IS NOT NULL";

pub(super) fn get(connection: &Connection, key: &SessionKey) -> Result<Option<SessionRow>, Fault> {
    let mut statement = connection.prepare_cached(GET)?;
    let mut rows = statement.query((key.scope(), key.project(), key.session().as_str()))?;
    rows.next()?.map(listed).transpose()
}

/// Returns the session of a row.
fn listed(row: &Row<'_>) -> Result<SessionRow, Fault> {
    let summary = (row.get(3)?, row.get(4)?);
    Ok(sql::session(text(row, 0)?, row.get(1)?, row.get(2)?, summary)?)
}

pub(super) fn list(
    connection: &Connection,
    project: &ProjectKey,
    cursor: Option<&str>,
    limit: usize,
) -> Result<SessionList, Fault> {
    let (before_ms, before) = position(cursor)?;
    let limit = limit.max(1);
    let mut statement = connection.prepare_cached(LIST)?;
    let mut rows = statement.query(params![
        project.scope(),
        project.project(),
        before_ms,
        before,
        to_sql(limit as u64).saturating_add(1)
    ])?;
    let mut sessions: Vec<SessionRow> = Vec::new();
    while let Some(row) = rows.next()? {
        if sessions.len() == limit {
            let cursor = sql::cursor(&sessions);
            return Ok(SessionList::new(sessions, cursor));
        }
        sessions.push(listed(row)?);
    }
    Ok(SessionList::new(sessions, None))
}

pub(super) fn subpaths(connection: &Connection, key: &SessionKey) -> Result<Vec<Subpath>, Fault> {
    let Some(session) = session(connection, key)?.id else { return Ok(Vec::new()) };
    let mut statement = connection.prepare_cached(
        "SELECT subpath FROM transcript WHERE session = ?1 AND subpath <> '' ORDER BY subpath",
    )?;
    let mut rows = statement.query([session])?;
    let mut subpaths = Vec::new();
    while let Some(row) = rows.next()? {
        subpaths.push(sql::subpath(text(row, 0)?)?);
    }
    Ok(subpaths)
}

pub(super) fn delete(
    connection: &Connection,
    key: &SessionKey,
    subpath: Option<&Subpath>,
) -> Result<(), Fault> {
    let Some(session) = session(connection, key)?.id else { return Ok(()) };
    if let Some(subpath) = subpath {
        let mut statement = connection.prepare_cached(
            "DELETE FROM transcript WHERE session = ?1 AND subpath = ?2 RETURNING id",
        )?;
        let deleted: Option<i64> =
            statement.query_row((session, subpath.as_str()), |row| row.get(0)).optional()?;
        if let Some(transcript) = deleted {
            let mut statement =
                connection.prepare_cached("DELETE FROM entry WHERE transcript = ?1")?;
            statement.execute([transcript])?;
        }
        return Ok(());
    }
    for statement in [
        "DELETE FROM entry WHERE session = ?1",
        "DELETE FROM transcript WHERE session = ?1",
        // The epoch and the last sequence number stay.
        "UPDATE session SET main_last = NULL, summary = NULL, summary_through = NULL WHERE id = ?1",
    ] {
        connection.prepare_cached(statement)?.execute([session])?;
    }
    Ok(())
}

/// Selects the projects of a scope with listed sessions, after one.
const PROJECTS: &str = "SELECT DISTINCT project FROM session
     WHERE scope = ?1 AND main_last IS NOT NULL AND project > ?2 ORDER BY project LIMIT ?3";

pub(super) fn projects(
    connection: &Connection,
    scope: &str,
    after: &str,
    limit: usize,
) -> Result<Vec<String>, Fault> {
    let mut statement = connection.prepare_cached(PROJECTS)?;
    let mut rows = statement.query(params![scope, after, to_sql(limit.max(1) as u64)])?;
    let mut projects = Vec::new();
    while let Some(row) = rows.next()? {
        projects.push(text(row, 0)?.to_owned());
    }
    Ok(projects)
}

/// Deletes and claims a session that was last modified at this time. Runs in a transaction.
pub(super) fn delete_unchanged(
    connection: &Connection,
    key: &SessionKey,
    modified_ms: u64,
) -> Result<bool, Fault> {
    let mut statement = connection.prepare_cached(
        "UPDATE session SET epoch = epoch + 1 WHERE scope = ?1 AND project = ?2 AND session = ?3
         AND main_last IS NOT NULL AND modified_ms = ?4",
    )?;
    let (scope, project, session) = (key.scope(), key.project(), key.session().as_str());
    if statement.execute(params![scope, project, session, to_sql(modified_ms)])? == 0 {
        return Ok(false);
    }
    delete(connection, key, None)?;
    Ok(true)
}

/// How long a deletion waits for other processes that use the write-ahead log.
const LOG_TIMEOUT: Duration = Duration::from_millis(250);

/// Moves the content of the write-ahead log to the file and empties the log, which still has the deleted texts. Other
/// processes that read or write keep it from doing so; then a later deletion does it.
pub(super) fn empty_log(connection: &Connection, busy_timeout: Duration) -> Result<(), Fault> {
    connection.busy_timeout(busy_timeout.min(LOG_TIMEOUT))?;
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    connection.busy_timeout(busy_timeout)?;
    match emptied {
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
            ) =>
        {
            Ok(())
        }
        emptied => Ok(emptied?),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{SqliteOptions, schema};
    use super::*;

    /// Returns how SQLite executes a statement.
    pub(in super::super) fn plan(statement: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let connection = schema::open(&SqliteOptions::new(directory.path().join("db"))).unwrap();
        let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {statement}")).unwrap();
        // The plan does not depend on the parameters.
        let mut rows = statement.raw_query();
        let mut steps = Vec::new();
        while let Some(row) = rows.next().unwrap() {
            steps.push(row.get::<_, String>(3).unwrap());
        }
        steps.join("; ")
    }

    #[test]
    fn sessions_are_listed_by_index_without_sorting() {
        let plan = plan(LIST);
        assert!(plan.contains("USING INDEX session_listed (scope=? AND project=?"), "{plan}");
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
    }

    #[test]
    fn entries_are_loaded_by_index_without_sorting() {
        for (statement, index) in
            [(LOAD_ALL, "sqlite_autoindex_entry_1"), (LOAD_ONE, "entry_of_transcript")]
        {
            let plan = plan(statement);
            assert!(plan.contains(index), "{plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
    }
}
