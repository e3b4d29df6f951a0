//! External MCP servers: processes with JSON-RPC over stdio.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::engine::Engine;
use super::hooks::HookCall;
use super::host_requests::ResponseOutcome;
use super::json::{Object, text};
use super::mcp::to_tool_output;
use super::mcp_server::{McpServer, McpStatus};
use super::scope::{Scope, ToolCall};
use super::state::{HostResponse, PendingKind, SessionStatus};
use super::tools::ToolOutput;

/// A running server process. Dropping it ends the process.
pub(super) struct StdioConnection {
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl StdioConnection {
    async fn send(&mut self, message: &Value) -> Option<()> {
        let line = format!("{message}\n");
        self.stdin.write_all(line.as_bytes()).await.ok()?;
        self.stdin.flush().await.ok()
    }

    /// Returns the next message; `None` when the server has exited.
    async fn next(&mut self) -> Option<Value> {
        loop {
            let line = self.stdout.next_line().await.ok()??;
            // Lines that are not JSON are ignored.
            if let Ok(message) = serde_json::from_str(&line) {
                return Some(message);
            }
        }
    }

    /// Sends a request and waits for its result; requests of the server are ignored meanwhile.
    async fn request(&mut self, id: u64, method: &str, params: Value) -> Option<Value> {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&message).await?;
        loop {
            let message = self.next().await?;
            if message["id"] == id && message["method"].is_null() {
                return Some(message["result"].clone());
            }
        }
    }
}

impl Engine {
    /// Connects pending external servers when the host queries them. The real CLI connects them in
    /// the background after startup.
    pub(super) fn connect_pending(self: &Arc<Self>) {
        let servers = self.state().servers.clone();
        for server in
            servers.into_iter().filter(|server| !server.is_sdk() && server.needs_tool_list())
        {
            let engine = Arc::clone(self);
            self.spawn(async move { engine.connect_external(&server).await });
        }
    }

    /// Starts an external server and lists its tools.
    pub(super) async fn connect_external(&self, server: &McpServer) {
        let mut place = server.connection.lock().await;
        // Another future may have connected it while this one waited for the lock.
        if place.is_none() || server.status() == McpStatus::Failed {
            *place = self.try_connect(server).await;
        }
        if place.is_none() {
            server.set_status(McpStatus::Failed);
        }
    }

    async fn try_connect(&self, server: &McpServer) -> Option<StdioConnection> {
        let config = server.command.as_ref()?;
        let arguments = config["args"].as_array().into_iter().flatten().map(text);
        let variables: BTreeMap<String, String> = config["env"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.clone(), text(value).to_owned()))
            .collect();
        let mut child = Command::new(config["command"].as_str()?)
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .envs(&self.launch.env)
            .envs(variables)
            .current_dir(&self.launch.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .ok()?;
        let stdin = child.stdin.take()?;
        let stdout = BufReader::new(child.stdout.take()?).lines();
        let mut connection = StdioConnection { stdin, stdout, _child: child };
        let params = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {"elicitation": {}, "roots": {}},
            "clientInfo": {"name": "claude-code", "version": self.launch.version},
        });
        let info = connection.request(server.next_id(), "initialize", params).await?;
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        connection.send(&initialized).await?;
        server.set_connected(&info);
        let tools = connection.request(server.next_id(), "tools/list", json!({})).await?;
        server.set_tools(&tools);
        Some(connection)
    }

    pub(super) async fn call_external_tool(
        &self,
        scope: &Scope,
        server: &Arc<McpServer>,
        tool: &str,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let mut connection = server.connection.lock().await;
        let Some(connection) = connection.as_mut() else {
            return Some(ToolOutput::error("The server is not connected."));
        };
        let id = server.next_id();
        let params = json!({"name": tool, "arguments": call.input});
        let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
        let gone = || Some(ToolOutput::error("The server is gone."));
        if connection.send(&request).await.is_none() {
            return gone();
        }
        loop {
            let message = tokio::select! {
                biased;
                () = scope.cancel.cancelled() => return None,
                message = connection.next() => message,
            };
            let Some(message) = message else { return gone() };
            if message["method"] == "elicitation/create" {
                let result = self.elicit(scope, &server.name, &message["params"]).await?;
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                connection.send(&answer).await;
            } else if message["id"] == id && message["method"].is_null() {
                let error = message["error"]["message"].as_str();
                let result = error
                    .map_or_else(|| Ok(message["result"].clone()), |error| Err(error.to_owned()));
                return Some(to_tool_output(result));
            }
        }
    }

    /// Handles an elicitation: `Elicitation` hooks first, then the host, then `ElicitationResult`
    /// hooks.
    async fn elicit(&self, scope: &Scope, server: &str, params: &Value) -> Option<Value> {
        let schema = &params["requestedSchema"];
        let message = text(&params["message"]);
        let input = Object::new()
            .str("mcp_server_name", server)
            .str("message", message)
            .str("mode", "form")
            .value("requested_schema", schema);
        let call = HookCall::new("Elicitation", input.clone()).with_subject(server);
        let outcome = self.run_hooks(scope, call).await;
        if let Some(answer) = hook_answer(&outcome.outputs) {
            return Some(answer);
        }
        let names: Vec<&String> =
            schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name).collect();
        let request = Object::new()
            .str("subtype", "elicitation")
            .fields(&input)
            .strings("property_order", &names);
        self.set_status(SessionStatus::RequiresAction).await;
        let mut pending = self.send_request("elicitation", request, PendingKind::Turn).await;
        let reply = self.wait_for_response(&mut pending, Some(&scope.cancel), None).await;
        self.set_status(SessionStatus::Running).await;
        let answer = match reply {
            ResponseOutcome::Cancelled => return None,
            ResponseOutcome::Response(HostResponse::Success(answer))
                if answer["action"].is_string() =>
            {
                answer
            }
            // An error or an invalid response counts as declined.
            _ => json!({"action": "decline"}),
        };
        let mut input = Object::new()
            .str("mcp_server_name", server)
            .str("mode", "form")
            .str("action", text(&answer["action"]));
        if answer["content"].is_object() {
            input = input.value("content", &answer["content"]);
        }
        let call = HookCall::new("ElicitationResult", input).with_subject(server);
        let outcome = self.run_hooks(scope, call).await;
        Some(hook_answer(&outcome.outputs).unwrap_or(answer))
    }
}

/// Returns the answer that a hook gives instead of the user, if any.
fn hook_answer(outputs: &[Value]) -> Option<Value> {
    let output = outputs.iter().find(|output| output["action"].is_string())?;
    let mut answer = json!({"action": output["action"]});
    if output["content"].is_object() {
        answer["content"] = output["content"].clone();
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_can_answer_an_elicitation() {
        let silent = json!({"hookEventName": "Elicitation"});
        let declining = json!({"hookEventName": "Elicitation", "action": "decline"});
        let accepting = json!({"action": "accept", "content": {"name": "Ada"}});
        assert_eq!(hook_answer(std::slice::from_ref(&silent)), None);
        assert_eq!(hook_answer(&[silent, declining]), Some(json!({"action": "decline"})));
        assert_eq!(hook_answer(std::slice::from_ref(&accepting)), Some(accepting));
    }
}
