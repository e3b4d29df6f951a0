//! What the CLI is answered when nobody else answers it.

use std::sync::Arc;

use super::refusal::{self, HookRefusal};
use crate::control::{HookOutput, McpResponse, PermissionDeny, PermissionResponse};
use crate::json::{Extra, Json};

/// How a request is answered that its callback did not answer.
#[derive(Clone, Debug)]
pub(super) enum FailRule {
    Hook {
        event: Arc<str>,
        closed: bool,
    },
    Permission {
        tool: String,
    },
    /// A question of a server is declined.
    Elicitation {
        server: String,
    },
    /// A dialog is cancelled.
    Dialog {
        kind: String,
    },
    Mcp {
        server: String,
        /// What the JSON-RPC answer must name; none for a notification.
        id: Option<Json>,
    },
    /// The CLI answers a request of a server.
    McpResponse {
        server: String,
    },
}

impl FailRule {
    /// What was asked, in words.
    pub(super) fn what(&self) -> String {
        match self {
            Self::Hook { event, .. } => format!("hook for {event}"),
            Self::Permission { tool } => format!("permission for {tool}"),
            Self::Elicitation { server } => format!("question of the MCP server {server}"),
            Self::Dialog { kind } => format!("dialog {kind}"),
            Self::Mcp { server, .. } => format!("message for the MCP server {server}"),
            Self::McpResponse { server } => format!("answer for the MCP server {server}"),
        }
    }

    /// Whether it is for this JSON-RPC request of this server.
    pub(super) fn is_for(&self, name: &str, rpc_id: &Json) -> bool {
        matches!(self, Self::Mcp { server, id: Some(id) } if server == name && id == rpc_id)
    }

    /// Whether the answer is a refusal.
    pub(super) fn refuses(&self) -> bool {
        match self {
            Self::Hook { event, closed } => {
                *closed && HookRefusal::of(event) != HookRefusal::Impossible
            }
            Self::Permission { .. }
            | Self::Elicitation { .. }
            | Self::Dialog { .. }
            | Self::Mcp { .. }
            | Self::McpResponse { .. } => true,
        }
    }

    /// The answer when the callback failed.
    pub(super) fn answer(&self, reason: &str) -> Json {
        match self {
            Self::Hook { closed: false, .. } => go_on(),
            _ => self.refusal(reason),
        }
    }

    /// The answer when there are too many: it never lets anything through.
    pub(super) fn refusal(&self, reason: &str) -> Json {
        match self {
            Self::Hook { event, .. } => encoded(&refusal::response(event, reason)),
            Self::Permission { .. } => deny(reason),
            Self::Elicitation { .. } => decline(),
            Self::Dialog { .. } => cancel_dialog(),
            Self::Mcp { id: Some(id), .. } => mcp_error(id, -32603, reason),
            Self::Mcp { id: None, .. } | Self::McpResponse { .. } => mcp_acknowledgement(),
        }
    }
}

fn go_on() -> Json {
    encoded(&HookOutput { go_on: Some(true), ..HookOutput::default() })
}

fn deny(reason: &str) -> Json {
    encoded(&PermissionResponse::from(PermissionDeny::because(reason)))
}

/// What a question of a server is answered where nobody does.
pub(super) fn decline() -> Json {
    Json::from_text(r#"{"action":"decline"}"#).unwrap_or_default()
}

fn cancel_dialog() -> Json {
    Json::from_text(r#"{"behavior":"cancelled"}"#).unwrap_or_default()
}

/// Whether a message is the answer to a request of the server.
pub(super) fn is_mcp_answer(message: &Json) -> bool {
    // Most messages are none, and some are large.
    let text = message.text();
    if !text.contains("\"result\"") && !text.contains("\"error\"") {
        return false;
    }
    let fields: Extra = message.deserialize().unwrap_or_default();
    fields.get("method").is_none()
        && (fields.get("result").is_some() || fields.get("error").is_some())
}

/// The id of a JSON-RPC request, as it stands there; a notification has none.
pub(super) fn mcp_id(message: &Json) -> Option<Json> {
    let fields: Extra = message.deserialize().ok()?;
    fields.get("method")?;
    fields.get("id").cloned()
}

/// The id of the JSON-RPC request that a message withdraws, if it is one that does.
pub(super) fn mcp_cancelled(message: &Json) -> Option<Json> {
    // Most messages are none, and some are large.
    if !message.text().contains("notifications/cancelled") {
        return None;
    }
    let fields: Extra = message.deserialize().ok()?;
    let method: String = fields.get("method")?.deserialize().ok()?;
    let params: Extra = fields.get("params")?.deserialize().ok()?;
    (method == "notifications/cancelled").then(|| params.get("requestId").cloned())?
}

pub(super) fn mcp_error(id: &Json, code: i32, message: &str) -> Json {
    let message = Json::from(message);
    let text =
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":{message}}}}}"#);
    mcp_answer(text)
}

/// What a notification is answered: nothing, but the control request wants an answer.
pub(super) fn mcp_acknowledgement() -> Json {
    mcp_answer(r#"{"jsonrpc":"2.0","result":{}}"#.to_owned())
}

fn mcp_answer(text: String) -> Json {
    encoded(&McpResponse::new(Json::from_text(text).unwrap_or_default()))
}

fn encoded(answer: &impl serde::Serialize) -> Json {
    // Answers are made of texts and JSON text, so writing them cannot fail.
    Json::from_serialize(answer).unwrap_or_default()
}
