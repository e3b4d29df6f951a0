//! MCP servers: those in the host, which are called over the control protocol, and external ones.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::cli_version::ProtocolPart;
use super::engine::Engine;
use super::host_requests::ResponseOutcome;
use super::json::{Object, array, text};
use super::mcp_server::{McpServer, McpStatus};
use super::scope::{Scope, ToolCall};
use super::state::{HostResponse, PendingKind};
use super::tools::ToolOutput;

/// How long the handshake with the host waits for its servers; about as long as in the real CLI.
const BEFORE_HANDSHAKE: Duration = Duration::from_millis(50);
/// The timeout of a request to a server, and the number of attempts.
const TIMEOUT: Duration = Duration::from_secs(30);
const ATTEMPTS: u32 = 2;
/// What the IDs of requests to servers of the host begin with. The real CLI chooses it at random.
const RPC_PREFIX: &str = "51a0c1e0";

impl Engine {
    /// Loads the servers of the command line. Returns an error for an invalid configuration.
    pub(super) fn load_servers(&self) -> Result<(), String> {
        for config in &self.launch.mcp_config {
            let json = if config.trim_start().starts_with('{') {
                config.clone()
            } else {
                let path = self.launch.cwd.join(config);
                std::fs::read_to_string(&path)
                    .map_err(|error| format!("Error: MCP config file {config}: {error}"))?
            };
            let config: Value = serde_json::from_str(&json)
                .map_err(|error| format!("Error: Invalid MCP configuration: {error}"))?;
            let servers = config["mcpServers"].as_object();
            let servers = servers.ok_or("Error: Invalid MCP configuration: no mcpServers")?;
            let mut state = self.state();
            for (name, config) in servers {
                state.servers.push(Arc::new(McpServer::new(name, config)));
            }
        }
        Ok(())
    }

    /// Adds the servers of the handshake, and returns whether they are used; `None` if there are none, or
    /// if this version ignores them. Servers of the command line with the same name take precedence.
    pub(super) fn add_handshake_servers(&self, servers: &Value) -> Option<bool> {
        let version = self.launch.cli_version;
        if !version.has(ProtocolPart::Handshake, "mcp_servers_applied") {
            return None;
        }
        let servers = servers.as_object().filter(|servers| !servers.is_empty())?;
        if !self.launch.await_initialize {
            return Some(false);
        }
        let mut state = self.state();
        for (name, config) in servers {
            if !state.servers.iter().any(|server| server.name == *name) {
                state.servers.push(Arc::new(McpServer::new(name, config)));
            }
        }
        Some(true)
    }

    pub(super) fn sdk_servers(&self) -> Vec<Arc<McpServer>> {
        self.state().servers.iter().filter(|server| server.is_sdk()).cloned().collect()
    }

    /// Sends `initialize` to servers of the host, and waits a short time for their responses.
    pub(super) async fn initialize_servers(self: &Arc<Self>, servers: Vec<Arc<McpServer>>) {
        let mut handshakes = Vec::new();
        for server in servers {
            server.mark_initializing();
            let pending = self.send_rpc(
                &server,
                "initialize",
                Some(initialize_params(&self.launch.version)),
                PendingKind::Session,
            );
            handshakes.push((pending.await, server));
        }
        if handshakes.is_empty() {
            return;
        }
        let deadline = tokio::time::Instant::now() + BEFORE_HANDSHAKE;
        let mut unanswered = Vec::new();
        for (mut pending, server) in handshakes {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            match self.wait_for_response(&mut pending, None, Some(left)).await {
                ResponseOutcome::Response(response) => finish_initialize(&server, response),
                _ => unanswered.push((pending, server)),
            }
        }
        for (mut pending, server) in unanswered {
            let engine = Arc::clone(self);
            self.spawn(async move {
                let mut reply = engine.wait_for_response(&mut pending, None, Some(TIMEOUT)).await;
                for _ in 1..ATTEMPTS {
                    if matches!(reply, ResponseOutcome::TimedOut) {
                        let params = Some(initialize_params(&engine.launch.version));
                        pending = engine
                            .send_rpc(&server, "initialize", params, PendingKind::Session)
                            .await;
                        reply = engine.wait_for_response(&mut pending, None, Some(TIMEOUT)).await;
                    }
                }
                match reply {
                    ResponseOutcome::Response(response) => finish_initialize(&server, response),
                    _ => server.set_status(McpStatus::Failed),
                }
                engine.send_initialized().await;
                engine.changed.notify_one();
            });
        }
    }

    /// Sends `notifications/initialized` to newly connected servers.
    pub(super) async fn send_initialized(&self) {
        for server in self.sdk_servers() {
            if server.take_initialized_due() {
                let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                self.send_mcp_message(&server.name, &message.to_string(), PendingKind::Session)
                    .await;
            }
        }
    }

