//! Approvals in the same schema.

use claude_session_store::SessionStore as _;
use claude_session_store::approval::{
    ApprovalFilter, ApprovalId, ApprovalList, ApprovalPage, ApprovalSelection, ApprovalStore,
    ApprovalWrite, Change,
};
use claude_session_store::{EntryId, Epoch, SessionId, StoreError, StoreFuture};
use tokio_postgres::types::{ToSql, Type};

use super::PostgresStore;
use super::errors::corrupt;
use super::requests::{column, only, valid};
use crate::approvals::{self, Columns};
use crate::sql::{from_sql, to_sql};

/// The statements of a schema.
pub(super) struct Statements {
    claim: String,
    write: String,
    list_id: String,
    list_open: String,
    list_pending: String,
    list_all_open: String,
    version: String,
    delete_of: String,
    delete_open_of: String,
    delete_closed: String,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        Self {
            claim: format!("SELECT {schema}.claim_approvals($1, $2, $3)"),
            write: format!(
                "SELECT o_epoch, o_is_written
                 FROM {schema}.write_approval($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"
            ),
            list_id: list(schema, "a.id = $5"),
            list_open: list(schema, "a.session = $5 AND a.is_open"),
            list_pending: list(schema, "a.is_pending"),
            list_all_open: list(schema, "a.is_open"),
            version: format!("SELECT version FROM {schema}.approval WHERE scope = $1 AND id = $2"),
            delete_of: delete(schema, "a.session = $3"),
            delete_open_of: delete(schema, "a.session = $3 AND a.is_open"),
            delete_closed: delete(schema, "a.requested_at_ms < $3 AND NOT a.is_open"),
        }
    }
}

/// Returns the statement that selects approvals after a position, each with the time of the server. Without
/// approvals, one row has the time only.
fn list(schema: &str, condition: &str) -> String {
    format!(
        "SELECT page.body, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
             page.id, page.requested_at_ms
         FROM (SELECT) one LEFT JOIN (
             SELECT a.requested_at_ms, a.id, a.body FROM {schema}.approval a
             WHERE a.scope = $1 AND {condition} AND (a.requested_at_ms, a.id) > ($2, $3)
             ORDER BY a.requested_at_ms, a.id LIMIT $4
         ) page ON true
         ORDER BY page.requested_at_ms, page.id"
    )
}

/// Returns the statement that deletes at most `$2` approvals. The lock is acquired before the condition is checked for
/// the last time, so that a record that another host has just changed is not deleted.
fn delete(schema: &str, condition: &str) -> String {
    format!(
        "WITH selected AS MATERIALIZED (
             SELECT a.id FROM {schema}.approval a WHERE a.scope = $1 AND {condition}
             LIMIT $2 FOR UPDATE
         ), deleted AS (
             DELETE FROM {schema}.approval a USING selected
             WHERE a.scope = $1 AND a.id = selected.id RETURNING a.id
         )
         SELECT count(*) FROM deleted"
    )
}

impl PostgresStore {
    async fn delete_selected(
        &self,
        scope: &str,
        selection: ApprovalSelection<'_>,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let limit = to_sql(limit.max(1) as u64);
        let statements = &self.shared.approvals;
        let (session, before_ms);
        let (statement, key): (_, (&(dyn ToSql + Sync), Type)) = match selection {
            ApprovalSelection::Of(of) => {
                session = of.as_str();
                (&statements.delete_of, (&session, Type::TEXT))
            }
            ApprovalSelection::OpenOf(of) => {
                session = of.as_str();
                (&statements.delete_open_of, (&session, Type::TEXT))
            }
            ApprovalSelection::ClosedBefore(time_ms) => {
                before_ms = to_sql(time_ms);
                (&statements.delete_closed, (&before_ms, Type::INT8))
            }
        };
        let parameters = [(&scope as &(dyn ToSql + Sync), Type::TEXT), (&limit, Type::INT8), key];
        let rows = self.shared.pool.query(statement, &parameters).await?;
        valid(from_sql(column(only(&rows)?, 0)?))
    }

    async fn write(&self, write: &ApprovalWrite<'_>) -> Result<bool, StoreError> {
        let columns = Columns::new(write)?;
        let request = &columns.approval.request;
        let pool = &self.shared.pool;
        let parameters: [(&(dyn ToSql + Sync), Type); 12] = [
            (&request.scope, Type::TEXT),
            (&request.id.as_str(), Type::TEXT),
            (&request.session_id.as_str(), Type::TEXT),
            (&to_sql(request.requested_at_ms), Type::INT8),
            (&columns.is_pending, Type::BOOL),
            (&columns.is_open, Type::BOOL),
            (&to_sql(columns.approval.version()), Type::INT8),
            (&EntryId::unique().as_str().to_owned(), Type::TEXT),
            (&columns.body, Type::TEXT),
            (&columns.replaces.map(to_sql), Type::INT8),
            (&columns.epoch.map(|epoch| to_sql(epoch.get())), Type::INT8),
            (&pool.lock_timeout(), Type::TEXT),
        ];
        let rows = pool.query(&self.shared.approvals.write, &parameters).await?;
        let row = only(&rows)?;
        if let Some(current) = column::<Option<i64>>(row, 0)? {
            columns.check_epoch(Epoch::new(valid(from_sql(current))?))?;
        }
        column(row, 1)
    }

