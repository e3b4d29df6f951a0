//! MCP servers of any kind, as arguments of `Options::mcp`.

use std::fmt;
use std::sync::Arc;

use claude_wire::Json;

use super::{RawServer, RemoteServer, Server, StdioServer};

/// An MCP server for [`Options::mcp`](crate::Options::mcp).
///
/// An external server is created from a [`StdioServer`], a [`RemoteServer`] or the JSON of the CLI's
/// configuration; an in-process server from a `ToolServer`, an `RmcpServer` or a [`RawServer`].
#[derive(Clone)]
#[must_use = "a server does nothing until options have it"]
pub struct McpServer(pub(crate) ServerKind);

/// Where a server runs.
#[derive(Clone)]
pub(crate) enum ServerKind {
    /// Outside this process, with this configuration.
    External(Json),
    InProcess(Arc<dyn Server>),
}

macro_rules! external {
    ($($type:ty),+) => {$(
        impl From<$type> for McpServer {
            fn from(server: $type) -> Self {
                Self(ServerKind::External(server.into()))
            }
        }
    )+};
}

external!(StdioServer, RemoteServer, Json, serde_json::Value);

macro_rules! in_process {
    ($($(#[$feature:meta])? $type:ty),+) => {$(
        $(#[$feature])?
        impl From<$type> for McpServer {
            fn from(server: $type) -> Self {
                Self(ServerKind::InProcess(Arc::new(server)))
            }
        }
    )+};
}

in_process!(
    RawServer,
    #[cfg(feature = "tools")]
    crate::tool::ToolServer,
    #[cfg(feature = "rmcp")]
    super::RmcpServer
);

impl fmt::Debug for McpServer {
    /// Omits the configuration, which may contain keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            ServerKind::External(_) => f.write_str("McpServer(***)"),
            ServerKind::InProcess(server) => f.debug_tuple("McpServer").field(server).finish(),
        }
    }
}
