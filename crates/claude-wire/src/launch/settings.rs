//! What the host wants of the CLI.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::control::PermissionMode;
use crate::json::Json;
use crate::launch::{
    Agents, CliSettings, DebugLog, Effort, EnvironmentPolicy, Include, Plugin, PluginDelivery,
    Sandbox, Skills, Start, Thinking,
};

/// A value that is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value itself, for the one place that needs it.
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

/// What the host wants of the CLI. Empty, the CLI decides everything.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Settings {
    /// The model.
    pub model: Option<String>,
    /// The models to fall back to.
    pub fallback_model: Option<String>,
    /// The answers that a turn may take.
    pub max_turns: Option<u32>,
    /// The dollars that a run may cost.
    pub max_budget_usd: Option<f64>,
    /// The tokens that the model is told it may use for its task.
    pub task_budget: Option<u64>,
    /// Whether the model thinks before it answers.
    pub thinking: Option<Thinking>,
    /// How much effort it makes.
    pub effort: Option<Effort>,
    /// The system prompt.
    pub system_prompt: Option<SystemPromptBase>,
    /// What is added to the system prompt. Not printed, like the prompt itself.
    pub append_system_prompt: Option<Secret>,
    /// Whether what changes from machine to machine stands in the first message and not in the
    /// CLI's own system prompt.
    pub exclude_dynamic_sections: Option<bool>,
    /// Whether the system prompt is recorded once and sent as it was from then on.
    pub system_prompt_snapshot: Option<bool>,
    /// What the model is told in plan mode.
    pub plan_mode_instructions: Option<Secret>,
    /// Whether the CLI takes nothing in a prompt for a command or a mention.
    pub verbatim_prompts: bool,
    /// Messages that the CLI sends on request only.
    pub include: Include,
    /// The agent of the main conversation.
    pub agent: Option<String>,
    /// Agents that the model can give tasks to.
    pub agents: Agents,
    /// Whether an interrupt leaves background tasks alone.
    pub per_task_stop_affordance: Option<bool>,
    /// The skills that the model may use without asking.
    pub skills: Option<Skills>,
    /// Plugins.
    pub plugins: Vec<Plugin>,
    /// How the CLI is told of them.
    pub plugin_delivery: PluginDelivery,
    /// Tools that run without being asked about.
    pub allowed_tools: Vec<String>,
    /// Tools that do not run.
    pub disallowed_tools: Vec<String>,
    /// The built-in tools that there are.
    pub tools: Option<ToolSet>,
    /// Other names under which the model may call tools, and the tools.
    pub tool_aliases: BTreeMap<String, String>,
    /// In what format the model shows previews with its questions.
    pub question_preview: Option<PreviewFormat>,
    /// External MCP servers by name, each in the shape of the CLI's configuration.
    pub mcp_servers: McpServers,
    /// Files with more of them.
    pub mcp_config_files: Vec<PathBuf>,
    /// Whether only those MCP servers are used.
    pub strict_mcp_config: bool,
    /// The permission mode.
    pub permission_mode: Option<PermissionMode>,
    /// Whether the mode that lets everything run may be used.
    pub allow_dangerously_skip_permissions: bool,
    /// The MCP tool that answers permission requests.
    pub permission_prompt_tool: Option<String>,
    /// Who is asked about tools.
    pub permission_prompts: Option<PermissionPrompts>,
    /// Which conversation the run starts with.
    pub start: Start,
    /// The title of the new session. Not printed, like a prompt.
    pub title: Option<Secret>,
    /// Whether the session is kept so that it can be resumed; it is if nothing is said.
    pub persist_session: Option<bool>,
    /// The working directory; the host's own if there is none.
    pub cwd: Option<PathBuf>,
    /// The directory whose project settings are used in place of the working directory's.
    pub project_config_root: Option<PathBuf>,
    /// More directories that tools may use.
    pub add_dirs: Vec<PathBuf>,
    /// What of the host's environment the CLI gets.
    pub environment: EnvironmentPolicy,
    /// Variables for the CLI.
    pub env: BTreeMap<String, Secret>,
    /// Flags that these settings do not know, with their values.
    pub extra_args: Vec<(String, Option<Secret>)>,
    /// More settings of the CLI's own kind: JSON, or the path of a file.
    pub settings: Option<SettingsSource>,
    /// The sandbox, on top of those.
    pub sandbox: Option<Box<Sandbox>>,
    /// Settings that restrict whatever the user's say.
    pub managed_settings: Option<ManagedSettings>,
    /// Which settings files are read: `user`, `project`, `local`. None at all if the list is empty.
    pub setting_sources: Option<Vec<String>>,
    /// The API's betas.
    pub betas: Vec<String>,
    /// Where the CLI writes a debug log.
    pub debug: DebugLog,
    /// The name of the application, for the API's logs.
    pub client_app: Option<String>,
    /// The schema of the answer.
    pub output_schema: Option<Json>,
    /// Whether files can be put back to where they were.
    pub file_checkpointing: bool,
}

