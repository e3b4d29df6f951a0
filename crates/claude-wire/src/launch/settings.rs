//! The settings of the host for the CLI.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::control::PermissionMode;
use crate::json::{Json, Map};
use crate::launch::{
    Agents, CliSettings, DebugLog, Effort, EnvironmentPolicy, Include, McpDelivery, Plugin,
    PluginDelivery, Sandbox, Skills, Start, Thinking,
};
use crate::schema::Encode;

/// A value that is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Returns the value.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl<T: Into<String>> From<T> for Secret {
    fn from(value: T) -> Self {
        Self(value.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The settings of the host for the CLI. Absent settings leave the decision to the CLI.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The model.
    pub model: Option<String>,
    /// The models to fall back to.
    pub fallback_model: Option<String>,
    /// The maximum number of model responses in a turn.
    pub max_turns: Option<u32>,
    /// The maximum cost of a run in US dollars.
    pub max_budget_usd: Option<f64>,
    /// The token budget that the model is given for its task.
    pub task_budget: Option<u64>,
    /// Whether the model thinks before it answers.
    pub thinking: Option<Thinking>,
    /// The effort level.
    pub effort: Option<Effort>,
    /// The system prompt.
    pub system_prompt: Option<SystemPromptBase>,
    /// The text that is appended to the system prompt. Never printed.
    pub append_system_prompt: Option<Secret>,
    /// Whether machine-specific sections are in the first message instead of the default system prompt.
    pub exclude_dynamic_sections: Option<bool>,
    /// Whether the system prompt is recorded once and then reused unchanged.
    pub system_prompt_snapshot: Option<bool>,
    /// The instructions for plan mode.
    pub plan_mode_instructions: Option<Secret>,
    /// Whether prompts are sent verbatim, without commands and mentions.
    pub verbatim_prompts: bool,
    /// Messages that the CLI sends on request only.
    pub include: Include,
    /// The agent of the main conversation.
    pub agent: Option<String>,
    /// The agents to which the model can delegate tasks.
    pub agents: Agents,
    /// Whether an interrupt leaves background tasks running.
    pub per_task_stop_affordance: Option<bool>,
    /// The skills that the model may use without asking.
    pub skills: Option<Skills>,
    /// Plugins.
    pub plugins: Vec<Plugin>,
    /// How plugins are passed to the CLI.
    pub plugin_delivery: PluginDelivery,
    /// The tools that run without a permission prompt.
    pub allowed_tools: Vec<String>,
    /// The tools that are denied.
    pub disallowed_tools: Vec<String>,
    /// The available built-in tools.
    pub tools: Option<ToolSet>,
    /// The tool aliases, each with its tool.
    pub tool_aliases: Map<String>,
    /// The format of previews in questions of the model.
    pub question_preview: Option<PreviewFormat>,
    /// External MCP servers by name, each in the configuration format of the CLI.
    pub mcp_servers: McpServers,
    /// How those servers and the in-process ones are passed to the CLI. `Automatic` is encoded like
    /// `Handshake`, except in print mode; for a CLI before 2.1.326, set `Arguments`.
    pub mcp_delivery: McpDelivery,
    /// Files with further MCP servers.
    pub mcp_config_files: Vec<PathBuf>,
    /// Whether only those MCP servers are used.
    pub strict_mcp_config: bool,
    /// The permission mode.
    pub permission_mode: Option<PermissionMode>,
    /// Whether the mode `bypassPermissions` may be used.
    pub allow_dangerously_skip_permissions: bool,
    /// The MCP tool that decides permission requests.
    pub permission_prompt_tool: Option<String>,
    /// The target of permission prompts.
    pub permission_prompts: Option<PermissionPrompts>,
    /// The conversation that the run starts with.
    pub start: Start,
    /// The title of the new session. Never printed.
    pub title: Option<Secret>,
    /// Whether the session is persisted, so that it can be resumed. Default: true.
    pub persist_session: Option<bool>,
    /// The working directory. Default: that of the host.
    pub cwd: Option<PathBuf>,
    /// The directory whose project settings are used instead of those of the working directory.
    pub project_config_root: Option<PathBuf>,
    /// Additional directories that tools may use.
    pub add_dirs: Vec<PathBuf>,
    /// The policy for inherited variables.
    pub environment: EnvironmentPolicy,
    /// Variables for the CLI.
    pub env: Map<Secret>,
    /// Additional flags with their values.
    pub extra_args: Vec<(String, Option<Secret>)>,
    /// CLI settings: JSON, or the path of a file.
    pub settings: Option<SettingsSource>,
    /// The sandbox, merged into those.
    pub sandbox: Option<Box<Sandbox>>,
    /// Managed settings, which take precedence over the settings of the user.
    pub managed_settings: Option<ManagedSettings>,
    /// Which settings files are read: `user`, `project`, `local`. None at all if the list is empty.
    pub setting_sources: Option<Vec<String>>,
    /// The beta features of the API to enable.
    pub betas: Vec<String>,
    /// The target of the debug log.
    pub debug: DebugLog,
    /// The name of the application, for the API's logs.
    pub client_app: Option<String>,
    /// The JSON schema of the answer.
    pub output_schema: Option<Json>,
    /// Whether files are checkpointed, so that they can be rewound.
    pub file_checkpointing: bool,
}

/// The system prompt of a conversation: a base text and its changes.
///
/// [`SystemPrompt::default`] uses the CLI's own system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemPrompt {
    /// The base text. Default: the CLI's own system prompt.
    pub base: Option<SystemPromptBase>,
    /// The text that is appended.
    pub append: Option<Secret>,
    /// Whether machine-specific sections are left out.
    pub exclude_dynamic_sections: Option<bool>,
    /// Whether the prompt of the first request is reused.
    pub snapshot: Option<bool>,
}

