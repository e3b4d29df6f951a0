//! Tools and permissions.

use crate::control::{HookPermission, HookPermissionResponse, McpServerRef, PermissionUpdate};
use crate::id::ToolUseId;
use crate::json::{Json, List, Number};
use crate::tool_input::tool_call_view;

hook_input! {
    /// A tool is about to run.
    PreToolUseInput = "PreToolUse" {
        /// The tool.
        tool_name: Option<String>,
        /// The input.
        input: Option<Json> as "tool_input",
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_output! {
    /// The output for a tool that is about to run.
    PreToolUseOutput = "PreToolUse" {
        /// The permission decision.
        permission_decision: Option<HookPermission> as "permissionDecision",
        /// The reason for the model.
        permission_decision_reason: Option<String> as "permissionDecisionReason",
        /// The replacement input.
        updated_input: Option<Json> as "updatedInput",
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// A tool ran.
    PostToolUseInput = "PostToolUse" {
        /// The tool.
        tool_name: Option<String>,
        /// The input.
        input: Option<Json> as "tool_input",
        /// The structured result of the tool; its schema depends on the tool.
        tool_response: Option<Json>,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The duration in milliseconds.
        duration_ms: Option<Number>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_output! {
    /// The output for a tool that ran.
    PostToolUseOutput = "PostToolUse" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
        /// Additional context for the classifier that decides about permissions.
        classifier_context: Option<String> as "classifierContext",
        /// The replacement of the result.
        updated_tool_output: Option<Json> as "updatedToolOutput",
        /// The replacement of the result of an MCP tool.
        updated_mcp_tool_output: Option<Json> as "updatedMCPToolOutput",
    }
}

hook_input! {
    /// A tool failed.
    PostToolUseFailureInput = "PostToolUseFailure" {
        /// The tool.
        tool_name: Option<String>,
        /// The input.
        input: Option<Json> as "tool_input",
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The error.
        error: Option<String>,
        /// Whether it was interrupted.
        is_interrupt: Option<bool>,
        /// The duration in milliseconds.
        duration_ms: Option<Number>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_output! {
    /// The output for a tool that failed.
    PostToolUseFailureOutput = "PostToolUseFailure" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// All tools of one answer have run.
    PostToolBatchInput = "PostToolBatch" {
        /// The tool calls.
        tool_calls: List<BatchedToolCall>,
    }
}

hook_output! {
    /// The output for a batch of tool calls.
    PostToolBatchOutput = "PostToolBatch" {
        /// Additional context for the model.
        additional_context: Option<String> as "additionalContext",
    }
}

wire_struct! {
    /// A tool call of a batch.
    #[derive(Default)]
    pub struct BatchedToolCall {
        /// The tool.
        tool_name: Option<String>,
        /// The input.
        input: Option<Json> as "tool_input",
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The result.
        tool_response: Option<Json>,
    }
}

hook_input! {
    /// A permission prompt is about to be shown.
    PermissionRequestInput = "PermissionRequest" {
        /// The tool.
        tool_name: Option<String>,
        /// The input.
        input: Option<Json> as "tool_input",
        /// Suggested rule changes that avoid the same prompt in the future.
        permission_suggestions: List<PermissionUpdate>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_output! {
    /// The output for a permission prompt.
    PermissionRequestOutput = "PermissionRequest" {
        /// The decision; absent to show the prompt.
        decision: Option<HookPermissionResponse>,
    }
}

hook_input! {
    /// A tool call was denied.
    PermissionDeniedInput = "PermissionDenied" {
        /// The tool.
        tool_name: Option<String>,
        /// The input.
        input: Option<Json> as "tool_input",
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The reason.
        reason: Option<String>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_output! {
    /// The output for a denied tool call.
    PermissionDeniedOutput = "PermissionDenied" {
        /// Whether the model may try again.
        retry: Option<bool>,
    }
}

tool_call_view!(
    PreToolUseInput,
    PostToolUseInput,
    PostToolUseFailureInput,
    BatchedToolCall,
    PermissionRequestInput,
    PermissionDeniedInput,
);