/// The system prompt of a conversation: what it starts from, and what changes it.
///
/// [`SystemPrompt::default`] names nothing, and the CLI uses its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SystemPrompt {
    /// The text that it starts from; the CLI's own if none is set.
    pub base: Option<SystemPromptBase>,
    /// A text that is added to the end.
    pub append: Option<Secret>,
    /// Whether what differs between machines is left out.
    pub exclude_dynamic_sections: Option<bool>,
    /// Whether the text of the first request is kept.
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

    /// Starts from a text that is the same in every conversation, which the API caches, and one that is
    /// not.
    pub fn cached(same: impl Into<String>, changing: impl Into<String>) -> Self {
        SystemPromptBase::cached(same, changing).into()
    }

    /// Adds a text to the end. Replaces an earlier one.
    #[must_use]
    pub fn append(mut self, text: impl Into<String>) -> Self {
        self.append = Some(Secret::from(text));
        self
    }

    /// Moves what differs between machines (directory, platform, memory) from the CLI's own system
    /// prompt to the first message, so that machines share the cache of the prompt.
    #[must_use]
    pub fn exclude_dynamic_sections(mut self, exclude: bool) -> Self {
        self.exclude_dynamic_sections = Some(exclude);
        self
    }

    /// Records the system prompt with the first request of a conversation and sends that text from
    /// then on, whatever a later run says. Default: what the CLI does by itself.
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

/// The text that a [`SystemPrompt`] starts from.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPromptBase {
    /// This text. Empty is a prompt too.
    Text(String),
    /// The text of this file.
    File(PathBuf),
    /// These texts, one after the other. What stands before a [`SYSTEM_PROMPT_BOUNDARY`] is cached
    /// across conversations, what follows it is not.
    Parts(Vec<String>),
    /// The CLI's own, said out loud.
    ClaudeCode,
}

/// The part of a [`SystemPromptBase::Parts`] that parts what is the same in every conversation from what
/// is not. The model does not see it.
pub const SYSTEM_PROMPT_BOUNDARY: &str = "__SYSTEM_PROMPT_DYNAMIC_BOUNDARY__";

impl SystemPromptBase {
    /// A text that is the same in every conversation, and one that is not.
    pub fn cached(same: impl Into<String>, changing: impl Into<String>) -> Self {
        Self::Parts(vec![same.into(), SYSTEM_PROMPT_BOUNDARY.to_owned(), changing.into()])
    }
}

impl fmt::Debug for SystemPromptBase {
    /// Without the text: it is long, and it is the host's.
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
    /// All that the CLI has.
    ClaudeCode,
    /// These; none at all if the list is empty.
    Only(Vec<String>),
}

impl ToolSet {
    /// No built-in tool at all.
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

/// External MCP servers by name, each in the shape of the CLI's configuration.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct McpServers(BTreeMap<String, Json>);

impl McpServers {
    /// No servers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same with this server, in the place of one of that name.
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

    /// The servers, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, config)| (name.as_str(), config))
    }
}

impl<N: Into<String>, C: Into<Json>> FromIterator<(N, C)> for McpServers {
    fn from_iter<I: IntoIterator<Item = (N, C)>>(servers: I) -> Self {
        servers.into_iter().fold(Self::new(), |servers, (name, config)| servers.with(name, config))
    }
}

impl From<McpServers> for Json {
    /// The object of these servers.
    fn from(servers: McpServers) -> Self {
        // Keys are strings and values are JSON already, so writing them cannot fail.
        Self::from_serialize(&servers.0).unwrap_or_default()
    }
}

impl fmt::Debug for McpServers {
    /// Without what stands in them: headers and variables hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Settings of the CLI's own kind.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingsSource {
    /// Given as JSON.
    Value(Json),
    /// In a file.
    File(PathBuf),
}

impl fmt::Debug for SettingsSource {
    /// Without what stands in it: `env` and helpers hold keys.
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

/// Settings that restrict whatever the user's say.
#[derive(Clone, PartialEq, Eq)]
pub struct ManagedSettings(Json);

impl ManagedSettings {
    /// As JSON.
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
    /// Without what stands in them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

open_enum! {
    /// Who is asked about tools that nothing else decides about.
    pub enum PermissionPrompts {
        /// The host, or the tool that answers for it.
        Host = "host",
        /// Nobody: they do not run.
        Nobody = "none",
    }
}

open_enum! {
    /// In what format the model shows previews with its questions.
    pub enum PreviewFormat {
        /// Markdown.
        Markdown = "markdown",
        /// HTML.
        Html = "html",
    }
}
