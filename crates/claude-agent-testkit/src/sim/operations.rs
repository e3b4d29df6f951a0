//! Handles control requests of the host.

use std::fs;
use std::sync::Arc;

use serde_json::Value;

use super::arguments::MODES;
use super::catalog::{models_json, resolve_model, styles_json};
use super::cli_version::ProtocolPart;
use super::engine::Engine;
use super::hooks::{HookCall, HookDecision};
use super::json::{Object, array, text};
use super::mcp_server::{McpServer, McpStatus};
use super::usage::model_usage;

/// The error response to a control request.
struct OperationError {
    error: String,
    code: Option<&'static str>,
    extra: Object,
}

impl OperationError {
    fn new(error: impl Into<String>) -> Self {
        Self { error: error.into(), code: None, extra: Object::new() }
    }

    fn unsupported(subtype: &str) -> Self {
        let error = format!("Unsupported control request subtype: {subtype}");
        Self::with_code(error, "unsupported_request")
    }

    fn with_code(error: impl Into<String>, code: &'static str) -> Self {
        Self { code: Some(code), ..Self::new(error) }
    }
}

impl From<String> for OperationError {
    fn from(error: String) -> Self {
        Self::new(error)
    }
}

/// The payload of a success response, if it has one.
type OperationResult = Result<Option<Object>, OperationError>;

impl Engine {
    /// Executes a control request, sends the response and performs the follow-up actions.
    pub(super) async fn handle_request(self: &Arc<Self>, frame: &Value) {
        let request = &frame["request"];
        let subtype = text(&request["subtype"]);
        let before = self.state().model.clone();
        let known = self.launch.cli_version.has(ProtocolPart::Operation, subtype);
        let outcome = if known {
            self.run_operation(subtype, request).await
        } else {
            Err(OperationError::unsupported(subtype))
        };
        let done = outcome.is_ok();
        self.respond(text(&frame["request_id"]), subtype, outcome).await;
        if done {
            self.after_operation(subtype, request, &before).await;
        }
    }

    async fn respond(&self, id: &str, subtype: &str, outcome: OperationResult) {
        let response = match outcome {
            Ok(payload) => {
                let response = Object::new().str("subtype", "success").str("request_id", id);
                let response = match payload {
                    Some(payload) => response.raw("response", &payload.done()),
                    None => response,
                };
                // The state for a host that attaches later; always empty here.
                if subtype == "initialize" {
                    response
                        .raw("pending_permission_requests", "[]")
                        .raw("pending_user_dialog_requests", "[]")
                } else {
                    response
                }
            }
            Err(error) => Object::new()
                .str("subtype", "error")
                .str("request_id", id)
                .str("error", &error.error)
                .some_str("error_code", error.code)
                .fields(&error.extra),
        };
        let line = Object::typed("control_response").raw("response", &response.done());
        self.emit(&format!("control_response/{subtype}"), line).await;
    }

    async fn run_operation(self: &Arc<Self>, subtype: &str, request: &Value) -> OperationResult {
        match subtype {
            "initialize" => Ok(Some(self.initialize(request).await)),
            "interrupt" => Ok(Some(self.interrupt(request).await)),
            "set_permission_mode" => self.set_mode(text(&request["mode"])),
            "set_model" => self.set_model(&request["model"]).await,
            "cancel_async_message" => Ok(Some(self.cancel_message(request).await)),
            "stop_task" => {
                self.stop_task(text(&request["task_id"])).await;
                Ok(Some(Object::new()))
            }
            "rewind_files" => Ok(Some(self.rewind(request)?)),
            "rename_session" => {
                let title = text(&request["title"]).to_owned();
                self.emit_system("session_title_changed", Object::new().str("title", &title)).await;
                self.state().title = Some(title);
                Ok(None)
            }
            "reload_skills" => {
                self.emit_commands_changed().await;
                Ok(Some(Object::new().raw("skills", &self.commands_json(true))))
            }
            "mcp_status" | "mcp_reconnect" | "mcp_toggle" | "mcp_set_servers" | "mcp_message" => {
                self.run_server_operation(subtype, request).await
            }
            _ => self.run_query(subtype, request),
        }
    }

