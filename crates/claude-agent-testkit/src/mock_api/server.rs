//! The HTTP server.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use std::{fmt, io};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{JoinHandle, JoinSet};

use super::body::FlushSignal;
use super::log::RequestLog;
use super::reply::Block;
use super::respond::Responder;
use super::{ApiRequest, Reply, Script};

const MAX_CONNECTIONS: usize = 1024;

/// A Messages API on a port of 127.0.0.1 that replies according to a [`Script`].
///
/// Dropping it stops the server and closes its connections.
pub struct MockApi {
    address: SocketAddr,
    shared: Arc<ServerState>,
    serving: JoinHandle<()>,
}

impl MockApi {
    /// Starts a server on a free port, on the current Tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if no port can be bound.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if the future is dropped, no server is started.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_on(0, script).await
    }

    /// Starts a server on this port; 0 selects a free port.
    ///
    /// # Errors
    ///
    /// Returns an error if the port cannot be bound.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe: if the future is dropped, no server is started.
    pub async fn start_on(port: u16, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ServerState::new(script));
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, serving })
    }

    /// Returns the value for `ANTHROPIC_BASE_URL`: `http://127.0.0.1:<port>`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the received `POST /v1/messages` requests, oldest first.
    ///
    /// The newest 10,000 are kept; [`dropped_requests`](Self::dropped_requests) counts the rest.
    /// A request whose body is not a JSON object is rejected and not kept.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.shared.log.all().iter().map(|request| ApiRequest::clone(request)).collect()
    }

    /// Returns the number of old requests that [`requests`](Self::requests) no longer contains.
    pub fn dropped_requests(&self) -> u64 {
        self.shared.log.dropped()
    }

    /// Waits for a request that satisfies `matches`. Returns immediately if such a request has already
    /// been received.
    ///
    /// This method has no timeout; tests should wrap it in one.
    ///
    /// # Cancel safety
    ///
    /// This method is cancel safe.
    pub async fn wait_for_request(&self, matches: impl Fn(&ApiRequest) -> bool) -> ApiRequest {
        self.shared.log.wait_for(matches).await
    }

    /// Replaces the script for later requests. Replies in progress are not affected.
    ///
    /// Attempts are counted by the new script; the numbering of ids continues.
    pub fn set_script(&self, script: Script) {
        let mut current = self.shared.script.write().unwrap_or_else(PoisonError::into_inner);
        *current = script;
    }

    /// Releases every reply that is on [`hold`](Reply::hold).
    ///
    /// This includes the replies to all requests in [`requests`](Self::requests), even if they have not
    /// reached the point of the hold; replies to later requests are held again.
    pub fn release_held(&self) {
        self.shared.release.notify_waiters();
    }
}

impl Drop for MockApi {
    fn drop(&mut self) {
        // The task owns the listener and all connections.
        self.serving.abort();
    }
}

impl fmt::Debug for MockApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockApi").field("address", &self.address).finish_non_exhaustive()
    }
}

/// The state shared by all connections.
pub(super) struct ServerState {
    pub(super) log: RequestLog,
    /// Wakes the held replies.
    pub(super) release: Arc<Notify>,
    script: RwLock<Script>,
    messages: AtomicU64,
    tools: AtomicU64,
}

impl ServerState {
    fn new(script: Script) -> Self {
        Self {
            log: RequestLog::default(),
            release: Arc::new(Notify::new()),
            script: RwLock::new(script),
            messages: AtomicU64::new(0),
            tools: AtomicU64::new(0),
        }
    }

    /// Returns the reply of the script, with ids for its tool calls.
    pub(super) fn reply_to(&self, request: &ApiRequest) -> Reply {
        // Cloned so that a slow closure of the script does not run under the lock.
        let script = self.script.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut reply = script.reply_to(request);
        for block in &mut reply.blocks {
            if let Block::Tool { id, .. } = block {
                *id = numbered("toolu", &self.tools);
            }
        }
        reply
    }

    pub(super) fn next_message_id(&self) -> String {
        numbered("msg", &self.messages)
    }
}

fn numbered(prefix: &str, counter: &AtomicU64) -> String {
    format!("{prefix}_{}", counter.fetch_add(1, Ordering::Relaxed) + 1)
}

async fn serve(listener: TcpListener, shared: Arc<ServerState>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_connection(stream, Arc::clone(&shared)));
                }
                // Probably out of file descriptors. No event signals that some are available again, so
                // the loop retries after a delay.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            // Removes finished connections; a connection whose task panicked is closed.
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<ServerState>) {
    // An optimization; errors of a dead socket are reported by the next read.
    stream.set_nodelay(true).ok();
    let flushed = Arc::new(Notify::new());
    let connection = FlushSignal::new(stream, Arc::clone(&flushed));
    let responder = Arc::new(Responder { shared, flushed });
    let service = service_fn(move |request| {
        let responder = Arc::clone(&responder);
        async move { Ok::<_, Infallible>(responder.respond(request).await) }
    });
    // An error means that the client disconnected or the script cut the connection; both are expected.
    http1::Builder::new().serve_connection(connection, service).await.ok();
}
