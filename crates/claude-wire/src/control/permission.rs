//! May this tool run?

use crate::id::{AgentId, ToolUseId};
use crate::json::{Extra, Json, List};

open_enum! {
    /// What the CLI does when a tool wants to run.
    pub enum PermissionMode {
        /// It asks where the rules do not decide.
        Default = "default",
        /// Edits run without being asked about.
        AcceptEdits = "acceptEdits",
        /// Everything runs.
        BypassPermissions = "bypassPermissions",
        /// Nothing that changes something runs.
        Plan = "plan",
        /// What the rules do not allow does not run.
        DontAsk = "dontAsk",
        /// A model decides.
        Auto = "auto",
    }
}

wire_struct! {
    /// May this tool run?
    #[derive(Default)]
    pub struct CanUseTool ["subtype" = "can_use_tool"] {
        /// The tool.
        tool_name: String,
        /// The arguments.
        input: Json,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
        /// Changes of the rules with which this would not be asked again.
        permission_suggestions: List<PermissionUpdate>,
        /// The path for which it is asked.
        blocked_path: Option<String>,
        /// Why it is asked.
        decision_reason: Option<String>,
        /// The kind of reason.
        decision_reason_type: Option<String>,
        /// The rule for which it is asked.
        matched_ask_rule: Option<Json>,
        /// Whether a model could decide it.
        classifier_approvable: Option<bool>,
        /// Whether "always" should not be offered.
        suppress_always_allow_rule: Option<bool>,
        /// Whether "no" should be the choice to begin with.
        default_to_no: Option<bool>,
        /// Whether a person has to answer.
        requires_user_interaction: Option<bool>,
        /// A title to show.
        title: Option<String>,
        /// The tool's name to show.
        display_name: Option<String>,
        /// What the call does, in the model's words.
        description: Option<String>,
        /// The subagent.
        agent_id: Option<AgentId>,
    }
}

wire_struct! {
    /// The MCP server that a tool belongs to.
    #[derive(Default)]
    pub struct McpServerRef {
        /// Its name.
        name: Option<String>,
        /// Where it was configured.
        source: Option<String>,
    }
}

open_union! {
    /// A change of the permission rules.
    pub enum PermissionUpdate by "type" {
        /// Add rules.
        AddRules(RulesUpdate) = "addRules",
        /// Replace all rules.
        ReplaceRules(RulesUpdate) = "replaceRules",
        /// Remove rules.
        RemoveRules(RulesUpdate) = "removeRules",
        /// Change the permission mode.
        SetMode(ModeUpdate) = "setMode",
        /// Add directories.
        AddDirectories(DirectoriesUpdate) = "addDirectories",
        /// Remove directories.
        RemoveDirectories(DirectoriesUpdate) = "removeDirectories",
    }
}

wire_struct! {
    /// A change of rules.
    #[derive(Default)]
    pub struct RulesUpdate {
        /// The rules.
        rules: List<PermissionRule>,
        /// What they say.
        behavior: Option<PermissionBehavior>,
        /// Where they are kept.
        destination: Option<PermissionDestination>,
    }
}

wire_struct! {
    /// A permission rule.
    #[derive(Default)]
    pub struct PermissionRule {
        /// The tool.
        tool_name: String as "toolName",
        /// What of the tool; absent means all of it.
        rule_content: Option<String> as "ruleContent",
    }
}

wire_struct! {
    /// A change of the mode.
    #[derive(Default)]
    pub struct ModeUpdate ["type" = "setMode"] {
        /// The new mode.
        mode: Option<PermissionMode>,
        /// Where it is kept.
        destination: Option<PermissionDestination>,
    }
}

wire_struct! {
    /// A change of directories.
    #[derive(Default)]
    pub struct DirectoriesUpdate {
        /// The directories.
        directories: List<String>,
        /// Where they are kept.
        destination: Option<PermissionDestination>,
    }
}

open_enum! {
    /// What a permission rule says.
    pub enum PermissionBehavior {
        /// Run it.
        Allow = "allow",
        /// Do not.
        Deny = "deny",
        /// Ask.
        Ask = "ask",
    }
}

open_enum! {
    /// Where a permission rule is kept.
    pub enum PermissionDestination {
        /// In the user's settings.
        UserSettings = "userSettings",
        /// In the project's settings.
        ProjectSettings = "projectSettings",
        /// In the project's settings on this machine.
        LocalSettings = "localSettings",
        /// In this session.
        Session = "session",
        /// Like an argument of the command line.
        CliArg = "cliArg",
    }
}

open_union! {
    /// The host's answer to [`CanUseTool`]. There is no "ask": the CLI rejects it.
    pub enum PermissionAnswer by "behavior" {
        /// The tool may run.
        Allow(PermissionAllow) = "allow",
        /// It may not.
        Deny(PermissionDeny) = "deny",
    }
}

wire_struct! {
    /// The tool may run.
    #[derive(Default)]
    pub struct PermissionAllow ["behavior" = "allow"] {
        /// The arguments with which it runs.
        updated_input: Option<Json> as "updatedInput",
        /// Changes of the rules.
        updated_permissions: List<PermissionUpdate> as "updatedPermissions",
        /// The call.
        tool_use_id: Option<ToolUseId> as "toolUseID",
        /// How a person decided.
        decision_classification: Option<String> as "decisionClassification",
    }
}

impl PermissionAllow {
    /// The tool may run with these arguments.
    pub fn with_input(input: impl Into<Json>) -> Self {
        Self { updated_input: Some(input.into()), ..Self::default() }
    }
}

wire_struct! {
    /// The tool may not run.
    #[derive(Default)]
    pub struct PermissionDeny ["behavior" = "deny"] {
        /// What the model is told.
        message: String,
        /// Whether the turn ends.
        interrupt: Option<bool>,
        /// The call.
        tool_use_id: Option<ToolUseId> as "toolUseID",
        /// How a person decided.
        decision_classification: Option<String> as "decisionClassification",
    }
}

impl PermissionDeny {
    /// The tool may not run, for this reason.
    pub fn because(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

impl From<PermissionAllow> for PermissionAnswer {
    fn from(allow: PermissionAllow) -> Self {
        Self::Allow(allow)
    }
}

impl From<PermissionDeny> for PermissionAnswer {
    fn from(deny: PermissionDeny) -> Self {
        Self::Deny(deny)
    }
}

impl PermissionRule {
    /// A rule about `tool`, or about the part of it that `content` names.
    pub fn new(tool: impl Into<String>, content: Option<String>) -> Self {
        Self { tool_name: tool.into(), rule_content: content, extra: Extra::default() }
    }
}