    /// Executes operations that only query state or have no visible effect.
    fn run_query(&self, subtype: &str, request: &Value) -> OperationResult {
        let answer = match subtype {
            "get_context_usage" => self.context_usage(),
            "list_models" => Object::new().raw("models", &models_json()),
            "get_binary_version" => Object::new()
                .str("version", &self.launch.version)
                .str("buildTime", "2026-01-01T00:00:00Z")
                .str("oldestDesktopSdk", "0.3.280"),
            "get_session_cost" => {
                Object::new().str("text", &format!("Total cost: ${:.4}", self.state().usage.cost()))
            }
            "get_settings" => self.describe_settings(),
            "get_usage" => self.describe_usage(),
            "get_hooks_listing" => describe_hooks(),
            "list_permission_rules" => self.describe_rules(),
            "reload_output_styles" => Object::new().raw("available_output_styles", &styles_json()),
            "register_repo_root" => {
                let directory = text(&request["directory"]);
                self.state().directories.push(directory.to_owned());
                Object::new().str("directory", directory)
            }
            "read_file" => self.read_file_for_host(text(&request["path"]))?,
            "file_suggestions" => Object::new()
                .raw("suggestions", "[]")
                .str("cwd", &self.launch.cwd.to_string_lossy()),
            "background_tasks" => Object::new(),
            "set_max_thinking_tokens"
            | "seed_read_state"
            | "apply_flag_settings"
            | "set_has_subscribers" => {
                return Ok(None);
            }
            "mcp_read_resource" => {
                let server = text(&request["serverName"]);
                return Err(OperationError::new(format!("Server not found: {server}")));
            }
            "get_task_output" => {
                return Err(OperationError::new("get_task_output: no task with that task_id"));
            }
            _ => return Err(OperationError::unsupported(subtype)),
        };
        Ok(Some(answer))
    }

    async fn after_operation(self: &Arc<Self>, subtype: &str, request: &Value, model_before: &str) {
        match subtype {
            "initialize" => {
                self.send_initialized().await;
                self.start_replay();
            }
            "interrupt" => self.cancel_turn(),
            "set_permission_mode" => self.emit_mode(text(&request["mode"])).await,
            "set_model" => {
                let now = self.state().model.clone();
                if now != model_before {
                    let input = model_switch(model_before, &now);
                    self.run_hooks_in(None, HookCall::for_session("PostModelSwitch", input)).await;
                }
            }
            "register_repo_root" => {
                let input = Object::new()
                    .str("directory", text(&request["directory"]))
                    .str("source", "register_repo_root");
                self.run_hooks_in(None, HookCall::for_session("DirectoryAdded", input)).await;
            }
            "stop_task" if self.has_tasks() => self.emit_status().await,
            "mcp_message" => {
                self.handle_server_message(text(&request["server_name"]), &request["message"])
                    .await;
            }
            _ => {}
        }
    }

    fn has_tasks(&self) -> bool {
        !self.state().tasks.is_empty()
    }

    async fn initialize(self: &Arc<Self>, request: &Value) -> Object {
        {
            let mut state = self.state();
            state.hooks.register(&request["hooks"]);
            for (name, agent) in request["agents"].as_object().into_iter().flatten() {
                state.agents.insert(name.clone(), agent.clone());
            }
            state.forward_subagent_text = request["forwardSubagentText"] == true;
            state.appended_prompt = request["appendSystemPrompt"].as_str().map(str::to_owned);
            state.own_prompt = request["systemPrompt"]
                .as_array()
                .map(|parts| parts.iter().filter_map(Value::as_str).map(str::to_owned).collect());
            state.wants_schema = request["jsonSchema"].is_object();
        }
        self.watch_settings();
        let applied = self.add_handshake_servers(&request["mcpServers"]);
        self.initialize_servers(self.sdk_servers()).await;
        self.announce_replay().await;
        match applied {
            Some(applied) => self.handshake().plain("mcp_servers_applied", applied),
            None => self.handshake(),
        }
    }

    /// Cancels the pending requests of the turn and returns the messages that are still queued. The
    /// turn itself ends after the response.
    async fn interrupt(&self, request: &Value) -> Object {
        let cancelled =
            if request["cancel_queued"] == true { self.clear_queue().await } else { None };
        self.cancel_turn_requests().await;
        let queued: Vec<String> =
            self.state().queue.iter().filter_map(|queued| queued.uuid.clone()).collect();
        let receipt = Object::new().strings("still_queued", &queued);
        match cancelled {
            Some(cancelled) => receipt.strings("cancelled", &cancelled),
            None => receipt,
        }
    }

