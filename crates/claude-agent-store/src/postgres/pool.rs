//! The connections of a store.
//!
//! Every request is one statement in one message, without a named prepared statement, which has three effects: a
//! connection is never in the middle of a transaction, the store works behind poolers in transaction mode, and
//! a request takes one round trip.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use claude_session_store::StoreError;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, Row, Socket};

use super::PostgresOptions;
use super::errors;
use super::tls::{Stream, Tls};

/// A connection that was idle for longer is closed: routers may have forgotten it.
const MAX_IDLE: Duration = Duration::from_secs(300);

/// The parameters of a statement, with their types.
pub(super) type Parameters<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// A connection and what has to be polled for it.
type AloneConnection = (Client, tokio_postgres::Connection<Socket, Stream<Socket>>);

pub(super) struct Pool {
    config: Config,
    tls: Tls,
    target: String,
    timeout: Duration,
    /// One for each connection that may be in use.
    permits: Semaphore,
    /// The connections that are not in use, the last used one at the end. At most one for each permit.
    idle: Mutex<Vec<Connection>>,
}

/// A connection and the task that reads from it.
struct Connection {
    client: Client,
    task: JoinHandle<()>,
    /// Whether a request has begun and not ended.
    is_busy: bool,
    last_used: Instant,
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The caller is gone or has given up. Otherwise the task ends after it has said goodbye.
        if self.is_busy {
            self.task.abort();
        }
    }
}

impl Pool {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, StoreError> {
        let limit = options.max_connections.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self {
            config: options.config().clone(),
            tls: options.tls()?,
            target: options.target(),
            timeout: options.request_timeout,
            permits: Semaphore::new(limit),
            idle: Mutex::new(Vec::new()),
        })
    }

    /// Returns the server and the database, for messages.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Returns how long the server may wait for a lock: it gives up before the caller does.
    pub(super) fn lock_timeout(&self) -> String {
        // 0 would mean that there is no limit.
        format!("{}ms", (self.timeout / 2).as_millis().clamp(1, 1_000_000_000))
    }

    /// Executes a statement. A connection whose request fails or is dropped is not used again, unless the server
    /// has reported the error.
    pub(super) async fn query(
        &self,
        statement: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        match tokio::time::timeout(self.timeout, self.execute(statement, parameters)).await {
            Ok(Ok(rows)) => Ok(rows),
            Ok(Err(error)) => Err(errors::failure(&self.target, error)),
            Err(_) => {
                // Other connections to a server that does not respond are as useless.
                self.close_idle();
                Err(errors::timeout(&self.target, self.timeout))
            }
        }
    }

    async fn execute(
        &self,
        statement: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        // The semaphore is never closed, so that an error is impossible and would only lift the limit.
        let _permit = self.permits.acquire().await.ok();
        if let Some(connection) = self.take_idle() {
            match self.execute_on(connection, statement, parameters).await {
                // The server may have closed the connection while it was idle. Every request may be repeated.
                Err(error) if is_lost(&error) => {}
                result => return result,
            }
        }
        let connection = self.connect().await?;
        self.execute_on(connection, statement, parameters).await
    }

    async fn execute_on(
        &self,
        mut connection: Connection,
        statement: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, tokio_postgres::Error> {
        connection.is_busy = true;
        let result = connection.client.query_typed(statement, parameters).await;
        match &result {
            Err(error) if is_lost(error) => self.close_idle(),
            _ => {
                connection.is_busy = false;
                connection.last_used = Instant::now();
                self.idle().push(connection);
            }
        }
        result
    }

    /// Opens a connection that does not belong to the pool.
    pub(super) async fn connect_alone(&self) -> Result<AloneConnection, StoreError> {
        let connection = self.config.connect(self.tls.clone());
        match tokio::time::timeout(self.timeout, connection).await {
            Ok(result) => result.map_err(|error| errors::failure(&self.target, error)),
            Err(_) => Err(errors::timeout(&self.target, self.timeout)),
        }
    }

    async fn connect(&self) -> Result<Connection, tokio_postgres::Error> {
        let (client, connection) = self.config.connect(self.tls.clone()).await?;
        // Its error is that of the request.
        let task = tokio::spawn(async move { drop(connection.await) });
        Ok(Connection { client, task, is_busy: false, last_used: Instant::now() })
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle();
        idle.retain(|it| !it.client.is_closed() && it.last_used.elapsed() < MAX_IDLE);
        idle.pop()
    }

    fn close_idle(&self) {
        // Closed after the lock is released.
        let closed = std::mem::take(&mut *self.idle());
        drop(closed);
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the connection cannot be used after this error.
fn is_lost(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none_or(|error| errors::ends_connections(error.code()))
}
