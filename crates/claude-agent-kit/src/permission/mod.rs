//! Permission requests and decisions.

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

use crate::callback::{BoxError, CallResult, IntoCallbackResult, error_text, sealed};
use claude_session_store::json_object::JsonObject;

/// A permission request: a tool call that no permission rule allows or denies.
///
/// Serialises as one JSON object, without `raw`; fields without a value are left out:
/// `{"type":"permission_request","id":…,"session_id":…,"tool_use_id":…,"tool_name":…,"input":{…},
/// "suggestions":[…],…}`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolRequest {
    /// The ID of the request, unique across all sessions. It is the same in the callback, in
    /// [`Item::PermissionRequest`](crate::Item::PermissionRequest) and in a [`PermissionInbox`].
    pub id: String,
    /// The name of the tool.
    pub tool_name: String,
    /// The arguments of the call.
    pub input: Json,
    /// Changes of the permission rules that would allow similar calls in the future, for
    /// [`Permission::with_permissions`].
    pub suggestions: Vec<PermissionUpdate>,
    /// The path that caused the request.
    pub blocked_path: Option<String>,
    /// The reason for the request.
    pub decision_reason: Option<String>,
    /// The kind of the reason.
    pub decision_reason_type: Option<String>,
    /// A title to show.
    pub title: Option<String>,
    /// The name of the tool to show.
    pub display_name: Option<String>,
    /// What the call does, in the model's words.
    pub description: Option<String>,
    /// Whether a user has to decide.
    pub requires_user_interaction: bool,
    /// Whether "no" should be preselected.
    pub default_to_no: bool,
    /// Whether "always allow" should not be offered.
    pub suppress_always_allow_rule: bool,
    /// The ID of the tool call.
    pub tool_use_id: Option<ToolUseId>,
    /// The subagent that makes the call.
    pub agent_id: Option<AgentId>,
    /// The MCP server that the tool belongs to.
    pub mcp_server: Option<McpServerRef>,
    /// The session, if its ID is known.
    pub session_id: Option<SessionId>,
    /// The whole line of the request.
    pub raw: Bytes,
}

/// The run that a permission request belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct PermissionOrigin {
    /// Identifies the run.
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
        request: CanUseTool,
        origin: PermissionOrigin,
        raw: Bytes,
    ) -> Self {
        Self {
            id: format!("{:08x}-{request_id}", origin.run),
            tool_name: request.tool_name,
            input: request.input,
            suggestions: request.permission_suggestions.into_vec(),
            blocked_path: request.blocked_path,
            decision_reason: request.decision_reason,
            decision_reason_type: request.decision_reason_type,
            title: request.title,
            display_name: request.display_name,
            description: request.description,
            requires_user_interaction: request.requires_user_interaction.unwrap_or_default(),
            default_to_no: request.default_to_no.unwrap_or_default(),
            suppress_always_allow_rule: request.suppress_always_allow_rule.unwrap_or_default(),
            tool_use_id: request.tool_use_id,
            agent_id: request.agent_id,
            mcp_server: request.mcp_server,
            session_id: origin.session_id,
            raw,
        }
    }

    /// Reads the line of a permission request; `None` if it is something else.
    pub(crate) fn decode(line: Bytes, origin: PermissionOrigin) -> Option<Self> {
        let FromCli::Request(request) = FromCli::decode(line.clone()).ok()? else { return None };
        let CliControlRequest { request_id, request, .. } = *request;
        let CliRequest::CanUseTool(request) = request else { return None };
        Some(Self::new(&request_id, *request, origin, line))
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

/// The decision about a permission request.
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
    /// Allows the tool to run with the requested arguments.
    pub fn allow() -> Self {
        Self(Decision::Allow(PermissionAllow::default()))
    }

    /// Denies the tool call. The model reads the message.
    pub fn deny(message: impl Into<String>) -> Self {
        Self(Decision::Deny(PermissionDeny::because(message)))
    }

    /// Replaces all arguments of the tool call. Has no effect on a denial.
    pub fn with_input(mut self, input: impl Into<Json>) -> Self {
        if let Decision::Allow(allow) = &mut self.0 {
            allow.updated_input = Some(input.into());
        }
        self
    }

    /// Changes permission rules as well. Replaces earlier updates; has no effect on a denial.
    pub fn with_permissions(mut self, updates: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        if let Decision::Allow(allow) = &mut self.0 {
            allow.updated_permissions = updates.into_iter().collect();
        }
        self
    }

    /// Interrupts the turn as well. Has no effect unless the call is denied.
    pub fn and_interrupt(mut self) -> Self {
        if let Decision::Deny(deny) = &mut self.0 {
            deny.interrupt = Some(true);
        }
        self
    }

    /// Encodes the response to a request with these arguments, which the CLI requires in the response.
    fn encode(self, input: &Json) -> CallResult {
        let response = match self.0 {
            Decision::Allow(mut allow) => {
                allow.updated_input.get_or_insert_with(|| input.clone());
                PermissionResponse::from(allow)
            }
            Decision::Deny(deny) => PermissionResponse::from(deny),
        };
        Json::from_serialize(&response).map_err(|error| error.to_string())
    }
}

impl sealed::Sealed for Permission {}

impl IntoCallbackResult<Permission> for Permission {
    fn into_result(self) -> Result<Permission, BoxError> {
        Ok(self)
    }
}

/// Encodes the return value of a callback.
pub(crate) fn encode_response(
    returned: impl IntoCallbackResult<Permission>,
    input: &Json,
) -> CallResult {
    returned.into_result().map_err(|error| error_text(&error))?.encode(input)
}

#[cfg(test)]
mod encoding_tests {
    use claude_wire::control::{DirectoriesUpdate, PermissionDestination};

    use super::*;

    #[test]
    fn each_permission_is_encoded_for_the_cli() {
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
    fn error_of_the_callback_is_reported_with_its_reason() {
        let failed: Result<Permission, BoxError> = Err("the database is gone".into());
        assert_eq!(encode_response(failed, &Json::null()), Err("the database is gone".to_owned()));
    }

    fn json(text: &str) -> Json {
        Json::from_text(text).unwrap()
    }
}
