//! The control protocol: requests in both directions and their responses.

mod agent;
mod frame;
pub(crate) mod hook;
mod initialize;
mod mcp;
mod operation;
mod permission;

pub use agent::*;
pub use frame::*;
pub use hook::{
    CwdChangedOutput, ElicitationOutput, ElicitationResultOutput, FileChangedOutput, HookCallback,
    HookDecision, HookDenial, HookElicitation, HookOutput, HookPermission, HookPermissionAllow,
    HookPermissionDeny, HookPermissionResponse, HookSpecificOutput, MessageDisplayOutput,
    NotificationOutput, PermissionDeniedOutput, PermissionRequestOutput, PostModelSwitchOutput,
    PostToolBatchOutput, PostToolUseFailureOutput, PostToolUseOutput, PreModelSwitchOutput,
    PreToolUseOutput, SessionStartOutput, SetupOutput, StopOutput, SubagentStartOutput,
    SubagentStopOutput, UserPromptExpansionOutput, UserPromptSubmitOutput, WorktreeCreateOutput,
};
pub use initialize::*;
pub use mcp::*;
pub use operation::*;
pub use permission::*;

use crate::id::{AgentId, ToolUseId};
use crate::json::{Json, List};

open_union! {
    /// A control request of the CLI, by subtype.
    pub enum CliRequest by "subtype" {
        /// Requests permission for a tool call.
        CanUseTool(Box<CanUseTool>) = "can_use_tool",
        /// Runs a hook callback.
        HookCallback(Box<HookCallback>) = "hook_callback",
        /// A message for an in-process MCP server.
        McpMessage(McpMessage) = "mcp_message",
        /// An elicitation of an MCP server.
        Elicitation(Box<Elicitation>) = "elicitation",
        /// A dialog of the CLI for the user.
        RequestUserDialog(UserDialog) = "request_user_dialog",
    }
}

/// Declares the union and the conversions of its members. Large members are boxed.
macro_rules! host_requests {
    (
        large { $( $(#[$large_meta:meta])* $large:ident = $large_subtype:literal, )+ }
        small { $( $(#[$meta:meta])* $name:ident = $subtype:literal, )+ }
    ) => {
        open_union! {
            /// A control request of the host, by subtype.
            pub enum HostRequest by "subtype" {
                $( $(#[$large_meta])* $large(Box<$large>) = $large_subtype, )+
                $( $(#[$meta])* $name($name) = $subtype, )+
            }
        }

        $( impl From<$large> for HostRequest {
            fn from(request: $large) -> Self {
                Self::$large(Box::new(request))
            }
        } )+

        $( impl From<$name> for HostRequest {
            fn from(request: $name) -> Self {
                Self::$name(request)
            }
        } )+
    };
}

host_requests! {
    large {
        /// The handshake.
        Initialize = "initialize",
        /// Calls a tool of an MCP server, without the model.
        McpCall = "mcp_call",
        /// Reads a resource of an MCP server.
        McpReadResource = "mcp_read_resource",
        /// Reads a file in the file system of the CLI.
        ReadFile = "read_file",
        /// Renames the session.
        RenameSession = "rename_session",
    }
    small {
        /// Interrupts the running turn.
        Interrupt = "interrupt",
        /// Changes the permission mode.
        SetPermissionMode = "set_permission_mode",
        /// Overrides the permission mode for one MCP server.
        SetMcpPermissionModeOverride = "set_mcp_permission_mode_override",
        /// Changes the model.
        SetModel = "set_model",
        /// Changes the thinking budget.
        SetMaxThinkingTokens = "set_max_thinking_tokens",
        /// Returns the status of the MCP servers.
        McpStatus = "mcp_status",
        /// Reconnects an MCP server.
        McpReconnect = "mcp_reconnect",
        /// Enables or disables an MCP server.
        McpToggle = "mcp_toggle",
        /// Replaces the MCP servers.
        McpSetServers = "mcp_set_servers",
        /// A message of an in-process MCP server.
        McpMessage = "mcp_message",
        /// Returns the usage of the context window.
        GetContextUsage = "get_context_usage",
        /// Returns the usage and the limits of the account.
        GetUsage = "get_usage",
        /// Returns the cost of the session as text.
        GetSessionCost = "get_session_cost",
        /// Lists the available models.
        ListModels = "list_models",
        /// Returns the version of the CLI.
        GetBinaryVersion = "get_binary_version",
        /// Rewinds files to a checkpoint.
        RewindFiles = "rewind_files",
        /// Finds files whose path matches a query.
        FileSuggestions = "file_suggestions",
        /// Marks a file as already read.
        SeedReadState = "seed_read_state",
        /// Adds a directory to the session.
        RegisterRepoRoot = "register_repo_root",
        /// Stops a background task.
        StopTask = "stop_task",
        /// Moves running work into the background.
        BackgroundTasks = "background_tasks",
        /// Returns the output of a background task.
        GetTaskOutput = "get_task_output",
        /// Cancels a queued message.
        CancelAsyncMessage = "cancel_async_message",
        /// Changes settings of this session.
        ApplyFlagSettings = "apply_flag_settings",
        /// Changes settings in a file.
        UpdateSettings = "update_settings",
        /// Returns the effective settings.
        GetSettings = "get_settings",
        /// Lists the hooks in the settings.
        GetHooksListing = "get_hooks_listing",
        /// Lists the effective permission rules.
        ListPermissionRules = "list_permission_rules",
        /// Reloads the plugins.
        ReloadPlugins = "reload_plugins",
        /// Reloads the skills.
        ReloadSkills = "reload_skills",
        /// Reloads the output styles.
        ReloadOutputStyles = "reload_output_styles",
        /// Changes the color of the session.
        SetColor = "set_color",
        /// Reports whether partial answers are displayed.
        SetHasSubscribers = "set_has_subscribers",
    }
}

wire_struct! {
    /// An elicitation of an MCP server.
    #[derive(Default)]
    pub struct Elicitation ["subtype" = "elicitation"] {
        /// The server.
        mcp_server_name: String,
        /// The question text.
        message: Option<String>,
        /// `form` or `url`.
        mode: Option<String>,
        /// The URL for the user.
        url: Option<String>,
        /// The elicitation ID.
        elicitation_id: Option<String>,
        /// The JSON schema of the answer.
        requested_schema: Option<Json>,
        /// The order of the fields.
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
    /// A dialog of the CLI for the user.
    #[derive(Default)]
    pub struct UserDialog ["subtype" = "request_user_dialog"] {
        /// The kind of question.
        dialog_kind: String,
        /// The content; its schema depends on the kind.
        payload: Option<Json>,
        /// The ID of the related tool call.
        tool_use_id: Option<ToolUseId>,
    }
}
