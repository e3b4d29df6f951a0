//! May this tool run? What the host is asked, and what it answers.

pub(crate) mod inbox;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use claude_wire::control::{
    CanUseTool, CliControlRequest, CliRequest, McpServerRef, PermissionAllow, PermissionDeny,
    PermissionResponse, PermissionUpdate,
};
use claude_wire::id::{AgentId, RequestId, SessionId, ToolUseId};
use claude_wire::{FromCli, Json, ToolInput};
use serde::{Serialize, Serializer};

pub use inbox::PermissionInbox;

use crate::callback::{BoxError, CallResult, IntoCallbackResult, sealed, told};
use crate::json_object::JsonObject;

/// A permission request: a tool call that no rule decides about.
///
/// Serialises as one JSON object, without `raw`; fields without a value are left out:
/// `{"type":"permission_request","id":…,"session_id":…,"tool_use_id":…,"tool_name":…,"input":{…},
/// "suggestions":[…],…}`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The ID of the request, which no other request has, in whatever session. It is the same in the
    /// callback, in [`Item::PermissionRequest`](crate::Item::PermissionRequest) and in a
    /// [`PermissionInbox`].
    pub id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The arguments of the call.
    pub input: Json,
    /// Changes of the permission rules with which the CLI would not ask again, for
    /// [`Permission::with_permissions`].
    pub suggestions: Vec<PermissionUpdate>,
    /// The path because of which the CLI asks.
    pub blocked_path: Option<String>,
    /// The reason for which the CLI asks.
    pub decision_reason: Option<String>,
    /// The kind of the reason.
    pub decision_reason_type: Option<String>,
    /// A title to show.
    pub title: Option<String>,
    /// The name of the tool to show.
    pub display_name: Option<String>,
    /// What the call does, in the model's words.
    pub description: Option<String>,
    /// Whether a user has to answer.
    pub requires_user_interaction: bool,
    /// Whether "no" should be preselected.
    pub default_to_no: bool,
    /// Whether "always" should not be offered.
    pub suppress_always_allow_rule: bool,
    /// The ID of the tool call.
    pub tool_use_id: Option<ToolUseId>,
    /// The subagent that makes the call.
    pub agent_id: Option<AgentId>,
    /// The MCP server that the tool belongs to.
    pub mcp_server: Option<McpServerRef>,
    /// The session, if its ID is known.
    pub session_id: Option<SessionId>,
    /// The CLI's whole request, as it came.
    pub raw: Bytes,
}

/// Where a permission request comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct PermissionOrigin {
    /// Tells the run from all others.
    pub(crate) run: u32,
    pub(crate) session_id: Option<SessionId>,
}

impl ToolRequest {
    /// Reads the input of the tool as a type.
    pub fn tool_input(&self) -> ToolInput {
        ToolInput::new(&self.tool_name, &self.input)
    }

    pub(crate) fn new(
        request_id: &RequestId,
        asked: CanUseTool,
        origin: PermissionOrigin,
        raw: Bytes,
    ) -> Self {
        Self {
            id: format!("{:08x}-{request_id}", origin.run),
            tool_name: asked.tool_name,
            input: asked.input,
            suggestions: asked.permission_suggestions.into_vec(),
            blocked_path: asked.blocked_path,
            decision_reason: asked.decision_reason,
            decision_reason_type: asked.decision_reason_type,
            title: asked.title,
            display_name: asked.display_name,
            description: asked.description,
            requires_user_interaction: asked.requires_user_interaction.unwrap_or_default(),
            default_to_no: asked.default_to_no.unwrap_or_default(),
            suppress_always_allow_rule: asked.suppress_always_allow_rule.unwrap_or_default(),
            tool_use_id: asked.tool_use_id,
            agent_id: asked.agent_id,
            mcp_server: asked.mcp_server,
            session_id: origin.session_id,
            raw,
        }
    }

    /// Reads the line of a permission request; `None` if it is something else.
    pub(crate) fn decode(line: Bytes, origin: PermissionOrigin) -> Option<Self> {
        let FromCli::Request(request) = FromCli::decode(line.clone()).ok()? else { return None };
        let CliControlRequest { request_id, request, .. } = *request;
        let CliRequest::CanUseTool(asked) = request else { return None };
        Some(Self::new(&request_id, *asked, origin, line))
    }
}

impl Serialize for ToolRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_set = |flag: bool| flag.then_some(&true);
        let mut object = JsonObject::new(serializer, "permission_request")?;
        object.field("id", &self.id)?;
        object.optional("session_id", self.session_id.as_ref())?;
        object.optional("tool_use_id", self.tool_use_id.as_ref())?;
        object.optional("agent_id", self.agent_id.as_ref())?;
        object.field("tool_name", &self.tool_name)?;
        object.field("input", &self.input)?;
        object.list("suggestions", &self.suggestions)?;
        object.optional("blocked_path", self.blocked_path.as_ref())?;
        object.optional("decision_reason", self.decision_reason.as_ref())?;
        object.optional("decision_reason_type", self.decision_reason_type.as_ref())?;
        object.optional("title", self.title.as_ref())?;
        object.optional("display_name", self.display_name.as_ref())?;
        object.optional("description", self.description.as_ref())?;
        object.optional("requires_user_interaction", is_set(self.requires_user_interaction))?;
        object.optional("default_to_no", is_set(self.default_to_no))?;
        object.optional("suppress_always_allow_rule", is_set(self.suppress_always_allow_rule))?;
        object.optional("mcp_server", self.mcp_server.as_ref())?;
        object.end()
    }
}

