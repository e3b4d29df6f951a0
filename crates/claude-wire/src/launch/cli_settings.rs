//! The CLI settings, of which the most common are typed.

use super::sandbox::Sandbox;
use super::thinking::Effort;
use crate::control::PermissionMode;
use crate::json::{Json, Map};
use crate::schema::Encode;

settings_struct! {
    /// The CLI settings, in the format of its settings files. The most common ones have a setter;
    /// [`set`](Self::set) sets any other.
    ///
    /// ```
    /// use claude_wire::settings::{CliSettings, PermissionSettings};
    ///
    /// let settings = CliSettings::default()
    ///     .output_style("Explanatory")
    ///     .permissions(PermissionSettings::default().deny(["Read(./.env)"]))
    ///     .set("spinnerTipsEnabled", serde_json::json!(false));
    /// ```
    pub struct CliSettings {
        /// The model.
        one model: String,
        /// The effort level of the model.
        one effort_level: Effort as "effortLevel",
        /// The maximum effort level.
        one max_effort_level: Effort as "maxEffortLevel",
        /// Whether it thinks before it answers.
        one always_thinking_enabled: bool as "alwaysThinkingEnabled",
        /// Whether the faster and more expensive mode of a model is used.
        one fast_mode: bool as "fastMode",
        /// The models to choose from.
        list available_models: String as "availableModels",
        /// The models that may not be used.
        list denied_models: String as "deniedModels",
        /// The agent of the main conversation.
        one agent: String,
        /// The output style.
        one output_style: String as "outputStyle",
        /// The language to answer in.
        one language: String,
        /// The permission settings.
        one permissions: PermissionSettings,
        /// The sandbox.
        one sandbox: Sandbox,
        /// Variables of the CLI and its tools.
        one env: Map<String>,
        /// Command hooks, in the format of the CLI.
        one hooks: Json,
        /// Whether all hooks are disabled.
        one disable_all_hooks: bool as "disableAllHooks",
        /// The command that prints an API key.
        one api_key_helper: String as "apiKeyHelper",
        /// For how many days transcripts are kept.
        one cleanup_period_days: u32 as "cleanupPeriodDays",
        /// Whether commits name Claude as an author.
        one include_co_authored_by: bool as "includeCoAuthoredBy",
        /// Whether the system prompt contains instructions for git.
        one include_git_instructions: bool as "includeGitInstructions",
        /// Whether `.gitignore` is respected.
        one respect_gitignore: bool as "respectGitignore",
        /// Whether all MCP servers of the project are used.
        one enable_all_project_mcp_servers: bool as "enableAllProjectMcpServers",
        /// The MCP servers of the project that are used.
        list enabled_mcpjson_servers: String as "enabledMcpjsonServers",
        /// The MCP servers of the project that are not.
        list disabled_mcpjson_servers: String as "disabledMcpjsonServers",
        /// Whether the skills that come with the CLI are left out.
        one disable_bundled_skills: bool as "disableBundledSkills",
        /// Installed plugins by name, and whether they are used.
        one enabled_plugins: Map<bool> as "enabledPlugins",
        /// Whether the conversation is compacted automatically.
        one auto_compact_enabled: bool as "autoCompactEnabled",
        /// The number of tokens at which the conversation is compacted.
        one auto_compact_window: u64 as "autoCompactWindow",
        /// Whether automatic memory is enabled.
        one auto_memory_enabled: bool as "autoMemoryEnabled",
        /// Instructions, as a `CLAUDE.md` would give them.
        one claude_md: String as "claudeMd",
        /// Files `CLAUDE.md` that are not read.
        list claude_md_excludes: String as "claudeMdExcludes",
        /// Where plans are kept.
        one plans_directory: String as "plansDirectory",
        /// The shell that runs commands.
        one default_shell: String as "defaultShell",
    }
}

settings_struct! {
    /// The permission settings, in the format of the settings files.
    pub struct PermissionSettings {
        /// The rules that allow calls.
        list allow: String,
        /// The rules that deny calls.
        list deny: String,
        /// The rules that ask about calls.
        list ask: String,
        /// The default permission mode.
        one default_mode: PermissionMode as "defaultMode",
        /// Additional directories that tools may use.
        list additional_directories: String as "additionalDirectories",
        /// `disable` if the mode `bypassPermissions` may not be used.
        one disable_bypass_permissions_mode: String as "disableBypassPermissionsMode",
        /// `disable` if the mode `auto` may not be used.
        one disable_auto_mode: String as "disableAutoMode",
        /// Whether calls that would require a prompt are denied.
        one deny_instead_of_prompting: bool as "denyInsteadOfPrompting",
        /// Whether reading outside of the working directories is blocked.
        one block_reads_outside_working_directories: bool as "blockReadsOutsideWorkingDirectories",
        /// Whether writing outside of the working directories is blocked.
        one block_writes_outside_working_directories: bool
            as "blockWritesOutsideWorkingDirectories",
        /// Exceptions that may be read.
        list block_reads_exempt_paths: String as "blockReadsExemptPaths",
    }
}

impl From<CliSettings> for Json {
    fn from(settings: CliSettings) -> Self {
        Self::from_view(settings.view())
    }
}
