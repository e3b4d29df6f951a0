//! Permission requests and rules.

use crate::id::{AgentId, ToolUseId};
use crate::json::{Extra, Json, List};
use crate::tool_input::ToolInput;

open_enum! {
    /// The permission mode: how the CLI decides about tool calls.
    pub enum PermissionMode {
        /// The CLI asks if no rule applies.
        Default = "default",
        /// Edits are allowed without a prompt.
        AcceptEdits = "acceptEdits",
        /// Everything is allowed.
        BypassPermissions = "bypassPermissions",
        /// Only reading is allowed.
        Plan = "plan",
        /// Calls that no rule allows are denied.
        DontAsk = "dontAsk",
        /// A classifier model decides.
        Auto = "auto",
    }
}

wire_struct! {
    /// Requests permission for a tool call.
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
        /// Suggested rule changes that avoid the same prompt in the future.
        permission_suggestions: List<PermissionUpdate>,
        /// The path that requires the permission.
        blocked_path: Option<String>,
        /// The reason of the request.
        decision_reason: Option<String>,
        /// The kind of reason.
        decision_reason_type: Option<String>,
        /// The rule that requires the permission.
        matched_ask_rule: Option<Json>,
        /// Whether a classifier could decide.
        classifier_approvable: Option<bool>,
        /// Whether "always allow" should be hidden.
        suppress_always_allow_rule: Option<bool>,
        /// Whether "deny" should be the default choice.
        default_to_no: Option<bool>,
        /// Whether a human user must decide.
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

impl CanUseTool {
    /// Reads the input of the tool as a type.
    pub fn tool_input(&self) -> ToolInput {
        ToolInput::new(&self.tool_name, &self.input)
    }
}

wire_struct! {
    /// The MCP server that a tool belongs to.
    #[derive(Default)]
    pub struct McpServerRef {
        /// Its name.
        name: Option<String>,
        /// The scope of its configuration.
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
        /// Changes the permission mode.
        SetMode(ModeUpdate) = "setMode",
        /// Add directories.
        AddDirectories(DirectoriesUpdate) = "addDirectories",
        /// Remove directories.
        RemoveDirectories(DirectoriesUpdate) = "removeDirectories",
    }
}

impl PermissionUpdate {
    /// Adds a rule that allows calls of `tool`: those that `content` describes, or with `None` all
    /// of them. The rule applies to the session; [`saved_in`](Self::saved_in) changes that.
    ///
    /// ```
    /// use claude_wire::control::{PermissionDestination, PermissionUpdate};
    ///
    /// let session = PermissionUpdate::allow("Bash", "touch:*");
    /// let project = PermissionUpdate::allow("WebFetch", None)
    ///     .saved_in(PermissionDestination::ProjectSettings);
    /// ```
    pub fn allow<'a>(tool: impl Into<String>, content: impl Into<Option<&'a str>>) -> Self {
        Self::add(PermissionBehavior::Allow, PermissionRule::new(tool, content))
    }

    /// Adds a rule that denies calls of `tool`, as [`allow`](Self::allow) does.
    pub fn deny<'a>(tool: impl Into<String>, content: impl Into<Option<&'a str>>) -> Self {
        Self::add(PermissionBehavior::Deny, PermissionRule::new(tool, content))
    }

    /// Adds a rule that always asks about calls of `tool`, as [`allow`](Self::allow) does.
    pub fn ask<'a>(tool: impl Into<String>, content: impl Into<Option<&'a str>>) -> Self {
        Self::add(PermissionBehavior::Ask, PermissionRule::new(tool, content))
    }

    /// Allows tools to use an additional directory in this session.
    pub fn add_directory(directory: impl Into<String>) -> Self {
        Self::AddDirectories(DirectoriesUpdate {
            directories: vec![directory.into()].into(),
            destination: Some(PermissionDestination::Session),
            ..DirectoriesUpdate::default()
        })
    }

    /// Changes the permission mode of the session.
    pub fn set_mode(mode: impl Into<PermissionMode>) -> Self {
        Self::SetMode(ModeUpdate {
            mode: Some(mode.into()),
            destination: Some(PermissionDestination::Session),
            ..ModeUpdate::default()
        })
    }

    /// Saves the change in `destination` instead of the session. Does not change an update of an unknown
    /// kind.
    #[must_use]
    pub fn saved_in(mut self, destination: PermissionDestination) -> Self {
        let place = match &mut self {
            Self::AddRules(rules) | Self::ReplaceRules(rules) | Self::RemoveRules(rules) => {
                &mut rules.destination
            }
            Self::SetMode(mode) => &mut mode.destination,
            Self::AddDirectories(update) | Self::RemoveDirectories(update) => {
                &mut update.destination
            }
            Self::Unknown(_) | Self::Undecodable(_) => return self,
        };
        *place = Some(destination);
        self
    }

    fn add(behavior: PermissionBehavior, rule: PermissionRule) -> Self {
        Self::AddRules(RulesUpdate {
            rules: vec![rule].into(),
            behavior: Some(behavior),
            destination: Some(PermissionDestination::Session),
            ..RulesUpdate::default()
        })
    }
}

