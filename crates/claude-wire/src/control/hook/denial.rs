//! The responses that deny hook events.

use crate::control::{
    ElicitationOutput, ElicitationResultOutput, HookDecision, HookElicitation, HookOutput,
    HookSpecificOutput, MessageDisplayOutput,
};
use crate::hook_input::HookInput;

/// The effect of denying a hook event.
///
/// The same response has opposite effects for different events: `decision: "block"` keeps a prompt
/// from the model, but makes a model that is about to stop continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the host must handle every effect of a denial")]
pub enum HookDenial {
    /// The tool call, permission or model switch is denied.
    Deny,
    /// The prompt, command, compaction, configuration change or worktree is blocked.
    Block,
    /// The turn or the subagent ends: nothing more reaches the model in it.
    End,
    /// The elicitation of the MCP server is declined.
    Decline,
    /// The text is not displayed.
    Hide,
    /// The event cannot be denied: the CLI only reports it, or ignores the response.
    Impossible,
}

impl HookDenial {
    /// Returns the effect of denying this event.
    ///
    /// An unknown event is denied with every form that the CLI knows for any event, which may or may
    /// not have an effect.
    pub fn for_event(event: &str) -> Self {
        denial_of(event)
    }

    /// Returns whether the CLI may block by itself if the host does not respond. It may not if
    /// blocking would make the model continue.
    pub fn is_blocking(self) -> bool {
        matches!(self, Self::Deny | Self::Block)
    }
}

/// Declares the denials in the list of events.
macro_rules! declare_denials {
    ($(
        $(#[$meta:meta])*
        $event:ident($($types:tt)*) = $name:literal: $denial:ident, $decision:literal, $seconds:literal;
    )+) => {
        fn denial_of(event: &str) -> HookDenial {
            match event {
                $( $name => HookDenial::$denial, )+
                // Unknown, or lost with the part of the request that named it.
                _ => HookDenial::Block,
            }
        }
    };
}

crate::for_each_hook_event!(declare_denials);

impl HookOutput {
    /// Returns the response that [denies](HookDenial::for_event) an event for this reason.
    pub fn denying(event: &str, reason: &str) -> Self {
        denial(event, reason)
    }
}

fn denial(event: &str, reason: &str) -> HookOutput {
    match HookDenial::for_event(event) {
        HookDenial::Deny => {
            let mut output = HookOutput::default();
            output.deny(event, reason);
            output
        }
        HookDenial::End => end(reason),
        HookDenial::Decline => HookOutput::from(declined(event)),
        HookDenial::Hide => HookOutput::from(HookSpecificOutput::from(MessageDisplayOutput {
            display_content: Some(String::new()),
            ..MessageDisplayOutput::default()
        })),
        HookDenial::Impossible => HookOutput { continue_: Some(true), ..HookOutput::default() },
        HookDenial::Block if HookInput::KNOWN.contains(&event) => block(reason),
        // Blocking an unknown event may make the model continue; ending the turn as well prevents it.
        HookDenial::Block => {
            let HookOutput { decision, reason: text, .. } = block(reason);
            HookOutput { decision, reason: text, ..end(reason) }
        }
    }
}

fn block(reason: &str) -> HookOutput {
    let (decision, reason) = (Some(HookDecision::Block), Some(reason.to_owned()));
    HookOutput { decision, reason, ..HookOutput::default() }
}

fn end(reason: &str) -> HookOutput {
    let stop_reason = Some(reason.to_owned());
    HookOutput { continue_: Some(false), stop_reason, ..HookOutput::default() }
}

fn declined(event: &str) -> HookSpecificOutput {
    let action = Some(HookElicitation::Decline);
    match event {
        "Elicitation" => ElicitationOutput { action, ..ElicitationOutput::default() }.into(),
        _ => ElicitationResultOutput { action, ..ElicitationResultOutput::default() }.into(),
    }
}

impl From<HookSpecificOutput> for HookOutput {
    fn from(specific: HookSpecificOutput) -> Self {
        Self { specific: Some(specific), ..Self::default() }
    }
}
