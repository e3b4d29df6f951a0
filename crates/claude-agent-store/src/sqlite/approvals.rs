//! Approvals in the same file.

use claude_session_store::SessionStore as _;
use claude_session_store::approval::{
    ApprovalFilter, ApprovalId, ApprovalList, ApprovalPage, ApprovalPosition, ApprovalSelection,
    ApprovalStore, ApprovalWrite, Change,
};
use claude_session_store::{Epoch, SessionId, StoreFuture};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, ToSql, named_params, params};

use super::SqliteStore;
use super::errors::{Fault, corrupt};
use super::requests::{empty_log, now_ms, text};
use crate::approvals::{self, Columns, POLL_INTERVAL};
use crate::sql::{from_sql, to_sql};

impl ApprovalStore for SqliteStore {
    fn approvals_location(&self) -> Option<String> {
        self.location()
    }

    fn claim_approvals<'a>(
        &'a self,
        scope: &'a str,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Epoch> {
        let (scope, session) = (scope.to_owned(), session.clone());
        Box::pin(self.jobs.write(move |connection| claim(connection, &scope, &session)))
    }

    fn write_approval<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let (columns, id) = (Columns::new(&write)?, write.approval.request.id.clone());
            let is_written =
                self.jobs.write(move |connection| self::write(connection, &columns)).await?;
            if is_written {
                self.changes.send(id);
            }
            Ok(is_written)
        })
    }

    fn list_approvals<'a>(&'a self, list: ApprovalList<'a>) -> StoreFuture<'a, ApprovalPage> {
        let list = OwnedList::new(&list);
        Box::pin(self.jobs.read(move |connection| self::list(connection, &list)))
    }

    fn approval_changed<'a>(
        &'a self,
        scope: &'a str,
        id: &'a ApprovalId,
        version: u64,
    ) -> StoreFuture<'a, Change> {
        Box::pin(async move {
            let changes = self.changes.subscribe();
            let (scope, wanted) = (scope.to_owned(), id.clone());
            let read = move |connection: &Connection| self::version(connection, &scope, &wanted);
            if self.jobs.read(read).await? == Some(version) {
                changes.changed(id, POLL_INTERVAL).await;
            }
            Ok(Change::Possible)
        })
    }

    fn scope_changed<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Change> {
        // Now, so that a change before the first poll ends the wait. Changes of other scopes also do.
        let changes = self.changes.subscribe();
        Box::pin(async move {
            changes.any(POLL_INTERVAL).await;
            Ok(Change::Possible)
        })
    }

    fn delete_approvals<'a>(
        &'a self,
        scope: &'a str,
        selection: ApprovalSelection<'a>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        let scope = scope.to_owned();
        let (statement, key) = match selection {
            ApprovalSelection::Of(session) => (DELETE_OF, Value::Text(session.to_string())),
            ApprovalSelection::OpenOf(session) => {
                (DELETE_OPEN_OF, Value::Text(session.to_string()))
            }
            ApprovalSelection::ClosedBefore(time_ms) => {
                (DELETE_CLOSED, Value::Integer(to_sql(time_ms)))
            }
        };
        let limit = to_sql(limit.max(1) as u64);
        let delete = move |connection: &Connection| {
            let mut statement = connection.prepare_cached(statement)?;
            Ok(statement.execute(params![scope, key, limit])? as u64)
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

/// Deletes approvals of a session.
const DELETE_OF: &str = "DELETE FROM approval WHERE scope = ?1 AND id IN
     (SELECT id FROM approval WHERE scope = ?1 AND session = ?2 LIMIT ?3)";

/// Deletes open approvals of a session.
const DELETE_OPEN_OF: &str = "DELETE FROM approval WHERE scope = ?1 AND id IN
     (SELECT id FROM approval WHERE scope = ?1 AND session = ?2 AND is_open LIMIT ?3)";

/// Deletes approvals that are not open, and were requested before a time.
const DELETE_CLOSED: &str = "DELETE FROM approval WHERE scope = ?1 AND id IN
     (SELECT id FROM approval WHERE scope = ?1 AND requested_at_ms < ?2 AND NOT is_open LIMIT ?3)";

/// [`ApprovalFilter`] for another thread.
enum OwnedFilter {
    Id(ApprovalId),
    OpenOf(SessionId),
    Pending,
    Open,
}

/// [`ApprovalList`] for another thread.
struct OwnedList {
    scope: String,
    filter: OwnedFilter,
    after: Option<ApprovalPosition>,
    limit: usize,
}

impl OwnedList {
    fn new(list: &ApprovalList<'_>) -> Self {
        let filter = match list.filter {
            ApprovalFilter::Id(id) => OwnedFilter::Id(id.clone()),
            ApprovalFilter::OpenOf(session) => OwnedFilter::OpenOf(session.clone()),
            ApprovalFilter::Pending => OwnedFilter::Pending,
            ApprovalFilter::Open => OwnedFilter::Open,
        };
        let (scope, after) = (list.scope.to_owned(), list.after.cloned());
        Self { scope, filter, after, limit: list.limit.max(1) }
    }

    fn as_list(&self) -> ApprovalList<'_> {
        let filter = match &self.filter {
            OwnedFilter::Id(id) => ApprovalFilter::Id(id),
            OwnedFilter::OpenOf(session) => ApprovalFilter::OpenOf(session),
            OwnedFilter::Pending => ApprovalFilter::Pending,
            OwnedFilter::Open => ApprovalFilter::Open,
        };
        ApprovalList::new(&self.scope, filter).after(self.after.as_ref()).limit(self.limit)
    }
}

