//! Approvals in the same file.

use claude_agent_kit::SessionId;
use claude_agent_kit::approval::{
    ApprovalFilter, ApprovalId, ApprovalList, ApprovalPage, ApprovalPosition, ApprovalStore,
    ApprovalWrite,
};
use claude_agent_kit::store::{Epoch, StoreFuture};
use rusqlite::{Connection, OptionalExtension as _, ToSql, named_params, params};

use super::SqliteStore;
use super::errors::{Fault, corrupt};
use super::requests::{now_ms, text};
use crate::approvals::{self, Columns, POLL_INTERVAL};
use crate::sql::{from_sql, to_sql};

impl ApprovalStore for SqliteStore {
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
    ) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let changes = self.changes.subscribe();
            let (scope, wanted) = (scope.to_owned(), id.clone());
            let read = move |connection: &Connection| self::version(connection, &scope, &wanted);
            if self.jobs.read(read).await? == Some(version) {
                changes.changed(id, POLL_INTERVAL).await;
            }
            Ok(())
        })
    }
}

/// [`ApprovalFilter`] for another thread.
enum OwnedFilter {
    Id(ApprovalId),
    OpenOf(SessionId),
    Pending,
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
        };
        let (scope, after) = (list.scope.to_owned(), list.after.cloned());
        Self { scope, filter, after, limit: list.limit.max(1) }
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
const LIST_ID: &str = "SELECT body FROM approval
     WHERE scope = ?1 AND id = ?5 AND (requested_at_ms, id) > (?2, ?3)
     ORDER BY requested_at_ms, id LIMIT ?4";

/// Selects the open approvals of a session after a position.
const LIST_OPEN: &str = "SELECT body FROM approval
     WHERE scope = ?1 AND session = ?5 AND is_open AND (requested_at_ms, id) > (?2, ?3)
     ORDER BY requested_at_ms, id LIMIT ?4";

/// Selects the pending approvals after a position.
const LIST_PENDING: &str = "SELECT body FROM approval
     WHERE scope = ?1 AND is_pending AND (requested_at_ms, id) > (?2, ?3)
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
    };
    if let Some(key) = &key {
        parameters.push(key);
    }
    let mut statement = connection.prepare_cached(statement)?;
    let mut rows = statement.query(&*parameters)?;
    let mut page = ApprovalPage::default();
    while let Some(row) = rows.next()? {
        if page.approvals.len() == list.limit {
            page.more = true;
            break;
        }
        let approval = approvals::read(text(row, 0)?).ok_or_else(|| corrupt("approval"))?;
        page.approvals.push(approval);
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
    }
}
