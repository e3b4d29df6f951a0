//! The models, commands and agents, and the messages that list them.

use std::fs;
use std::path::Path;

use super::engine::Engine;
use super::json::{Object, array, quoted};
use super::scope::Scope;
use super::state::lock;

const MODEL: &str = "claude-opus-5-5";

/// Alias, full name, display name.
const MODELS: [(&str, &str, &str); 5] = [
    ("default", MODEL, "Default (recommended)"),
    ("opus", MODEL, "Opus"),
    ("fable", "claude-fable-5-2", "Fable"),
    ("sonnet", "claude-sonnet-5-5", "Sonnet"),
    ("haiku", "claude-haiku-5-5", "Haiku"),
];

/// Name, description, model.
pub(super) const AGENTS: [(&str, &str, Option<&str>); 6] = [
    ("claude", "Takes any task", None),
    ("claude-code-guide", "Answers questions about the CLI", Some("haiku")),
    ("Explore", "Looks for code", Some("inherit")),
    ("general-purpose", "Takes tasks of several steps", None),
    ("Plan", "Plans changes", Some("inherit")),
    ("statusline-setup", "Sets the status line up", Some("sonnet")),
];

/// Name, description, argument hint, aliases, whether it is a skill.
const COMMANDS: [(&str, &str, &str, &[&str], bool); 9] = [
    ("code-review", "Reviews a change", "[<target>]", &["review"], true),
    ("debug", "Looks for the cause of a problem", "[issue description]", &[], true),
    ("simplify", "Makes changed code simpler", "[<target>]", &[], true),
    ("clear", "Begins a new conversation", "[name]", &["reset", "new"], false),
    ("compact", "Puts a summary in place of the conversation", "<instructions>", &[], false),
    ("config", "Sets a setting", "key=value", &["settings"], false),
    ("context", "Shows what fills the context", "", &[], false),
    ("init", "Writes instructions for the project", "", &[], false),
    ("model", "Sets the model", "[model]", &[], false),
];

const STYLES: [&str; 5] = ["default", "Proactive", "Concise", "Explanatory", "Learning"];

const CAPABILITIES: [&str; 20] = [
    "interrupt_receipt_v1",
    "interrupt_cancel_queued_v1",
    "interrupt_send_now_v1",
    "interrupt_requeue_taken_v1",
    "msg_lifecycle_v1",
    "request_marker_lists_v1",
    "ask_user_question_unanswered_v1",
    "lifecycle_wakeup_source_v1",
    "sdk_mcp_tools_list_changed",
    "sdk_mcp_manifests",
    "mcp_read_resource_v1",
    "mcp_tool_ui_meta_v1",
    "withdrawn_files_note_v2",
    "silent_resend_files_v1",
    "ui_surface_v1",
    "ui_pane_widget_v1",
    "voice_call_talk_line_v1",
    "mcp_call_check_permissions_v1",
    "mcp_call_result_not_for_model_v1",
    "reload_plugins_refuse_if_busy_v1",
];

/// The number of capabilities in the handshake, from the end of the list.
const HANDSHAKE_CAPABILITIES: usize = 6;

const STARTUP_MARKS: [&str; 27] = [
    "init_after_graceful_shutdown",
    "init_network_configured",
    "preAction_after_init",
    "preAction_after_migrations",
    "preAction_after_remote_settings",
    "action_handler_start",
    "action_before_mcp_policy_wait",
    "action_before_permission_context",
    "action_after_input_prompt",
    "action_before_setup",
    "action_after_setup",
    "action_commands_loaded",
    "action_mcp_configs_loaded",
    "action_before_listed_mods",
    "action_after_plugins_init",
    "before_validateForceLoginOrg",
    "before_connectMcp",
    "after_connectMcp_claudeai",
    "before_print_import",
    "after_print_import",
    "runHeadless_entry",
    "after_grove_check",
    "before_loadInitialMessages",
    "after_loadInitialMessages",
    "after_modelStrings",
    "before_runHeadlessStreaming",
    "stdin_listen_started",
];

/// Returns the full name of a model.
pub(super) fn resolve_model(name: Option<&str>) -> String {
    let Some(name) = name else { return MODEL.to_owned() };
    let known = MODELS.iter().find(|(short, _, _)| *short == name);
    known.map_or_else(|| name.to_owned(), |(_, full, _)| (*full).to_owned())
}

