//! May this tool run?

use crate::id::{AgentId, ToolUseId};
use crate::json::{Extra, Json, List};
use crate::tool_input::ToolInput;

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

    /// Adds a rule by which calls of `tool` are always asked about, as [`allow`](Self::allow) does.
    pub fn ask<'a>(tool: impl Into<String>, content: impl Into<Option<&'a str>>) -> Self {
        Self::add(PermissionBehavior::Ask, PermissionRule::new(tool, content))
    }

    /// Lets tools use a directory besides the working directory, in this session.
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

    /// Saves the change in `destination` instead of the session. An update of an unknown kind stays
    /// as it is.
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
    pub enum PermissionResponse by "behavior" {
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
