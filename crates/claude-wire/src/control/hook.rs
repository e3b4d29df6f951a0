//! What the CLI tells a hook callback.

use crate::control::{McpServerRef, PermissionMode, PermissionUpdate};
use crate::id::{AgentId, CallbackId, SessionId, ToolUseId};
use crate::json::{Json, List, Number};

wire_struct! {
    /// What does the host's hook say?
    pub struct HookCallback ["subtype" = "hook_callback"] {
        /// The callback.
        callback_id: CallbackId,
        /// What happened.
        input: HookInput,
        /// The tool call, or another id that stands for the event.
        tool_use_id: Option<ToolUseId>,
    }
}

/// A struct with the fields that every hook input has.
macro_rules! hook_input {
    (
        $(#[$meta:meta])*
        $name:ident = $event:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty $(as $wire:literal)? ),* $(,)?
        }
    ) => {
        wire_struct! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $name ["hook_event_name" = $event] {
                $( $(#[$field_meta])* $field: $type $(as $wire)?, )*
                /// The session.
                session_id: Option<SessionId>,
                /// Where the transcript is.
                transcript_path: Option<String>,
                /// The working directory.
                cwd: Option<String>,
                /// The prompt that is being answered.
                prompt_id: Option<String>,
                /// The permission mode.
                permission_mode: Option<PermissionMode>,
                /// The subagent.
                agent_id: Option<AgentId>,
                /// The kind of subagent.
                agent_type: Option<String>,
                /// How hard the model thinks.
                effort: Option<Json>,
            }
        }
    };
}

open_union! {
    /// What a hook is told, by event.
    pub enum HookInput by "hook_event_name" {
        /// A tool is about to run.
        PreToolUse(Box<PreToolUseInput>) = "PreToolUse",
        /// A tool ran.
        PostToolUse(Box<PostToolUseInput>) = "PostToolUse",
        /// A tool failed.
        PostToolUseFailure(Box<PostToolUseFailureInput>) = "PostToolUseFailure",
        /// A prompt came in.
        UserPromptSubmit(Box<UserPromptSubmitInput>) = "UserPromptSubmit",
        /// The model is done.
        Stop(Box<StopInput>) = "Stop",
        /// A subagent begins.
        SubagentStart(Box<SubagentStartInput>) = "SubagentStart",
        /// A subagent is done.
        SubagentStop(Box<SubagentStopInput>) = "SubagentStop",
        /// The context is about to be made smaller.
        PreCompact(Box<PreCompactInput>) = "PreCompact",
        /// There is something to show to the user.
        Notification(Box<NotificationInput>) = "Notification",
        /// A permission is about to be asked for.
        PermissionRequest(Box<PermissionRequestInput>) = "PermissionRequest",
    }
}

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
    /// A prompt came in.
    UserPromptSubmitInput = "UserPromptSubmit" {
        /// The prompt.
        prompt: Option<String>,
        /// Where it comes from.
        source: Option<String>,
        /// The session's title.
        session_title: Option<String>,
    }
}

hook_input! {
    /// The model is done.
    StopInput = "Stop" {
        /// Whether it goes on only because of a Stop hook.
        stop_hook_active: Option<bool>,
        /// What the model said last.
        last_assistant_message: Option<String>,
        /// Background tasks that still run.
        background_tasks: Option<Json>,
        /// Timers that are set.
        session_crons: Option<Json>,
    }
}

hook_input! {
    /// A subagent begins. Which one stands in `agent_id` and `agent_type`.
    SubagentStartInput = "SubagentStart" {}
}

hook_input! {
    /// A subagent is done. Which one stands in `agent_id` and `agent_type`.
    SubagentStopInput = "SubagentStop" {
        /// Whether it goes on only because of a hook.
        stop_hook_active: Option<bool>,
        /// Where its transcript is.
        agent_transcript_path: Option<String>,
        /// What it said last.
        last_assistant_message: Option<String>,
        /// Background tasks that still run.
        background_tasks: Option<Json>,
        /// Timers that are set.
        session_crons: Option<Json>,
    }
}

hook_input! {
    /// The context is about to be made smaller.
    PreCompactInput = "PreCompact" {
        /// `manual` or `auto`.
        trigger: Option<String>,
        /// What the user asked to keep.
        custom_instructions: Option<String>,
    }
}

hook_input! {
    /// There is something to show to the user.
    NotificationInput = "Notification" {
        /// The text.
        message: Option<String>,
        /// The title.
        title: Option<String>,
        /// What it is about.
        notification_type: Option<String>,
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