/// A custom command or skill of the project.
pub(super) struct CustomCommand {
    pub(super) name: String,
    description: String,
    pub(super) body: String,
}

impl Engine {
    /// Returns the process ID, or the value of `CLAUDE_SIM_PID`.
    fn pid(&self) -> u32 {
        let configured = self.launch.var("CLAUDE_SIM_PID").and_then(|pid| pid.parse().ok());
        configured.unwrap_or_else(std::process::id)
    }

    /// Returns the custom commands and skills of the project.
    pub(super) fn custom_commands(&self) -> Vec<CustomCommand> {
        let own = self.launch.cwd.join(".claude");
        let mut found = Vec::new();
        for entry in file_names(&own.join("commands")) {
            if let Some(name) = entry.strip_suffix(".md") {
                found.extend(parse_custom_command(&own.join("commands").join(&entry), name));
            }
        }
        for entry in file_names(&own.join("skills")) {
            found.extend(parse_custom_command(
                &own.join("skills").join(&entry).join("SKILL.md"),
                &entry,
            ));
        }
        found
    }

    pub(super) fn commands_json(&self, skills_only: bool) -> String {
        let custom = self.custom_commands();
        let custom = custom.iter().map(|command| {
            Object::new()
                .str("name", &command.name)
                .str("description", &format!("{} (project)", command.description))
                .str("argumentHint", "")
                .done()
        });
        let own = COMMANDS.iter().filter(|(.., skill)| *skill || !skills_only);
        let own = own.map(|(name, description, hint, aliases, _)| {
            let mut entry = Object::new()
                .str("name", name)
                .str("description", description)
                .str("argumentHint", hint);
            if !aliases.is_empty() {
                entry = entry.strings("aliases", aliases);
            }
            entry.plain("builtin", true).done()
        });
        array(custom.chain(own).collect::<Vec<_>>())
    }

    fn command_names(&self, skills_only: bool) -> Vec<String> {
        let custom = self.custom_commands().into_iter().map(|command| command.name);
        let own = COMMANDS.iter().filter(|(.., skill)| *skill || !skills_only);
        custom.chain(own.map(|(name, ..)| (*name).to_owned())).collect()
    }