    async fn list(&self, list: ApprovalList<'_>) -> Result<ApprovalPage, StoreError> {
        let (after_ms, after) = match list.after {
            Some(after) => (to_sql(after.requested_at_ms), after.id.as_str()),
            None => (-1, ""),
        };
        // One more, to know whether there are more.
        let limit = list.limit.max(1);
        let rows = to_sql(limit as u64).saturating_add(1);
        let mut parameters: Vec<(&(dyn ToSql + Sync), Type)> = vec![
            (&list.scope, Type::TEXT),
            (&after_ms, Type::INT8),
            (&after, Type::TEXT),
            (&rows, Type::INT8),
        ];
        let statements = &self.shared.approvals;
        let (statement, key) = match list.filter {
            ApprovalFilter::Id(id) => (&statements.list_id, Some(id.as_str())),
            ApprovalFilter::OpenOf(session) => (&statements.list_open, Some(session.as_str())),
            ApprovalFilter::Pending => (&statements.list_pending, None),
            ApprovalFilter::Open => (&statements.list_all_open, None),
        };
        if let Some(key) = &key {
            parameters.push((key, Type::TEXT));
        }
        let rows = self.shared.pool.query(statement, &parameters).await?;
        let mut page =
            ApprovalPage::new(Vec::new(), false, valid(from_sql(column(only(&rows)?, 1)?))?);
        for row in &rows {
            let Some(body) = column::<Option<&str>>(row, 0)? else { break };
            if approvals::is_full(&page, limit) {
                page.more = true;
                break;
            }
            let requested_at_ms = valid(from_sql(column(row, 3)?))?;
            let record = approvals::Row { id: column(row, 2)?, requested_at_ms, body: Some(body) };
            record.add_to(&mut page, &list, corrupt)?;
        }
        Ok(page)
    }

    async fn version(&self, scope: &str, id: &ApprovalId) -> Result<Option<u64>, StoreError> {
        let parameters = [
            (&scope as &(dyn ToSql + Sync), Type::TEXT),
            (&id.as_str() as &(dyn ToSql + Sync), Type::TEXT),
        ];
        let rows = self.shared.pool.query(&self.shared.approvals.version, &parameters).await?;
        rows.first().map(|row| valid(from_sql(column(row, 0)?))).transpose()
    }
}

impl ApprovalStore for PostgresStore {
    fn approvals_location(&self) -> Option<String> {
        self.location()
    }

    fn claim_approvals<'a>(
        &'a self,
        scope: &'a str,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            let pool = &self.shared.pool;
            let parameters: [(&(dyn ToSql + Sync), Type); 3] = [
                (&scope, Type::TEXT),
                (&session.as_str(), Type::TEXT),
                (&pool.lock_timeout(), Type::TEXT),
            ];
            let rows = pool.query(&self.shared.approvals.claim, &parameters).await?;
            Ok(Epoch::new(valid(from_sql(column(only(&rows)?, 0)?))?))
        })
    }

    fn write_approval<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let is_written = self.write(&write).await?;
            if is_written {
                self.shared.changes.send(write.approval.request.id.clone());
            }
            Ok(is_written)
        })
    }

    fn list_approvals<'a>(&'a self, list: ApprovalList<'a>) -> StoreFuture<'a, ApprovalPage> {
        Box::pin(self.list(list))
    }

    fn approval_changed<'a>(
        &'a self,
        scope: &'a str,
        id: &'a ApprovalId,
        version: u64,
    ) -> StoreFuture<'a, Change> {
        Box::pin(async move {
            let shared = &self.shared;
            let subscription = shared.changes.subscribe();
            let time = shared.listener.start(&shared.pool, &shared.schema, &shared.changes);
            if self.version(scope, id).await? == Some(version) {
                subscription.changed(id, time).await;
            }
            Ok(Change::Possible)
        })
    }

    fn scope_changed<'a>(&'a self, _: &'a str) -> StoreFuture<'a, Change> {
        let shared = &self.shared;
        // Now, so that a change before the first poll ends the wait. Changes of other scopes also do.
        let subscription = shared.changes.subscribe();
        let time = shared.listener.start(&shared.pool, &shared.schema, &shared.changes);
        Box::pin(async move {
            subscription.any(time).await;
            Ok(Change::Possible)
        })
    }

    fn delete_approvals<'a>(
        &'a self,
        scope: &'a str,
        selection: ApprovalSelection<'a>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        Box::pin(self.delete_selected(scope, selection, limit))
    }
}
