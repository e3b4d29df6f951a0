//! A server that ignores the conditions of writes, as some do.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::relay::{Request, read_request};

/// Which conditions the server checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checks {
    pub(crate) if_none_match: bool,
    pub(crate) if_match: bool,
}

/// A server that keeps objects in memory, until it is dropped.
pub(crate) struct Fake {
    pub(crate) port: u16,
    objects: Arc<Mutex<HashMap<String, u64>>>,
    task: JoinHandle<()>,
}

impl Fake {
    pub(crate) async fn start(checks: Checks) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let objects: Arc<Mutex<HashMap<String, u64>>> = Arc::default();
        let of_task = Arc::clone(&objects);
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                drop(serve(client, checks, &of_task).await);
            }
        });
        Self { port, objects, task }
    }

    /// Returns the names of the objects.
    pub(crate) fn names(&self) -> Vec<String> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    mut client: TcpStream,
    checks: Checks,
    objects: &Mutex<HashMap<String, u64>>,
) -> io::Result<()> {
    let request = read_request(&mut client).await?;
    let (status, etag) = respond(&request, checks, &mut objects.lock().unwrap());
    let deleted = "<DeleteResult><Deleted><Key>a</Key></Deleted></DeleteResult>";
    let body = if request.method == "POST" { deleted } else { "" };
    let length = body.len();
    let response = format!(
        "HTTP/1.1 {status} x\r\nETag: \"{etag}\"\r\nLast-Modified: Wed, 18 Nov 2026 00:00:00 GMT\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    client.write_all(response.as_bytes()).await
}

/// Returns the status and the `ETag`, which is a counter.
fn respond(request: &Request, checks: Checks, objects: &mut HashMap<String, u64>) -> (u16, u64) {
    let found = objects.get(&request.path).copied();
    match request.method.as_str() {
        "PUT" => {
            let is_new = request.header("if-none-match").is_none() || found.is_none();
            let expected = request.header("if-match").map(|etag| etag.trim_matches('"').to_owned());
            let is_same =
                expected.is_none_or(|etag| found.is_some_and(|it| it.to_string() == etag));
            if (checks.if_none_match && !is_new) || (checks.if_match && !is_same) {
                return (412, 0);
            }
            let etag = found.unwrap_or_default() + 1;
            objects.insert(request.path.clone(), etag);
            (200, etag)
        }
        "POST" => {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            objects.retain(|path, _| !body.contains(path.rsplit('/').next().unwrap_or_default()));
            (200, 0)
        }
        _ => found.map_or((404, 0), |etag| (200, etag)),
    }
}
