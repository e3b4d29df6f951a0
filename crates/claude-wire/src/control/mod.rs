//! The control protocol: requests in both directions and their answers, one file per conversation.

mod agent;
mod frame;
mod hook_input;
mod hook_output;
mod initialize;
mod mcp;
mod operation;
mod permission;

pub use agent::*;
pub use frame::*;
pub use hook_input::*;
pub use hook_output::*;
pub use initialize::*;
pub use mcp::*;
pub use operation::*;
pub use permission::*;

use crate::id::{AgentId, ToolUseId};
use crate::json::{Json, List};

open_union! {
    /// What the CLI asks the host.
    pub enum CliRequest by "subtype" {
        /// May this tool run?
        CanUseTool(Box<CanUseTool>) = "can_use_tool",
        /// What does the host's hook say?
        HookCallback(Box<HookCallback>) = "hook_callback",
        /// A message for a server inside the host.
        McpMessage(McpMessage) = "mcp_message",
        /// An MCP server has a question for the user.
        Elicitation(Box<Elicitation>) = "elicitation",
        /// The CLI has a question for the user.
        RequestUserDialog(UserDialog) = "request_user_dialog",
    }
}

open_union! {
    /// What the host asks the CLI.
    pub enum HostRequest by "subtype" {
        /// The handshake.
        Initialize(Box<Initialize>) = "initialize",
        /// End the turn that runs.
        Interrupt(Interrupt) = "interrupt",
        /// Change the permission mode.
        SetPermissionMode(SetPermissionMode) = "set_permission_mode",
        /// Change the model.
        SetModel(SetModel) = "set_model",
        /// Change how much the model thinks.
        SetMaxThinkingTokens(SetMaxThinkingTokens) = "set_max_thinking_tokens",
        /// Which MCP servers are there?
        McpStatus(McpStatus) = "mcp_status",
        /// Connect an MCP server again.
        McpReconnect(McpReconnect) = "mcp_reconnect",
        /// Switch an MCP server on or off.
        McpToggle(McpToggle) = "mcp_toggle",
        /// Replace the MCP servers.
        McpSetServers(McpSetServers) = "mcp_set_servers",
        /// A message of a server inside the host.
        McpMessage(McpMessage) = "mcp_message",
        /// What fills the context?
        GetContextUsage(GetContextUsage) = "get_context_usage",
        /// Put files back to where they were.
        RewindFiles(RewindFiles) = "rewind_files",
        /// End a background task.
        StopTask(StopTask) = "stop_task",
        /// Withdraw a message that waits.
        CancelAsyncMessage(CancelAsyncMessage) = "cancel_async_message",
        /// Make another directory part of the session.
        RegisterRepoRoot(RegisterRepoRoot) = "register_repo_root",
    }
}

wire_struct! {
    /// An MCP server has a question for the user.
    #[derive(Default)]
    pub struct Elicitation ["subtype" = "elicitation"] {
        /// The server.
        mcp_server_name: String,
        /// The question.
        message: Option<String>,
        /// `form` or `url`.
        mode: Option<String>,
        /// Where the user should go.
        url: Option<String>,
        /// The question's id.
        elicitation_id: Option<String>,
        /// The schema of the answer.
        requested_schema: Option<Json>,
        /// The order in which to ask.
        property_order: List<String>,
        /// A title to show.
        title: Option<String>,
        /// The server's name to show.
        display_name: Option<String>,
        /// A description to show.
        description: Option<String>,
        /// The subagent.
        agent_id: Option<AgentId>,
    }
}

wire_struct! {
    /// The CLI has a question for the user.
    #[derive(Default)]
    pub struct UserDialog ["subtype" = "request_user_dialog"] {
        /// The kind of question.
        dialog_kind: String,
        /// The question, in that kind's own shape.
        payload: Option<Json>,
        /// The tool call that it is about.
        tool_use_id: Option<ToolUseId>,
    }
}
