//! Requests for the approval of a tool call.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claude_wire::id::{AgentId, SessionId, ToolUseId};
use claude_wire::visible::visible;
use claude_wire::{Json, ToolInput};
use serde::de::{Deserialize, Deserializer};
use serde::{Serialize, Serializer};
use uuid::Uuid;

use super::fields::Fields;
use crate::json_object::JsonObject;
use crate::{SessionKey, StoreError};

/// The namespace of approval IDs. Changing it would detach pending approvals from their calls.
const NAMESPACE: Uuid = Uuid::from_u128(0x1f0b_62d7_90a4_4a0e_b7c5_5d2e_3a4c_8f61);

/// The ID of an approval: a UUID that is derived from the session and the tool call.
///
/// The same call of the same session always has the same ID; a call with another input, or in another working
/// directory, has another one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ApprovalId(Arc<str>);

impl ApprovalId {
    /// Reads an ID, for example from a URL.
    ///
    /// # Errors
    /// Fails if the text is not a UUID.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        let shown = || text.chars().take(64).collect::<String>();
        let uuid = Uuid::try_parse(text).map_err(|_| {
            StoreError::rejected(format!("{:?} is not an approval ID", shown()))
                .with_help("pass a UUID")
        })?;
        Ok(Self::of(uuid))
    }

    fn of(uuid: Uuid) -> Self {
        Self(uuid.to_string().into())
    }

    /// Derives the ID of the approval of a tool call.
    pub fn derive(
        session: &SessionId,
        tool_use: &ToolUseId,
        tool: &str,
        input: &Json,
        cwd: Option<&Path>,
    ) -> Self {
        let cwd = cwd.map(Path::to_string_lossy).unwrap_or_default();
        // JSON separates the parts unambiguously.
        let parts = [session.as_str(), tool_use.as_str(), tool, &canonical(input), &cwd];
        let text = serde_json::to_string(&parts).unwrap_or_default();
        Self::of(Uuid::new_v5(&NAMESPACE, text.as_bytes()))
    }

    /// Returns the ID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Serialize for ApprovalId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ApprovalId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Returns the text of a value with its keys sorted and without insignificant spaces, so that equal inputs have
/// equal texts. Text that cannot be parsed is used as it is.
fn canonical(input: &Json) -> String {
    let sorted = input.deserialize::<serde_json::Value>().map(sort_keys);
    sorted.map_or_else(|_| input.text().to_owned(), |value| value.to_string())
}

/// Sorts keys: another crate may switch on the feature of `serde_json` that keeps their order.
fn sort_keys(value: serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Object(fields) => {
            let mut entries = Vec::with_capacity(fields.len());
            for entry in fields {
                entries.push(entry);
            }
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            let mut sorted = serde_json::Map::new();
            for (name, value) in entries {
                sorted.insert(name, sort_keys(value));
            }
            serde_json::Value::Object(sorted)
        }
        serde_json::Value::Array(mut values) => {
            for value in &mut values {
                *value = sort_keys(value.take());
            }
            serde_json::Value::Array(values)
        }
        other => other,
    }
}

/// A tool call that an approver has to decide about: a value that can be stored, sent and read by any process.
///
/// Serializes as one JSON object; fields without a value are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The ID of the approval.
    pub id: ApprovalId,
    /// The scope, which the host chooses, such as a tenant.
    pub scope: String,
    /// The session that made the call.
    pub session_id: SessionId,
    /// The project under which a session store has the session.
    pub project: Option<String>,
    /// The directory in which the tool runs. The approval is valid for this directory only.
    pub cwd: Option<PathBuf>,
    /// The ID of the tool call.
    pub tool_use_id: ToolUseId,
    /// The name of the tool.
    pub tool_name: String,
    /// The input of the call.
    pub input: Json,
    /// The subagent that made the call; `None` for the main conversation.
    pub agent_id: Option<AgentId>,
    /// The time of the request in milliseconds since the Unix epoch, on the clock of the store.
    pub requested_at_ms: u64,
    /// The time at which the request expires, on the same clock; `None` without an expiry.
    pub expires_at_ms: Option<u64>,
    /// An earlier approval of the same call whose outcome is unknown: the tool may have run already.
    pub repeats: Option<ApprovalId>,
    /// An open approval of the same call in another working directory, which does not apply here: the model changed
    /// the directory, or the conversation was moved.
    pub moved_from: Option<ApprovalId>,
}

