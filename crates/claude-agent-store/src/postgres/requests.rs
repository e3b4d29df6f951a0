//! The requests of a store as statements.

use std::collections::HashMap;

use claude_session_store::{
    Append, Appended, EntryPage, Epoch, List, Load, NewEntry, ProjectKey, Sequence, SessionKey,
    SessionList, SessionRow, StoreError, Subpath,
};
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};

use super::errors::{self, corrupt};
use super::pool::Pool;
use crate::sql::{
    Invalid, cursor, entry, from_sql, position, sequence, session, subpath, subpath_of, to_sql,
};

/// The longest append, in bytes of text. PostgreSQL accepts messages of up to 1 GB.
pub(super) const MAX_APPEND: usize = 500_000_000;

/// The maximum number of entries of one statement. A page with more is read with several.
const CHUNK: usize = 1_000;

/// The statements of a schema.
pub(super) struct Statements {
    claim: String,
    append: String,
    load_all: String,
    load_one: String,
    list: String,
    get: String,
    subpaths: String,
    delete: String,
    projects: String,
    delete_unchanged: String,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        let session = format!(
            "SELECT s.id FROM {schema}.session s
             WHERE s.scope = $1 AND s.project = $2 AND s.session = $3"
        );
        let transcript = format!(
            "SELECT t.id FROM {schema}.transcript t WHERE t.session = ({session}) AND t.subpath = $8"
        );
        Self {
            claim: format!("SELECT {schema}.claim($1, $2, $3, $4)"),
            append: format!(
                "SELECT o_epoch, o_last, o_sequences
                 FROM {schema}.append($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
            ),
            load_all: load(schema, &session, &format!("e.session = ({session})")),
            load_one: load(schema, &session, &format!("e.transcript = ({transcript})")),
            list: format!(
                "SELECT session, modified_ms, main_last, summary, summary_through
                 FROM {schema}.session
                 WHERE scope = $1 AND project = $2 AND main_last IS NOT NULL
                     AND (modified_ms, session) < ($3, $4)
                 ORDER BY modified_ms DESC, session DESC LIMIT $5"
            ),
            get: format!(
                "SELECT session, modified_ms, main_last, summary, summary_through
                 FROM {schema}.session
                 WHERE scope = $1 AND project = $2 AND session = $3 AND main_last IS NOT NULL"
            ),
            subpaths: format!(
                "SELECT t.subpath FROM {schema}.transcript t
                 WHERE t.session = ({session}) AND t.subpath <> '' ORDER BY t.subpath"
            ),
            delete: format!("SELECT {schema}.remove($1, $2, $3, $4, $5)"),
            projects: format!(
                "SELECT DISTINCT project FROM {schema}.session
                 WHERE scope = $1 AND main_last IS NOT NULL AND project > $2
                 ORDER BY project LIMIT $3"
            ),
            // The row is locked before the functions run, and they see all that was committed before. A row that is
            // locked already is being changed.
            delete_unchanged: format!(
                "SELECT {schema}.claim($1, $2, $3, $5), {schema}.remove($1, $2, $3, NULL, $5)
                 FROM (
                     SELECT s.id FROM {schema}.session s
                     WHERE s.scope = $1 AND s.project = $2 AND s.session = $3
                         AND s.main_last IS NOT NULL AND s.modified_ms = $4
                     FOR NO KEY UPDATE SKIP LOCKED
                 ) locked"
            ),
        }
    }
}

/// Returns the statement that selects entries after `$4`: at most `$5`, and `$6` bytes of text; the first one also
/// if it is longer and `$7` is true. If there is another entry, a row without text follows. The sizes are known
/// without reading long texts, and the transcripts are found by their session.
fn load(schema: &str, session: &str, condition: &str) -> String {
    format!(
        "SELECT page.sequence, t.subpath, page.entry_id,
             CASE WHEN page.number <= $5 AND (page.total <= $6 OR (page.number = 1 AND $7))
                 THEN page.text END
         FROM (
             SELECT e.sequence, e.transcript, e.entry_id, e.text, octet_length(e.text) AS bytes,
                 sum(octet_length(e.text)) OVER before AS total, row_number() OVER before AS number
             FROM {schema}.entry e WHERE {condition} AND e.sequence > $4
             WINDOW before AS (ORDER BY e.sequence ROWS UNBOUNDED PRECEDING)
             ORDER BY e.sequence LIMIT $5 + 1
         ) page
         JOIN {schema}.transcript t ON t.session = ({session}) AND t.id = page.transcript
         WHERE page.number <= 2 OR page.total - page.bytes <= $6
         ORDER BY page.sequence"
    )
}

