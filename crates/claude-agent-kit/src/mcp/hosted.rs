//! Servers that were written with the official Rust MCP SDK.
//!
//! Such a server runs in a task of its own for each session. What the CLI sends is put into its
//! transport in order; what it sends is the answer to a message that waits, or a message of its own.
//! The SDK answers nothing when a handler panics, goes on with one that is cancelled, and waits for
//! those that run when it is to end: so every handler runs under a guard.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::pin;
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

/// Messages for a server that it has not read yet. Beyond it they are refused: notifications are
/// acknowledged at once, so nothing else limits their number.
const MAX_UNREAD_MESSAGES: usize = 1_024;

type Start = Arc<dyn Fn(Bridge, CancellationToken) + Send + Sync>;

/// An MCP server that was written with the official Rust MCP SDK (`rmcp`), its macros included.
///
/// It is given as a function that makes one, because options serve many sessions and each has a
/// server of its own. The SDK's types are part of this API, so it follows that SDK's versions and
/// not ours. The SDK writes messages to `tracing`, arguments included, at the levels `debug` and
/// `info`; turn its targets down if that must not be.
#[derive(Clone)]
#[must_use = "a server does nothing until options have it"]
pub struct RmcpServer {
    limit: Option<Duration>,
    start: Start,
}

impl RmcpServer {
    /// Makes a server; `make` makes the handler of a session.
    pub fn new<H, F>(make: F) -> Self
    where
        H: ServerHandler,
        F: Fn() -> H + Send + Sync + 'static,
    {
        let make = Arc::new(make);
        let start: Start = Arc::new(move |bridge, over| {
            let make = make.clone();
            let closes = Closes(bridge.waiting.clone());
            drop(tokio::spawn(async move {
                // Goes last, however this ends: code of the host runs here that may panic.
                let _closes = closes;
                // The factory is the host's, and may panic.
                if let Ok(handler) = panics::catch(|| make()) {
                    let guarded = Guarded { handler, over: over.clone() };
                    if let Ok(service) = guarded.serve_with_ct(bridge, over).await {
                        drop(service.waiting().await);
                    } else {
                        // Its error would show the message.
                        tracing::debug!("the server did not start");
                    }
                }
            }));
        });
        Self { limit: None, start }
    }

