//! Tools and permissions.

use crate::control::{McpServerRef, PermissionUpdate};
use crate::id::ToolUseId;
use crate::json::{Json, List, Number};

hook_input! {
    /// A tool is about to run.
    PreToolUseInput = "PreToolUse" {
        /// The tool.
        tool_name: Option<String>,
        /// The arguments.
        tool_input: Option<Json>,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_input! {
    /// A tool ran.
    PostToolUseInput = "PostToolUse" {
        /// The tool.
        tool_name: Option<String>,
        /// The arguments.
        tool_input: Option<Json>,
        /// What it gave, in the tool's own shape.
        tool_response: Option<Json>,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// Milliseconds that it took.
        duration_ms: Option<Number>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_input! {
    /// A tool failed.
    PostToolUseFailureInput = "PostToolUseFailure" {
        /// The tool.
        tool_name: Option<String>,
        /// The arguments.
        tool_input: Option<Json>,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// What went wrong.
        error: Option<String>,
        /// Whether it was interrupted.
        is_interrupt: Option<bool>,
        /// Milliseconds that it took.
        duration_ms: Option<Number>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_input! {
    /// All tools of one answer ran.
    PostToolBatchInput = "PostToolBatch" {
        /// The calls.
        tool_calls: List<BatchedToolCall>,
    }
}

wire_struct! {
    /// A tool call among several.
    #[derive(Default)]
    pub struct BatchedToolCall {
        /// The tool.
        tool_name: Option<String>,
        /// The arguments.
        tool_input: Option<Json>,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// What it gave.
        tool_response: Option<Json>,
    }
}

hook_input! {
    /// A permission is about to be asked for.
    PermissionRequestInput = "PermissionRequest" {
        /// The tool.
        tool_name: Option<String>,
        /// The arguments.
        tool_input: Option<Json>,
        /// Changes of the rules with which this would not be asked again.
        permission_suggestions: List<PermissionUpdate>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_input! {
    /// A tool was not allowed to run.
    PermissionDeniedInput = "PermissionDenied" {
        /// The tool.
        tool_name: Option<String>,
        /// The arguments.
        tool_input: Option<Json>,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// Why not.
        reason: Option<String>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}