impl SystemPrompt {
    /// Starts from the CLI's own system prompt.
    pub fn claude_code() -> Self {
        SystemPromptBase::ClaudeCode.into()
    }

    /// Starts from the text of a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        SystemPromptBase::File(path.into()).into()
    }

    /// Starts from a text that is the same in every conversation, which the API caches, and one that
    /// changes.
    pub fn cached(same: impl Into<String>, changing: impl Into<String>) -> Self {
        SystemPromptBase::cached(same, changing).into()
    }

    /// Appends a text. Replaces an earlier one.
    #[must_use]
    pub fn append(mut self, text: impl Into<String>) -> Self {
        self.append = Some(Secret::from(text));
        self
    }

    /// Moves machine-specific sections (directory, platform, memory) from the CLI's own system prompt to
    /// the first message, so that machines share the prompt cache.
    #[must_use]
    pub fn exclude_dynamic_sections(mut self, exclude: bool) -> Self {
        self.exclude_dynamic_sections = Some(exclude);
        self
    }

    /// Records the system prompt with the first request of a conversation and reuses it in later requests
    /// and runs. Default: decided by the CLI.
    #[must_use]
    pub fn snapshot(mut self, snapshot: bool) -> Self {
        self.snapshot = Some(snapshot);
        self
    }
}

impl<T: Into<SystemPromptBase>> From<T> for SystemPrompt {
    fn from(base: T) -> Self {
        Self { base: Some(base.into()), ..Self::default() }
    }
}

/// The base text of a [`SystemPrompt`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPromptBase {
    /// This text, which may be empty.
    Text(String),
    /// The text of this file.
    File(PathBuf),
    /// These texts in order. Texts before a [`SYSTEM_PROMPT_BOUNDARY`] are cached across conversations.
    Parts(Vec<String>),
    /// The default prompt of the CLI, explicitly.
    ClaudeCode,
}

/// The marker in [`SystemPromptBase::Parts`] between the texts that are the same in every conversation and
/// those that are not. The model does not see it.
pub const SYSTEM_PROMPT_BOUNDARY: &str = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__";

