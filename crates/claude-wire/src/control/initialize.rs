//! The handshake.

use super::AgentDefinition;
use crate::control::PermissionMode;
use crate::id::CallbackId;
use crate::json::{Extra, Json, List, Map, Nullable, Number};
use crate::message::SessionState;

silent_wire_struct! {
    /// The request of the handshake: registrations and options of the host.
    #[derive(Default)]
    pub struct Initialize ["subtype" = "initialize"] {
        /// The hook registrations, by event.
        hooks: Option<Map<Vec<HookMatcher>>>,
        /// Subagents by name.
        agents: Option<Map<AgentDefinition>>,
        /// The names of the in-process MCP servers.
        sdk_mcp_servers: List<String> as "sdkMcpServers",
        /// The MCP servers by name, in the format of `--mcp-config`. CLIs before 2.1.326 ignore them.
        mcp_servers: Option<Json> as "mcpServers",
        /// The configurations of the in-process MCP servers.
        sdk_mcp_server_configs: Option<Json> as "sdkMcpServerConfigs",
        /// The MCP `initialize` results of the in-process servers.
        sdk_mcp_server_manifests: Option<Json> as "sdkMcpServerManifests",
        /// The JSON schema of the answer.
        json_schema: Option<Json> as "jsonSchema",
        /// The system prompt.
        system_prompt: List<String> as "systemPrompt",
        /// The text that is appended to the system prompt.
        append_system_prompt: Option<String> as "appendSystemPrompt",
        /// Whether the system prompt is recorded once and then reused unchanged.
        system_prompt_snapshot: Option<bool> as "systemPromptSnapshot",
        /// Whether the dynamic sections of the system prompt are left out.
        exclude_dynamic_sections: Option<bool> as "excludeDynamicSections",
        /// The instructions for plan mode.
        plan_mode_instructions: Option<String> as "planModeInstructions",
        /// The aliases of tools.
        tool_aliases: Option<Map<String>> as "toolAliases",
        /// The session's title.
        title: Option<String>,
        /// The skills.
        skills: List<String>,
        /// Whether to suggest the next prompt.
        prompt_suggestions: Option<bool> as "promptSuggestions",
        /// Whether to summarize the progress of subagents.
        agent_progress_summaries: Option<bool> as "agentProgressSummaries",
        /// Whether to forward the text of subagents.
        forward_subagent_text: Option<bool> as "forwardSubagentText",
        /// The dialogs that the host can show.
        supported_dialog_kinds: List<String> as "supportedDialogKinds",
        /// Whether an interrupt leaves background tasks running.
        per_task_stop_affordance: Option<bool> as "perTaskStopAffordance",
        /// The plugins.
        plugins: List<Json>,
    }
}

names_only_debug!(Initialize);

wire_struct! {
    /// The hook callbacks for one matcher.
    #[derive(Default)]
    pub struct HookMatcher {
        /// The matcher; `null` matches everything.
        matcher: Nullable<String>,
        /// The callbacks.
        hook_callback_ids: List<CallbackId> as "hookCallbackIds",
        /// The timeout of the CLI in seconds.
        timeout: Option<Number>,
        /// The action of the CLI if the callback does not respond.
        on_failure: Option<OnFailure> as "onFailure",
    }
}

impl HookMatcher {
    /// Creates a registration of these callbacks for `matcher`.
    pub fn new(
        matcher: Option<String>,
        callbacks: impl IntoIterator<Item = impl Into<CallbackId>>,
    ) -> Self {
        Self {
            matcher: matcher.into(),
            hook_callback_ids: callbacks.into_iter().map(Into::into).collect(),
            timeout: None,
            on_failure: None,
            extra: Extra::default(),
        }
    }
}

open_enum! {
    /// The action of the CLI if a hook callback does not respond.
    pub enum OnFailure {
        /// The CLI continues without a decision of the hook.
        Continue = "continue",
        /// The CLI blocks the action.
        Block = "block",
    }
}

wire_struct! {
    /// The response to the handshake.
    #[derive(Default)]
    pub struct InitializeResponse {
        /// The commands.
        commands: List<SlashCommand>,
        /// The agents.
        agents: List<AgentInfo>,
        /// The output style.
        output_style: Option<String>,
        /// The output styles to choose from.
        available_output_styles: List<String>,
        /// The models to choose from.
        models: List<ModelInfo>,
        /// The account.
        account: Option<AccountInfo>,
        /// The CLI's version.
        claude_code_version: Option<String>,
        /// The CLI's process.
        pid: Option<Number>,
        /// The capabilities that the CLI reports in the handshake.
        capabilities: List<String>,
        /// The permission mode.
        current_permission_mode: Option<PermissionMode>,
        /// The state of the session.
        session_state: Option<SessionState>,
        /// Whether the hooks were applied.
        hooks_applied: Option<bool>,
        /// Whether the CLI supports `onFailure`.
        hook_on_failure_supported: Option<bool>,
        /// Whether the plugins were applied.
        plugins_applied: Option<bool>,
        /// Whether the MCP servers of the handshake are used. Absent if there are none, and before 2.1.326.
        mcp_servers_applied: Option<bool>,
        /// The status of the manifests.
        sdk_mcp_manifests_parked: Option<Json>,
        /// Whether fast mode is on.
        fast_mode_state: Option<String>,
        /// The reason why it is disabled.
        fast_mode_disabled_reason: Option<String>,
    }
}

wire_struct! {
    /// A command of the CLI.
    #[derive(Default)]
    pub struct SlashCommand {
        /// Its name, without the slash.
        name: Option<String>,
        /// What it does.
        description: Option<String>,
        /// The arguments.
        argument_hint: Option<String> as "argumentHint",
        /// The aliases.
        aliases: List<String>,
        /// Whether it is built into the CLI.
        builtin: Option<bool>,
    }
}

wire_struct! {
    /// An agent of the CLI.
    #[derive(Default)]
    pub struct AgentInfo {
        /// Its name.
        name: Option<String>,
        /// The description.
        description: Option<String>,
        /// Its model.
        model: Option<String>,
    }
}

wire_struct! {
    /// A model to choose.
    #[derive(Default)]
    pub struct ModelInfo {
        /// The value for `set_model`.
        value: Option<String>,
        /// The resolved model.
        resolved_model: Option<String> as "resolvedModel",
        /// The display name.
        display_name: Option<String> as "displayName",
        /// The description.
        description: Option<String>,
        /// Whether it supports effort levels.
        supports_effort: Option<bool> as "supportsEffort",
        /// The supported effort levels.
        supported_effort_levels: List<String> as "supportedEffortLevels",
        /// Whether it supports adaptive thinking.
        supports_adaptive_thinking: Option<bool> as "supportsAdaptiveThinking",
        /// Whether it has a fast mode.
        supports_fast_mode: Option<bool> as "supportsFastMode",
        /// Whether it supports the permission mode `auto`.
        supports_auto_mode: Option<bool> as "supportsAutoMode",
        /// Whether thinking can be disabled.
        supports_thinking_off: Option<bool> as "supportsThinkingOff",
    }
}

wire_struct! {
    /// The account.
    #[derive(Default)]
    pub struct AccountInfo {
        /// The email address.
        email: Option<String>,
        /// The organization.
        organization: Option<String>,
        /// The subscription.
        subscription_type: Option<String> as "subscriptionType",
        /// The source of the token.
        token_source: Option<String> as "tokenSource",
        /// The source of the API key.
        api_key_source: Option<String> as "apiKeySource",
        /// The API provider.
        api_provider: Option<String> as "apiProvider",
    }
}
