//! MCP servers: in-process servers and the configuration of external ones.
//!
//! Most hosts only need [tools](crate::guide::tools).

mod bridge;
pub(crate) mod client;
mod external;
#[cfg(feature = "rmcp")]
mod hosted;
#[cfg_attr(
    not(feature = "tools"),
    expect(
        dead_code,
        reason = "tools need more of it than servers that understand MCP themselves"
    )
)]
mod message;
pub(crate) mod names;
mod raw;
mod server;
#[cfg(test)]
mod tests;

use claude_wire::id::SessionId;

use crate::callback::CancelToken;

pub use crate::session::McpHandle;
pub use claude_wire::launch::McpServers;
pub use client::McpClient;
pub use external::{RemoteServer, StdioServer, ToolPolicy};
#[cfg(feature = "rmcp")]
pub use hosted::RmcpServer;
pub use raw::RawServer;
pub use server::McpServer;

pub(crate) use bridge::{Connection, Server, Servers, Serving};
#[cfg(feature = "tools")]
pub(crate) use message::{INVALID_PARAMS, Kind, METHOD_NOT_FOUND};
pub(crate) use message::{Incoming, Reply};
pub(crate) use server::ServerKind;

/// The context of a message that an in-process server handles.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpContext {
    /// The session ID, if it is already known.
    pub session_id: Option<SessionId>,
    /// Signals that the response is no longer needed. The future that handles the message is dropped
    /// then; use the token to cancel work in other tasks.
    pub cancel: CancelToken,
    /// The CLI as the client of this server.
    pub client: McpClient,
}
