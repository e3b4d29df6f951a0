//! Records in the same schema.

use std::time::Duration;

use claude_session_store::record::{
    OwnerKey, RecordChange, RecordFilter, RecordKey, RecordKind, RecordList, RecordPage,
    RecordSelection, RecordStore, RecordWatch, RecordWrite,
};
use claude_session_store::{EntryId, Epoch, SessionStore as _, StoreError, StoreFuture};
use tokio_postgres::types::{ToSql, Type};

use super::PostgresStore;
use super::errors::{self, corrupt};
use super::requests::{MAX_APPEND, column, only, valid};
use crate::records;
use crate::sql::{from_sql, to_sql};

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// The statements of a schema.
pub(super) struct Statements {
    claim: String,
    write: String,
    version: String,
    list_id: String,
    list_of: String,
    list_open_of: String,
    list_in: String,
    list_open_in: String,
    list_open: String,
    list_due: String,
    delete: String,
}

impl Statements {
    pub(super) fn new(schema: &str) -> Self {
        Self {
            claim: format!("SELECT {schema}.claim_records($1, $2, $3)"),
            write: format!(
                "SELECT o_epoch, o_is_written FROM {schema}.write_records(
                     $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
            ),
            version: format!(
                "SELECT version FROM {schema}.record WHERE scope = $1 AND kind = $2 AND id = $3"
            ),
            list_id: list(schema, "r.scope = $4 AND r.id = $5"),
            list_of: list(schema, "r.scope = $4 AND r.owner = $5"),
            list_open_of: list(schema, "r.scope = $4 AND r.owner = $5 AND r.is_open"),
            list_in: list(schema, "r.scope = $4"),
            list_open_in: list(schema, "r.scope = $4 AND r.is_open"),
            list_open: list(schema, "r.is_open"),
            list_due: list(schema, &format!("r.is_open AND r.due_at_ms <= {NOW}")),
            delete: format!("SELECT {schema}.delete_records($1, $2, $3, $4, $5, $6, $7)"),
        }
    }
}

/// The clock of the server. It stands still during a statement, or an index could not be used with it.
const NOW: &str = "floor(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

/// Returns the statement that selects records of a kind after a position, each with the time of the server. Without
/// records, one row has the time only.
fn list(schema: &str, condition: &str) -> String {
    format!(
        "SELECT {NOW}, page.*
         FROM (SELECT) one LEFT JOIN (
             SELECT r.sequence, r.scope, r.id, r.owner, r.version, r.is_open, r.due_at_ms,
                 r.created_ms, r.body
             FROM {schema}.record r
             WHERE r.kind = $1 AND r.sequence > $2 AND {condition}
             ORDER BY r.sequence LIMIT $3
         ) page ON true
         ORDER BY page.sequence"
    )
}

/// Changes as arrays, in the order of their keys.
#[derive(Default)]
struct Columns<'a> {
    scopes: Vec<&'a str>,
    kinds: Vec<&'static str>,
    ids: Vec<&'a str>,
    owners: Vec<&'a str>,
    replaces: Vec<Option<i64>>,
    is_open: Vec<bool>,
    due_at_ms: Vec<Option<i64>>,
    bodies: Vec<&'a [u8]>,
}

impl<'a> Columns<'a> {
    fn new(changes: &'a [RecordChange]) -> Result<Self, StoreError> {
        let bytes: usize = changes.iter().map(|change| change.body.len()).sum();
        if bytes > MAX_APPEND {
            return Err(errors::too_large("a write of records", bytes, MAX_APPEND));
        }
        let mut sorted: Vec<&RecordChange> = changes.iter().collect();
        // As the server sorts them: kinds by their names.
        let name = |key: &RecordKey| key.kind().as_str();
        sorted.sort_unstable_by(
            |RecordChange { key: one, .. }, RecordChange { key: other, .. }| {
                (one.scope(), name(one), one.id()).cmp(&(other.scope(), name(other), other.id()))
            },
        );
        let mut columns = Self::default();
        for change in sorted {
            columns.scopes.push(change.key.scope());
            columns.kinds.push(change.key.kind().as_str());
            columns.ids.push(change.key.id());
            columns.owners.push(&change.owner);
            columns.replaces.push(change.replaces.map(to_sql));
            columns.is_open.push(change.is_open);
            columns.due_at_ms.push(change.due_at_ms.map(to_sql));
            columns.bodies.push(change.body.as_bytes());
        }
        Ok(columns)
    }
}