    /// Returns whether the next turn has to list the tools of a server first.
    pub(super) fn has_tools_to_list(&self) -> bool {
        self.state().servers.iter().any(|server| server.needs_tool_list())
    }

    /// Lists the tools of servers whose tools are not known yet.
    pub(super) async fn list_tools(self: &Arc<Self>) {
        let servers = self.state().servers.clone();
        if !servers.iter().any(|server| server.needs_tool_list()) {
            return;
        }
        let mut new = self.sdk_servers();
        new.retain(|server| !server.is_initializing());
        if !new.is_empty() {
            self.initialize_servers(new).await;
            self.send_initialized().await;
        }
        for server in servers.iter().filter(|server| !server.is_sdk() && server.needs_tool_list()) {
            self.connect_external(server).await;
        }
        // A server that has not responded to `initialize` delays the turn.
        let deadline = tokio::time::Instant::now() + TIMEOUT * ATTEMPTS;
        for server in self.sdk_servers() {
            while server.status() == McpStatus::Pending {
                if tokio::time::timeout_at(deadline, self.changed.notified()).await.is_err() {
                    server.set_status(McpStatus::Failed);
                }
            }
            if server.needs_tool_list() {
                self.list_tools_of(&server).await;
            }
        }
    }

    pub(super) async fn list_tools_of(&self, server: &McpServer) {
        let mut pending = self.send_rpc(server, "tools/list", None, PendingKind::Session).await;
        let reply = self.wait_for_response(&mut pending, None, Some(TIMEOUT)).await;
        match rpc_result(reply) {
            Ok(result) => server.set_tools(&result),
            Err(_) => server.set_tools(&json!({"tools": []})),
        }
    }

    async fn send_rpc(
        &self,
        server: &McpServer,
        method: &str,
        params: Option<Object>,
        kind: PendingKind,
    ) -> super::host_requests::HostRequest {
        let id = server.next_id();
        let mut message = Object::new().str("method", method);
        if let Some(params) = params {
            message = message.raw("params", &params.done());
        }
        let message = message.str("jsonrpc", "2.0").value("id", &self.rpc_id(id)).done();
        self.send_mcp_message(&server.name, &message, kind).await
    }

    /// Returns the ID of a request to a server of the host, in the form of this version.
    fn rpc_id(&self, number: u64) -> Value {
        if self.launch.cli_version.has_textual_rpc_ids() {
            format!("{RPC_PREFIX}:{number}").into()
        } else {
            number.into()
        }
    }

    pub(super) async fn send_mcp_message(
        &self,
        server: &str,
        message: &str,
        kind: PendingKind,
    ) -> super::host_requests::HostRequest {
        let request = Object::new()
            .str("subtype", "mcp_message")
            .str("server_name", server)
            .raw("message", message);
        self.send_request("mcp_message", request, kind).await
    }

    /// Sends `notifications/cancelled` for a tool call.
    pub(super) async fn cancel_mcp_call(&self, server: &str, id: u64) {
        let id = self.rpc_id(id);
        let params = Object::new().value("requestId", &id).str("reason", "interrupted").done();
        let message = Object::new()
            .str("jsonrpc", "2.0")
            .str("method", "notifications/cancelled")
            .raw("params", &params)
            .done();
        self.send_mcp_message(server, &message, PendingKind::Session).await;
    }

    fn find_server(&self, tool: &str) -> Option<(Arc<McpServer>, String)> {
        let rest = tool.strip_prefix("mcp__")?;
        let state = self.state();
        state.servers.iter().find_map(|server| {
            let name = rest.strip_prefix(&server.name)?.strip_prefix("__")?;
            Some((Arc::clone(server), name.to_owned()))
        })
    }

    pub(super) fn is_read_only_mcp(&self, tool: &str) -> bool {
        self.find_server(tool).is_some_and(|(server, name)| server.is_read_only(&name))
    }

    /// Returns the `tool_use_meta` of a call to an MCP tool.
    pub(super) fn tool_use_meta(&self, id: &str, tool: &str) -> Object {
        let Some((server, name)) = self.find_server(tool) else { return Object::new() };
        let mut display = name.clone();
        if let Some(first) = display.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let entry = Object::new()
            .str("id", id)
            .str("display_name", &display)
            .str("server_display_name", &server.name)
            .str("tool_name", &name);
        Object::new().raw("tool_use_meta", &array([entry.done()]))
    }

