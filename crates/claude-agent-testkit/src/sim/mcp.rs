//! MCP servers: those in the process of the host, spoken to over the wire, and external ones.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::engine::Engine;
use super::host::Heard;
use super::json::{Object, array, text};
use super::mcp_server::{Server, Status};
use super::scope::{Call, Scope};
use super::state::{Answer, PendingKind};
use super::tools::Done;

/// How long the handshake with the host waits for its servers: about as long as the real CLI takes
/// from the one to the other.
const BEFORE_HANDSHAKE: Duration = Duration::from_millis(50);
/// How long a server has to answer, and how often it is tried.
const LIMIT: Duration = Duration::from_secs(30);
const TRIES: u32 = 2;

impl Engine {
    /// Notes the servers of the command line; an error is a configuration that is none.
    pub(super) fn declare_servers(&self) -> Result<(), String> {
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
                state.servers.push(Arc::new(Server::new(name, config)));
            }
        }
        Ok(())
    }

    pub(super) fn sdk_servers(&self) -> Vec<Arc<Server>> {
        self.state().servers.iter().filter(|server| server.is_sdk()).cloned().collect()
    }

    /// Greets the servers of the host; the handshake goes on when they have answered, or without.
    pub(super) async fn greet_servers(self: &Arc<Self>, servers: Vec<Arc<Server>>) {
        let mut greetings = Vec::new();
        for server in servers {
            server.note_greeting();
            let asked = self.rpc(
                &server,
                "initialize",
                Some(hello(&self.launch.version)),
                PendingKind::Session,
            );
            greetings.push((asked.await, server));
        }
        if greetings.is_empty() {
            return;
        }
        let deadline = tokio::time::Instant::now() + BEFORE_HANDSHAKE;
        let mut silent = Vec::new();
        for (mut asked, server) in greetings {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            match self.hear(&mut asked, None, Some(left)).await {
                Heard::Answer(answer) => take_greeting(&server, answer),
                _ => silent.push((asked, server)),
            }
        }
        for (mut asked, server) in silent {
            let engine = Arc::clone(self);
            self.spawn(async move {
                let mut heard = engine.hear(&mut asked, None, Some(LIMIT)).await;
                for _ in 1..TRIES {
                    if matches!(heard, Heard::TimedOut) {
                        let hello = Some(hello(&engine.launch.version));
                        asked =
                            engine.rpc(&server, "initialize", hello, PendingKind::Session).await;
                        heard = engine.hear(&mut asked, None, Some(LIMIT)).await;
                    }
                }
                match heard {
                    Heard::Answer(answer) => take_greeting(&server, answer),
                    _ => server.set_status(Status::Failed),
                }
                engine.confirm_servers().await;
                engine.changed.notify_one();
            });
        }
    }

    /// Tells the servers that the greeting is over.
    pub(super) async fn confirm_servers(&self) {
        for server in self.sdk_servers() {
            if server.is_due_for_confirmation() {
                let message = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                self.mcp_message(&server.name, &message.to_string(), PendingKind::Session).await;
            }
        }
    }

    /// Whether the next turn has to ask servers for their tools first.
    pub(super) fn has_tools_to_list(&self) -> bool {
        self.state().servers.iter().any(|server| server.must_list())
    }

    /// Asks servers for their tools, once.
    pub(super) async fn list_tools(self: &Arc<Self>) {
        let servers = self.state().servers.clone();
        if !servers.iter().any(|server| server.must_list()) {
            return;
        }
        let mut new = self.sdk_servers();
        new.retain(|server| !server.is_greeted());
        if !new.is_empty() {
            self.greet_servers(new).await;
            self.confirm_servers().await;
        }
        for server in servers.iter().filter(|server| !server.is_sdk() && server.must_list()) {
            self.connect_external(server).await;
        }
        // A server that has not answered the greeting holds the turn up.
        let deadline = tokio::time::Instant::now() + LIMIT * TRIES;
        for server in self.sdk_servers() {
            while server.status() == Status::Pending {
                if tokio::time::timeout_at(deadline, self.changed.notified()).await.is_err() {
                    server.set_status(Status::Failed);
                }
            }
            if server.must_list() {
                self.list_tools_of(&server).await;
            }
        }
    }

    pub(super) async fn list_tools_of(&self, server: &Server) {
        let mut asked = self.rpc(server, "tools/list", None, PendingKind::Session).await;
        let heard = self.hear(&mut asked, None, Some(LIMIT)).await;
        match rpc_result(heard) {
            Ok(result) => server.set_tools(&result),
            Err(_) => server.set_tools(&json!({"tools": []})),
        }
    }

    async fn rpc(
        &self,
        server: &Server,
        method: &str,
        params: Option<Object>,
        kind: PendingKind,
    ) -> super::host::Asked {
        let id = server.next_id();
        let mut message = Object::new().str("method", method);
        if let Some(params) = params {
            message = message.raw("params", &params.done());
        }
        let message = message.str("jsonrpc", "2.0").plain("id", id).done();
        self.mcp_message(&server.name, &message, kind).await
    }

    pub(super) async fn mcp_message(
        &self,
        server: &str,
        message: &str,
        kind: PendingKind,
    ) -> super::host::Asked {
        let request = Object::new()
            .str("subtype", "mcp_message")
            .str("server_name", server)
            .raw("message", message);
        self.ask("mcp_message", request, kind).await
    }

    /// Withdraws a call in the words of MCP.
    pub(super) async fn cancel_mcp_call(&self, server: &str, id: u64) {
        let params = Object::new().plain("requestId", id).str("reason", "interrupted").done();
        let message = Object::new()
            .str("jsonrpc", "2.0")
            .str("method", "notifications/cancelled")
            .raw("params", &params)
            .done();
        self.mcp_message(server, &message, PendingKind::Session).await;
    }

    fn server_of(&self, tool: &str) -> Option<(Arc<Server>, String)> {
        let rest = tool.strip_prefix("mcp__")?;
        let state = self.state();
        state.servers.iter().find_map(|server| {
            let name = rest.strip_prefix(&server.name)?.strip_prefix("__")?;
            Some((Arc::clone(server), name.to_owned()))
        })
    }

    pub(super) fn is_read_only_mcp(&self, tool: &str) -> bool {
        self.server_of(tool).is_some_and(|(server, name)| server.is_read_only(&name))
    }

    /// `tool_use_meta` of a call of a server's tool.
    pub(super) fn tool_use_meta(&self, id: &str, tool: &str) -> Object {
        let Some((server, name)) = self.server_of(tool) else { return Object::new() };
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

    pub(super) async fn call_mcp_tool(&self, scope: &Scope, call: &Call) -> Option<Done> {
        let Some((server, name)) = self.server_of(&call.name) else {
            return Some(Done::error("There is no such server."));
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
        let mut asked = self.rpc(&server, "tools/call", Some(params), kind).await;
        let heard = self.hear(&mut asked, Some(&scope.cancel), None).await;
        if matches!(heard, Heard::Cancelled) {
            return None;
        }
        Some(tool_done(rpc_result(heard)))
    }

    /// Lists or reads resources of a server in the process of the host.
    pub(super) async fn mcp_resources(&self, call: &Call) -> Done {
        let name = text(&call.input["server"]);
        let Some(server) = self.sdk_servers().into_iter().find(|server| server.name == name) else {
            return Done::error(&format!("Server \"{name}\" not found."));
        };
        let (method, params) = match call.name.as_str() {
            "ReadMcpResourceTool" => {
                ("resources/read", Object::new().str("uri", text(&call.input["uri"])))
            }
            _ => ("resources/list", Object::new()),
        };
        let mut asked = self.rpc(&server, method, Some(params), PendingKind::Session).await;
        match rpc_result(self.hear(&mut asked, None, Some(LIMIT)).await) {
            Ok(result) => Done::text(&result.to_string(), result.to_string()),
            Err(reason) => Done::error(&reason),
        }
    }

    /// A message of a server in the process of the host, which speaks first.
    pub(super) async fn hear_server(self: &Arc<Self>, name: &str, message: &Value) {
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
                self.mcp_message(name, &answer, PendingKind::Session).await;
            }
            // Nothing else is offered to such servers: no roots, no sampling, no elicitation.
            (_, false) => {
                let error =
                    Object::new().plain("code", -32601).str("message", "Method not found").done();
                let answer =
                    Object::new().str("jsonrpc", "2.0").value("id", id).raw("error", &error).done();
                self.mcp_message(name, &answer, PendingKind::Session).await;
            }
        }
    }
}

