//! Records in the same file.

use claude_session_store::record::{
    OwnerKey, RecordChange, RecordFilter, RecordKey, RecordKind, RecordList, RecordPage,
    RecordSelection, RecordStore, RecordWatch, RecordWrite,
};
use claude_session_store::{Epoch, Sequence, SessionStore as _, StoreError, StoreFuture};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, named_params, params, params_from_iter};

use super::SqliteStore;
use super::errors::{Fault, corrupt};
use super::requests::{empty_log, now_ms, text};
use crate::records;
use crate::sql::{from_sql, to_sql};

impl RecordStore for SqliteStore {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        let owner = owner.clone();
        Box::pin(self.jobs.write(move |connection| claim(connection, &owner)))
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            write.check()?;
            let owned = OwnedWrite::new(&write);
            let is_written =
                self.jobs.write(move |connection| self::write(connection, &owned)).await?;
            if is_written {
                for change in write.changes {
                    self.changes.send(change.key.clone());
                }
            }
            Ok(is_written)
        })
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        let list = OwnedList::new(&list);
        Box::pin(self.jobs.read(move |connection| self::list(connection, &list)))
    }

    fn records_changed<'a>(&'a self, watch: RecordWatch<'a>) -> StoreFuture<'a, ()> {
        // Now, so that a change before the first poll ends the wait.
        let changes = self.changes.subscribe();
        Box::pin(async move {
            if let RecordWatch::Record { key, version } = watch {
                let wanted = key.clone();
                let read = move |connection: &Connection| self::version(connection, &wanted);
                if self.jobs.read(read).await?.unwrap_or_default() != version {
                    return Ok(());
                }
            }
            changes.changed(watch).await;
            Ok(())
        })
    }

    fn records_location(&self) -> Option<String> {
        self.location()
    }

    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        let (statement, scope, key) = match selection {
            RecordSelection::Of(owner) => (DELETE_OF, owner.scope(), text_of(owner.owner())),
            RecordSelection::OpenOf(owner) => {
                (DELETE_OPEN_OF, owner.scope(), text_of(owner.owner()))
            }
            RecordSelection::ClosedBefore { scope, time_ms } => {
                (DELETE_CLOSED, scope, Value::Integer(to_sql(time_ms)))
            }
            RecordSelection::In(scope) => (DELETE_IN, scope, Value::Null),
        };
        let (scope, kind) = (scope.to_owned(), kind.map(RecordKind::as_str));
        let limit = to_sql(limit.max(1) as u64);
        let delete = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(statement)?;
            Ok(statement.execute(params![scope, kind, limit, key])? as u64)
        };
        let busy_timeout = self.busy_timeout;
        Box::pin(async move {
            let count = self.jobs.write(delete).await?;
            if count > 0 {
                // Outside of a transaction.
                let empty = move |connection: &Connection| empty_log(connection, busy_timeout);
                self.jobs.read(empty).await?;
            }
            Ok(count)
        })
    }
}

fn text_of(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Returns the statement that deletes selected records of one kind or of all. The last parameter is used by some.
macro_rules! delete {
    ($condition:literal) => {
        concat!(
            "DELETE FROM record WHERE sequence IN
                 (SELECT sequence FROM record WHERE scope = ?1 AND (?2 IS NULL OR kind = ?2) AND ",
            $condition,
            " ORDER BY sequence LIMIT ?3)"
        )
    };
}

const DELETE_OF: &str = delete!("owner = ?4");
const DELETE_OPEN_OF: &str = delete!("owner = ?4 AND is_open");
const DELETE_CLOSED: &str = delete!("created_ms < ?4 AND NOT is_open");
const DELETE_IN: &str = delete!("?4 IS NULL");

/// [`RecordWrite`] for another thread.
struct OwnedWrite {
    changes: Vec<RecordChange>,
    fence: Option<(OwnerKey, Epoch)>,
}

impl OwnedWrite {
    fn new(write: &RecordWrite<'_>) -> Self {
        let fence = write.fence.map(|(owner, epoch)| (owner.clone(), epoch));
        Self { changes: write.changes.to_vec(), fence }
    }
}

fn claim(connection: &Connection, owner: &OwnerKey) -> Result<Epoch, Fault> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO record_owner (scope, owner, epoch) VALUES (?1, ?2, 1)
         ON CONFLICT (scope, owner) DO UPDATE SET epoch = epoch + 1
         RETURNING epoch",
    )?;
    let epoch: i64 = statement.query_row((owner.scope(), owner.owner()), |row| row.get(0))?;
    Ok(Epoch::new(from_sql(epoch)?))
}