    fn key_source(&self) -> &'static str {
        if self.launch.var("CLAUDE_SIM_LOGIN") == Some("none") {
            "none"
        } else {
            "ANTHROPIC_API_KEY"
        }
    }

    /// Returns the response to `initialize`.
    pub(super) fn handshake(&self) -> Object {
        let agents = self.agents_json();
        let state = self.state();
        let account = Object::new()
            .str("tokenSource", "none")
            .str("apiKeySource", self.key_source())
            .str("apiProvider", "firstParty");
        Object::new()
            .raw("commands", &self.commands_json(false))
            .raw("agents", &agents)
            .str("output_style", "default")
            .strings("available_output_styles", &STYLES)
            .str("user_output_styles_dir", &format!("{}/output-styles", self.config_directory()))
            .raw("models", &models_json())
            .raw("account", &account.done())
            .plain("pid", self.pid())
            .str("claude_code_version", &self.launch.version)
            .str("current_permission_mode", &state.mode)
            .plain("hook_on_failure_supported", true)
            .plain("hooks_when_unanswered_kept", 0)
            .plain("other_hook_ask_outranks_host", true)
            .raw("feedback_mode", r#"{"kind":"disabled"}"#)
            .plain("analytics_disabled", true)
            .plain("remote_control_auto_enable", false)
            .plain("remote_control_auto_connect_default", false)
            .plain("remote_control_available", false)
            .plain("remote_control_auto_on_by_default", false)
            .plain("ide_rc_auto_enable_gate", false)
            .str("fast_mode_state", "off")
            .str("fast_mode_disabled_reason", "sdk_opt_in_required")
            .str("session_state", state.status.name())
            .strings("capabilities", &CAPABILITIES[CAPABILITIES.len() - HANDSHAKE_CAPABILITIES..])
    }

    fn agents_json(&self) -> String {
        let state = self.state();
        let own = AGENTS.iter().map(|(name, description, model)| {
            Object::new()
                .str("name", name)
                .str("description", description)
                .some_str("model", *model)
                .done()
        });
        let hosts = state.agents.iter().map(|(name, agent)| {
            Object::new()
                .str("name", name)
                .str("description", agent["description"].as_str().unwrap_or_default())
                .some_str("model", agent["model"].as_str())
                .done()
        });
        array(own.chain(hosts).collect::<Vec<_>>())
    }

    /// Writes `system/init`, with which every turn starts.
    pub(super) async fn emit_init(&self, scope: &Scope) {
        if !self.writes_stream_json() {
            return;
        }
        let agents = self.agent_names();
        let commands = self.command_names(false);
        let skills = self.command_names(true);
        let line = {
            let state = self.state();
            let cwd = self.launch.cwd.to_string_lossy();
            let memory =
                Object::new().str("auto", &format!("{}/memory/", self.project_directory()));
            let servers = array(state.servers.iter().map(|server| server.init_entry()));
            Object::typed("system")
                .str("subtype", "init")
                .str("cwd", &self.working_directory(&state))
                .str("session_id", &state.session_id)
                .strings("tools", &self.tool_names(&state))
                .raw("mcp_servers", &servers)
                .str("model", &state.model)
                .str("permissionMode", &state.mode)
                .strings("slash_commands", &commands)
                .strings("terminal_slash_commands", &["color"])
                .str("apiKeySource", self.key_source())
                .str("claude_code_version", &self.launch.version)
                .str("output_style", "default")
                .strings("agents", &agents)
                .strings("skills", &skills)
                .raw("plugins", PLUGINS)
                .strings("capabilities", &CAPABILITIES)
                .plain("analytics_disabled", true)
                .plain("product_feedback_disabled", true)
                .str("uuid", &self.ids.uuid())
                .raw("memory_paths", &memory.done())
                .str("original_cwd", &cwd)
                .strings("additional_directories", &state.directories)
                .str("messaging_socket_path", "")
                .str("fast_mode_state", "off")
                .str("fast_mode_disabled_reason", "sdk_opt_in_required")
                .plain("per_turn_effort_active", true)
                .plain("ultrathink_available", false)
                .plain("ultrathink_typed_raises", false)
                .str("view_mode", "default")
        };
        let uuids = lock(&scope.uuids).clone();
        let line = if uuids.is_empty() { line } else { line.strings("user_message_uuids", &uuids) };
        self.emit("system/init", line).await;
    }

    /// Writes the startup marks, if the host has enabled that.
    pub(super) async fn emit_startup_marks(&self) {
        if !self.launch.is_enabled("CLAUDE_CODE_SDK_READS_STARTUP_MARKS") {
            return;
        }
        for mark in STARTUP_MARKS {
            self.emit("keep_alive", Object::typed("keep_alive").str("startup_mark", mark)).await;
        }
    }
}

const PLUGINS: &str =
    r#"[{"name":"cc-plugin-agents-md","path":"builtin","source":"cc-plugin-agents-md@builtin"}]"#;

pub(super) fn styles_json() -> String {
    array(STYLES.map(quoted))
}

pub(super) fn models_json() -> String {
    array(MODELS.map(|(value, full, shown)| {
        Object::new()
            .str("value", value)
            .str("resolvedModel", full)
            .str("displayName", shown)
            .str("description", full)
            .plain("supportsEffort", true)
            .strings("supportedEffortLevels", &["low", "medium", "high", "xhigh", "max"])
            .plain("supportsAdaptiveThinking", true)
            .plain("supportsFastMode", true)
            .plain("supportsAutoMode", true)
            .plain("supportsThinkingOff", false)
            .done()
    }))
}

fn file_names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Parses a file with optional front matter between two lines of `---`.
fn parse_custom_command(path: &Path, name: &str) -> Option<CustomCommand> {
    let file = fs::read_to_string(path).ok()?;
    let (head, body) = match file.strip_prefix("---\n").and_then(|rest| rest.split_once("\n---\n"))
    {
        Some((head, body)) => (head, body),
        None => ("", file.as_str()),
    };
    let described = head.lines().find_map(|line| line.strip_prefix("description:"));
    let first = body.lines().next().unwrap_or_default();
    Some(CustomCommand {
        name: name.to_owned(),
        description: described.unwrap_or(first).trim().to_owned(),
        body: body.to_owned(),
    })
}
