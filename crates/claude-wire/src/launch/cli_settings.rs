//! Settings of the CLI's own kind, the most used of them typed.

use std::collections::BTreeMap;

use super::sandbox::Sandbox;
use super::thinking::Effort;
use crate::control::PermissionMode;
use crate::json::Json;

settings_struct! {
    /// Settings of the CLI's own kind, as they stand in its settings files. The most used have a
    /// name here; [`set`](Self::set) takes all others.
    ///
    /// ```
    /// use claude_wire::launch::{CliSettings, PermissionSettings};
    ///
    /// let settings = CliSettings::default()
    ///     .output_style("Explanatory")
    ///     .permissions(PermissionSettings::default().deny(["Read(./.env)"]))
    ///     .set("spinnerTipsEnabled", serde_json::json!(false));
    /// ```
    pub struct CliSettings {
        /// The model.
        one model: String,
        /// How much effort the model makes.
        one effort_level: Effort as "effortLevel",
        /// The most effort that it may make.
        one max_effort_level: Effort as "maxEffortLevel",
        /// Whether it thinks before it answers.
        one always_thinking_enabled: bool as "alwaysThinkingEnabled",
        /// Whether the faster and dearer mode of a model is used.
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
        /// What may run.
        one permissions: PermissionSettings,
        /// The sandbox.
        one sandbox: Sandbox,
        /// Variables of the CLI and its tools.
        one env: BTreeMap<String, String>,
        /// Hooks that are commands, in the CLI's own shape.
        one hooks: Json,
        /// Whether no hook runs.
        one disable_all_hooks: bool as "disableAllHooks",
        /// The command that prints an API key.
        one api_key_helper: String as "apiKeyHelper",
        /// For how many days transcripts are kept.
        one cleanup_period_days: u32 as "cleanupPeriodDays",
        /// Whether commits name Claude as an author.
        one include_co_authored_by: bool as "includeCoAuthoredBy",
        /// Whether the model is told how to use git.
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
        one enabled_plugins: BTreeMap<String, bool> as "enabledPlugins",
        /// Whether the conversation is summed up when it gets too long.
        one auto_compact_enabled: bool as "autoCompactEnabled",
        /// How many tokens of it are too long.
        one auto_compact_window: u64 as "autoCompactWindow",
        /// Whether the model remembers things by itself.
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
    /// What may run, as it stands in the CLI's settings files.
    pub struct PermissionSettings {
        /// What runs without asking.
        list allow: String,
        /// What does not run.
        list deny: String,
        /// What is asked about.
        list ask: String,
        /// How permissions are decided.
        one default_mode: PermissionMode as "defaultMode",
        /// More directories that tools may use.
        list additional_directories: String as "additionalDirectories",
        /// `disable`, if the mode that lets everything run may not be used.
        one disable_bypass_permissions_mode: String as "disableBypassPermissionsMode",
        /// `disable`, if the mode in which a model decides may not be used.
        one disable_auto_mode: String as "disableAutoMode",
        /// Whether what would be asked about is denied.
        one deny_instead_of_prompting: bool as "denyInsteadOfPrompting",
        /// Whether reading outside of the working directories is blocked.
        one block_reads_outside_working_directories: bool as "blockReadsOutsideWorkingDirectories",
        /// Whether writing outside of the working directories is blocked.
        one block_writes_outside_working_directories: bool
            as "blockWritesOutsideWorkingDirectories",
        /// What may be read all the same.
        list block_reads_exempt_paths: String as "blockReadsExemptPaths",
    }
}

impl From<CliSettings> for Json {
    fn from(settings: CliSettings) -> Self {
        // Keys are strings and values are JSON already, so writing them cannot fail.
        Self::from_serialize(&settings).unwrap_or_default()
    }
}
