//! Encodes the settings as arguments.

use std::path::Path;

use super::extensions::{PluginDelivery, Skills};
use super::include::{DebugLog, Include};
use super::sandbox::settings_with_sandbox;
use super::settings::{Secret, Settings, SettingsSource, SystemPromptBase, ToolSet};
use super::start::Origin;
use super::thinking::Mode;
use super::{Form, Needs, mcp_servers};
use crate::json::Json;

/// Returns the arguments, in the same order for equal settings.
pub(super) fn arguments(settings: &Settings, form: &Form, needs: &Needs) -> Vec<String> {
    let mut argv = Argv::default();
    match form {
        Form::Session => {
            argv.words(["--output-format", "stream-json", "--input-format", "stream-json"]);
            // Without it, the CLI may replay a pending tool call of an earlier run before it knows which
            // hooks and callbacks decide about it.
            argv.words(["--verbose", "--await-initialize"]);
        }
        Form::Print { .. } => {
            argv.words(["--print", "--output-format", "stream-json", "--verbose"]);
        }
    }
    prompts(&mut argv, settings, form);
    tools(&mut argv, settings);
    permissions(&mut argv, settings, needs);
    model(&mut argv, settings);
    session(&mut argv, settings, needs);
    surroundings(&mut argv, settings, form, needs);
    for (flag, value) in &settings.extra_args {
        let flag = flag.trim_start_matches('-');
        match value {
            Some(value) => argv.value(&format!("--{flag}"), value.expose()),
            None => argv.words([format!("--{flag}")]),
        }
    }
    if let Form::Print { prompt } = form {
        argv.words(["--".to_owned(), prompt.clone()]);
    }
    argv.0
}

fn prompts(argv: &mut Argv, settings: &Settings, form: &Form) {
    // A session sends these in the handshake: command lines are public on the machine and limited in
    // size.
    if let Form::Print { .. } = form {
        if let Some(SystemPromptBase::Text(text)) = &settings.system_prompt {
            argv.value("--system-prompt", text);
        }
        let append = settings.append_system_prompt.as_ref();
        argv.option("--append-system-prompt", append.map(Secret::expose));
        argv.option("--json-schema", settings.output_schema.as_ref().map(Json::text));
        printed(argv, settings);
    }
    if let Some(SystemPromptBase::File(path)) = &settings.system_prompt {
        argv.path("--system-prompt-file", path);
    }
    argv.flag("--include-partial-messages", settings.include.contains(Include::PARTIAL_MESSAGES));
    argv.flag("--include-hook-events", settings.include.contains(Include::HOOK_EVENTS));
}

/// Adds the options that have a flag and a field in the handshake.
fn printed(argv: &mut Argv, settings: &Settings) {
    let yes = |choice: Option<bool>| choice == Some(true);
    let excludes = yes(settings.exclude_dynamic_sections);
    argv.flag("--exclude-dynamic-system-prompt-sections", excludes);
    let on_or_off = |on| if on { "on" } else { "off" };
    argv.option("--system-prompt-snapshot", settings.system_prompt_snapshot.map(on_or_off));
    argv.option("--agents", settings.agents.json().as_ref().map(Json::text));
    let subagent_text = settings.include.contains(Include::SUBAGENT_TEXT);
    argv.flag("--forward-subagent-text", subagent_text);
    let suggests = settings.include.contains(Include::PROMPT_SUGGESTIONS);
    argv.option("--prompt-suggestions", suggests.then_some("true"));
}

fn tools(argv: &mut Argv, settings: &Settings) {
    match &settings.tools {
        Some(ToolSet::ClaudeCode) => argv.value("--tools", "default"),
        Some(ToolSet::Only(names)) => argv.value("--tools", &joined(names)),
        None => {}
    }
    let skills = settings.skills.iter().flat_map(Skills::rules);
    let allowed: Vec<String> = settings.allowed_tools.iter().cloned().chain(skills).collect();
    argv.list("--allowedTools", &allowed);
    argv.list("--disallowedTools", &settings.disallowed_tools);
}

fn permissions(argv: &mut Argv, settings: &Settings, needs: &Needs) {
    argv.option("--permission-mode", settings.permission_mode.as_ref().map(AsRef::as_ref));
    argv.flag("--allow-dangerously-skip-permissions", settings.allow_dangerously_skip_permissions);
    if needs.permission_callback {
        argv.value("--permission-prompt-tool", "stdio");
    }
    argv.option("--permission-prompt-tool", settings.permission_prompt_tool.as_deref());
    let prompts = settings.permission_prompts.as_ref();
    argv.option("--permission-prompts", prompts.map(AsRef::as_ref));
}