/// Writes all changes or none: the transaction keeps other processes from writing between the comparison and the
/// writes.
fn write(connection: &Connection, write: &OwnedWrite) -> Result<bool, Fault> {
    if let Some((owner, epoch)) = &write.fence {
        let current = current_epoch(connection, owner)?;
        if *epoch != current {
            return Err(StoreError::records_superseded(owner, *epoch, current).into());
        }
    }
    for change in &write.changes {
        if version(connection, &change.key)? != change.replaces {
            return Ok(false);
        }
    }
    for change in &write.changes {
        write_one(connection, change)?;
    }
    Ok(true)
}

fn current_epoch(connection: &Connection, owner: &OwnerKey) -> Result<Epoch, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT epoch FROM record_owner WHERE scope = ?1 AND owner = ?2")?;
    let parameters = (owner.scope(), owner.owner());
    let epoch: Option<i64> = statement.query_row(parameters, |row| row.get(0)).optional()?;
    Ok(Epoch::new(from_sql(epoch.unwrap_or_default())?))
}

fn write_one(connection: &Connection, change: &RecordChange) -> Result<(), Fault> {
    // The owner and the time of creation are not replaced.
    let mut statement = connection.prepare_cached(
        "INSERT INTO record
             (scope, kind, id, owner, version, is_open, due_at_ms, created_ms, body)
         VALUES (:scope, :kind, :id, :owner, :version, :is_open, :due_at_ms, :now_ms, :body)
         ON CONFLICT (scope, kind, id) DO UPDATE SET version = excluded.version,
             is_open = excluded.is_open, due_at_ms = excluded.due_at_ms, body = excluded.body",
    )?;
    statement.execute(named_params! {
        ":scope": change.key.scope(),
        ":kind": change.key.kind().as_str(),
        ":id": change.key.id(),
        ":owner": &*change.owner,
        ":version": to_sql(change.version()),
        ":is_open": change.is_open,
        ":due_at_ms": change.due_at_ms.map(to_sql),
        ":now_ms": now_ms(),
        ":body": &*change.body,
    })?;
    Ok(())
}

fn version(connection: &Connection, key: &RecordKey) -> Result<Option<u64>, Fault> {
    let mut statement = connection
        .prepare_cached("SELECT version FROM record WHERE scope = ?1 AND kind = ?2 AND id = ?3")?;
    let parameters = (key.scope(), key.kind().as_str(), key.id());
    let version: Option<i64> = statement.query_row(parameters, |row| row.get(0)).optional()?;
    Ok(version.map(from_sql).transpose()?)
}

/// [`RecordFilter`] for another thread.
enum OwnedFilter {
    Id { scope: String, id: String },
    Of(OwnerKey),
    OpenOf(OwnerKey),
    In(String),
    OpenIn(String),
    Open,
    Due,
}

/// [`RecordList`] for another thread.
struct OwnedList {
    kind: RecordKind,
    filter: OwnedFilter,
    after: Sequence,
    limit: usize,
}

impl OwnedList {
    fn new(list: &RecordList<'_>) -> Self {
        let filter = match list.filter {
            RecordFilter::Id { scope, id } => {
                OwnedFilter::Id { scope: scope.to_owned(), id: id.to_owned() }
            }
            RecordFilter::Of(owner) => OwnedFilter::Of(owner.clone()),
            RecordFilter::OpenOf(owner) => OwnedFilter::OpenOf(owner.clone()),
            RecordFilter::In(scope) => OwnedFilter::In(scope.to_owned()),
            RecordFilter::OpenIn(scope) => OwnedFilter::OpenIn(scope.to_owned()),
            RecordFilter::Open => OwnedFilter::Open,
            RecordFilter::Due => OwnedFilter::Due,
        };
        Self { kind: list.kind, filter, after: list.after, limit: list.limit.max(1) }
    }

    fn as_list(&self) -> RecordList<'_> {
        let filter = match &self.filter {
            OwnedFilter::Id { scope, id } => RecordFilter::Id { scope, id },
            OwnedFilter::Of(owner) => RecordFilter::Of(owner),
            OwnedFilter::OpenOf(owner) => RecordFilter::OpenOf(owner),
            OwnedFilter::In(scope) => RecordFilter::In(scope),
            OwnedFilter::OpenIn(scope) => RecordFilter::OpenIn(scope),
            OwnedFilter::Open => RecordFilter::Open,
            OwnedFilter::Due => RecordFilter::Due,
        };
        RecordList::new(self.kind, filter).after(self.after).limit(self.limit)
    }
}

