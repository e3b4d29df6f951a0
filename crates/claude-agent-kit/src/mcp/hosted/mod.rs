//! In-process servers written with the official Rust MCP SDK.
//!
//! Such a server runs in a separate task for each session. Messages of the CLI are passed to its
//! transport in order; messages of the server are responses or its own requests and notifications. The
//! MCP SDK does not respond if a handler panics, does not stop cancelled handlers, and waits for running
//! handlers when it ends. Therefore every handler is wrapped in a guard.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use claude_wire::Json;
use rmcp::model::{ErrorData, JsonRpcMessage, ProtocolVersion, RequestId};
use rmcp::service::{
    NotificationContext, RequestContext, RxJsonRpcMessage, Service, ServiceExt as _, ServiceRole,
    TxJsonRpcMessage,
};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::message::{INVALID_REQUEST, Kind};
use super::{Connection, Incoming, McpClient, McpContext, Reply, Server, Serving};
use crate::lock::lock;
use crate::panics;

/// The maximum number of messages that a server has not read. Further ones are rejected: notifications
/// are acknowledged immediately, so nothing else limits their number.
const MAX_UNREAD_MESSAGES: usize = 1_024;

type Start = Arc<dyn Fn(Bridge, CancellationToken) + Send + Sync>;

/// An MCP server written with the official Rust MCP SDK (`rmcp`) and its macros.
///
/// The server is created by a function, because each session needs its own server. The types of `rmcp`
/// are part of this API, which therefore follows the versions of `rmcp`. Note that `rmcp` logs messages,
/// including arguments, to `tracing` at the levels `debug` and `info`; filter its targets if necessary.
#[derive(Clone)]
#[must_use = "a server does nothing until options have it"]
pub struct RmcpServer {
    limit: Option<Duration>,
    start: Start,
}

impl RmcpServer {
    /// Creates a server; `make` creates the handler of each session.
    pub fn new<H, F>(make: F) -> Self
    where
        H: ServerHandler,
        F: Fn() -> H + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let start: Start = Arc::new(move |bridge, over| {
            let make = make.clone();
            let close_guard = CloseGuard(bridge.waiting.clone());
            drop(tokio::spawn(async move {
                // Dropped last, even if code of the host panics.
                let _close_guard = close_guard;
                if let Ok(handler) = panics::catch(|| make()) {
                    let guarded = GuardedHandler { handler, over: over.clone() };
                    if let Ok(service) = guarded.serve_with_ct(bridge, over).await {
                        drop(service.waiting().await);
                    } else {
                        // The error would contain the message.
                        tracing::debug!("the server did not start");
                    }
                }
            }));
        });
        Self { limit: None, start }
    }

    /// Sets the timeout of requests; when it expires, the request fails with an error. Default: no
    /// timeout.
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limit = limit.into();
        self
    }
}

impl Server for RmcpServer {
    fn limit(&self) -> Option<Duration> {
        self.limit
    }

    fn connect(&self, client: &McpClient) -> Arc<dyn Connection> {
        Arc::new(RmcpConnection {
            start: self.start.clone(),
            client: client.clone(),
            running: Mutex::new(None),
        })
    }
}

impl fmt::Debug for RmcpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RmcpServer").field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// The server of one session. It starts with the first message, when a runtime is available.
struct RmcpConnection {
    start: Start,
    client: McpClient,
    running: Mutex<Option<ServerTask>>,
}

struct ServerTask {
    messages: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    waiting: Arc<Mutex<PendingResponses>>,
    /// Ends the server and all its handlers with the session.
    _over: DropGuard,
}

/// The requests of the CLI in flight, by their IDs as `rmcp` parses them: it may write them differently
/// than the CLI did.
#[derive(Debug, Default)]
struct PendingResponses {
    answers: HashMap<RequestId, oneshot::Sender<Json>>,
    /// Whether the server has ended.
    over: bool,
}

/// Fails all pending requests when the server has ended.
struct CloseGuard(Arc<Mutex<PendingResponses>>);

impl Drop for CloseGuard {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0);
        waiting.over = true;
        waiting.answers.clear();
    }
}

impl Connection for RmcpConnection {
    fn serve(&self, message: Incoming, _: McpContext) -> Serving {
        let parsed = match message.whole.deserialize::<RxJsonRpcMessage<RoleServer>>() {
            Ok(parsed) => parsed,
            Err(error) => {
                return rejected(error.to_string());
            }
        };
        let id = match (&message.kind, &parsed) {
            (Kind::Request { .. }, JsonRpcMessage::Request(request)) => Some(request.id.clone()),
            // With another ID, `rmcp` would treat the request as a notification.
            (Kind::Request { .. }, _) => {
                return rejected("the ID is neither a string nor an integer");
            }
            _ => None,
        };
        let mut running = lock(&self.running);
        // A server that has ended, for example after an unexpected message, is restarted.
        if running.as_ref().is_some_and(|running| lock(&running.waiting).over) {
            *running = None;
        }
        let running = running.get_or_insert_with(|| self.begin());
        let answer = id.map(|id| running.expect(id));
        let sent = running.messages.try_send(parsed);
        // The guard is dropped even if the future is never polled.
        Box::pin(async move {
            if let Err(TrySendError::Full(_)) = sent {
                return Err(format!("the server has {MAX_UNREAD_MESSAGES} unread messages"));
            }
            let Some((_guard, answer)) = answer else { return Ok(Reply::Nothing) };
            match answer.await {
                Ok(answer) if sent.is_ok() => Ok(Reply::Whole(answer)),
                _ => Err("the server has ended".to_owned()),
            }
        })
    }
}

