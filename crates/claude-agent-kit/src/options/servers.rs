//! Options about servers inside this process.

use std::sync::Arc;

use super::Options;
use crate::mcp::{RawServer, Server};

impl Options {
    /// Adds tools of this process. Several servers can be added; their names must differ. See
    /// [`tool`](crate::tool) for an example. Sent as `--mcp-config`. Default: none.
    ///
    /// The CLI knows the tool `add` of the server `calc` as `mcp__calc__add`. That is what
    /// [`allowed_tools`](Self::allowed_tools) must name for it to run without asking;
    /// `mcp__calc` names all of them.
    #[cfg(feature = "tools")]
    pub fn tool_server(self, server: crate::tool::ToolServer) -> Self {
        self.server(Arc::new(server))
    }

    /// Adds an MCP server of this process that is one function. Sent as `--mcp-config`. Default:
    /// none.
    pub fn raw_mcp_server(self, server: RawServer) -> Self {
        self.server(Arc::new(server))
    }

    /// Adds an MCP server of this process that was written with the official Rust MCP SDK. Sent as
    /// `--mcp-config`. Default: none.
    #[cfg(feature = "rmcp")]
    pub fn rmcp_server(self, server: crate::mcp::RmcpServer) -> Self {
        self.server(Arc::new(server))
    }

    /// Limits how many messages for servers of this process are served at a time. Beyond it 100
    /// wait, and further ones are answered with an error, with a warning. Default: 128.
    pub fn max_running_mcp(self, most: usize) -> Self {
        self.change_host("max_running_mcp", |host| host.callbacks.running_mcp = Some(most))
    }

    fn server(self, server: Arc<dyn Server>) -> Self {
        self.change(|host| {
            host.callbacks.servers.add(server);
            host.needs.servers = host.callbacks.servers.names().collect();
        })
    }
}
