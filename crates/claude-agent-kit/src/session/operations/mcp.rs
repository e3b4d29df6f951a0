//! MCP servers of a session.

use claude_wire::control::{
    HostRequest, McpCall, McpCallResponse, McpReconnect, McpSetServers, McpSetServersResponse,
    McpStatus, McpStatusResponse, McpToggle,
};
use claude_wire::{Extra, Json};
use serde::de::DeserializeOwned;

use super::requests::sealed::Requirement;
use crate::error::Result;
use crate::session::Session;

/// Controls the MCP servers of a session. Returned by [`Session::mcp`].
///
/// Rare operations are requests: `McpReadResource` and `SetMcpPermissionModeOverride` of
/// [`control`](crate::control), for [`Session::request`].
///
/// ```no_run
/// # async fn example(session: claude_agent_kit::Session) -> claude_agent_kit::Result<()> {
/// for server in session.mcp().status().await?.mcp_servers {
///     println!("{:?}: {:?}", server.name, server.status);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct McpHandle<'a> {
    pub(in crate::session) session: &'a Session,
}

operations! { McpHandle:
    /// Returns the MCP servers and their state.
    fn status() -> McpStatusResponse { McpStatus::default() }

    /// Reconnects an MCP server.
    fn reconnect(server: impl Into<String>) { McpReconnect::new(server) }

    /// Enables an MCP server.
    fn enable(server: impl Into<String>) { McpToggle::new(server, true) }

    /// Disables an MCP server.
    fn disable(server: impl Into<String>) { McpToggle::new(server, false) }
}

impl McpHandle<'_> {
    /// Replaces the MCP servers that were set this way before:
    /// [`McpServers`](crate::mcp::McpServers), or JSON with configurations by name.
    ///
    /// The servers of the options stay: external ones because the CLI keeps them, in-process ones
    /// because they are added to every such request. A configuration under the name of such a server
    /// replaces it, until the next call of this method.
    ///
    /// ```no_run
    /// use claude_agent_kit::mcp::{McpServers, RemoteServer, StdioServer};
    ///
    /// # async fn example(session: claude_agent_kit::Session) -> claude_agent_kit::Result<()> {
    /// let servers = McpServers::new()
    ///     .with("files", StdioServer::new("files-server"))
    ///     .with("tracker", RemoteServer::http("https://tracker.example/mcp"));
    /// let response = session.mcp().set_servers(servers).await?;
    /// println!("added: {:?}", response.added);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Session::request`].
    ///
    /// # Cancel safety
    /// That of [`Session::request`].
    pub async fn set_servers(self, servers: impl Into<Json>) -> Result<McpSetServersResponse> {
        let servers = with_hosted(servers.into(), &self.session.shared.hosted);
        self.operate(McpSetServers::new(servers).into()).await
    }

    /// Calls a tool of an external MCP server, without the model. The permissions of the session do
    /// not apply unless [`McpCall::check_permissions`] is set.
    ///
    /// The CLI rejects calls of in-process tools; call their functions directly.
    ///
    /// # Errors
    /// Those of [`Session::request`]. [`Unsupported`](crate::ErrorKind::Unsupported) also when
    /// `check_permissions` or `result_not_for_model` is set and the CLI would ignore it: then the
    /// tool is not called.
    ///
    /// # Cancel safety
    /// That of [`Session::request`].
    pub async fn call(self, call: McpCall) -> Result<McpCallResponse> {
        let fields = [
            ("check_permissions", call.check_permissions, "mcp_call_check_permissions_v1"),
            ("result_not_for_model", call.result_not_for_model, "mcp_call_result_not_for_model_v1"),
        ];
        for (field, value, capability) in fields {
            if value == Some(true) {
                self.session.require("mcp_call", Requirement { field, capability }).await?;
            }
        }
        self.operate(call.into()).await
    }
}

impl McpHandle<'_> {
    async fn operate<T: DeserializeOwned + Default>(self, request: HostRequest) -> Result<T> {
        self.session.operate(request).await
    }

    async fn acknowledged(self, request: HostRequest) -> Result<()> {
        self.session.acknowledged(request).await
    }
}

/// Adds the in-process servers, which the CLI would otherwise remove.
fn with_hosted(servers: Json, hosted: &[String]) -> Json {
    // The CLI rejects anything but an object.
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