/// Whether a tool may run. There is no "ask": whoever is asked decides.
///
/// ```
/// use claude_agent_kit::Permission;
///
/// let yes = Permission::allow();
/// let no = Permission::deny("not on a Friday").and_interrupt();
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Permission(Decision);

#[derive(Clone, Debug, PartialEq)]
enum Decision {
    Allow(PermissionAllow),
    Deny(PermissionDeny),
}

impl Permission {
    /// The tool may run, with the arguments that it was asked for with.
    pub fn allow() -> Self {
        Self(Decision::Allow(PermissionAllow::default()))
    }

    /// The tool may not run; the model is told this.
    pub fn deny(message: impl Into<String>) -> Self {
        Self(Decision::Deny(PermissionDeny::because(message)))
    }

    /// The arguments with which the tool runs, all of them. A denial is not changed by it.
    pub fn with_input(mut self, input: impl Into<Json>) -> Self {
        if let Decision::Allow(allow) = &mut self.0 {
            allow.updated_input = Some(input.into());
        }
        self
    }

    /// Changes of the rules that come with it. A denial is not changed by it.
    pub fn with_permissions(mut self, updates: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        if let Decision::Allow(allow) = &mut self.0 {
            allow.updated_permissions = updates.into_iter().collect();
        }
        self
    }

    /// Ends the turn with a denial. A permission is not changed by it.
    pub fn and_interrupt(mut self) -> Self {
        if let Decision::Deny(deny) = &mut self.0 {
            deny.interrupt = Some(true);
        }
        self
    }

    /// The answer to a request with these arguments. The CLI wants them back where none are given.
    fn encode(self, input: &Json) -> CallResult {
        let answer = match self.0 {
            Decision::Allow(mut allow) => {
                allow.updated_input.get_or_insert_with(|| input.clone());
                PermissionResponse::from(allow)
            }
            Decision::Deny(deny) => PermissionResponse::from(deny),
        };
        Json::from_serialize(&answer).map_err(|error| error.to_string())
    }
}

impl sealed::Sealed for Permission {}

impl IntoCallbackResult<Permission> for Permission {
    fn into_result(self) -> Result<Permission, BoxError> {
        Ok(self)
    }
}

/// The answer that a callback's return value becomes.
pub(crate) fn answered(returned: impl IntoCallbackResult<Permission>, input: &Json) -> CallResult {
    returned.into_result().map_err(|error| told(&error))?.encode(input)
}

#[cfg(test)]
mod encoding_tests {
    use claude_wire::control::{DirectoriesUpdate, PermissionDestination};

    use super::*;

    #[test]
    fn each_permission_is_said_as_the_cli_wants_it() {
        let input = json(r#"{"command":"ls"}"#);
        let mut update = DirectoriesUpdate::default();
        update.directories = vec!["/srv".to_owned()].into();
        update.destination = Some(PermissionDestination::Session);
        for (permission, expected) in [
            (Permission::allow(), r#"{"behavior":"allow","updatedInput":{"command":"ls"}}"#),
            (
                Permission::allow().with_input(json(r#"{"command":"pwd"}"#)),
                r#"{"behavior":"allow","updatedInput":{"command":"pwd"}}"#,
            ),
            (
                Permission::allow().with_permissions([PermissionUpdate::AddDirectories(update)]),
                r#"{"behavior":"allow","updatedInput":{"command":"ls"},"updatedPermissions":[{"type":"addDirectories","directories":["/srv"],"destination":"session"}]}"#,
            ),
            (Permission::deny("no"), r#"{"behavior":"deny","message":"no"}"#),
            (
                Permission::deny("no").and_interrupt(),
                r#"{"behavior":"deny","message":"no","interrupt":true}"#,
            ),
            (
                Permission::deny("no").with_input(json("{}")).with_permissions([]),
                r#"{"behavior":"deny","message":"no"}"#,
            ),
            (
                Permission::allow().and_interrupt(),
                r#"{"behavior":"allow","updatedInput":{"command":"ls"}}"#,
            ),
        ] {
            assert_eq!(permission.encode(&input).unwrap().text(), expected);
        }
    }

    #[test]
    fn an_error_of_the_callback_is_told_with_its_reason() {
        let failed: Result<Permission, BoxError> = Err("the database is gone".into());
        assert_eq!(answered(failed, &Json::null()), Err("the database is gone".to_owned()));
    }

    fn json(text: &str) -> Json {
        Json::from_text(text).unwrap()
    }
}
