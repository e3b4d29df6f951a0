//! The client of an in-process MCP server.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};

use claude_agent_core::session::Event;
use claude_wire::control::{HostRequest, McpMessage};
use claude_wire::{Extra, Json, Map};
use tokio::sync::oneshot;

use crate::commands::{CommandSender, DriverGone};
use crate::error::{Error, ErrorKind, Result};
use crate::lock::lock;
use crate::session::operations::OPERATION_TIMEOUT;

/// The maximum number of requests in flight.
const MAX_PENDING: usize = 64;

/// The CLI as the client of an in-process server, in one session. Clones are the same client.
#[derive(Clone)]
pub struct McpClient {
    server: Arc<str>,
    commands: CommandSender,
    requests: Arc<Mutex<Requests>>,
}

/// The requests of the server that are in flight.
#[derive(Debug, Default)]
struct Requests {
    last: u64,
    pending: Map<oneshot::Sender<Json>>,
}

impl McpClient {
    pub(crate) fn new(server: &str, commands: CommandSender) -> Self {
        Self { server: server.into(), commands, requests: Arc::default() }
    }

    /// Sends a notification and waits until the CLI has acknowledged it. Notifications are sent in the
    /// order in which these futures are first polled.
    ///
    /// # Errors
    /// When the session has ended ([`SessionStopped`](ErrorKind::SessionStopped)), the CLI does not
    /// acknowledge the notification ([`ControlTimeout`](ErrorKind::ControlTimeout)) or rejects it, or too
    /// many are in flight ([`TooManyPending`](ErrorKind::TooManyPending)).
    ///
    /// # Cancel safety
    /// If the future is dropped, the notification may or may not have been sent.
    pub async fn notify(&self, method: &str, params: impl Into<Option<Json>>) -> Result<()> {
        self.send(message(method, params.into())).await
    }

    /// Returns the name of the server in the session.
    #[cfg(feature = "tools")]
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Notifies the CLI that the tools of this server have changed. The CLI lists them again.
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

    /// Sends a request and returns the JSON-RPC response, which may be an error. The CLI supports `ping`
    /// and little else: not elicitation, roots or sampling for in-process servers.
    ///
    /// # Errors
    /// Returns the errors of [`Self::notify`].
    ///
    /// # Cancel safety
    /// Dropping the future discards the response.
    pub async fn request(&self, method: &str, params: impl Into<Option<Json>>) -> Result<Json> {
        let (id, response) = self.add_request()?;
        let _guard = RequestGuard { client: self, id: &id };
        let mut message = message(method, params.into());
        message.set("id", id.as_str());
        self.send(message).await?;
        match tokio::time::timeout(OPERATION_TIMEOUT, response).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(_)) => Err(session_ended(DriverGone)),
            Err(_) => Err(no_response(method)),
        }
    }

    /// Delivers a response to [`Self::request`]; returns whether it belongs to one.
    pub(crate) fn complete(&self, id: &Json, response: &Json) -> bool {
        let Ok(id) = id.deserialize::<String>() else { return false };
        let pending = self.requests().pending.remove(&id);
        // A dropped request needs no response.
        pending.map(|pending| pending.send(response.clone())).is_some()
    }

    /// Sends a message unchanged.
    pub(crate) async fn send(&self, message: Extra) -> Result<()> {
        self.post(Json::from(&message)).await
    }

    /// Passes a message to the driver; messages are sent in the order of these calls. The future waits until
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

    fn add_request(&self) -> Result<(String, oneshot::Receiver<Json>)> {
        let (sender, receiver) = oneshot::channel();
        let mut requests = self.requests();
        if requests.pending.len() >= MAX_PENDING {
            return Err(too_many_requests(&self.server));
        }
        requests.last += 1;
        let id = format!("kit-{}", requests.last);
        requests.pending.insert(id.as_str(), sender);
        Ok((id, receiver))
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        lock(&self.requests)
    }
}

/// Removes a request when its future ends or is dropped.
struct RequestGuard<'a> {
    client: &'a McpClient,
    id: &'a str,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.client.requests().pending.remove(self.id);
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

pub(crate) fn no_response(method: &str) -> Error {
    let message = format!("the CLI did not respond to `{method}` within {OPERATION_TIMEOUT:?}");
    Error::new(ErrorKind::ControlTimeout, message)
        .with_help("check that the CLI supports the method")
        .with(|facts| facts.limit = Some(OPERATION_TIMEOUT))
}

pub(crate) fn too_many_requests(server: &str) -> Error {
    let message = format!("{MAX_PENDING} requests of MCP server {server:?} are in flight");
    Error::new(ErrorKind::TooManyPending, message).with_help("wait for earlier requests first")
}

pub(crate) fn session_ended(_: DriverGone) -> Error {
    Error::new(ErrorKind::SessionStopped, "the session of this MCP server has ended")
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient").field("server", &self.server).finish_non_exhaustive()
    }
}