/// Returns a converted column.
pub(super) fn valid<T>(value: Result<T, Invalid>) -> Result<T, StoreError> {
    value.map_err(|Invalid(what)| corrupt(what))
}

/// Returns a column of a row.
pub(super) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StoreError> {
    row.try_get(at).map_err(|_| corrupt("value"))
}

/// Returns the row of a statement that has one.
pub(super) fn only(rows: &[Row]) -> Result<&Row, StoreError> {
    rows.first().ok_or_else(|| corrupt("result"))
}

pub(super) async fn claim(
    pool: &Pool,
    statements: &Statements,
    key: &SessionKey,
) -> Result<Epoch, StoreError> {
    let rows = pool
        .query(
            &statements.claim,
            &[
                (&key.scope(), Type::TEXT),
                (&key.project(), Type::TEXT),
                (&key.session().as_str(), Type::TEXT),
                (&pool.lock_timeout(), Type::TEXT),
            ],
        )
        .await?;
    Ok(Epoch::new(valid(from_sql(column(only(&rows)?, 0)?))?))
}

/// The entries of an append as arrays, each ID of a transcript once.
#[derive(Default)]
struct Batch<'a> {
    subpaths: Vec<&'a str>,
    subpath_of: Vec<i32>,
    ids: Vec<&'a str>,
    texts: Vec<&'a str>,
    /// The position in the arrays of each entry of the append.
    positions: Vec<usize>,
}

impl<'a> Batch<'a> {
    fn new(entries: &'a [NewEntry]) -> Result<Self, StoreError> {
        let bytes: usize = entries.iter().map(|entry| entry.text().len()).sum();
        if bytes > MAX_APPEND {
            return Err(errors::too_large("an append", bytes, MAX_APPEND));
        }
        let mut batch = Self::default();
        let mut subpaths: HashMap<&str, i32> = HashMap::new();
        let mut known: HashMap<(i32, &str), usize> = HashMap::with_capacity(entries.len());
        for entry in entries {
            let subpath = entry.subpath().map(Subpath::as_str).unwrap_or_default();
            let subpath = *subpaths.entry(subpath).or_insert_with(|| {
                batch.subpaths.push(subpath);
                // An array cannot have more elements.
                i32::try_from(batch.subpaths.len()).unwrap_or(i32::MAX)
            });
            let id = entry.id().as_str();
            let position = *known.entry((subpath, id)).or_insert_with(|| {
                batch.subpath_of.push(subpath);
                batch.ids.push(id);
                batch.texts.push(entry.text());
                batch.ids.len() - 1
            });
            batch.positions.push(position);
        }
        Ok(batch)
    }
}

pub(super) async fn append(
    pool: &Pool,
    statements: &Statements,
    key: &SessionKey,
    append: Append<'_>,
) -> Result<Appended, StoreError> {
    let batch = Batch::new(append.entries)?;
    let rows = pool
        .query(
            &statements.append,
            &[
                (&key.scope(), Type::TEXT),
                (&key.project(), Type::TEXT),
                (&key.session().as_str(), Type::TEXT),
                (&append.epoch.map(|epoch| to_sql(epoch.get())), Type::INT8),
                (&batch.subpaths, Type::TEXT_ARRAY),
                (&batch.subpath_of, Type::INT4_ARRAY),
                (&batch.ids, Type::TEXT_ARRAY),
                (&batch.texts, Type::TEXT_ARRAY),
                (&append.summary.map(|update| to_sql(update.after.get())), Type::INT8),
                (&append.summary.map(|update| update.data.as_bytes()), Type::BYTEA),
                (&pool.lock_timeout(), Type::TEXT),
            ],
        )
        .await?;
    let row = only(&rows)?;
    let current = Epoch::new(valid(from_sql(column(row, 0)?))?);
    let before = valid(sequence(column(row, 1)?))?;
    if let Some(epoch) = append.epoch.filter(|epoch| *epoch != current) {
        return Err(StoreError::superseded(key, epoch, current));
    }
    let stored: Vec<i64> = column::<Option<_>>(row, 2)?.unwrap_or_default();
    let stored = valid(stored.into_iter().map(sequence).collect::<Result<Vec<_>, _>>())?;
    appended(before, &stored, &batch.positions)
}