impl SystemPromptBase {
    /// Creates a prompt from a text that is the same in every conversation and one that is not.
    pub fn cached(same: impl Into<String>, changing: impl Into<String>) -> Self {
        Self::Parts(vec![same.into(), SYSTEM_PROMPT_BOUNDARY.to_owned(), changing.into()])
    }
}

impl fmt::Debug for SystemPromptBase {
    /// Formats without the text, which is private.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Parts(parts) => write!(f, "Parts({})", parts.len()),
            Self::ClaudeCode => f.write_str("ClaudeCode"),
        }
    }
}

impl From<&str> for SystemPromptBase {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for SystemPromptBase {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// The built-in tools that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolSet {
    /// All built-in tools of the CLI.
    ClaudeCode,
    /// Only these; none if the list is empty.
    Only(Vec<String>),
}

impl ToolSet {
    /// Selects no built-in tools.
    pub fn none() -> Self {
        Self::Only(Vec::new())
    }
}

impl<T: Into<String>, const N: usize> From<[T; N]> for ToolSet {
    fn from(names: [T; N]) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<String>> From<Vec<T>> for ToolSet {
    fn from(names: Vec<T>) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }
}

/// External MCP servers by name, each in the configuration format of the CLI.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpServers(Map<Json>);

impl McpServers {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a server, replacing the one of that name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, config: impl Into<Json>) -> Self {
        self.set(name, config);
        self
    }

    /// Sets a server, replacing the one of that name.
    pub fn set(&mut self, name: impl Into<String>, config: impl Into<Json>) {
        self.0.insert(name.into(), config.into());
    }

    /// Removes the server of this name.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// Returns the servers with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter()
    }

    /// Returns whether there are no servers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>, C: Into<Json>> FromIterator<(N, C)> for McpServers {
    fn from_iter<I: IntoIterator<Item = (N, C)>>(servers: I) -> Self {
        servers.into_iter().fold(Self::new(), |servers, (name, config)| servers.with(name, config))
    }
}

impl From<McpServers> for Json {
    /// Returns the servers as a JSON object.
    fn from(servers: McpServers) -> Self {
        Self::from_view(servers.0.view())
    }
}

impl fmt::Debug for McpServers {
    /// Formats the names only, because headers and variables contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The CLI settings.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsSource {
    /// Settings as JSON.
    Value(Json),
    /// Settings in a file.
    File(PathBuf),
}

impl fmt::Debug for SettingsSource {
    /// Formats without the content, because `env` and helpers contain secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("Value(***)"),
            Self::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

impl From<Json> for SettingsSource {
    fn from(value: Json) -> Self {
        Self::Value(value)
    }
}

impl From<serde_json::Value> for SettingsSource {
    fn from(value: serde_json::Value) -> Self {
        Self::Value(value.into())
    }
}

impl From<CliSettings> for SettingsSource {
    fn from(settings: CliSettings) -> Self {
        Self::Value(settings.into())
    }
}

impl From<PathBuf> for SettingsSource {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<&Path> for SettingsSource {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

/// Managed settings, which take precedence over the settings of the user.
#[derive(Clone, PartialEq, Eq)]
pub struct ManagedSettings(Json);

impl ManagedSettings {
    /// Returns the settings as JSON.
    pub fn as_json(&self) -> &Json {
        &self.0
    }
}

impl<T: Into<Json>> From<T> for ManagedSettings {
    fn from(settings: T) -> Self {
        Self(settings.into())
    }
}

impl fmt::Debug for ManagedSettings {
    /// Formats without the content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

open_enum! {
    /// The target of permission prompts for tools that no rule decides.
    pub enum PermissionPrompts {
        /// The host, or the permission prompt tool.
        Host = "host",
        /// No target: the calls are denied.
        None = "none",
    }
}

open_enum! {
    /// The format of previews in questions of the model.
    pub enum PreviewFormat {
        /// Markdown.
        Markdown = "markdown",
        /// HTML.
        Html = "html",
    }
}
