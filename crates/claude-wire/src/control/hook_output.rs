//! What a hook callback answers.

use crate::control::PermissionUpdate;
use crate::json::{Json, List, Number};

wire_struct! {
    /// The host's answer to a hook callback. Empty, it lets everything go on.
    #[derive(Default)]
    pub struct HookOutput {
        /// Whether the turn goes on.
        go_on: Option<bool> as "continue",
        /// Why it does not, for the user.
        stop_reason: Option<String> as "stopReason",
        /// Whether the output stays out of the transcript.
        suppress_output: Option<bool> as "suppressOutput",
        /// Whether what happened is blocked.
        decision: Option<HookDecision>,
        /// Why, for the model.
        reason: Option<String>,
        /// What the user is shown.
        system_message: Option<String> as "systemMessage",
        /// What is written to the terminal.
        terminal_sequence: Option<String> as "terminalSequence",
        /// What only this event can be answered.
        specific: Option<HookSpecificOutput> as "hookSpecificOutput",
        /// Whether the answer does not matter and the hook goes on by itself.
        is_async: Option<bool> as "async",
        /// Milliseconds that it may go on.
        async_timeout: Option<Number> as "asyncTimeout",
    }
}

open_enum! {
    /// Whether what happened is blocked.
    pub enum HookDecision {
        /// No.
        Approve = "approve",
        /// Yes.
        Block = "block",
    }
}