fn model(argv: &mut Argv, settings: &Settings) {
    argv.option("--model", settings.model.as_deref());
    argv.option("--fallback-model", settings.fallback_model.as_deref());
    argv.option("--max-turns", settings.max_turns.map(|turns| turns.to_string()).as_deref());
    let budget = settings.max_budget_usd.map(|dollars| dollars.to_string());
    argv.option("--max-budget-usd", budget.as_deref());
    let tokens = settings.task_budget.map(|tokens| tokens.to_string());
    argv.option("--task-budget", tokens.as_deref());
    thinking(argv, settings);
    argv.option("--effort", settings.effort.as_ref().map(AsRef::as_ref));
    argv.list("--betas", &settings.betas);
    argv.option("--agent", settings.agent.as_deref());
}

fn thinking(argv: &mut Argv, settings: &Settings) {
    match settings.thinking.as_ref().map(|thinking| thinking.mode) {
        Some(Mode::Adaptive) => argv.value("--thinking", "adaptive"),
        Some(Mode::Disabled) => argv.value("--thinking", "disabled"),
        Some(Mode::Budget(tokens)) => argv.value("--max-thinking-tokens", &tokens.to_string()),
        None => {}
    }
    let display = settings.thinking.as_ref().and_then(|thinking| thinking.display.as_ref());
    argv.option("--thinking-display", display.map(AsRef::as_ref));
}

fn session(argv: &mut Argv, settings: &Settings, needs: &Needs) {
    let start = &settings.start;
    match &start.origin {
        Origin::New => {}
        Origin::Latest => argv.words(["--continue"]),
        Origin::Session(id) => argv.value("--resume", id.as_str()),
    }
    argv.option("--resume-session-at", start.at.as_ref().map(AsRef::as_ref));
    argv.option("--resume-drops-turn", start.dropping_turn.as_ref().map(AsRef::as_ref));
    argv.flag("--fork-session", start.fork);
    argv.option("--session-id", start.id.as_ref().map(AsRef::as_ref));
    argv.flag("--no-session-persistence", settings.persist_session == Some(false));
    argv.flag("--session-mirror", needs.session_mirror);
}

fn surroundings(argv: &mut Argv, settings: &Settings, form: &Form, needs: &Needs) {
    for directory in &settings.add_dirs {
        argv.path("--add-dir", directory);
    }
    if let Some(root) = &settings.project_config_root {
        argv.path("--project-config-root", root);
    }
    match settings_with_sandbox(settings) {
        Some(SettingsSource::Value(value)) => argv.value("--settings", value.text()),
        Some(SettingsSource::File(path)) => argv.path("--settings", &path),
        None => {}
    }
    let managed = settings.managed_settings.as_ref();
    argv.option("--managed-settings", managed.map(|settings| settings.as_json().text()));
    if let Some(sources) = &settings.setting_sources {
        argv.value("--setting-sources", &joined(sources));
    }
    for file in &settings.mcp_config_files {
        argv.path("--mcp-config", file);
    }
    if !mcp_servers::are_in_handshake(settings, form)
        && let Some(config) = mcp_servers::config(settings, needs)
    {
        argv.value("--mcp-config", config.text());
    }
    argv.flag("--strict-mcp-config", settings.strict_mcp_config);
    plugins(argv, settings);
    match &settings.debug {
        DebugLog::Off => {}
        DebugLog::Default => argv.words(["--debug"]),
        DebugLog::File(file) => argv.path("--debug-file", file),
    }
}

fn plugins(argv: &mut Argv, settings: &Settings) {
    if settings.plugin_delivery == PluginDelivery::Handshake {
        return;
    }
    for plugin in &settings.plugins {
        let without = plugin.skip_mcp_discovery;
        let flag = if without { "--plugin-dir-no-mcp" } else { "--plugin-dir" };
        argv.path(flag, &plugin.path);
    }
}

#[derive(Default)]
struct Argv(Vec<String>);

impl Argv {
    fn words(&mut self, words: impl IntoIterator<Item = impl Into<String>>) {
        self.0.extend(words.into_iter().map(Into::into));
    }

    fn flag(&mut self, name: &str, set: bool) {
        if set {
            self.words([name]);
        }
    }

    /// Adds a value in the same argument as its flag, because a separate value that starts with `-` or
    /// is empty would be misread.
    fn value(&mut self, name: &str, value: &str) {
        self.words([format!("{name}={value}")]);
    }

    fn option(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }

    fn path(&mut self, name: &str, path: &Path) {
        self.value(name, &path.to_string_lossy());
    }

    fn list(&mut self, name: &str, entries: &[String]) {
        if !entries.is_empty() {
            self.value(name, &joined(entries));
        }
    }
}

/// The entries with commas between them.
fn joined(entries: &[String]) -> String {
    let mut joined = String::new();
    for (at, entry) in entries.iter().enumerate() {
        joined.push_str(if at == 0 { "" } else { "," });
        joined.push_str(entry);
    }
    joined
}
