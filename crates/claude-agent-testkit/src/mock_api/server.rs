//! The server: its handle, what is shared, the connections.

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

/// A Messages API on a port of 127.0.0.1 that answers from a [`Script`].
///
/// It serves until it is dropped; its tasks and connections end then, as soon as the runtime gets
/// to them.
pub struct MockApi {
    address: SocketAddr,
    shared: Arc<ServerState>,
    serving: JoinHandle<()>,
}

impl MockApi {
    /// Starts a server on a free port. It runs on the Tokio runtime of the caller.
    ///
    /// # Errors
    ///
    /// If no port can be bound.
    ///
    /// # Cancel safety
    ///
    /// Nothing is left behind if the future is dropped.
    pub async fn start(script: Script) -> io::Result<Self> {
        Self::start_on(0, script).await
    }

    /// Starts a server on this port; 0 stands for a free one.
    ///
    /// # Errors
    ///
    /// If the port cannot be bound.
    pub async fn start_on(port: u16, script: Script) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ServerState::new(script));
        let serving = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, serving })
    }

    /// The address, for `ANTHROPIC_BASE_URL`: `http://127.0.0.1:<port>`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The `POST /v1/messages` requests so far, oldest first.
    ///
    /// The newest 10,000 are kept; [`dropped_requests`](Self::dropped_requests) counts the rest.
    /// A request whose body is not a JSON object is refused and not kept.
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.shared.log.all().iter().map(|request| ApiRequest::clone(request)).collect()
    }

    /// How many old requests [`requests`](Self::requests) no longer shows.
    pub fn dropped_requests(&self) -> u64 {
        self.shared.log.dropped()
    }

    /// Waits for a request that `matches`, or returns the first of those that are there already.
    ///
    /// It waits without limit; tests put a timeout around it.
    ///
    /// # Cancel safety
    ///
    /// Looks only; dropping the future changes nothing.
    pub async fn wait_for_request(&self, matches: impl Fn(&ApiRequest) -> bool) -> ApiRequest {
        self.shared.log.wait_for(matches).await
    }

    /// Replaces the script for the requests to come; answers under way are not changed.
    ///
    /// Counts of attempts are those of the new script; ids continue.
    pub fn set_script(&self, script: Script) {
        let mut current = self.shared.script.write().unwrap_or_else(PoisonError::into_inner);
        *current = script;
    }

    /// Lets go of every answer that is on [`hold`](Reply::hold).
    ///
    /// That goes for all requests that have arrived, as seen by [`requests`](Self::requests), even
    /// if their answers have not come to the point of the hold; later requests are held again.
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

/// What all connections of a server share.
pub(super) struct ServerState {
    pub(super) log: RequestLog,
    /// Wakes the answers that are held.
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

    /// The reply of the script, with ids for its tool calls.
    pub(super) fn reply_to(&self, request: &ApiRequest) -> Reply {
        // Not under the lock: the script may hold a closure, which may take its time.
        let script = self.script.read().unwrap_or_else(PoisonError::into_inner).clone();
        let mut reply = script.answer(request);
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
                // Out of descriptors, most likely. Nothing tells when there are some again, and
                // the next try fails at once, so the loop slows down.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            // Reaps ended connections. One that panicked is closed, which is all that can be done.
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve_connection(stream: TcpStream, shared: Arc<ServerState>) {
    // Only a matter of speed; a socket that is already dead shows when it is read.
    stream.set_nodelay(true).ok();
    let flushed = Arc::new(Notify::new());
    let connection = FlushSignal::new(stream, Arc::clone(&flushed));
    let responder = Arc::new(Responder { shared, flushed });
    let service = service_fn(move |request| {
        let responder = Arc::clone(&responder);
        async move { Ok::<_, Infallible>(responder.respond(request).await) }
    });
    // It fails when the client goes away or the script cuts it, both of which are meant.
    http1::Builder::new().serve_connection(connection, service).await.ok();
}