fn rejected(reason: impl Into<String>) -> Serving {
    let reply = Reply::error(INVALID_REQUEST, reason);
    Box::pin(async move { Ok(reply) })
}

impl RmcpConnection {
    fn begin(&self) -> ServerTask {
        let (messages, received) = mpsc::channel(MAX_UNREAD_MESSAGES);
        let waiting = Arc::<Mutex<PendingResponses>>::default();
        let over = CancellationToken::new();
        let bridge = Bridge { received, waiting: waiting.clone(), client: self.client.clone() };
        (self.start)(bridge, over.clone());
        ServerTask { messages, waiting, _over: over.drop_guard() }
    }
}

impl ServerTask {
    fn expect(&self, id: RequestId) -> (PendingGuard, oneshot::Receiver<Json>) {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        // After the end, the sender is dropped, so that the receiver fails.
        if !waiting.over {
            waiting.answers.insert(id.clone(), sender);
        }
        let (waiting, messages) = (self.waiting.clone(), self.messages.clone());
        (PendingGuard { id, waiting, messages }, receiver)
    }
}

/// Removes a pending request, and cancels it in the server if there is no response yet.
struct PendingGuard {
    id: RequestId,
    waiting: Arc<Mutex<PendingResponses>>,
    messages: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
}

impl Drop for PendingGuard {
    fn drop(&mut self) {
        // Still pending: dropped before the response arrived.
        if lock(&self.waiting).answers.remove(&self.id).is_some() {
            let cancelled = Json::from_serialize(&self.id).ok().and_then(|id| {
                let text = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                );
                Json::from_text(text).ok()?.deserialize().ok()
            });
            if let Some(cancelled) = cancelled {
                // Fails if the server has ended or its queue is full; there is nothing to do then.
                drop(self.messages.try_send(cancelled));
            }
        }
    }
}

/// The `rmcp` transport of a server.
struct Bridge {
    received: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    waiting: Arc<Mutex<PendingResponses>>,
    client: McpClient,
}

impl Transport<RoleServer> for Bridge {
    type Error = crate::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // The message is queued here and not in the future: `rmcp` spawns a task for each of these
        // futures, which would lose the order. The future only waits for the acknowledgement.
        let message = Json::from_serialize(&item).ok();
        let acknowledged = match item {
            JsonRpcMessage::Response(response) => {
                self.answer(&response.id, message);
                None
            }
            JsonRpcMessage::Error(error) => {
                if let Some(id) = error.id {
                    self.answer(&id, message);
                }
                None
            }
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => {
                message.map(|message| self.client.post(message))
            }
        };
        async move {
            match acknowledged {
                Some(acknowledged) => acknowledged.await,
                None => Ok(()),
            }
        }
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.received.recv()
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.received.close();
        Ok(())
    }
}

impl Bridge {
    /// Completes a request; it fails without a message, which could not be serialized then.
    fn answer(&self, id: &RequestId, message: Option<Json>) {
        let answer = lock(&self.waiting).answers.remove(id);
        if let (Some(answer), Some(message)) = (answer, message) {
            // The requester may have been dropped.
            drop(answer.send(message));
        }
    }
}

/// Wraps a handler: responds if it panics, and drops it when the request is cancelled.
struct GuardedHandler<H> {
    handler: H,
    over: CancellationToken,
}

impl<H: ServerHandler> Service<RoleServer> for GuardedHandler<H> {
    async fn handle_request(
        &self,
        request: <RoleServer as ServiceRole>::PeerReq,
        context: RequestContext<RoleServer>,
    ) -> Result<<RoleServer as ServiceRole>::Resp, ErrorData> {
        let cancelled = context.ct.clone();
        let handled = panics::caught(self.handler.handle_request(request, context));
        let wanted = cancelled.run_until_cancelled(handled);
        match self.over.run_until_cancelled(wanted).await.flatten() {
            Some(Some(result)) => result,
            Some(None) => Err(ErrorData::internal_error("the handler panicked", None)),
            None => Err(ErrorData::internal_error("the request was cancelled", None)),
        }
    }

    async fn handle_notification(
        &self,
        notification: <RoleServer as ServiceRole>::PeerNot,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let handled = panics::caught(self.handler.handle_notification(notification, context));
        self.over.run_until_cancelled(handled).await.flatten().unwrap_or(Ok(()))
    }

    fn get_info(&self) -> <RoleServer as ServiceRole>::Info {
        Service::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.handler)
    }
}