    async fn clear_queue(&self) -> Option<Vec<String>> {
        let dropped: Vec<String> = {
            let mut state = self.state();
            let queue = std::mem::take(&mut state.queue);
            let (dropped, kept): (Vec<_>, Vec<_>) =
                queue.into_iter().partition(|queued| queued.origin.is_none());
            state.queue = kept.into();
            dropped.into_iter().filter_map(|queued| queued.uuid).collect()
        };
        self.queue_space.notify_one();
        for uuid in &dropped {
            self.emit_lifecycle(uuid, "cancelled").await;
        }
        Some(dropped)
    }

    async fn cancel_message(&self, request: &Value) -> Object {
        let wanted = text(&request["message_uuid"]).to_owned();
        let found = {
            let mut state = self.state();
            let is_it =
                |queued: &super::state::QueuedMessage| queued.uuid.as_ref() == Some(&wanted);
            let at = state.queue.iter().position(is_it);
            at.and_then(|at| state.queue.remove(at)).is_some()
        };
        if found {
            self.queue_space.notify_one();
            self.emit_lifecycle(&wanted, "cancelled").await;
        }
        let receipt = Object::new().plain("cancelled", found);
        if found && self.launch.cli_version.names_cancelled_message() {
            receipt.str("message_uuid", &wanted)
        } else {
            receipt
        }
    }

    fn set_mode(&self, mode: &str) -> OperationResult {
        if !MODES.contains(&mode) {
            let error = format!("Cannot set permission mode: must be one of {}", MODES.join(", "));
            return Err(OperationError::with_code(error, "invalid_mode"));
        }
        let mut state = self.state();
        if mode == "plan" && state.mode != "plan" {
            state.mode_before_plan = Some(state.mode.clone());
        }
        mode.clone_into(&mut state.mode);
        Ok(Some(Object::new().str("mode", mode)))
    }

    pub(super) async fn emit_mode(&self, mode: &str) {
        self.emit_system("status", Object::new().null("status").str("permissionMode", mode)).await;
    }

    async fn set_model(self: &Arc<Self>, model: &Value) -> OperationResult {
        let before = self.state().model.clone();
        let wanted = match model {
            Value::Null => self.launch.model.as_deref().unwrap_or("default"),
            Value::String(name) => name,
            _ => {
                let error = "set_model: model must be a string";
                let extra = Object::new().str("model", &before);
                return Err(OperationError {
                    extra,
                    ..OperationError::with_code(error, "invalid_request")
                });
            }
        };
        let now = resolve_model(Some(wanted));
        if now != before {
            let input = model_switch(&before, &now);
            let outcome =
                self.run_hooks_in(None, HookCall::for_session("PreModelSwitch", input)).await;
            // `continue: false` alone does not prevent the switch.
            if let Some(HookDecision::Deny(reason)) = outcome.decision {
                let error = format!("Model switch blocked by a PreModelSwitch hook: {reason}");
                let extra = Object::new().str("model", &before);
                return Err(OperationError {
                    extra,
                    ..OperationError::with_code(error, "blocked_by_hook")
                });
            }
        }
        let reports_switch = {
            let mut state = self.state();
            state.model.clone_from(&now);
            state.results > 0
        };
        if reports_switch {
            self.emit_local_output(&format!("Set model to `{now}`")).await;
        }
        Ok(Some(Object::new().str("model", &now)))
    }

    async fn run_server_operation(
        self: &Arc<Self>,
        subtype: &str,
        request: &Value,
    ) -> OperationResult {
        let name = text(&request["serverName"]);
        let named = self.state().servers.iter().find(|server| server.name == name).cloned();
        match (subtype, named) {
            ("mcp_status", _) => {
                self.connect_pending();
                let servers =
                    array(self.state().servers.iter().map(|server| server.status_entry()));
                Ok(Some(Object::new().raw("mcpServers", &servers)))
            }
            ("mcp_set_servers", _) => Ok(Some(self.set_servers(&request["servers"]))),
            ("mcp_message", _) => Ok(None),
            (_, None) => Err(OperationError::new(format!("Server not found: {name}"))),
            ("mcp_reconnect", Some(server)) if server.is_sdk() => Err(OperationError::new(
                format!("{name} runs in the host and cannot be reconnected"),
            )),
            ("mcp_reconnect", Some(server)) => {
                self.connect_external(&server).await;
                Ok(None)
            }
            (_, Some(server)) => {
                let enabled = request["enabled"] != false;
                server.set_status(if enabled { McpStatus::Connected } else { McpStatus::Disabled });
                Ok(None)
            }
        }
    }

