//! The CLI, as a server sees it.

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

/// Requests that may wait for their answers.
const MOST_ASKED: usize = 64;

/// The CLI as the client of an in-process server, in one session. Copies are the same client.
#[derive(Clone)]
pub struct McpClient {
    server: Arc<str>,
    commands: CommandSender,
    asked: Arc<Mutex<Asked>>,
}

/// Requests of the server that wait for their answers.
#[derive(Debug, Default)]
struct Asked {
    last: u64,
    waiting: HashMap<String, oneshot::Sender<Json>>,
}

impl McpClient {
    pub(crate) fn new(server: &str, commands: CommandSender) -> Self {
        Self { server: server.into(), commands, asked: Arc::default() }
    }

    /// Sends a notification and waits until the CLI has acknowledged it. Notifications arrive in
    /// the order in which these futures are first polled.
    ///
    /// # Errors
    /// When the session is over ([`SessionStopped`](ErrorKind::SessionStopped)), the CLI does not
    /// acknowledge it ([`ControlTimeout`](ErrorKind::ControlTimeout)) or refuses it, or too much is
    /// sent at once ([`TooManyPending`](ErrorKind::TooManyPending)).
    ///
    /// # Cancel safety
    /// Dropping the future may or may not have sent it.
    pub async fn notify(&self, method: &str, params: impl Into<Option<Json>>) -> Result<()> {
        self.send(message(method, params.into())).await
    }

    /// The name that the session has for the server.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Tells the CLI that the tools of this server have changed. It asks for them again.
    ///
    /// # Errors
    /// Those of [`Self::notify`].
    ///
    /// # Cancel safety
    /// That of [`Self::notify`].
    pub async fn tools_changed(&self) -> Result<()> {
        self.notify("notifications/tools/list_changed", None).await
    }

    /// Sends a log message; the levels are those of MCP (`debug`, `info`, `warning`, `error`, …).
    ///
    /// # Errors
    /// Those of [`Self::notify`].
    ///
    /// # Cancel safety
    /// That of [`Self::notify`].
    pub async fn log(&self, level: &str, data: impl Into<Json>) -> Result<()> {
        let mut params = Extra::default();
        params.set("level", level);
        params.set("logger", &*self.server);
        params.set("data", data);
        self.notify("notifications/message", Json::from(&params)).await
    }

    /// Asks the CLI, and gives its JSON-RPC response, which may be an error. The CLI answers `ping`
    /// and little else: in-process servers are offered no elicitation, roots or sampling.
    ///
    /// # Errors
    /// Those of [`Self::notify`].
    ///
    /// # Cancel safety
    /// Dropping the future gives the answer up.
    pub async fn request(&self, method: &str, params: impl Into<Option<Json>>) -> Result<Json> {
        let (id, answer) = self.expect_answer()?;
        let _gives_up = GivesUp { client: self, id: &id };
        let mut message = message(method, params.into());
        message.set("id", id.as_str());
        self.send(message).await?;
        match tokio::time::timeout(OPERATION_TIMEOUT, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(over(DriverGone)),
            Err(_) => {
                let reason = format!("the CLI did not answer `{method}` in {OPERATION_TIMEOUT:?}");
                Err(Error::new(ErrorKind::ControlTimeout, reason)
                    .with(|facts| facts.limit = Some(OPERATION_TIMEOUT)))
            }
        }
    }

    /// Whether a response is for a request of [`Self::request`]; then it is handed over.
    pub(crate) fn answered(&self, id: &Json, response: &Json) -> bool {
        let Ok(id) = id.deserialize::<String>() else { return false };
        let waiting = self.asked().waiting.remove(&id);
        // Whoever has given up needs no answer.
        waiting.map(|waiting| waiting.send(response.clone())).is_some()
    }

    /// Sends a message as it is.
    pub(crate) async fn send(&self, message: Extra) -> Result<()> {
        self.post(Json::from(&message)).await
    }

    /// Leaves a message for the driver now; messages go out in the order of these calls. The future
    /// waits until the CLI has acknowledged it.
    pub(crate) fn post(
        &self,
        message: Json,
    ) -> impl Future<Output = Result<()>> + Send + 'static + use<> {
        let request = HostRequest::McpMessage(McpMessage::new(&*self.server, message));
        let ask = |waiter| Event::Request { waiter, request, timeout: OPERATION_TIMEOUT };
        let pending = self.commands.request("mcp_message", None, ask);
        async move { pending.map_err(over)?.await.map_err(over)?.map(drop) }
    }

    fn expect_answer(&self) -> Result<(String, oneshot::Receiver<Json>)> {
        let (sender, receiver) = oneshot::channel();
        let mut asked = self.asked();
        if asked.waiting.len() >= MOST_ASKED {
            let reason = format!("{MOST_ASKED} requests of the server {} wait", self.server);
            return Err(Error::new(ErrorKind::TooManyPending, reason));
        }
        asked.last += 1;
        let id = format!("kit-{}", asked.last);
        asked.waiting.insert(id.clone(), sender);
        Ok((id, receiver))
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        lock(&self.asked)
    }
}

/// Takes the place of a request back, however that ends.
struct GivesUp<'a> {
    client: &'a McpClient,
    id: &'a str,
}

impl Drop for GivesUp<'_> {
    fn drop(&mut self) {
        self.client.asked().waiting.remove(self.id);
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

fn over(_: DriverGone) -> Error {
    Error::new(ErrorKind::SessionStopped, "the session of this server is over")
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient").field("server", &self.server).finish_non_exhaustive()
    }
}
