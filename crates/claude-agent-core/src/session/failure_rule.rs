//! The response to a request of the CLI whose callback does not respond.

use std::sync::Arc;

use claude_wire::control::{
    HookDenial, HookOutput, McpResponse, PermissionDeny, PermissionResponse,
};
use claude_wire::{Extra, Json};
use serde::Serialize;

use super::event::FailureResponse;

/// Determines the response to a request whose callback failed, timed out or does not exist.
#[derive(Clone, Debug)]
pub(super) enum FailureRule {
    Hook {
        event: Arc<str>,
        closed: bool,
    },
    Permission {
        tool: String,
    },
    /// Declines the elicitation.
    Elicitation {
        server: String,
    },
    /// Cancels the dialog.
    Dialog {
        kind: String,
    },
    Mcp {
        server: String,
        /// The ID of the JSON-RPC request; `None` for a notification.
        id: Option<Json>,
        /// The tool that is called, if one is.
        tool: Option<String>,
    },
    /// Acknowledges a response of the CLI to a request of the server.
    McpResponse {
        server: String,
    },
}

impl FailureRule {
    /// Describes the request for warnings.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Hook { event, .. } => format!("hook for {event}"),
            Self::Permission { tool } => format!("permission for {tool}"),
            Self::Elicitation { server } => format!("elicitation of the MCP server {server}"),
            Self::Dialog { kind } => format!("dialog {kind}"),
            Self::Mcp { server, tool: Some(tool), .. } => {
                format!("tool `{tool}` of the MCP server `{server}`")
            }
            Self::Mcp { server, tool: None, .. } => format!("message for the MCP server {server}"),
            Self::McpResponse { server } => format!("response for the MCP server {server}"),
        }
    }

    /// Returns whether the request contains this JSON-RPC request for this server.
    pub(super) fn is_for(&self, name: &str, rpc_id: &Json) -> bool {
        matches!(self, Self::Mcp { server, id: Some(id), .. } if server == name && id == rpc_id)
    }

    /// Returns the effect of [`Self::response`].
    pub(super) fn effect(&self) -> FailureResponse {
        match self {
            Self::Hook { event, closed } => {
                let denies = *closed && HookDenial::for_event(event) != HookDenial::Impossible;
                if denies { FailureResponse::Deny } else { FailureResponse::Continue }
            }
            Self::Permission { .. } | Self::Elicitation { .. } | Self::Dialog { .. } => {
                FailureResponse::Deny
            }
            Self::Mcp { id: Some(_), .. } => FailureResponse::Error,
            Self::Mcp { id: None, .. } | Self::McpResponse { .. } => FailureResponse::Acknowledge,
        }
    }

    /// Returns the response if the callback failed.
    pub(super) fn response(&self, reason: &str) -> Json {
        match self {
            Self::Hook { closed: false, .. } => continue_output(),
            _ => self.denial(reason),
        }
    }

    /// Returns the response if there are too many requests: it never approves anything.
    pub(super) fn denial(&self, reason: &str) -> Json {
        match self {
            Self::Hook { event, .. } => encoded(&HookOutput::denying(event, reason)),
            Self::Permission { .. } => deny(reason),
            Self::Elicitation { .. } => decline(),
            Self::Dialog { .. } => cancel_dialog(),
            Self::Mcp { id: Some(id), .. } => mcp_error(id, -32603, reason),
            Self::Mcp { id: None, .. } | Self::McpResponse { .. } => mcp_acknowledgement(),
        }
    }
}

fn continue_output() -> Json {
    let mut output = HookOutput::default();
    output.continue_ = Some(true);
    encoded(&output)
}

fn deny(reason: &str) -> Json {
    encoded(&PermissionResponse::from(PermissionDeny::because(reason)))
}

/// Declines an elicitation.
pub(super) fn decline() -> Json {
    Json::from_text(r#"{"action":"decline"}"#).unwrap_or_default()
}

fn cancel_dialog() -> Json {
    Json::from_text(r#"{"behavior":"cancelled"}"#).unwrap_or_default()
}

/// Returns whether a message is the response to a request of the server.
pub(super) fn is_mcp_response(message: &Json) -> bool {
    // Parsing is avoided for most messages, of which some are large.
    let text = message.text();
    if !text.contains("\"result\"") && !text.contains("\"error\"") {
        return false;
    }
    let fields: Extra = message.deserialize().unwrap_or_default();
    fields.get("method").is_none()
        && (fields.get("result").is_some() || fields.get("error").is_some())
}

/// Returns the ID of a JSON-RPC request, unchanged; `None` for a notification.
pub(super) fn mcp_id(message: &Json) -> Option<Json> {
    let fields: Extra = message.deserialize().ok()?;
    fields.get("method")?;
    fields.get("id").cloned()
}

/// Returns the name of the tool that a message calls, if it calls one.
pub(super) fn mcp_tool(message: &Json) -> Option<String> {
    // Parsing is avoided for messages that cannot be calls.
    if !message.text().contains("tools/call") {
        return None;
    }
    let fields: Extra = message.deserialize().ok()?;
    let method: String = fields.get("method")?.deserialize().ok()?;
    let params: Extra = fields.get("params")?.deserialize().ok()?;
    (method == "tools/call").then(|| params.get("name")?.deserialize().ok())?
}

/// Returns the ID of the JSON-RPC request that a message cancels, if it is a cancellation.
pub(super) fn mcp_cancelled(message: &Json) -> Option<Json> {
    // Parsing is avoided for most messages, of which some are large.
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
    mcp_response(text)
}

/// Returns the response to a notification: JSON-RPC has none, but the control request needs one.
pub(super) fn mcp_acknowledgement() -> Json {
    mcp_response(r#"{"jsonrpc":"2.0","result":{}}"#.to_owned())
}

fn mcp_response(text: String) -> Json {
    encoded(&McpResponse::new(Json::from_text(text).unwrap_or_default()))
}

fn encoded(response: &impl Serialize) -> Json {
    // Text and booleans can always be encoded.
    Json::from_serialize(response).unwrap_or_default()
}
