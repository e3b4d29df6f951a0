//! MCP servers. Inside this process: what they know of the CLI, and a server that is one function;
//! most hosts want [tools](crate::guide::tools) and need nothing of this. Outside: how the CLI is told of
//! them.

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
pub(crate) use server::Place;

/// What a server knows of a message besides the message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpContext {
    /// The session, if it is known by now.
    pub session_id: Option<SessionId>,
    /// Tells when the answer is no longer wanted. What serves the message is dropped then, so this
    /// is for what it has started elsewhere.
    pub cancel: CancelToken,
    /// The CLI, as the client of this server.
    pub client: McpClient,
}
