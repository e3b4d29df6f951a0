//! The server that the tests share, and what most of them need.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use claude_agent_store::{PostgresOptions, PostgresStore};
use libtest_mimic::Trial;
use tokio_postgres::{Client, NoTls};

use tests_servers::postgres::{PASSWORD, Server};

pub(crate) use super::support::{entry, key, kind, texts};

static SERVER: RwLock<Option<Server>> = RwLock::new(None);

pub(crate) fn start() -> Result<(), String> {
    *SERVER.write().unwrap() = Some(Server::start()?);
    Ok(())
}

/// Stops the server, because static values are not dropped.
pub(crate) fn stop() {
    drop(SERVER.write().unwrap().take());
}

/// Calls a function with the shared server.
pub(crate) fn with_server<T>(call: impl FnOnce(&Server) -> T) -> T {
    let server: RwLockReadGuard<'_, Option<Server>> = SERVER.read().unwrap();
    call(server.as_ref().unwrap())
}

/// A test with a runtime of its own.
pub(crate) fn trial<F: Future<Output = ()>>(
    name: &str,
    test: impl FnOnce() -> F + Send + 'static,
) -> Trial {
    Trial::test(name, move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        runtime.worker_threads(2).enable_all().build()?.block_on(test());
        Ok(())
    })
}

/// Returns the name of a schema that no other test uses.
pub(crate) fn new_schema() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test_{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns options for the shared server and a new schema.
pub(crate) fn options() -> PostgresOptions {
    options_for(&with_server(Server::url))
}

/// Returns options for a connection string and a new schema. Slow machines get more time than the default.
pub(crate) fn options_for(url: &str) -> PostgresOptions {
    PostgresOptions::new(url)
        .unwrap()
        .password(PASSWORD)
        .schema(new_schema())
        .request_timeout(Duration::from_secs(60))
}

pub(crate) async fn open() -> PostgresStore {
    PostgresStore::open_with(options()).await.unwrap()
}

/// Connects to the server without the store.
pub(crate) async fn connect() -> Client {
    let mut config: tokio_postgres::Config = with_server(Server::url).parse().unwrap();
    let (client, connection) = config.password(PASSWORD).connect(NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// Waits until a statement returns a number that meets the condition.
pub(crate) async fn wait_for(client: &Client, statement: &str, is_met: impl Fn(i64) -> bool) {
    let start = Instant::now();
    loop {
        let number: i64 = client.query_one(statement, &[]).await.unwrap().get(0);
        if is_met(number) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(60), "{statement}: {number}");
        tokio::task::yield_now().await;
    }
}