/// Returns the result of an append whose different entries have the sequence numbers `stored`.
fn appended(
    before: Sequence,
    stored: &[Sequence],
    positions: &[usize],
) -> Result<Appended, StoreError> {
    let mut sequences = Vec::with_capacity(positions.len());
    let mut last = before;
    let mut skipped = 0;
    for position in positions {
        let sequence = *stored.get(*position).ok_or_else(|| corrupt("sequence number"))?;
        // New entries have increasing numbers; a repeated one is that of an earlier entry.
        if sequence > last {
            last = sequence;
        } else {
            skipped += 1;
        }
        sequences.push(sequence);
    }
    Ok(Appended::new(last, skipped, sequences))
}

pub(super) async fn load_page(
    pool: &Pool,
    statements: &Statements,
    key: &SessionKey,
    load: Load<'_>,
) -> Result<EntryPage, StoreError> {
    let mut page = EntryPage::default();
    let mut after = to_sql(load.after.get());
    let mut bytes_left = to_sql(load.max_bytes as u64);
    let limit = load.limit.max(1);
    while page.entries.len() < limit {
        let chunk = (limit - page.entries.len()).min(CHUNK);
        let (is_first, rows_left) = (page.entries.is_empty(), to_sql(chunk as u64));
        let (scope, project, session) = (key.scope(), key.project(), key.session().as_str());
        let mut parameters: Vec<(&(dyn tokio_postgres::types::ToSql + Sync), Type)> = vec![
            (&scope, Type::TEXT),
            (&project, Type::TEXT),
            (&session, Type::TEXT),
            (&after, Type::INT8),
            (&rows_left, Type::INT8),
            (&bytes_left, Type::INT8),
            (&is_first, Type::BOOL),
        ];
        let subpath = subpath_of(load.subpath);
        let statement = match &subpath {
            Some(subpath) => {
                parameters.push((subpath, Type::TEXT));
                &statements.load_one
            }
            None => &statements.load_all,
        };
        let rows = pool.query(statement, &parameters).await?;
        drop(parameters);
        page.more = false;
        for row in &rows {
            let Some(text) = column::<Option<&str>>(row, 3)? else {
                page.more = true;
                break;
            };
            bytes_left = bytes_left.saturating_sub(to_sql(text.len() as u64)).max(0);
            after = column(row, 0)?;
            page.entries.push(valid(entry(after, column(row, 1)?, column(row, 2)?, text))?);
        }
        // The statement has returned fewer entries than it may: the end, or the limit of bytes.
        if rows.len() <= chunk || page.entries.len() >= limit {
            break;
        }
    }
    Ok(page)
}

pub(super) async fn list(
    pool: &Pool,
    statements: &Statements,
    project: &ProjectKey,
    list: List<'_>,
) -> Result<SessionList, StoreError> {
    let (before_ms, before) = position(list.cursor)?;
    let limit = list.limit.max(1);
    let rows = pool
        .query(
            &statements.list,
            &[
                (&project.scope(), Type::TEXT),
                (&project.project(), Type::TEXT),
                (&before_ms, Type::INT8),
                (&before, Type::TEXT),
                // One more, to know whether there are more.
                (&to_sql(limit as u64).saturating_add(1), Type::INT8),
            ],
        )
        .await?;
    let mut sessions: Vec<SessionRow> = Vec::with_capacity(rows.len());
    for row in &rows {
        if sessions.len() == limit {
            let cursor = cursor(&sessions);
            return Ok(SessionList::new(sessions, cursor));
        }
        sessions.push(listed(row)?);
    }
    Ok(SessionList::new(sessions, None))
}