impl ApprovalRequest {
    /// Creates the request for a call that no subagent made, in an unknown directory and without an expiry. The other
    /// fields are public.
    pub fn new(
        id: ApprovalId,
        scope: impl Into<String>,
        session_id: SessionId,
        tool_use_id: ToolUseId,
        tool_name: impl Into<String>,
        input: Json,
        requested_at_ms: u64,
    ) -> Self {
        Self {
            id,
            scope: scope.into(),
            session_id,
            project: None,
            cwd: None,
            tool_use_id,
            tool_name: tool_name.into(),
            input,
            agent_id: None,
            requested_at_ms,
            expires_at_ms: None,
            repeats: None,
            moved_from: None,
        }
    }

    /// Describes the call for an approver, in full: the tool, its input as JSON, the working directory, and the
    /// subagent if there is one. Everything is [`visible`], in several lines.
    pub fn description(&self) -> String {
        let mut text = format!("{} {}", visible(&self.tool_name), visible(self.input.text()));
        let mut line = |name: &str, value: &str| {
            text.push_str("\n  ");
            text.push_str(name);
            text.push_str(&visible(value).to_string());
        };
        match &self.cwd {
            Some(cwd) => line("in ", &cwd.to_string_lossy()),
            None => line("in an unknown directory", ""),
        }
        if let Some(agent) = &self.agent_id {
            line("by the subagent ", agent.as_str());
        }
        if let Some(earlier) = &self.repeats {
            line("approved before, and may have run already: ", earlier.as_str());
        }
        if let Some(earlier) = &self.moved_from {
            line("requested before in another directory: ", earlier.as_str());
        }
        text
    }

    /// Reads the input of the tool as a type.
    pub fn tool_input(&self) -> ToolInput {
        ToolInput::new(&self.tool_name, &self.input)
    }

    /// Returns the key under which a session store has the session; `None` without a store.
    pub fn store_key(&self) -> Option<SessionKey> {
        SessionKey::new(&self.scope, self.project.as_deref()?, self.session_id.clone()).ok()
    }

    /// Returns whether the request has expired at this time on the clock of the store.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|expiry| now_ms >= expiry)
    }

    /// Returns whether a call has this tool and this input.
    pub fn is_for(&self, tool: &str, input: &Json) -> bool {
        self.tool_name == tool
            && (self.input == *input || canonical(&self.input) == canonical(input))
    }
}

impl Serialize for ApprovalRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "approval_request")?;
        object.field("id", &self.id)?;
        object.field("scope", &self.scope)?;
        object.field("session_id", &self.session_id)?;
        object.optional("project", self.project.as_ref())?;
        object.optional("cwd", self.cwd.as_ref())?;
        object.field("tool_use_id", &self.tool_use_id)?;
        object.field("tool_name", &self.tool_name)?;
        object.field("input", &self.input)?;
        object.optional("agent_id", self.agent_id.as_ref())?;
        object.field("requested_at_ms", &self.requested_at_ms)?;
        object.optional("expires_at_ms", self.expires_at_ms.as_ref())?;
        object.optional("repeats", self.repeats.as_ref())?;
        object.optional("moved_from", self.moved_from.as_ref())?;
        object.end()
    }
}

impl<'de> Deserialize<'de> for ApprovalRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = Fields::read(deserializer)?;
        Ok(Self {
            id: fields.required("id")?,
            scope: fields.required("scope")?,
            session_id: fields.required("session_id")?,
            project: fields.optional("project")?,
            cwd: fields.optional("cwd")?,
            tool_use_id: fields.required("tool_use_id")?,
            tool_name: fields.required("tool_name")?,
            input: fields.required("input")?,
            agent_id: fields.optional("agent_id")?,
            requested_at_ms: fields.required("requested_at_ms")?,
            expires_at_ms: fields.optional("expires_at_ms")?,
            repeats: fields.optional("repeats")?,
            moved_from: fields.optional("moved_from")?,
        })
    }
}