impl PostgresStore {
    async fn write(&self, write: RecordWrite<'_>) -> Result<bool, StoreError> {
        write.check()?;
        let columns = Columns::new(write.changes)?;
        let pool = &self.shared.pool;
        let (scope, owner) =
            write.fence.map_or(("", ""), |(owner, _)| (owner.scope(), owner.owner()));
        let epoch = write.fence.map(|(_, epoch)| to_sql(epoch.get()));
        let parameters: [Parameter<'_>; 13] = [
            (&scope, Type::TEXT),
            (&owner, Type::TEXT),
            (&epoch, Type::INT8),
            (&columns.scopes, Type::TEXT_ARRAY),
            (&columns.kinds, Type::TEXT_ARRAY),
            (&columns.ids, Type::TEXT_ARRAY),
            (&columns.owners, Type::TEXT_ARRAY),
            (&columns.replaces, Type::INT8_ARRAY),
            (&columns.is_open, Type::BOOL_ARRAY),
            (&columns.due_at_ms, Type::INT8_ARRAY),
            (&columns.bodies, Type::BYTEA_ARRAY),
            (&EntryId::unique().as_str().to_owned(), Type::TEXT),
            (&pool.lock_timeout(), Type::TEXT),
        ];
        let rows = pool.query(&self.shared.records.write, &parameters).await?;
        let row = only(&rows)?;
        let is_written = column(row, 1)?;
        if let (Some((owner, epoch)), Some(current), false) =
            (write.fence, column::<Option<i64>>(row, 0)?, is_written)
        {
            let current = Epoch::new(valid(from_sql(current))?);
            if current != epoch {
                return Err(StoreError::records_superseded(owner, epoch, current));
            }
        }
        Ok(is_written)
    }

    async fn list(&self, list: RecordList<'_>) -> Result<RecordPage, StoreError> {
        let statements = &self.shared.records;
        let (kind, after) = (list.kind.as_str(), to_sql(list.after.get()));
        // One more, to know whether there are more.
        let limit = list.limit.max(1);
        let more = to_sql(limit as u64).saturating_add(1);
        let (statement, keys) = match list.filter {
            RecordFilter::Id { scope, id } => (&statements.list_id, vec![scope, id]),
            RecordFilter::Of(owner) => (&statements.list_of, vec![owner.scope(), owner.owner()]),
            RecordFilter::OpenOf(owner) => {
                (&statements.list_open_of, vec![owner.scope(), owner.owner()])
            }
            RecordFilter::In(scope) => (&statements.list_in, vec![scope]),
            RecordFilter::OpenIn(scope) => (&statements.list_open_in, vec![scope]),
            RecordFilter::Open => (&statements.list_open, Vec::new()),
            RecordFilter::Due => (&statements.list_due, Vec::new()),
        };
        let mut parameters: Vec<Parameter<'_>> =
            vec![(&kind, Type::TEXT), (&after, Type::INT8), (&more, Type::INT8)];
        parameters.extend(keys.iter().map(|key| (key as &(dyn ToSql + Sync), Type::TEXT)));
        let rows = self.shared.pool.query(statement, &parameters).await?;
        let mut page = RecordPage::new(valid(from_sql(column(only(&rows)?, 0)?))?);
        for row in &rows {
            let Some(sequence) = column::<Option<i64>>(row, 1)? else { break };
            if page.len() >= limit {
                page.more = true;
                break;
            }
            let record = records::Row {
                sequence,
                scope: column(row, 2)?,
                id: column(row, 3)?,
                owner: column(row, 4)?,
                version: column(row, 5)?,
                is_open: column(row, 6)?,
                due_at_ms: column(row, 7)?,
                created_ms: column(row, 8)?,
                body: std::str::from_utf8(column(row, 9)?).ok(),
            };
            record.add_to(&mut page, &list, corrupt)?;
        }
        Ok(page)
    }