/// The `params` of `initialize`.
pub(super) fn hello(version: &str) -> Object {
    let client = Object::new()
        .str("name", "claude-code")
        .str("title", "Claude Code")
        .str("version", version);
    Object::new()
        .str("protocolVersion", "2025-11-25")
        .raw("capabilities", "{}")
        .raw("clientInfo", &client.done())
}

fn take_greeting(server: &Server, answer: Answer) {
    match rpc_result(Heard::Answer(answer)) {
        Ok(result) => server.connected(&result),
        Err(_) => server.set_status(Status::Failed),
    }
}

/// The result in an answer to an `mcp_message`, or why there is none.
fn rpc_result(heard: Heard) -> Result<Value, String> {
    match heard {
        Heard::Answer(Answer::Success(answer)) => {
            let response = &answer["mcp_response"];
            if response["error"].is_object() {
                return Err(text(&response["error"]["message"]).to_owned());
            }
            Ok(response["result"].clone())
        }
        Heard::Answer(Answer::Error(reason)) => Err(reason),
        Heard::Answer(Answer::Gone) => Err("The host is gone.".to_owned()),
        Heard::TimedOut | Heard::Cancelled => Err("The server did not answer.".to_owned()),
    }
}

/// What the model gets from the result of a server's tool.
pub(super) fn tool_done(result: Result<Value, String>) -> Done {
    let result = match result {
        Ok(result) => result,
        Err(reason) => return Done::error(&reason),
    };
    if result["isError"] == true {
        return Done::error(&super::state::content_text(&result["content"]));
    }
    let blocks = result["content"].as_array().into_iter().flatten();
    let content = array(blocks.map(|block| match block["type"].as_str() {
        Some("text") => Object::typed("text").str("text", text(&block["text"])).done(),
        _ => block.to_string(),
    }));
    Done::content(content.clone(), content)
}
