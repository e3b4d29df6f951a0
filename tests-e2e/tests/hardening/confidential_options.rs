//! Every option that can hold a secret or a private text.

use std::collections::BTreeMap;

use claude_agent_kit::mcp::{RemoteServer, StdioServer};
use claude_agent_kit::settings::{CliSettings, Sandbox};
use claude_agent_kit::transport::Wrapped;
use claude_agent_kit::{AgentDefinition, Conversation, Json, Options, SystemPrompt};
use serde_json::json;

/// The kind of confidential value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Confidentiality {
    /// A key: masked, also where the CLI prints it.
    Key,
    /// A text of the host: never printed by the SDK. The CLI may print it.
    Text,
}

/// How a value is passed to the CLI.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Channel {
    /// In a way that other users of the machine cannot read.
    Hidden,
    /// On the command line, because the CLI accepts it nowhere else.
    Arguments,
    /// Not at all in these tests.
    Nowhere,
}

/// An option, and how a value is put into it.
pub(crate) struct ConfidentialOption {
    pub(crate) name: &'static str,
    pub(crate) confidentiality: Confidentiality,
    pub(crate) channel: Channel,
    pub(crate) set: fn(Options, &str) -> Options,
}

/// Returns an option that holds a key.
fn key(
    name: &'static str,
    channel: Channel,
    set: fn(Options, &str) -> Options,
) -> ConfidentialOption {
    ConfidentialOption { name, confidentiality: Confidentiality::Key, channel, set }
}

/// Returns an option that holds a text.
fn text(
    name: &'static str,
    channel: Channel,
    set: fn(Options, &str) -> Options,
) -> ConfidentialOption {
    ConfidentialOption { name, confidentiality: Confidentiality::Text, channel, set }
}

pub(crate) fn all() -> Vec<ConfidentialOption> {
    let mut all = keys();
    all.extend(servers());
    all.extend(texts());
    all
}

fn keys() -> Vec<ConfidentialOption> {
    use Channel::{Arguments, Hidden, Nowhere};
    vec![
        key("env", Hidden, |options, mark| options.env("SOME_SETTING", mark)),
        key("env", Hidden, |options, mark| options.env("ANTHROPIC_API_KEY", mark)),
        key("add_arg", Arguments, |options, mark| options.add_arg(("some-flag", mark))),
        key("settings", Arguments, |options, mark| {
            let env = BTreeMap::from([("X".to_owned(), mark.to_owned())]);
            options.settings(CliSettings::default().env(env))
        }),
        key("settings", Arguments, |options, mark| {
            options.settings(CliSettings::default().api_key_helper(format!("echo {mark}")))
        }),
        key("settings", Arguments, |options, mark| {
            options.settings(json!({"deep": {"list": [{"clientSecret": mark}]}}))
        }),
        key("managed_settings", Arguments, |options, mark| {
            options.managed_settings(Json::from(json!({"env": {"X": mark}})))
        }),
        key("executable_args", Nowhere, |options, mark| {
            options.executable(["node".to_owned(), format!("--key={mark}")])
        }),
        key("transport", Nowhere, |options, mark| {
            options.transport(Wrapped::command("false", ["-e".to_owned(), format!("KEY={mark}")]))
        }),
    ]
}

fn servers() -> Vec<ConfidentialOption> {
    use Channel::{Arguments, Hidden};
    const ADDRESS: &str = "http://127.0.0.1:1/";
    vec![
        key("mcp", Arguments, |options, mark| {
            let server =
                RemoteServer::http(ADDRESS).header("Authorization", format!("Bearer {mark}"));
            options.mcp("mine", server)
        }),
        key("mcp", Arguments, |options, mark| {
            options.mcp("mine", RemoteServer::http(format!("http://me:{mark}@127.0.0.1:1/")))
        }),
        key("mcp", Arguments, |options, mark| {
            options.mcp("mine", RemoteServer::sse(format!("{ADDRESS}?access={mark}")))
        }),
        key("mcp", Arguments, |options, mark| {
            options.mcp("mine", StdioServer::new("false").env("X", mark))
        }),
        key("mcp", Arguments, |options, mark| {
            options.mcp("mine", StdioServer::new("false").args(["--token", mark]))
        }),
        key("mcp", Arguments, |options, mark| {
            options.mcp("mine", json!({"command": "false", "env": {"X": mark}}))
        }),
        key("agents", Hidden, |options, mark| {
            let server = json!({"mine": {"type": "http", "url": ADDRESS, "headers": {"X": mark}}});
            let mut agent = AgentDefinition::new("Helps", "Help.");
            agent.mcp_servers = vec![Json::from(server)].into();
            options.agents([("helper", agent)])
        }),
    ]
}

fn texts() -> Vec<ConfidentialOption> {
    use Channel::{Arguments, Hidden};
    vec![
        text("system_prompt", Hidden, |options, mark| options.system_prompt(mark)),
        text("system_prompt", Hidden, |options, mark| {
            options.system_prompt(SystemPrompt::cached(mark, mark))
        }),
        text("append_system_prompt", Hidden, |options, mark| {
            options.system_prompt(SystemPrompt::default().append(mark))
        }),
        text("plan_mode_instructions", Hidden, |options, mark| {
            options.plan_mode_instructions(mark)
        }),
        text("title", Hidden, |options, mark| {
            options.conversation(Conversation::new().title(mark))
        }),
        text("agents", Hidden, |options, mark| {
            options.agents([("helper", AgentDefinition::new("Helps", mark))])
        }),
        text("sandbox", Arguments, |options, mark| {
            options.sandbox(Sandbox::default().set("new", Json::from(mark)))
        }),
    ]
}

/// Setters whose values may be shown, such as names and paths. Switches, numbers and durations hold
/// no text and are not listed.
pub(crate) const PUBLIC_SETTERS: &str = "
    add_dir agent allowed_tools at betas cli_path client_app conversation cwd debug disallowed_tools
    dropping_turn effort environment executable fallback_model fork fork_id mcp_config_files mcp_delivery model
    output_schema permission_mode permission_prompt_tool permission_prompts plugin_delivery plugins
    project_config_root question_preview resume resume_or_start setting_sources skills store thinking
    tool_aliases tools user wait_for_background with_id";

/// Setters of callbacks: their inputs and outputs are tested in `conversation_content_is_never_shown`.
pub(crate) const CALLBACK_SETTERS: &str = "
    answer_as approvals ask_user ask_user_blocking can_use_tool can_use_tool_blocking group on on_blocking
    on_elicitation on_elicitation_blocking on_stderr on_user_dialog on_user_dialog_blocking
    on_warning";
