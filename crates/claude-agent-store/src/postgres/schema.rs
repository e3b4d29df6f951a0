//! Creating and updating the schema.

use claude_session_store::StoreError;
use tokio_postgres::types::Type;

use super::errors;
use super::pool::Pool;

/// The version of the schema.
const VERSION: i32 = 3;

/// The first half of the key of the advisory lock; the second one is derived from the schema.
const LOCK: i32 = 0x636c_6173;

/// Checks the database, and creates or updates the schema. Any number of hosts can do so at once.
pub(super) async fn open(pool: &Pool, schema: &str) -> Result<(), StoreError> {
    let rows = pool.query("SELECT current_setting('server_encoding')", &[]).await?;
    let encoding: String = rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default();
    if encoding != "UTF8" {
        return Err(errors::encoding(&encoding));
    }
    // A host whose role may not create anything never gets to the migration.
    if version(pool, schema).await?.is_none_or(|version| version < VERSION) {
        pool.query(&migration(schema), &[]).await?;
    }
    match version(pool, schema).await? {
        Some(version) if version > VERSION => Err(errors::newer(schema, version, VERSION)),
        Some(VERSION) => Ok(()),
        _ => Err(errors::corrupt("schema version")),
    }
}

/// Returns the version of the schema, or `None` if it does not exist.
async fn version(pool: &Pool, schema: &str) -> Result<Option<i32>, StoreError> {
    let table = format!("{schema}.claude_agent_store");
    let statement = "SELECT to_regclass($1) IS NOT NULL";
    let rows = pool.query(statement, &[(&table, Type::TEXT)]).await?;
    let exists: bool = rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default();
    if !exists {
        return Ok(None);
    }
    let rows = pool.query(&format!("SELECT max(version) FROM {table}"), &[]).await?;
    let version = rows.first().and_then(|row| row.try_get(0).ok());
    Ok(Some(version.ok_or_else(|| errors::corrupt("schema version"))?))
}

/// Returns the statement that creates or updates the schema. One statement is one transaction, also behind a pooler,
/// and the lock lasts until its end.
fn migration(schema: &str) -> String {
    let version_1 = include_str!("schema_1.sql").replace("__schema__", schema);
    let version_3 = include_str!("schema_3.sql").replace("__schema__", schema);
    let version_2 = include_str!("schema_2.sql").replace("__schema__", schema);
    format!(
        "DO $migration$ DECLARE v_is_new boolean; BEGIN
             PERFORM pg_advisory_xact_lock({LOCK}, hashtext('{schema}'));
             v_is_new := to_regclass('{schema}.claude_agent_store') IS NULL;
             IF v_is_new THEN
                 -- `IF NOT EXISTS` would require the privilege to create schemas, also if this one exists.
                 IF to_regnamespace('{schema}') IS NULL THEN CREATE SCHEMA {schema}; END IF;
                 {version_1}
             END IF;
             IF (SELECT max(version) FROM {schema}.claude_agent_store) < 2 THEN
                 {version_2}
             END IF;
             IF (SELECT max(version) FROM {schema}.claude_agent_store) < 3 THEN
                 {version_3}
             END IF;
         END $migration$"
    )
}