fn claim(connection: &Connection, scope: &str, session: &SessionId) -> Result<Epoch, Fault> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO approval_owner (scope, session, epoch) VALUES (?1, ?2, 1)
         ON CONFLICT (scope, session) DO UPDATE SET epoch = epoch + 1
         RETURNING epoch",
    )?;
    let epoch: i64 = statement.query_row((scope, session.as_str()), |row| row.get(0))?;
    Ok(Epoch::new(from_sql(epoch)?))
}

fn write(connection: &Connection, columns: &Columns) -> Result<bool, Fault> {
    let request = &columns.approval.request;
    if columns.epoch.is_some() {
        let mut statement = connection
            .prepare_cached("SELECT epoch FROM approval_owner WHERE scope = ?1 AND session = ?2")?;
        let parameters = (&request.scope, request.session_id.as_str());
        let epoch: Option<i64> = statement.query_row(parameters, |row| row.get(0)).optional()?;
        columns.check_epoch(Epoch::new(from_sql(epoch.unwrap_or_default())?))?;
    }
    let statement = match columns.replaces {
        Some(_) => {
            "UPDATE approval SET session = :session, requested_at_ms = :requested_at_ms,
                 is_pending = :is_pending, is_open = :is_open, version = :version, body = :body
             WHERE scope = :scope AND id = :id AND version = :replaces"
        }
        // The parameter is NULL and not used, so that both statements have the same ones.
        None => {
            "INSERT INTO approval
                 (scope, id, session, requested_at_ms, is_pending, is_open, version, body)
             SELECT :scope, :id, :session, :requested_at_ms, :is_pending, :is_open, :version, :body
             WHERE :replaces IS NULL
             ON CONFLICT (scope, id) DO NOTHING"
        }
    };
    let written = connection.prepare_cached(statement)?.execute(named_params! {
        ":scope": request.scope,
        ":id": request.id.as_str(),
        ":session": request.session_id.as_str(),
        ":requested_at_ms": to_sql(request.requested_at_ms),
        ":is_pending": columns.is_pending,
        ":is_open": columns.is_open,
        ":version": to_sql(columns.approval.version()),
        ":body": columns.body,
        ":replaces": columns.replaces.map(to_sql),
    })?;
    Ok(written == 1)
}