    pub(super) async fn call_mcp_tool(&self, scope: &Scope, call: &ToolCall) -> Option<ToolOutput> {
        let Some((server, name)) = self.find_server(&call.name) else {
            return Some(ToolOutput::error("There is no such server."));
        };
        if !server.is_sdk() {
            return self.call_external_tool(scope, &server, &name, call).await;
        }
        let id = server.peek_id();
        let meta =
            Object::new().str("claudecode/toolUseId", &call.id).plain("progressToken", id).done();
        let params =
            Object::new().str("name", &name).value("arguments", &call.input).raw("_meta", &meta);
        let kind = PendingKind::McpCall { server: server.name.clone(), rpc_id: id };
        let mut pending = self.send_rpc(&server, "tools/call", Some(params), kind).await;
        let reply = self.wait_for_response(&mut pending, Some(&scope.cancel), None).await;
        if matches!(reply, ResponseOutcome::Cancelled) {
            return None;
        }
        Some(to_tool_output(rpc_result(reply)))
    }

    /// Lists or reads resources of a server in the host.
    pub(super) async fn mcp_resources(&self, call: &ToolCall) -> ToolOutput {
        let name = text(&call.input["server"]);
        let Some(server) = self.sdk_servers().into_iter().find(|server| server.name == name) else {
            return ToolOutput::error(&format!("Server \"{name}\" not found."));
        };
        let (method, params) = match call.name.as_str() {
            "ReadMcpResourceTool" => {
                ("resources/read", Object::new().str("uri", text(&call.input["uri"])))
            }
            _ => ("resources/list", Object::new()),
        };
        let mut pending = self.send_rpc(&server, method, Some(params), PendingKind::Session).await;
        match rpc_result(self.wait_for_response(&mut pending, None, Some(TIMEOUT)).await) {
            Ok(result) => ToolOutput::text(&result.to_string(), result.to_string()),
            Err(reason) => ToolOutput::error(&reason),
        }
    }

    /// Handles a message that a server in the host sends on its own.
    pub(super) async fn handle_server_message(self: &Arc<Self>, name: &str, message: &Value) {
        let server = self.state().servers.iter().find(|server| server.name == name).cloned();
        let Some(server) = server else { return };
        let id = &message["id"];
        match (text(&message["method"]), id.is_null()) {
            ("notifications/tools/list_changed", _) => {
                let engine = Arc::clone(self);
                self.spawn(async move { engine.list_tools_of(&server).await });
            }
            (_, true) => {}
            ("ping", false) => {
                let answer =
                    Object::new().raw("result", "{}").str("jsonrpc", "2.0").value("id", id).done();
                self.send_mcp_message(name, &answer, PendingKind::Session).await;
            }
            // No other methods are supported: no roots, no sampling, no elicitation.
            (_, false) => {
                let error =
                    Object::new().plain("code", -32601).str("message", "Method not found").done();
                let answer =
                    Object::new().str("jsonrpc", "2.0").value("id", id).raw("error", &error).done();
                self.send_mcp_message(name, &answer, PendingKind::Session).await;
            }
        }
    }
}

/// Returns the `params` of `initialize`.
pub(super) fn initialize_params(version: &str) -> Object {
    let client = Object::new()
        .str("name", "claude-code")
        .str("title", "Claude Code")
        .str("version", version);
    Object::new()
        .str("protocolVersion", "2025-11-25")
        .raw("capabilities", "{}")
        .raw("clientInfo", &client.done())
}

fn finish_initialize(server: &McpServer, response: HostResponse) {
    match rpc_result(ResponseOutcome::Response(response)) {
        Ok(result) => server.set_connected(&result),
        Err(_) => server.set_status(McpStatus::Failed),
    }
}

/// Returns the result in the response to an `mcp_message`, or an error message.
fn rpc_result(reply: ResponseOutcome) -> Result<Value, String> {
    match reply {
        ResponseOutcome::Response(HostResponse::Success(answer)) => {
            let response = &answer["mcp_response"];
            if response["error"].is_object() {
                return Err(text(&response["error"]["message"]).to_owned());
            }
            Ok(response["result"].clone())
        }
        ResponseOutcome::Response(HostResponse::Error(reason)) => Err(reason),
        ResponseOutcome::Response(HostResponse::Closed) => Err("The host is gone.".to_owned()),
        ResponseOutcome::TimedOut | ResponseOutcome::Cancelled => {
            Err("The server did not answer.".to_owned())
        }
    }
}

/// Converts the result of an MCP tool.
pub(super) fn to_tool_output(result: Result<Value, String>) -> ToolOutput {
    let result = match result {
        Ok(result) => result,
        Err(reason) => return ToolOutput::error(&reason),
    };
    if result["isError"] == true {
        return ToolOutput::error(&super::state::content_text(&result["content"]));
    }
    let blocks = result["content"].as_array().into_iter().flatten();
    let content = array(blocks.map(|block| match block["type"].as_str() {
        Some("text") => Object::typed("text").str("text", text(&block["text"])).done(),
        _ => block.to_string(),
    }));
    ToolOutput::content(content.clone(), content)
}
