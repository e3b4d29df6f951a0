//! The handshake.

use std::collections::BTreeMap;

use super::AgentDefinition;
use crate::control::PermissionMode;
use crate::id::CallbackId;
use crate::json::{Extra, Json, List, Nullable, Number};
use crate::message::SessionState;

silent_wire_struct! {
    /// The handshake: what the host registers and asks for.
    #[derive(Default)]
    pub struct Initialize ["subtype" = "initialize"] {
        /// Hook callbacks by event.
        hooks: Option<BTreeMap<String, Vec<HookMatcher>>>,
        /// Subagents by name.
        agents: Option<BTreeMap<String, AgentDefinition>>,
        /// The servers inside the host.
        sdk_mcp_servers: List<String> as "sdkMcpServers",
        /// Their settings.
        sdk_mcp_server_configs: Option<Json> as "sdkMcpServerConfigs",
        /// What they answered to their own handshake.
        sdk_mcp_server_manifests: Option<Json> as "sdkMcpServerManifests",
        /// The schema of the answer.
        json_schema: Option<Json> as "jsonSchema",
        /// The system prompt.
        system_prompt: List<String> as "systemPrompt",
        /// What is added to the system prompt.
        append_system_prompt: Option<String> as "appendSystemPrompt",
        /// Whether the system prompt is recorded once and sent as it was from then on.
        system_prompt_snapshot: Option<bool> as "systemPromptSnapshot",
        /// Whether the changing parts of the system prompt are left out.
        exclude_dynamic_sections: Option<bool> as "excludeDynamicSections",
        /// What the model is told in plan mode.
        plan_mode_instructions: Option<String> as "planModeInstructions",
        /// Other names for tools.
        tool_aliases: Option<BTreeMap<String, String>> as "toolAliases",
        /// The session's title.
        title: Option<String>,
        /// The skills.
        skills: List<String>,
        /// Whether to suggest the next prompt.
        prompt_suggestions: Option<bool> as "promptSuggestions",
        /// Whether to sum up what subagents do.
        agent_progress_summaries: Option<bool> as "agentProgressSummaries",
        /// Whether to pass on what subagents say.
        forward_subagent_text: Option<bool> as "forwardSubagentText",
        /// The dialogs that the host can show.
        supported_dialog_kinds: List<String> as "supportedDialogKinds",
        /// Whether an interrupt spares background tasks.
        per_task_stop_affordance: Option<bool> as "perTaskStopAffordance",
        /// The plugins.
        plugins: List<Json>,
    }
}

names_only_debug!(Initialize);

wire_struct! {
    /// Hook callbacks for what fits a pattern.
    #[derive(Default)]
    pub struct HookMatcher {
        /// The pattern; `null` fits everything.
        matcher: Nullable<String>,
        /// The callbacks.
        hook_callback_ids: List<CallbackId> as "hookCallbackIds",
        /// The CLI's time limit in seconds.
        timeout: Option<Number>,
        /// What the CLI does when the callback does not answer.
        on_failure: Option<OnFailure> as "onFailure",
    }
}

impl HookMatcher {
    /// These callbacks, for what fits `matcher`.
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
    /// What the CLI does when a hook callback does not answer.
    pub enum OnFailure {
        /// It goes on as if there were no hook.
        Continue = "continue",
        /// It blocks what the hook was asked about.
        Block = "block",
    }
}

wire_struct! {
    /// The CLI's answer to the handshake.
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
        /// Whose login it is.
        account: Option<AccountInfo>,
        /// The CLI's version.
        claude_code_version: Option<String>,
        /// The CLI's process.
        pid: Option<Number>,
        /// What this CLI can do beyond older ones, as far as it says so at the start.
        capabilities: List<String>,
        /// The permission mode.
        current_permission_mode: Option<PermissionMode>,
        /// What the session is doing.
        session_state: Option<SessionState>,
        /// Whether the hooks were taken.
        hooks_applied: Option<bool>,
        /// Whether `onFailure` is known.
        hook_on_failure_supported: Option<bool>,
        /// Whether the plugins were taken.
        plugins_applied: Option<bool>,
        /// What became of the manifests.
        sdk_mcp_manifests_parked: Option<Json>,
        /// Whether fast mode is on.
        fast_mode_state: Option<String>,
        /// Why it is not.
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
        /// What it takes.
        argument_hint: Option<String> as "argumentHint",
        /// Its other names.
        aliases: List<String>,
        /// Whether it comes with the CLI.
        builtin: Option<bool>,
    }
}

wire_struct! {
    /// An agent of the CLI.
    #[derive(Default)]
    pub struct AgentInfo {
        /// Its name.
        name: Option<String>,
        /// What it is for.
        description: Option<String>,
        /// Its model.
        model: Option<String>,
    }
}

wire_struct! {
    /// A model to choose.
    #[derive(Default)]
    pub struct ModelInfo {
        /// What `set_model` takes.
        value: Option<String>,
        /// The model behind it.
        resolved_model: Option<String> as "resolvedModel",
        /// Its name for people.
        display_name: Option<String> as "displayName",
        /// What it is good at.
        description: Option<String>,
        /// Whether it can be told how hard to think.
        supports_effort: Option<bool> as "supportsEffort",
        /// How hard it can be told to think.
        supported_effort_levels: List<String> as "supportedEffortLevels",
        /// Whether it decides itself how much to think.
        supports_adaptive_thinking: Option<bool> as "supportsAdaptiveThinking",
        /// Whether it has a fast mode.
        supports_fast_mode: Option<bool> as "supportsFastMode",
        /// Whether it can decide about permissions.
        supports_auto_mode: Option<bool> as "supportsAutoMode",
        /// Whether it can be kept from thinking.
        supports_thinking_off: Option<bool> as "supportsThinkingOff",
    }
}

wire_struct! {
    /// Whose login it is.
    #[derive(Default)]
    pub struct AccountInfo {
        /// The address.
        email: Option<String>,
        /// The organisation.
        organization: Option<String>,
        /// The subscription.
        subscription_type: Option<String> as "subscriptionType",
        /// Where the token comes from.
        token_source: Option<String> as "tokenSource",
        /// Where the API key comes from.
        api_key_source: Option<String> as "apiKeySource",
        /// Who serves the API.
        api_provider: Option<String> as "apiProvider",
    }
}
