//! The control protocol: requests in both directions and their answers, one file per conversation.

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
    HookDecision, HookElicitation, HookOutput, HookPermission, HookPermissionAllow,
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

/// The union, and that each of its members is one. The large ones are behind a box.
macro_rules! host_requests {
    (
        large { $( $(#[$large_meta:meta])* $large:ident = $large_subtype:literal, )+ }
        small { $( $(#[$meta:meta])* $name:ident = $subtype:literal, )+ }
    ) => {
        open_union! {
            /// What the host asks the CLI.
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
        /// Call a tool of an MCP server, without the model.
        McpCall = "mcp_call",
        /// Read a resource of an MCP server.
        McpReadResource = "mcp_read_resource",
        /// Read a file where the CLI is.
        ReadFile = "read_file",
        /// Give the session another title.
        RenameSession = "rename_session",
    }
    small {
        /// End the turn that runs.
        Interrupt = "interrupt",
        /// Change the permission mode.
        SetPermissionMode = "set_permission_mode",
        /// Change who decides about the tools of one MCP server.
        SetMcpPermissionModeOverride = "set_mcp_permission_mode_override",
        /// Change the model.
        SetModel = "set_model",
        /// Change how much the model thinks.
        SetMaxThinkingTokens = "set_max_thinking_tokens",
        /// Which MCP servers are there?
        McpStatus = "mcp_status",
        /// Connect an MCP server again.
        McpReconnect = "mcp_reconnect",
        /// Switch an MCP server on or off.
        McpToggle = "mcp_toggle",
        /// Replace the MCP servers.
        McpSetServers = "mcp_set_servers",
        /// A message of a server inside the host.
        McpMessage = "mcp_message",
        /// What fills the context?
        GetContextUsage = "get_context_usage",
        /// What was used, and what is left?
        GetUsage = "get_usage",
        /// What did the session cost, for people?
        GetSessionCost = "get_session_cost",
        /// Which models are there?
        ListModels = "list_models",
        /// Which version is it?
        GetBinaryVersion = "get_binary_version",
        /// Put files back to where they were.
        RewindFiles = "rewind_files",
        /// Which files are called like this?
        FileSuggestions = "file_suggestions",
        /// Take a file as read by the model.
        SeedReadState = "seed_read_state",
        /// Make another directory part of the session.
        RegisterRepoRoot = "register_repo_root",
        /// End a background task.
        StopTask = "stop_task",
        /// Let what runs go on in the background.
        BackgroundTasks = "background_tasks",
        /// What did a background task print?
        GetTaskOutput = "get_task_output",
        /// Withdraw a message that waits.
        CancelAsyncMessage = "cancel_async_message",
        /// Change settings of this session.
        ApplyFlagSettings = "apply_flag_settings",
        /// Change settings in a file.
        UpdateSettings = "update_settings",
        /// Which settings are in force?
        GetSettings = "get_settings",
        /// Which hooks are there in settings?
        GetHooksListing = "get_hooks_listing",
        /// Which rules about permissions are in force?
        ListPermissionRules = "list_permission_rules",
        /// Read the plugins anew.
        ReloadPlugins = "reload_plugins",
        /// Read the skills anew.
        ReloadSkills = "reload_skills",
        /// Read the output styles anew.
        ReloadOutputStyles = "reload_output_styles",
        /// Give the session another colour.
        SetColor = "set_color",
        /// Say whether anybody looks at pieces of answers as they come.
        SetHasSubscribers = "set_has_subscribers",
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
