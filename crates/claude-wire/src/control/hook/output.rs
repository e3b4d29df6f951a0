//! What a hook callback answers.

use crate::control::{
    HookSpecificOutput, PermissionRequestOutput, PermissionUpdate, PreModelSwitchOutput,
    PreToolUseOutput,
};
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

impl HookOutput {
    /// Denies what the event asks about, unless it is denied already. Returns false, and changes
    /// nothing, if the event asks about nothing that can be denied.
    pub fn deny(&mut self, event: &str, reason: &str) -> bool {
        let blank = match event {
            "PreToolUse" => PreToolUseOutput::default().into(),
            "PreModelSwitch" => PreModelSwitchOutput::default().into(),
            "PermissionRequest" => PermissionRequestOutput::default().into(),
            _ => return false,
        };
        let (deny, reason) = (Some(HookPermission::Deny), Some(reason.to_owned()));
        match self.specific.get_or_insert(blank) {
            HookSpecificOutput::PreToolUse(output) if output.permission_decision != deny => {
                output.permission_decision = deny;
                output.permission_decision_reason = reason;
            }
            HookSpecificOutput::PreModelSwitch(output) if output.permission_decision != deny => {
                output.permission_decision = deny;
                output.permission_decision_reason = reason;
            }
            HookSpecificOutput::PermissionRequest(output)
                if !matches!(output.decision, Some(HookPermissionResponse::Deny(_))) =>
            {
                let deny = HookPermissionDeny { message: reason, ..HookPermissionDeny::default() };
                output.decision = Some(HookPermissionResponse::Deny(deny));
            }
            _ => {}
        }
        true
    }

    /// Denies as well if the response ends the turn: ending it alone lets the tool run first, or the
    /// permission be asked for.
    pub fn deny_if_stopped(&mut self, event: &str) {
        if self.go_on != Some(false) {
            return;
        }
        let reason = self.stop_reason.clone();
        self.deny(event, reason.as_deref().unwrap_or("a hook ended the turn"));
        if let Some(HookSpecificOutput::PermissionRequest(output)) = &mut self.specific
            && let Some(HookPermissionResponse::Deny(deny)) = &mut output.decision
        {
            deny.interrupt = Some(true);
        }
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
    pub enum HookPermissionResponse by "behavior" {
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
