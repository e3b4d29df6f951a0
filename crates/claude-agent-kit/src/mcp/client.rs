//! The CLI as the client of an in-process server.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};

use claude_wire::control::{HostRequest, McpMessage};
use claude_wire::session::Event;
use claude_wire::{Extra, Json};
use tokio::sync::oneshot;

use crate::commands::{CommandSender, DriverGone};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;
use crate::session::operations::OPERATION_TIMEOUT;

/// The maximum number of requests in flight.
const MAX_PENDING_REQUESTS: usize = 64;

/// The CLI as the client of an in-process server, in one session. Clones refer to the same client.
#[derive(Clone)]
pub struct McpClient {
    server: Arc<str>,
    commands: CommandSender,
    pending: Arc<Mutex<PendingRequests>>,
}

/// The requests of the server in flight.
#[derive(Debug, Default)]
struct PendingRequests {
    last: u64,
    waiting: HashMap<String, oneshot::Sender<Json>>,
}

impl McpClient {
    pub(crate) fn new(server: &str, commands: CommandSender) -> Self {
        Self { server: server.into(), commands, pending: Arc::default() }
    }

    /// Sends a notification and waits until the CLI has acknowledged it. Notifications are sent in the
    /// order in which these futures are first polled.
    ///
    /// # Errors
    /// Fails if the session has ended ([`SessionStopped`](ErrorKind::SessionStopped)), if the CLI does
    /// not acknowledge the notification ([`ControlTimeout`](ErrorKind::ControlTimeout)) or rejects it, or
    /// if too many messages are in flight ([`TooManyPending`](ErrorKind::TooManyPending)).
    ///
    /// # Cancel safety
    /// If the future is dropped, the notification may or may not have been sent.
    pub async fn notify(&self, method: &str, params: impl Into<Option<Json>>) -> Result<()> {
        self.send(message(method, params.into())).await
    }

    /// Returns the name of the server in the session.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Notifies the CLI that the tools of this server have changed. The CLI then lists them again.
    ///
    /// # Errors
    /// Returns the errors of [`Self::notify`].
    ///
    /// # Cancel safety
    /// Same as [`Self::notify`].
    pub async fn tools_changed(&self) -> Result<()> {
        self.notify("notifications/tools/list_changed", None).await
    }

    /// Sends a log message. The levels are those of MCP (`debug`, `info`, `warning`, `error`, …).
    ///
    /// # Errors
    /// Returns the errors of [`Self::notify`].
    ///
    /// # Cancel safety
    /// Same as [`Self::notify`].
    pub async fn log(&self, level: &str, data: impl Into<Json>) -> Result<()> {
        let mut params = Extra::default();
        params.set("level", level);
        params.set("logger", &*self.server);
        params.set("data", data);
        self.notify("notifications/message", Json::from(&params)).await
    }

    /// Sends a request and returns the JSON-RPC response of the CLI, which may be an error. The CLI
    /// supports little more than `ping`: it does not offer elicitation, roots and sampling to
    /// in-process servers.
    ///
    /// # Errors
    /// Returns the errors of [`Self::notify`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the response is discarded.
    pub async fn request(&self, method: &str, params: impl Into<Option<Json>>) -> Result<Json> {
        let (id, response) = self.register()?;
        let _guard = PendingGuard { client: self, id: &id };
        let mut message = message(method, params.into());
        message.set("id", id.as_str());
        self.send(message).await?;
        match tokio::time::timeout(OPERATION_TIMEOUT, response).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(_)) => Err(session_ended(DriverGone)),
            Err(_) => {
                let reason =
                    format!("the CLI did not respond to `{method}` within {OPERATION_TIMEOUT:?}");
                Err(Error::new(ErrorKind::ControlTimeout, reason)
                    .with(|facts| facts.limit = Some(OPERATION_TIMEOUT)))
            }
        }
    }

    /// Completes the request of [`Self::request`] with this ID, and returns whether there was one.
    pub(crate) fn complete(&self, id: &Json, response: &Json) -> bool {
        let Ok(id) = id.deserialize::<String>() else { return false };
        let waiting = self.pending().waiting.remove(&id);
        // The requester may have been dropped.
        waiting.map(|waiting| waiting.send(response.clone())).is_some()
    }

    pub(crate) async fn send(&self, message: Extra) -> Result<()> {
        self.post(Json::from(&message)).await
    }

    /// Queues a message; messages are sent in the order of these calls. The returned future waits until
    /// the CLI has acknowledged it.
    pub(crate) fn post(
        &self,
        message: Json,
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let request = HostRequest::McpMessage(McpMessage::new(&*self.server, message));
        let ask = |waiter| Event::Request { waiter, request, timeout: OPERATION_TIMEOUT };
        let pending = self.commands.request("mcp_message", None, ask);
        async move { pending.map_err(session_ended)?.await.map_err(session_ended)?.map(drop) }
    }

    fn register(&self) -> Result<(String, oneshot::Receiver<Json>)> {
        let (sender, receiver) = oneshot::channel();
        let mut pending = self.pending();
        if pending.waiting.len() >= MAX_PENDING_REQUESTS {
            let reason = format!(
                "the MCP server {:?} has {MAX_PENDING_REQUESTS} requests in flight",
                self.server
            );
            return Err(Error::new(ErrorKind::TooManyPending, reason));
        }
        pending.last += 1;
        let id = format!("kit-{}", pending.last);
        pending.waiting.insert(id.clone(), sender);
        Ok((id, receiver))
    }

    fn pending(&self) -> MutexGuard<'_, PendingRequests> {
        lock(&self.pending)
    }
}

/// Removes a pending request when it ends or is dropped.
struct PendingGuard<'a> {
    client: &'a McpClient,
    id: &'a str,
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.client.pending().waiting.remove(self.id);
    }
}

fn message(method: &str, params: Option<Json>) -> Extra {
    let mut message = Extra::default();
    message.set("jsonrpc", "2.0");
    message.set("method", method);
    if let Some(params) = params {
        message.set("params", params);
    }
    message
}

fn session_ended(_: DriverGone) -> Error {
    Error::new(ErrorKind::SessionStopped, "the session of this MCP server has ended")
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient").field("server", &self.server).finish_non_exhaustive()
    }
}