    /// Replaces the servers of the host and those that were set before. The next turn lists the
    /// tools of the new ones.
    fn set_servers(&self, servers: &Value) -> Object {
        let wanted = servers.as_object().cloned().unwrap_or_default();
        let mut state = self.state();
        let stays = |server: &McpServer| match wanted.get(&server.name) {
            Some(config) => server.is_replaceable() && server.is_configured_as(config),
            None => !server.is_replaceable(),
        };
        let gone = state.servers.iter().filter(|server| server.is_replaceable() && !stays(server));
        let removed: Vec<String> = gone.map(|server| server.name.clone()).collect();
        state.servers.retain(|server| stays(server));
        let known: Vec<String> = state.servers.iter().map(|server| server.name.clone()).collect();
        let new = wanted.iter().filter(|(name, _)| !known.contains(name));
        let added: Vec<String> = new
            .map(|(name, config)| {
                state.servers.push(Arc::new(McpServer::new_dynamic(name, config)));
                name.clone()
            })
            .collect();
        Object::new().strings("added", &added).strings("removed", &removed).raw("errors", "{}")
    }

    async fn emit_commands_changed(&self) {
        if !self.custom_commands().is_empty() {
            let commands = self.commands_json(false);
            self.emit_system("commands_changed", Object::new().raw("commands", &commands)).await;
        }
    }

    fn read_file_for_host(&self, path: &str) -> Result<Object, OperationError> {
        let full = self.resolve(path, &self.state());
        let bytes =
            fs::read(&full).map_err(|error| OperationError::new(format!("read_file: {error}")))?;
        let contents = String::from_utf8_lossy(&bytes);
        Ok(Object::new()
            .str("contents", &contents)
            .str("absPath", &full.to_string_lossy())
            .plain("lossy", matches!(contents, std::borrow::Cow::Owned(_)))
            .str("requested_path", path))
    }

    fn describe_settings(&self) -> Object {
        let applied = Object::new()
            .str("model", &self.state().model)
            .str("effort", "medium")
            .null("advisor")
            .plain("ultracode", false)
            .plain("ultracodeRequested", false)
            .plain("ultracodeAvailable", true)
            .plain("ultrathinkAvailable", false)
            .plain("outsideFileToolReadsBlocked", false)
            .plain("outsideFileToolWritesBlocked", false)
            .plain("outsideBlocksCountLaunchFoldersOnly", false)
            .plain("launchEnvLeftOwnFilesInPlace", false);
        Object::new().raw("effective", "{}").raw("sources", "[]").raw("applied", &applied.done())
    }

    fn describe_usage(&self) -> Object {
        let session = {
            let state = self.state();
            Object::new()
                .plain("total_cost_usd", state.usage.cost())
                .plain("total_api_duration_ms", 0)
                .plain("total_duration_ms", self.started.elapsed().as_millis())
                .plain("total_lines_added", 0)
                .plain("total_lines_removed", 0)
                .raw("model_usage", &model_usage(&state.usage.total))
        };
        Object::new()
            .raw("session", &session.done())
            .null("subscription_type")
            .plain("rate_limits_available", false)
            .null("rate_limits")
            .null("behaviors")
    }

    fn describe_rules(&self) -> Object {
        let state = Object::new()
            .raw("rules", "[]")
            .raw("workspaceDirectories", "[]")
            .str("originalCwd", &self.launch.cwd.to_string_lossy())
            .plain("managedOnly", false);
        Object::new().raw("state", &state.done())
    }
}

fn describe_hooks() -> Object {
    let event = Object::new()
        .str("name", "PreToolUse")
        .str("summary", "Before a tool")
        .plain("supportsMatcher", true);
    let policy = Object::new()
        .plain("disabledByPolicy", false)
        .plain("managedOnly", false)
        .plain("pluginOnly", false)
        .plain("allDisabled", false)
        .plain("policyHookCount", 0);
    Object::new()
        .raw("events", "[]")
        .raw("hooks", "[]")
        .raw("eventCatalog", &array([event.done()]))
        .raw("policy", &policy.done())
}

/// Returns the input of the hooks around a model switch.
fn model_switch(from: &str, to: &str) -> Object {
    Object::new()
        .str("from_model", from)
        .str("to_model", to)
        .str("requested_model", to)
        .str("source", "sdk")
        .plain("context_tokens", 15)
        .plain("prompt_cache_warm", true)
        .str("cache_ttl", "5m")
        .plain("estimated_cache_write_usd", 0)
        .str("pricing", "catalog")
}