    async fn version(&self, key: &RecordKey) -> Result<Option<u64>, StoreError> {
        let parameters: [Parameter<'_>; 3] = [
            (&key.scope(), Type::TEXT),
            (&key.kind().as_str(), Type::TEXT),
            (&key.id(), Type::TEXT),
        ];
        let rows = self.shared.pool.query(&self.shared.records.version, &parameters).await?;
        rows.first().map(|row| valid(from_sql(column(row, 0)?))).transpose()
    }

    async fn delete_selected(
        &self,
        selection: RecordSelection<'_>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> Result<u64, StoreError> {
        let (limit, kind) = (to_sql(limit.max(1) as u64), kind.map(RecordKind::as_str));
        let (scope, owner, before_ms, is_open) = match selection {
            RecordSelection::Of(owner) => (owner.scope(), Some(owner.owner()), None, None),
            RecordSelection::OpenOf(owner) => {
                (owner.scope(), Some(owner.owner()), None, Some(true))
            }
            RecordSelection::ClosedBefore { scope, time_ms } => {
                (scope, None, Some(to_sql(time_ms)), Some(false))
            }
            RecordSelection::In(scope) => (scope, None, None, None),
        };
        let pool = &self.shared.pool;
        let parameters: [Parameter<'_>; 7] = [
            (&scope, Type::TEXT),
            (&kind, Type::TEXT),
            (&owner, Type::TEXT),
            (&before_ms, Type::INT8),
            (&is_open, Type::BOOL),
            (&limit, Type::INT8),
            (&pool.lock_timeout(), Type::TEXT),
        ];
        let rows = pool.query(&self.shared.records.delete, &parameters).await?;
        valid(from_sql(column(only(&rows)?, 0)?))
    }
}

impl RecordStore for PostgresStore {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            let pool = &self.shared.pool;
            let parameters: [Parameter<'_>; 3] = [
                (&owner.scope(), Type::TEXT),
                (&owner.owner(), Type::TEXT),
                (&pool.lock_timeout(), Type::TEXT),
            ];
            let rows = pool.query(&self.shared.records.claim, &parameters).await?;
            Ok(Epoch::new(valid(from_sql(column(only(&rows)?, 0)?))?))
        })
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let is_written = self.write(write).await?;
            if is_written {
                for change in write.changes {
                    self.shared.changes.send(change.key.clone());
                }
            }
            Ok(is_written)
        })
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(self.list(list))
    }

    fn records_changed<'a>(&'a self, watch: RecordWatch<'a>) -> StoreFuture<'a, ()> {
        let shared = &self.shared;
        // Now, so that a change before the first poll ends the wait.
        let changes = shared.changes.subscribe();
        shared.listener.start(&shared.pool, &shared.schema, &shared.changes);
        Box::pin(async move {
            if let RecordWatch::Record { key, version } = watch
                && self.version(key).await?.unwrap_or_default() != version
            {
                return Ok(());
            }
            changes.changed(watch).await;
            Ok(())
        })
    }

    fn poll_interval(&self) -> Duration {
        self.shared.listener.poll_interval()
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
        Box::pin(self.delete_selected(selection, kind, limit))
    }
}

/// Reads the key in a notification.
pub(super) fn key_of(payload: &str) -> Option<RecordKey> {
    let [scope, kind, id]: [String; 3] = serde_json::from_str(payload).ok()?;
    RecordKey::new(&scope, RecordKind::parse(&kind)?, &id).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_from_notifications() {
        for (scope, id) in [("", "x"), ("t", "a\"b"), ("\u{1}\\", "é \u{202e}")] {
            let payload = serde_json::to_string(&[scope, "tool_call", id]).unwrap();
            let key = RecordKey::new(scope, RecordKind::ToolCall, id).unwrap();
            assert_eq!(key_of(&payload), Some(key), "{payload}");
        }
        for other in ["", "00000001-0000-4000-8000-000000000000", r#"["s","unknown","x"]"#, "[]"] {
            assert_eq!(key_of(other), None, "{other}");
        }
    }
}
