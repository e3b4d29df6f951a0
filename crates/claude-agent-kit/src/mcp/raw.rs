//! A server that is one function.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use claude_wire::Json;

use super::{Connection, Incoming, McpClient, McpContext, Reply, Server, Serving};
use crate::callback::{BoxError, error_text};

type Handle = Arc<
    dyn Fn(Json, McpContext) -> Pin<Box<dyn Future<Output = Result<Json, BoxError>> + Send>>
        + Send
        + Sync,
>;

/// An MCP server that is one function: a JSON-RPC message in, a JSON-RPC response out.
///
/// It gets every request and notification of the CLI. The id of a response is put right; what is
/// returned for a notification is not looked at. An error that is returned, a panic, and a value
/// that is no response are answered with the JSON-RPC error -32603.
///
/// ```
/// use claude_agent_kit::mcp::RawServer;
/// use claude_agent_kit::{Json, Options};
///
/// let server = RawServer::new(|message: Json, _ctx| async move {
///     Ok(Json::from_text(format!(r#"{{"result": {{"got": {message}}}}}"#))?)
/// });
/// let options = Options::new().mcp("echo", server);
/// ```
#[derive(Clone)]
#[must_use = "a server does nothing until options have it"]
pub struct RawServer {
    limit: Option<Duration>,
    handle: Handle,
}

impl RawServer {
    /// Makes a server for which `handler` answers.
    pub fn new<F, R>(handler: F) -> Self
    where
        F: Fn(Json, McpContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, BoxError>> + Send + 'static,
    {
        let handle: Handle = Arc::new(move |message, context| Box::pin(handler(message, context)));
        Self { limit: None, handle }
    }

    /// How long a request may take; then it is answered with an error. Default: as long as it likes.
    pub fn timeout(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.limit = limit.into();
        self
    }
}

impl Server for RawServer {
    fn limit(&self) -> Option<Duration> {
        self.limit
    }

    fn connect(&self, _: &McpClient) -> Arc<dyn Connection> {
        Arc::new(self.clone())
    }
}

impl Connection for RawServer {
    fn serve(&self, message: Incoming, context: McpContext) -> Serving {
        let handle = self.handle.clone();
        Box::pin(async move {
            handle(message.whole, context)
                .await
                .map(Reply::Whole)
                .map_err(|error| error_text(&error))
        })
    }
}

impl fmt::Debug for RawServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawServer").field("limit", &self.limit).finish_non_exhaustive()
    }
}