pub(super) async fn get(
    pool: &Pool,
    statements: &Statements,
    key: &SessionKey,
) -> Result<Option<SessionRow>, StoreError> {
    let rows = pool
        .query(
            &statements.get,
            &[
                (&key.scope(), Type::TEXT),
                (&key.project(), Type::TEXT),
                (&key.session().as_str(), Type::TEXT),
            ],
        )
        .await?;
    rows.first().map(listed).transpose()
}

/// Returns the session of a row.
fn listed(row: &Row) -> Result<SessionRow, StoreError> {
    let summary: Option<Vec<u8>> = column(row, 3)?;
    let summary = summary.map(String::from_utf8).transpose().map_err(|_| corrupt("summary"))?;
    let summary = (summary, column(row, 4)?);
    valid(session(column(row, 0)?, column(row, 1)?, column(row, 2)?, summary))
}

pub(super) async fn subpaths(
    pool: &Pool,
    statements: &Statements,
    key: &SessionKey,
) -> Result<Vec<Subpath>, StoreError> {
    let rows = pool
        .query(
            &statements.subpaths,
            &[
                (&key.scope(), Type::TEXT),
                (&key.project(), Type::TEXT),
                (&key.session().as_str(), Type::TEXT),
            ],
        )
        .await?;
    rows.iter().map(|row| valid(subpath(column(row, 0)?))).collect()
}

pub(super) async fn delete(
    pool: &Pool,
    statements: &Statements,
    key: &SessionKey,
    subpath: Option<&Subpath>,
) -> Result<(), StoreError> {
    pool.query(
        &statements.delete,
        &[
            (&key.scope(), Type::TEXT),
            (&key.project(), Type::TEXT),
            (&key.session().as_str(), Type::TEXT),
            (&subpath.map(Subpath::as_str), Type::TEXT),
            (&pool.lock_timeout(), Type::TEXT),
        ],
    )
    .await
    .map(drop)
}

pub(super) async fn projects(
    pool: &Pool,
    statements: &Statements,
    scope: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<String>, StoreError> {
    let parameters: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] = [
        (&scope, Type::TEXT),
        (&after.unwrap_or_default(), Type::TEXT),
        (&to_sql(limit.max(1) as u64), Type::INT8),
    ];
    let rows = pool.query(&statements.projects, &parameters).await?;
    rows.iter().map(|row| column(row, 0)).collect()
}

pub(super) async fn delete_unchanged(
    pool: &Pool,
    statements: &Statements,
    key: &SessionKey,
    modified_ms: u64,
) -> Result<bool, StoreError> {
    let rows = pool
        .query(
            &statements.delete_unchanged,
            &[
                (&key.scope(), Type::TEXT),
                (&key.project(), Type::TEXT),
                (&key.session().as_str(), Type::TEXT),
                (&to_sql(modified_ms), Type::INT8),
                (&pool.lock_timeout(), Type::TEXT),
            ],
        )
        .await?;
    Ok(!rows.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_entries_are_sent_once_and_counted_as_skipped() {
        let entry = |text: &str| NewEntry::new(None, text, 0).unwrap();
        let other = NewEntry::new(Some(Subpath::new("a").unwrap()), "1", 0).unwrap();
        let entries = [entry("1"), entry("2"), entry("1"), other, entry("2")];
        let batch = Batch::new(&entries).unwrap();
        assert_eq!(batch.texts, ["1", "2", "1"]);
        assert_eq!(batch.subpaths, ["", "a"]);
        assert_eq!(batch.subpath_of, [1, 1, 2]);
        // The second entry was already stored.
        let stored = [8, 3, 9].map(Sequence::new);
        let appended = appended(Sequence::new(7), &stored, &batch.positions).unwrap();
        assert_eq!((appended.last, appended.skipped), (Sequence::new(9), 3));
        assert_eq!(appended.sequences, [8, 3, 8, 9, 3].map(Sequence::new));
    }
}