/// A struct that only one event can be answered with.
macro_rules! hook_specific {
    ($(
        $(#[$meta:meta])*
        $variant:ident($name:ident) = $event:literal {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty $(as $wire:literal)? ),* $(,)?
        }
    )+) => {
        open_union! {
            /// What only one event can be answered with.
            pub enum HookSpecificOutput by "hookEventName" {
                $( $(#[$meta])* $variant($name) = $event, )+
            }
        }

        impl HookSpecificOutput {
            /// The fields that answers to this event have and others may not; none for an event
            /// that has none or is not known.
            pub fn fields_of(event: &str) -> &'static [&'static str] {
                match event {
                    $( $event => &[$( wire_name!($field $($wire)?) ),*], )+
                    _ => &[],
                }
            }

            /// Whether a field of this name belongs to any event.
            pub fn has_field(name: &str) -> bool {
                Self::KNOWN.iter().any(|event| Self::fields_of(event).contains(&name))
            }
        }

        $(
            wire_struct! {
                $(#[$meta])*
                #[derive(Default)]
                pub struct $name ["hookEventName" = $event] {
                    $( $(#[$field_meta])* $field: $type $(as $wire)?, )*
                }
            }

            impl From<$name> for HookSpecificOutput {
                fn from(output: $name) -> Self {
                    Self::$variant(output)
                }
            }
        )+
    };
}

hook_specific! {
    /// For a tool that is about to run.
    PreToolUse(PreToolUseOutput) = "PreToolUse" {
        /// Whether it may.
        permission_decision: Option<HookPermission> as "permissionDecision",
        /// Why, for the model.
        permission_decision_reason: Option<String> as "permissionDecisionReason",
        /// The arguments with which it runs.
        updated_input: Option<Json> as "updatedInput",
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For a tool that ran.
    PostToolUse(PostToolUseOutput) = "PostToolUse" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
        /// What the model that decides about permissions is told.
        classifier_context: Option<String> as "classifierContext",
        /// What the tool gave, changed.
        updated_tool_output: Option<Json> as "updatedToolOutput",
        /// The same for a tool of an MCP server.
        updated_mcp_tool_output: Option<Json> as "updatedMCPToolOutput",
    }
    /// For a tool that failed.
    PostToolUseFailure(PostToolUseFailureOutput) = "PostToolUseFailure" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For all tools of one answer.
    PostToolBatch(PostToolBatchOutput) = "PostToolBatch" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For a tool that was not allowed to run.
    PermissionDenied(PermissionDeniedOutput) = "PermissionDenied" {
        /// Whether the model is told that it may try again.
        retry: Option<bool>,
    }
    /// For a prompt.
    UserPromptSubmit(UserPromptSubmitOutput) = "UserPromptSubmit" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
        /// The session's title.
        session_title: Option<String> as "sessionTitle",
        /// Whether the prompt itself is left out.
        suppress_original_prompt: Option<bool> as "suppressOriginalPrompt",
    }
    /// For a command that became a prompt.
    UserPromptExpansion(UserPromptExpansionOutput) = "UserPromptExpansion" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
        /// Whether what the user wrote is left out.
        suppress_original_prompt: Option<bool> as "suppressOriginalPrompt",
    }
    /// For a session that begins.
    SessionStart(SessionStartOutput) = "SessionStart" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
        /// The first prompt.
        initial_user_message: Option<String> as "initialUserMessage",
        /// The session's title.
        session_title: Option<String> as "sessionTitle",
        /// Files whose changes are told.
        watch_paths: List<String> as "watchPaths",
        /// Whether the skills are read anew.
        reload_skills: Option<bool> as "reloadSkills",
    }
    /// For the CLI's setting itself up.
    Setup(SetupOutput) = "Setup" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For the end of a turn.
    Stop(StopOutput) = "Stop" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For a subagent that begins.
    SubagentStart(SubagentStartOutput) = "SubagentStart" {
        /// What the subagent is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For a subagent that is done.
    SubagentStop(SubagentStopOutput) = "SubagentStop" {
        /// What the subagent is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For something to show.
    Notification(NotificationOutput) = "Notification" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For a piece of an answer that is about to be shown.
    MessageDisplay(MessageDisplayOutput) = "MessageDisplay" {
        /// What is shown in its place.
        display_content: Option<String> as "displayContent",
    }
    /// For a model that is about to change.
    PreModelSwitch(PreModelSwitchOutput) = "PreModelSwitch" {
        /// Whether it may.
        permission_decision: Option<HookPermission> as "permissionDecision",
        /// Why.
        permission_decision_reason: Option<String> as "permissionDecisionReason",
    }
    /// For a model that changed.
    PostModelSwitch(PostModelSwitchOutput) = "PostModelSwitch" {
        /// What the model is told besides.
        additional_context: Option<String> as "additionalContext",
    }
    /// For the question of an MCP server.
    Elicitation(ElicitationOutput) = "Elicitation" {
        /// What the server is told.
        action: Option<HookElicitation>,
        /// The answer, when it is accepted.
        content: Option<Json>,
    }
    /// For the answer to a question of an MCP server.
    ElicitationResult(ElicitationResultOutput) = "ElicitationResult" {
        /// What the server is told in its place.
        action: Option<HookElicitation>,
        /// The answer in its place.
        content: Option<Json>,
    }
    /// For a worktree that is to be made.
    WorktreeCreate(WorktreeCreateOutput) = "WorktreeCreate" {
        /// Where it is.
        worktree_path: Option<String> as "worktreePath",
    }
    /// For a working directory that changed.
    CwdChanged(CwdChangedOutput) = "CwdChanged" {
        /// Files whose changes are told.
        watch_paths: List<String> as "watchPaths",
    }
    /// For a watched file that changed.
    FileChanged(FileChangedOutput) = "FileChanged" {
        /// Files whose changes are told.
        watch_paths: List<String> as "watchPaths",
    }
    /// For a permission that is about to be asked for.
    PermissionRequest(PermissionRequestOutput) = "PermissionRequest" {
        /// The answer; absent leaves it to be asked.
        decision: Option<HookPermissionAnswer>,
    }
}

open_enum! {
    /// Whether a tool may run.
    pub enum HookPermission {
        /// It may.
        Allow = "allow",
        /// It may not.
        Deny = "deny",
        /// Ask.
        Ask = "ask",
        /// The turn ends, and the call can be taken up later.
        Defer = "defer",
    }
}

open_enum! {
    /// How the question of an MCP server is answered.
    pub enum HookElicitation {
        /// With an answer.
        Accept = "accept",
        /// With a no.
        Decline = "decline",
        /// Not at all.
        Cancel = "cancel",
    }
}

open_union! {
    /// A hook's answer to a permission request.
    pub enum HookPermissionAnswer by "behavior" {
        /// The tool may run.
        Allow(HookPermissionAllow) = "allow",
        /// It may not.
        Deny(HookPermissionDeny) = "deny",
    }
}

wire_struct! {
    /// The tool may run.
    #[derive(Default)]
    pub struct HookPermissionAllow ["behavior" = "allow"] {
        /// The arguments with which it runs.
        updated_input: Option<Json> as "updatedInput",
        /// Changes of the rules.
        updated_permissions: List<PermissionUpdate> as "updatedPermissions",
    }
}

wire_struct! {
    /// The tool may not run.
    #[derive(Default)]
    pub struct HookPermissionDeny ["behavior" = "deny"] {
        /// What the model is told.
        message: Option<String>,
        /// Whether the turn ends.
        interrupt: Option<bool>,
    }
}