    /// How long a request may take; then it is answered with an error. Default: as long as it likes.
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
        Arc::new(Hosted {
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

/// The server of one session. It starts with its first message, when there is a runtime for sure.
struct Hosted {
    start: Start,
    client: McpClient,
    running: Mutex<Option<Running>>,
}

struct Running {
    messages: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    waiting: Arc<Mutex<Waiting>>,
    /// Ends the server and all its handlers with the session.
    _over: DropGuard,
}

/// Requests of the CLI that wait for their answers, by their ids as the server reads them: it may
/// write them in another way than the CLI did.
#[derive(Debug, Default)]
struct Waiting {
    answers: HashMap<RequestId, oneshot::Sender<Json>>,
    /// Whether the server has ended.
    over: bool,
}

/// Tells whoever still waits that nobody answers any more.
struct Closes(Arc<Mutex<Waiting>>);

impl Drop for Closes {
    fn drop(&mut self) {
        let mut waiting = lock(&self.0);
        waiting.over = true;
        waiting.answers.clear();
    }
}

impl Connection for Hosted {
    fn serve(&self, message: Incoming, _: McpContext) -> Serving {
        let parsed = match message.whole.deserialize::<RxJsonRpcMessage<RoleServer>>() {
            Ok(parsed) => parsed,
            Err(error) => {
                return refused(error.to_string());
            }
        };
        let id = match (&message.kind, &parsed) {
            (Kind::Request { .. }, JsonRpcMessage::Request(request)) => Some(request.id.clone()),
            // Without an id that MCP has, the SDK takes it for something that is not answered.
            (Kind::Request { .. }, _) => return refused("its id is neither a text nor an integer"),
            _ => None,
        };
        let mut running = lock(&self.running);
        // One that has ended, because it was spoken to in a wrong order say, is begun anew.
        if running.as_ref().is_some_and(|running| lock(&running.waiting).over) {
            *running = None;
        }
        let running = running.get_or_insert_with(|| self.begin());
        let answer = id.map(|id| running.expect(id));
        let sent = running.messages.try_send(parsed);
        // What it takes with it is dropped also if it is never polled.
        Box::pin(async move {
            if let Err(TrySendError::Full(_)) = sent {
                return Err(format!("the server has {MAX_UNREAD_MESSAGES} unread messages"));
            }
            let Some((_gives_up, answer)) = answer else { return Ok(Reply::Nothing) };
            match answer.await {
                Ok(answer) if sent.is_ok() => Ok(Reply::Whole(answer)),
                _ => Err("the server has ended".to_owned()),
            }
        })
    }
}

fn refused(reason: impl Into<String>) -> Serving {
    let reply = Reply::error(INVALID_REQUEST, reason);
    Box::pin(async move { Ok(reply) })
}

impl Hosted {
    fn begin(&self) -> Running {
        let (messages, received) = mpsc::channel(MAX_UNREAD_MESSAGES);
        let waiting = Arc::<Mutex<Waiting>>::default();
        let over = CancellationToken::new();
        let bridge = Bridge { received, waiting: waiting.clone(), client: self.client.clone() };
        (self.start)(bridge, over.clone());
        Running { messages, waiting, _over: over.drop_guard() }
    }
}

impl Running {
    fn expect(&self, id: RequestId) -> (GivesUp, oneshot::Receiver<Json>) {
        let (sender, receiver) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        // After the end the sender is dropped, which tells the receiver.
        if !waiting.over {
            waiting.answers.insert(id.clone(), sender);
        }
        let (waiting, messages) = (self.waiting.clone(), self.messages.clone());
        (GivesUp { id, waiting, messages }, receiver)
    }
}

/// Takes the place of a request back, and tells the server if the answer is no longer wanted.
struct GivesUp {
    id: RequestId,
    waiting: Arc<Mutex<Waiting>>,
    messages: mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
}

impl Drop for GivesUp {
    fn drop(&mut self) {
        // Still there: dropped before the answer came.
        if lock(&self.waiting).answers.remove(&self.id).is_some() {
            let cancelled = Json::from_serialize(&self.id).ok().and_then(|id| {
                let text = format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
                );
                Json::from_text(text).ok()?.deserialize().ok()
            });
            if let Some(cancelled) = cancelled {
                // A server that has ended has nothing to cancel, and one that does not read its
                // messages is not told.
                drop(self.messages.try_send(cancelled));
            }
        }
    }
}

/// The transport of a server.
struct Bridge {
    received: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    waiting: Arc<Mutex<Waiting>>,
    client: McpClient,
}

impl Transport<RoleServer> for Bridge {
    type Error = crate::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        // All of it happens now. The SDK makes a task of each of these futures, and tasks have no
        // order; only whether the CLI has acknowledged the message is left to wait for.
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
    /// Answers a request; without a message, which could not be written then, it fails.
    fn answer(&self, id: &RequestId, message: Option<Json>) {
        let answer = lock(&self.waiting).answers.remove(id);
        if let (Some(answer), Some(message)) = (answer, message) {
            // Whoever has given up needs no answer.
            drop(answer.send(message));
        }
    }
}

/// A handler that answers also when it panics, and is dropped when nobody wants its answer.
struct Guarded<H> {
    handler: H,
    over: CancellationToken,
}

impl<H: ServerHandler> Service<RoleServer> for Guarded<H> {
    async fn handle_request(
        &self,
        request: <RoleServer as ServiceRole>::PeerReq,
        context: RequestContext<RoleServer>,
    ) -> Result<<RoleServer as ServiceRole>::Resp, ErrorData> {
        let cancelled = context.ct.clone();
        let handled = caught(self.handler.handle_request(request, context));
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
        let handled = caught(self.handler.handle_notification(notification, context));
        self.over.run_until_cancelled(handled).await.flatten().unwrap_or(Ok(()))
    }

    fn get_info(&self) -> <RoleServer as ServiceRole>::Info {
        Service::get_info(&self.handler)
    }

    fn supported_protocol_versions(&self) -> std::borrow::Cow<'static, [ProtocolVersion]> {
        Service::supported_protocol_versions(&self.handler)
    }
}

/// What comes of a future; none if it panics.
async fn caught<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    std::future::poll_fn(move |context| match panics::catch(|| future.as_mut().poll(context)) {
        Ok(polled) => polled.map(Some),
        Err(_) => std::task::Poll::Ready(None),
    })
    .await
}
