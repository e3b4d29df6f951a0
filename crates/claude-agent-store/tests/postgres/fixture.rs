//! The server that the tests share, and what most of them need.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use claude_agent_kit::store::{
    Load, NewEntry, SessionKey, SessionStore, StoreError, StoreErrorKind,
};
use claude_agent_store::{PostgresOptions, PostgresStore};
use libtest_mimic::Trial;
use tokio_postgres::{Client, NoTls};

use super::server::{PASSWORD, Server};

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

pub(crate) fn key(number: u32) -> SessionKey {
    let id = format!("{number:08x}-0000-4000-8000-000000000000");
    SessionKey::new("scope", "project", &*id).unwrap()
}

pub(crate) fn entry(text: &str) -> NewEntry {
    NewEntry::new(None, text, 0).unwrap()
}

pub(crate) async fn texts(store: &PostgresStore, key: &SessionKey) -> Vec<String> {
    let (mut texts, mut load) = (Vec::new(), Load::all());
    loop {
        let page = store.load(key, load).await.unwrap();
        for entry in page.entries {
            // Dense, because nothing was deleted.
            assert_eq!(entry.sequence.get(), load.after.get() + 1);
            load.after = entry.sequence;
            texts.push(entry.text.to_string());
        }
        if !page.more {
            return texts;
        }
    }
}

#[track_caller]
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> StoreErrorKind {
    result.unwrap_err().kind()
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