wire_struct! {
    /// A change of rules.
    #[derive(Default)]
    pub struct RulesUpdate {
        /// The rules.
        rules: List<PermissionRule>,
        /// The behavior of the rules.
        behavior: Option<PermissionBehavior>,
        /// The destination.
        destination: Option<PermissionDestination>,
    }
}

wire_struct! {
    /// A permission rule.
    #[derive(Default)]
    pub struct PermissionRule {
        /// The tool.
        tool_name: String as "toolName",
        /// The content of the rule; absent means all calls.
        rule_content: Option<String> as "ruleContent",
    }
}

wire_struct! {
    /// A change of the permission mode.
    #[derive(Default)]
    pub struct ModeUpdate ["type" = "setMode"] {
        /// The new mode.
        mode: Option<PermissionMode>,
        /// The destination.
        destination: Option<PermissionDestination>,
    }
}

wire_struct! {
    /// A change of directories.
    #[derive(Default)]
    pub struct DirectoriesUpdate {
        /// The directories.
        directories: List<String>,
        /// The destination.
        destination: Option<PermissionDestination>,
    }
}

open_enum! {
    /// The behavior of a permission rule.
    pub enum PermissionBehavior {
        /// Allow the call.
        Allow = "allow",
        /// Deny the call.
        Deny = "deny",
        /// Ask the user.
        Ask = "ask",
    }
}

open_enum! {
    /// The destination of a permission update.
    pub enum PermissionDestination {
        /// The settings of the user.
        UserSettings = "userSettings",
        /// The settings of the project.
        ProjectSettings = "projectSettings",
        /// The local settings of the project.
        LocalSettings = "localSettings",
        /// This session.
        Session = "session",
        /// The command-line arguments.
        CliArg = "cliArg",
    }
}

open_union! {
    /// The response to [`CanUseTool`]. The CLI does not accept "ask" here.
    pub enum PermissionResponse by "behavior" {
        /// The tool call is allowed.
        Allow(PermissionAllow) = "allow",
        /// The tool call is denied.
        Deny(PermissionDeny) = "deny",
    }
}

wire_struct! {
    /// The tool call is allowed.
    #[derive(Default)]
    pub struct PermissionAllow ["behavior" = "allow"] {
        /// The replacement input.
        updated_input: Option<Json> as "updatedInput",
        /// Changes of the rules.
        updated_permissions: List<PermissionUpdate> as "updatedPermissions",
        /// The call.
        tool_use_id: Option<ToolUseId> as "toolUseID",
        /// The decision of the user.
        decision_classification: Option<String> as "decisionClassification",
    }
}

impl PermissionAllow {
    /// Allows the call with this input.
    pub fn with_input(input: impl Into<Json>) -> Self {
        Self { updated_input: Some(input.into()), ..Self::default() }
    }
}

wire_struct! {
    /// The tool call is denied.
    #[derive(Default)]
    pub struct PermissionDeny ["behavior" = "deny"] {
        /// The message for the model.
        message: String,
        /// Whether the turn ends.
        interrupt: Option<bool>,
        /// The call.
        tool_use_id: Option<ToolUseId> as "toolUseID",
        /// The decision of the user.
        decision_classification: Option<String> as "decisionClassification",
    }
}

impl PermissionDeny {
    /// Denies the call for this reason.
    pub fn because(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

impl From<PermissionAllow> for PermissionResponse {
    fn from(allow: PermissionAllow) -> Self {
        Self::Allow(allow)
    }
}

impl From<PermissionDeny> for PermissionResponse {
    fn from(deny: PermissionDeny) -> Self {
        Self::Deny(deny)
    }
}

impl PermissionRule {
    /// Creates a rule about the calls of `tool` that `content` describes, such as `touch:*`; with
    /// `None`, about all calls of the tool.
    pub fn new<'a>(tool: impl Into<String>, content: impl Into<Option<&'a str>>) -> Self {
        let rule_content = content.into().map(ToOwned::to_owned);
        Self { tool_name: tool.into(), rule_content, extra: Extra::default() }
    }
}