/// Selects the approval with an ID.
const LIST_ID: &str = "SELECT id, requested_at_ms, body FROM approval
     WHERE scope = ?1 AND id = ?5 AND (requested_at_ms, id) > (?2, ?3)
     ORDER BY requested_at_ms, id LIMIT ?4";

/// Selects the open approvals of a session after a position.
const LIST_OPEN: &str = "SELECT id, requested_at_ms, body FROM approval
     WHERE scope = ?1 AND session = ?5 AND is_open AND (requested_at_ms, id) > (?2, ?3)
     ORDER BY requested_at_ms, id LIMIT ?4";

/// Selects the pending approvals after a position.
const LIST_PENDING: &str = "SELECT id, requested_at_ms, body FROM approval
     WHERE scope = ?1 AND is_pending AND (requested_at_ms, id) > (?2, ?3)
     ORDER BY requested_at_ms, id LIMIT ?4";

/// Selects the open approvals of all sessions after a position. The index has them by session, so that they are sorted:
/// they are few in comparison to those that were ever made. Without the index's name, SQLite may read the whole scope.
const LIST_ALL_OPEN: &str =
    "SELECT id, requested_at_ms, body FROM approval INDEXED BY approval_open
     WHERE scope = ?1 AND is_open AND (requested_at_ms, id) > (?2, ?3)
     ORDER BY requested_at_ms, id LIMIT ?4";

fn list(connection: &Connection, list: &OwnedList) -> Result<ApprovalPage, Fault> {
    let (after_ms, after) = match &list.after {
        Some(after) => (to_sql(after.requested_at_ms), after.id.as_str()),
        None => (-1, ""),
    };
    // One more, to know whether there are more.
    let limit = to_sql(list.limit as u64).saturating_add(1);
    let mut parameters: Vec<&dyn ToSql> = vec![&list.scope, &after_ms, &after, &limit];
    let (statement, key) = match &list.filter {
        OwnedFilter::Id(id) => (LIST_ID, Some(id.as_str())),
        OwnedFilter::OpenOf(session) => (LIST_OPEN, Some(session.as_str())),
        OwnedFilter::Pending => (LIST_PENDING, None),
        OwnedFilter::Open => (LIST_ALL_OPEN, None),
    };
    if let Some(key) = &key {
        parameters.push(key);
    }
    let mut statement = connection.prepare_cached(statement)?;
    let mut rows = statement.query(&*parameters)?;
    let mut page = ApprovalPage::default();
    while let Some(row) = rows.next()? {
        if approvals::is_full(&page, list.limit) {
            page.more = true;
            break;
        }
        let requested_at_ms = from_sql(row.get(1)?)?;
        let body = row.get_ref(2)?.as_str().ok();
        let record = approvals::Row { id: text(row, 0)?, requested_at_ms, body };
        record.add_to(&mut page, &list.as_list(), corrupt)?;
    }
    page.now_ms = from_sql(now_ms())?;
    Ok(page)
}

fn version(connection: &Connection, scope: &str, id: &ApprovalId) -> Result<Option<u64>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT version FROM approval WHERE scope = ?1 AND id = ?2")?;
    let version: Option<i64> =
        statement.query_row(params![scope, id.as_str()], |row| row.get(0)).optional()?;
    Ok(version.map(from_sql).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::super::requests::tests::plan;
    use super::*;

    #[test]
    fn approvals_are_listed_by_index_without_sorting() {
        for (statement, index) in [
            (LIST_ID, "sqlite_autoindex_approval_1"),
            (LIST_OPEN, "approval_open (scope=? AND session=? AND"),
            (LIST_PENDING, "approval_pending (scope=? AND"),
        ] {
            let plan = plan(statement);
            assert!(plan.contains(index), "{plan}");
            assert!(!plan.contains("SCAN"), "{plan}");
            // At most one approval has the ID.
            assert!(statement == LIST_ID || !plan.contains("TEMP B-TREE"), "{plan}");
        }
        let plan = plan(LIST_ALL_OPEN);
        assert!(plan.contains("approval_open (scope=?") && !plan.contains("SCAN"), "{plan}");
    }
}
