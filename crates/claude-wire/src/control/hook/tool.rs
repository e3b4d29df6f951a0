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
    /// For a tool that is about to run.
    PreToolUseOutput = "PreToolUse" {
        /// Whether it may.
        permission_decision: Option<HookPermission> as "permissionDecision",
        /// Why, for the model.
        permission_decision_reason: Option<String> as "permissionDecisionReason",
        /// The arguments with which it runs.
        updated_input: Option<Json> as "updatedInput",
        /// What the model is told besides.
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

hook_output! {
    /// For a tool that ran.
    PostToolUseOutput = "PostToolUse" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
        /// What the model that decides about permissions is told.
        classifier_context: Option<String> as "classifierContext",
        /// What the tool gave, changed.
        updated_tool_output: Option<Json> as "updatedToolOutput",
        /// The same for a tool of an MCP server.
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

hook_output! {
    /// For a tool that failed.
    PostToolUseFailureOutput = "PostToolUseFailure" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// All tools of one answer ran.
    PostToolBatchInput = "PostToolBatch" {
        /// The calls.
        tool_calls: List<BatchedToolCall>,
    }
}

hook_output! {
    /// For all tools of one answer.
    PostToolBatchOutput = "PostToolBatch" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
}

wire_struct! {
    /// A tool call among several.
    #[derive(Default)]
    pub struct BatchedToolCall {
        /// The tool.
        tool_name: Option<String>,
        /// The input.
        input: Option<Json> as "tool_input",
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
        /// The input.
        input: Option<Json> as "tool_input",
        /// Changes of the rules with which this would not be asked again.
        permission_suggestions: List<PermissionUpdate>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_output! {
    /// For a permission that is about to be asked for.
    PermissionRequestOutput = "PermissionRequest" {
        /// The answer; absent leaves it to be asked.
        decision: Option<HookPermissionResponse>,
    }
}

hook_input! {
    /// A tool was not allowed to run.
    PermissionDeniedInput = "PermissionDenied" {
        /// The tool.
        tool_name: Option<String>,
        /// The input.
        input: Option<Json> as "tool_input",
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// Why not.
        reason: Option<String>,
        /// The MCP server that the tool belongs to.
        mcp_server: Option<McpServerRef>,
    }
}

hook_output! {
    /// For a tool that was not allowed to run.
    PermissionDeniedOutput = "PermissionDenied" {
        /// Whether the model is told that it may try again.
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
