//! Items of streams.

use claude_wire::Message;
use serde::{Serialize, Serializer};

use crate::permission::ToolRequest;
use crate::warning::Warning;
use claude_session_store::json_object::JsonObject;

/// An item of a stream: a message of the CLI, a permission request, or a warning.
///
/// Items implement [`Serialize`] as JSON objects, so that a service can forward them:
///
/// | item | JSON |
/// |---|---|
/// | message | `{"type":"message","message":{…}}` with the message as the CLI sent it |
/// | permission request | `{"type":"permission_request","id":…,"tool_name":…,"input":{…},…}`, see [`ToolRequest`] |
/// | warning | `{"type":"warning","code":…,"text":…,…}`, see [`Warning`] |
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_enums, reason = "hosts match on it in every loop")]
pub enum Item {
    /// A message.
    Message(Message),
    /// A permission request, after the message with the tool call.
    ///
    /// Every request that is passed to the callback of [`can_use_tool`](crate::Options::can_use_tool) is
    /// also an item, before the callback is called. Questions for
    /// [`ask_user`](crate::Options::ask_user) are not. The item is informational, for example to show
    /// the request in a user interface; the callback decides.
    PermissionRequest(Box<ToolRequest>),
    /// A warning: something unexpected happened, and the run continued.
    Warning(Warning),
}

impl Item {
    /// Returns the message, if the item is one.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::PermissionRequest(_) | Self::Warning(_) => None,
        }
    }

    /// Returns the permission request, if the item is one.
    pub fn permission_request(&self) -> Option<&ToolRequest> {
        match self {
            Self::PermissionRequest(request) => Some(request),
            Self::Message(_) | Self::Warning(_) => None,
        }
    }

    /// Returns the warning, if the item is one.
    pub fn warning(&self) -> Option<&Warning> {
        match self {
            Self::Warning(warning) => Some(warning),
            Self::Message(_) | Self::PermissionRequest(_) => None,
        }
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Message(message) => {
                let mut object = JsonObject::new(serializer, "message")?;
                object.field("message", message)?;
                object.end()
            }
            Self::PermissionRequest(request) => request.serialize(serializer),
            Self::Warning(warning) => warning.serialize(serializer),
        }
    }
}
