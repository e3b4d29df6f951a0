//! An MCP server of any kind, as options take it.

use std::fmt;
use std::sync::Arc;

use claude_wire::Json;

use super::{RawServer, RemoteServer, Server, StdioServer};

/// An MCP server, outside this process or inside it: what
/// [`Options::mcp`](crate::Options::mcp) takes.
///
/// Made from a [`StdioServer`], a [`RemoteServer`] or the JSON of the CLI's own configuration for a
/// server outside; from a `ToolServer`, an `RmcpServer` or a [`RawServer`] for one inside.
#[derive(Clone)]
#[must_use = "a server does nothing until options have it"]
pub struct McpServer(pub(crate) Place);

/// Where a server is.
#[derive(Clone)]
pub(crate) enum Place {
    /// Outside this process: its configuration.
    Outside(Json),
    /// Inside this process.
    Inside(Arc<dyn Server>),
}

macro_rules! outside {
    ($($type:ty),+) => {$(
        impl From<$type> for McpServer {
            fn from(server: $type) -> Self {
                Self(Place::Outside(server.into()))
            }
        }
    )+};
}

outside!(StdioServer, RemoteServer, Json, serde_json::Value);

macro_rules! inside {
    ($($(#[$feature:meta])? $type:ty),+) => {$(
        $(#[$feature])?
        impl From<$type> for McpServer {
            fn from(server: $type) -> Self {
                Self(Place::Inside(Arc::new(server)))
            }
        }
    )+};
}

inside!(
    RawServer,
    #[cfg(feature = "tools")]
    crate::tool::ToolServer,
    #[cfg(feature = "rmcp")]
    super::RmcpServer
);

impl fmt::Debug for McpServer {
    /// Without the configuration: keys stand in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Outside(_) => f.write_str("McpServer(***)"),
            Place::Inside(server) => f.debug_tuple("McpServer").field(server).finish(),
        }
    }
}
