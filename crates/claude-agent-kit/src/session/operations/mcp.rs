//! MCP servers.

use claude_wire::control::{
    McpCall, McpCallAnswer, McpPermissionModeOverrideAnswer, McpReadResource,
    McpReadResourceAnswer, McpReconnect, McpSetServers, McpSetServersAnswer, McpStatus,
    McpStatusAnswer, McpToggle, PermissionMode, SetMcpPermissionModeOverride,
};
use claude_wire::{Extra, Json};

use crate::error::Result;
use crate::session::Session;

operations! {
    /// Returns the MCP servers and their state.
    fn mcp_status() -> McpStatusAnswer { McpStatus::default() }

    /// Reconnects an MCP server.
    fn mcp_reconnect(server: impl Into<String>) { McpReconnect::new(server) }

    /// Enables or disables an MCP server.
    fn mcp_toggle(server: impl Into<String>, enabled: bool) { McpToggle::new(server, enabled) }

    /// Changes who decides about the tools of one MCP server: [`Default`](PermissionMode::Default)
    /// or [`Auto`](PermissionMode::Auto); `None` restores the mode of the session.
    fn set_mcp_permission_mode_override(
        server: impl Into<String>,
        mode: Option<PermissionMode>
    ) -> McpPermissionModeOverrideAnswer {
        let mut change = SetMcpPermissionModeOverride::default();
        change.server_name = server.into();
        change.mode = mode.into();
        change
    }

    /// Reads a resource of an MCP server. The CLI refuses all but `ui://`.
    fn mcp_read_resource(
        server: impl Into<String>,
        uri: impl Into<String>
    ) -> McpReadResourceAnswer {
        let mut request = McpReadResource::default();
        (request.server_name, request.uri) = (server.into(), uri.into());
        request
    }
}

impl Session {
    /// Replaces the MCP servers that were set this way before:
    /// [`McpServers`](crate::mcp::McpServers), or JSON with configurations by name.
    ///
    /// The servers of the options stay: those outside this process because the CLI keeps them, those
    /// of this process because they are added to every such request. A configuration under the name
    /// of such a server takes its place, until the next call of this method.
    ///
    /// ```no_run
    /// use claude_agent_kit::mcp::{McpServers, RemoteServer, StdioServer};
    ///
    /// # async fn example(session: claude_agent_kit::Session) -> claude_agent_kit::Result<()> {
    /// let servers = McpServers::new()
    ///     .with("files", StdioServer::new("files-server"))
    ///     .with("tracker", RemoteServer::http("https://tracker.example/mcp"));
    /// let answer = session.mcp_set_servers(servers).await?;
    /// println!("{:?} are new", answer.added);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn mcp_set_servers(&self, servers: impl Into<Json>) -> Result<McpSetServersAnswer> {
        let servers = with_hosted(servers.into(), &self.shared.hosted);
        self.operate(McpSetServers::new(servers).into()).await
    }

    /// Calls a tool of an MCP server outside this process, without the model. The permissions of
    /// the session do not hold for it unless [`McpCall::check_permissions`] is set.
    ///
    /// The CLI refuses to call tools of this process; call their functions directly.
    ///
    /// # Errors
    /// Those of [`Self::request`]. [`Unsupported`](crate::ErrorKind::Unsupported) also when
    /// `check_permissions` or `result_not_for_model` is set and the CLI would ignore it: then the
    /// tool is not called.
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn mcp_call(&self, call: McpCall) -> Result<McpCallAnswer> {
        let fields = [
            ("check_permissions", call.check_permissions, "mcp_call_check_permissions_v1"),
            ("result_not_for_model", call.result_not_for_model, "mcp_call_result_not_for_model_v1"),
        ];
        for (field, value, capability) in fields {
            if value == Some(true) {
                self.require("mcp_call", field, capability).await?;
            }
        }
        self.operate(call.into()).await
    }
}

/// Adds the servers of this process, which the CLI would else remove.
fn with_hosted(servers: Json, hosted: &[String]) -> Json {
    // What is not an object is for the CLI to refuse.
    let Ok(mut all) = servers.deserialize::<Extra>() else { return servers };
    for name in hosted {
        if all.get(name).is_some() {
            continue;
        }
        let mut config = Extra::default();
        config.set("type", "sdk");
        config.set("name", name.as_str());
        all.set(name, &config);
    }
    Json::from(&all)
}