/// Returns the statement that selects records of a kind after a position.
macro_rules! select {
    ($index:literal, $condition:literal) => {
        concat!(
            "SELECT sequence, scope, id, owner, version, is_open, due_at_ms, created_ms, body
             FROM record ",
            $index,
            " WHERE kind = ?1 AND sequence > ?2 AND ",
            $condition,
            " ORDER BY sequence LIMIT ?3"
        )
    };
}

const LIST_ID: &str = select!("", "scope = ?4 AND id = ?5");
// Without the names of the indexes, SQLite reads the table in the order of its rows.
const LIST_OF: &str = select!("INDEXED BY record_of_owner", "scope = ?4 AND owner = ?5");
const LIST_OPEN_OF: &str =
    select!("INDEXED BY record_open_of_owner", "scope = ?4 AND owner = ?5 AND is_open");
const LIST_IN: &str = select!("INDEXED BY record_in_scope", "scope = ?4");
const LIST_OPEN_IN: &str = select!("INDEXED BY record_open_in_scope", "scope = ?4 AND is_open");
const LIST_OPEN: &str = select!("INDEXED BY record_open", "is_open");
// Those that are due are sorted: they are few in comparison to those that are open.
const LIST_DUE: &str = select!("INDEXED BY record_due", "is_open AND due_at_ms <= ?4");

fn list(connection: &Connection, list: &OwnedList) -> Result<RecordPage, Fault> {
    let now = now_ms();
    // One more, to know whether there are more.
    let limit = to_sql(list.limit as u64).saturating_add(1);
    let mut parameters = vec![
        text_of(list.kind.as_str()),
        Value::Integer(to_sql(list.after.get())),
        Value::Integer(limit),
    ];
    let (statement, keys) = match &list.filter {
        OwnedFilter::Id { scope, id } => (LIST_ID, vec![text_of(scope), text_of(id)]),
        OwnedFilter::Of(owner) => (LIST_OF, vec![text_of(owner.scope()), text_of(owner.owner())]),
        OwnedFilter::OpenOf(owner) => {
            (LIST_OPEN_OF, vec![text_of(owner.scope()), text_of(owner.owner())])
        }
        OwnedFilter::In(scope) => (LIST_IN, vec![text_of(scope)]),
        OwnedFilter::OpenIn(scope) => (LIST_OPEN_IN, vec![text_of(scope)]),
        OwnedFilter::Open => (LIST_OPEN, Vec::new()),
        OwnedFilter::Due => (LIST_DUE, vec![Value::Integer(now)]),
    };
    parameters.extend(keys);
    let mut statement = connection.prepare_cached(statement)?;
    let mut rows = statement.query(params_from_iter(parameters))?;
    let mut page = RecordPage::new(from_sql(now)?);
    while let Some(row) = rows.next()? {
        if page.len() >= list.limit {
            page.more = true;
            break;
        }
        let record = records::Row {
            sequence: row.get(0)?,
            scope: text(row, 1)?,
            id: text(row, 2)?,
            owner: text(row, 3)?,
            version: row.get(4)?,
            is_open: row.get(5)?,
            due_at_ms: row.get(6)?,
            created_ms: row.get(7)?,
            body: row.get_ref(8)?.as_str().ok(),
        };
        record.add_to(&mut page, &list.as_list(), corrupt)?;
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::super::requests::tests::plan;
    use super::*;

    #[test]
    fn records_are_listed_by_index_without_sorting() {
        for (statement, index) in [
            (LIST_ID, "sqlite_autoindex_record_1 (scope=? AND kind=? AND id=?"),
            (LIST_OF, "record_of_owner (scope=? AND owner=? AND kind=? AND sequence>?"),
            (LIST_OPEN_OF, "record_open_of_owner (scope=? AND owner=? AND kind=? AND sequence>?"),
            (LIST_IN, "record_in_scope (scope=? AND kind=? AND sequence>?"),
            (LIST_OPEN_IN, "record_open_in_scope (scope=? AND kind=? AND sequence>?"),
            (LIST_OPEN, "record_open (kind=? AND sequence>?"),
        ] {
            let plan = plan(statement);
            assert!(plan.contains(index), "{plan}");
            assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
        }
        let plan = plan(LIST_DUE);
        assert!(plan.contains("record_due (kind=? AND due_at_ms<?"), "{plan}");
    }

    #[test]
    fn records_are_deleted_by_index() {
        for (statement, index) in [
            (DELETE_OF, "record_of_owner (scope=? AND owner=?"),
            (DELETE_OPEN_OF, "record_open_of_owner (scope=? AND owner=?"),
            (DELETE_CLOSED, "(scope=?"),
            (DELETE_IN, "(scope=?"),
        ] {
            let plan = plan(statement);
            assert!(plan.contains(index) && !plan.contains("SCAN"), "{plan}");
        }
    }
}
