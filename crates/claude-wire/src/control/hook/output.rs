//! The output of hook callbacks.

use crate::control::{
    HookSpecificOutput, PermissionRequestOutput, PermissionUpdate, PreModelSwitchOutput,
    PreToolUseOutput,
};
use crate::json::{Json, List, Number};

wire_struct! {
    /// The response to a hook callback. An empty response makes no decision.
    #[derive(Default)]
    pub struct HookOutput {
        /// Whether the turn continues.
        continue_: Option<bool> as "continue",
        /// The reason for the user, if the turn does not continue.
        stop_reason: Option<String> as "stopReason",
        /// Whether the output is hidden from the transcript.
        suppress_output: Option<bool> as "suppressOutput",
        /// Whether the action is blocked.
        decision: Option<HookDecision>,
        /// The reason for the model.
        reason: Option<String>,
        /// The message for the user.
        system_message: Option<String> as "systemMessage",
        /// The terminal sequence.
        terminal_sequence: Option<String> as "terminalSequence",
        /// The event-specific output.
        specific: Option<HookSpecificOutput> as "hookSpecificOutput",
        /// Whether the hook continues asynchronously.
        is_async: Option<bool> as "async",
        /// The timeout of an asynchronous hook in milliseconds.
        async_timeout: Option<Number> as "asyncTimeout",
    }
}

impl HookOutput {
    /// Denies the action of the event, unless it is already denied. Returns false and changes nothing
    /// if the event has no action that can be denied.
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
        if self.continue_ != Some(false) {
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
    /// Whether the action is blocked.
    pub enum HookDecision {
        /// The action is approved.
        Approve = "approve",
        /// The action is blocked.
        Block = "block",
    }
}

open_enum! {
    /// The permission decision of a hook.
    pub enum HookPermission {
        /// The tool call is allowed.
        Allow = "allow",
        /// The tool call is denied.
        Deny = "deny",
        /// Ask the user.
        Ask = "ask",
        /// The turn ends, and the call can be resumed later.
        Defer = "defer",
    }
}

open_enum! {
    /// The action of an elicitation response.
    pub enum HookElicitation {
        /// Accept.
        Accept = "accept",
        /// Decline.
        Decline = "decline",
        /// Cancel.
        Cancel = "cancel",
    }
}

open_union! {
    /// The decision of a hook about a permission request.
    pub enum HookPermissionResponse by "behavior" {
        /// The tool call is allowed.
        Allow(HookPermissionAllow) = "allow",
        /// The tool call is denied.
        Deny(HookPermissionDeny) = "deny",
    }
}

wire_struct! {
    /// The tool call is allowed.
    #[derive(Default)]
    pub struct HookPermissionAllow ["behavior" = "allow"] {
        /// The replacement input.
        updated_input: Option<Json> as "updatedInput",
        /// Changes of the rules.
        updated_permissions: List<PermissionUpdate> as "updatedPermissions",
    }
}

wire_struct! {
    /// The tool call is denied.
    #[derive(Default)]
    pub struct HookPermissionDeny ["behavior" = "deny"] {
        /// The message for the model.
        message: Option<String>,
        /// Whether the turn ends.
        interrupt: Option<bool>,
    }
}
