//! The server that the tests share, and what most of them need.

use std::future::Future;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{RwLock, RwLockReadGuard};
use std::time::Duration;

use claude_agent_kit::store::{
    Load, NewEntry, SessionKey, SessionStore, StoreError, StoreErrorKind,
};
use claude_agent_store::{S3Options, S3Store};
use libtest_mimic::Trial;

use tests_servers::s3::{ACCESS_KEY, BUCKET, SECRET_KEY, Server, url};

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

/// Returns a prefix that no other test uses.
pub(crate) fn new_prefix() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("test/{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// Returns options for the shared server and a new prefix.
pub(crate) fn options() -> S3Options {
    options_at(with_server(Server::port), &new_prefix())
}

/// Returns options for a port, such as that of a proxy. Slow machines get more time than the default.
pub(crate) fn options_at(port: u16, prefix: &str) -> S3Options {
    S3Options::new(&url(port, prefix))
        .unwrap()
        .credentials(ACCESS_KEY, SECRET_KEY)
        .request_timeout(Duration::from_secs(60))
}

pub(crate) async fn open() -> S3Store {
    S3Store::open_with(options()).await.unwrap()
}

pub(crate) fn key(number: u32) -> SessionKey {
    let id = format!("{number:08x}-0000-4000-8000-000000000000");
    SessionKey::new("scope", "project", &*id).unwrap()
}

pub(crate) fn entry(text: &str) -> NewEntry {
    NewEntry::new(None, text, 0).unwrap()
}

/// Returns an entry of this length, which no other number has.
pub(crate) fn long_entry(number: u32, bytes: usize) -> NewEntry {
    entry(&format!("[{number},{:?}]", "x".repeat(bytes)))
}

pub(crate) async fn texts(store: &S3Store, key: &SessionKey) -> Vec<String> {
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

/// Returns the paths of all objects below a prefix, as files of the server.
pub(crate) fn objects(prefix: &str) -> Vec<String> {
    let (mut folders, mut files) = (vec![format!("/buckets/{BUCKET}/{prefix}")], Vec::new());
    while let Some(folder) = folders.pop() {
        let response =
            with_server(|server| server.filer("GET", &format!("{folder}/?limit=100000"), ""));
        // A folder without objects does not exist.
        let Ok(response) = response else { continue };
        let body = &response[response.find('{').unwrap_or(0)..=response.rfind('}').unwrap_or(0)];
        let json: serde_json::Value = serde_json::from_str(body).unwrap();
        for entry in json["Entries"].as_array().into_iter().flatten() {
            let path = entry["FullPath"].as_str().unwrap().to_owned();
            // The highest bit marks a folder.
            let is_folder = entry["Mode"].as_u64().unwrap() >= 1 << 31;
            if is_folder { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

/// Returns the path of the head of the only session below a prefix.
pub(crate) fn head_of(prefix: &str) -> String {
    objects(prefix).into_iter().find(|path| path.contains("/heads/")).unwrap()
}

/// Returns the number of parts below a prefix.
pub(crate) fn parts_of(prefix: &str) -> usize {
    objects(prefix).iter().filter(|path| path.contains("/parts/")).count()
}

#[track_caller]
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> StoreErrorKind {
    result.unwrap_err().kind()
}
