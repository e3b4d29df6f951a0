//! In-process servers that handle raw JSON-RPC messages.

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

/// An MCP server that is implemented by one function, from a JSON-RPC message to a JSON-RPC response.
///
/// The function receives every request and notification of the CLI. The ID of the response is
/// corrected, and the value returned for a notification is ignored. If the function returns an error or
/// a value that is not a response, or panics, the CLI gets the JSON-RPC error -32603.
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
    /// Creates a server with this handler.
    pub fn new<F, R>(handler: F) -> Self
    where
        F: Fn(Json, McpContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Json, BoxError>> + Send + 'static,
    {
        let handle: Handle = Arc::new(move |message, context| Box::pin(handler(message, context)));
        Self { limit: None, handle }
    }

    /// Sets the timeout of requests; when it expires, the request fails with an error. Default: no
    /// timeout.
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
