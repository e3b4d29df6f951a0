//! A store in a PostgreSQL database.

pub(crate) mod errors;
mod listener;
mod options;
mod pool;
mod records;
mod requests;
mod schema;
mod tls;

use std::fmt;
use std::sync::Arc;

use claude_session_store::{
    Append, Appended, EntryPage, Epoch, List, Load, ProjectKey, SessionKey, SessionList,
    SessionRow, SessionStore, StoreError, StoreFuture, Subpath,
};

use self::listener::Listener;
pub use self::options::PostgresOptions;
use self::pool::Pool;
use self::requests::Statements;
use crate::records::Changes;

/// Keeps sessions and [records](claude_session_store::record), such as approvals, in a PostgreSQL database, which any number of hosts
/// can share.
///
/// An append is committed before it returns, also if the database has `synchronous_commit` turned off. A clone
/// shares the connections, which are closed when all clones are dropped.
///
/// ```no_run
/// use claude_agent_kit::store::{SessionKey, SessionStore};
/// use claude_agent_store::{PostgresOptions, PostgresStore};
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let options = PostgresOptions::new("postgres://agent@db.example.com/agents?sslmode=require")?
///     .password(std::env::var("DATABASE_PASSWORD")?)
///     .max_connections(4);
/// let store = PostgresStore::open_with(options).await?;
/// let key = SessionKey::new("tenant-1", "my-app", "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11")?;
/// let epoch = store.claim(&key).await?;
/// # Ok(())
/// # }
/// ```
///
/// [`open`](Self::open) creates the schema if it does not exist. The chapter
/// [Session stores on servers](crate::guide::store_servers) describes the requirements, the privileges that hosts
/// need, TLS, connection poolers, sizing and backups.
///
/// # Cancel safety
/// A request whose future is dropped closes its connection; whether it was executed is unknown.
#[derive(Clone)]
pub struct PostgresStore {
    shared: Arc<Shared>,
}

struct Shared {
    pool: Arc<Pool>,
    schema: String,
    statements: Statements,
    records: records::Statements,
    changes: Changes,
    listener: Listener,
}

impl PostgresStore {
    /// Connects to a server with default options, and creates the schema if it does not exist.
    ///
    /// # Errors
    /// Fails like [`PostgresOptions::new`] and [`open_with`](Self::open_with).
    pub async fn open(connection_string: &str) -> Result<Self, StoreError> {
        Self::open_with(PostgresOptions::new(connection_string)?).await
    }

    /// Connects to a server, and creates the schema if it does not exist.
    ///
    /// # Errors
    /// Fails if an option is invalid, the server cannot be reached or rejects the role, the encoding of the
    /// database is not `UTF8`, or a newer version of this crate has updated the schema.
    pub async fn open_with(options: PostgresOptions) -> Result<Self, StoreError> {
        options.check()?;
        let pool = Arc::new(Pool::new(&options)?);
        schema::open(&pool, &options.schema).await?;
        let statements = Statements::new(&options.schema);
        let (records, changes) = (records::Statements::new(&options.schema), Changes::new());
        let (schema, listener) = (options.schema, Listener::new());
        let shared = Shared { pool, schema, statements, records, changes, listener };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the name of the schema.
    pub fn schema(&self) -> &str {
        &self.shared.schema
    }

    fn parts(&self) -> (&Pool, &Statements) {
        (&self.shared.pool, &self.shared.statements)
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore")
            .field("target", &self.shared.pool.target())
            .field("schema", &self.shared.schema)
            .finish_non_exhaustive()
    }
}

impl SessionStore for PostgresStore {
    fn location(&self) -> Option<String> {
        Some(format!("PostgreSQL {}", self.shared.pool.target()))
    }

    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        let (pool, statements) = self.parts();
        Box::pin(requests::claim(pool, statements, key))
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        let (pool, statements) = self.parts();
        Box::pin(requests::append(pool, statements, key, append))
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        let (pool, statements) = self.parts();
        Box::pin(requests::load_page(pool, statements, key, load))
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        let (pool, statements) = self.parts();
        Box::pin(requests::list(pool, statements, project, list))
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<SessionRow>> {
        let (pool, statements) = self.parts();
        Box::pin(requests::get(pool, statements, key))
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        let (pool, statements) = self.parts();
        Box::pin(requests::subpaths(pool, statements, key))
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        let (pool, statements) = self.parts();
        Box::pin(requests::delete(pool, statements, key, subpath))
    }

    fn projects<'a>(
        &'a self,
        scope: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        let (pool, statements) = self.parts();
        Box::pin(requests::projects(pool, statements, scope, after, limit))
    }

    fn delete_unchanged<'a>(
        &'a self,
        key: &'a SessionKey,
        modified_ms: u64,
    ) -> StoreFuture<'a, bool> {
        let (pool, statements) = self.parts();
        Box::pin(requests::delete_unchanged(pool, statements, key, modified_ms))
    }
}
