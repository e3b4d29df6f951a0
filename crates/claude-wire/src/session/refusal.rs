//! How a hook event is refused: the response with which the CLI does not do what it asked about.

use crate::control::{
    ElicitationOutput, ElicitationResultOutput, HookDecision, HookElicitation, HookOutput,
    HookSpecificOutput, MessageDisplayOutput,
};
use crate::hook_input::HookInput;

/// What refusing a hook event achieves.
///
/// The same answer means opposite things for different events: `decision: "block"` keeps a prompt
/// from the model, but makes a model that wants to stop continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookRefusal {
    /// The tool call, permission or model switch is denied.
    Deny,
    /// The prompt, command, compaction, configuration change or worktree is blocked.
    Block,
    /// The turn ends, or the subagent does: nothing more reaches the model in it.
    End,
    /// The MCP server's question is declined.
    Decline,
    /// The text is not displayed.
    Hide,
    /// The event cannot be refused: the CLI only reports it, or ignores the response.
    Impossible,
}

impl HookRefusal {
    /// Returns what refusing this event achieves.
    ///
    /// An event without a type is refused with every form that the CLI knows for any event, which
    /// may or may not have an effect.
    pub fn of(event: &str) -> Self {
        refusal_of(event)
    }

    /// Whether the CLI may be told to block by itself when the host does not respond. Where
    /// blocking would make the model continue, it may not.
    pub fn is_blocking(self) -> bool {
        matches!(self, Self::Deny | Self::Block)
    }
}

/// Declares what the list of events says of refusing them.
macro_rules! declare_refusals {
    ($(
        $(#[$meta:meta])*
        $event:ident($($types:tt)*) = $name:literal: $refusal:ident, $decision:literal, $seconds:literal;
    )+) => {
        fn refusal_of(event: &str) -> HookRefusal {
            match event {
                $( $name => HookRefusal::$refusal, )+
                // Unknown, or lost with the part of the request that named it.
                _ => HookRefusal::Block,
            }
        }
    };
}

crate::for_each_hook_event!(declare_refusals);

/// The response that refuses an event.
pub(super) fn response(event: &str, reason: &str) -> HookOutput {
    match HookRefusal::of(event) {
        HookRefusal::Deny => {
            let mut output = HookOutput::default();
            output.deny(event, reason);
            output
        }
        HookRefusal::End => end(reason),
        HookRefusal::Decline => HookOutput::from(declined(event)),
        HookRefusal::Hide => HookOutput::from(HookSpecificOutput::from(MessageDisplayOutput {
            display_content: Some(String::new()),
            ..MessageDisplayOutput::default()
        })),
        HookRefusal::Impossible => HookOutput { go_on: Some(true), ..HookOutput::default() },
        HookRefusal::Block if HookInput::KNOWN.contains(&event) => block(reason),
        // An event that blocks may be one that ends: together the two never prolong a turn.
        HookRefusal::Block => {
            let HookOutput { decision, reason: why, .. } = block(reason);
            HookOutput { decision, reason: why, ..end(reason) }
        }
    }
}

fn block(reason: &str) -> HookOutput {
    let (decision, reason) = (Some(HookDecision::Block), Some(reason.to_owned()));
    HookOutput { decision, reason, ..HookOutput::default() }
}

fn end(reason: &str) -> HookOutput {
    let stop_reason = Some(reason.to_owned());
    HookOutput { go_on: Some(false), stop_reason, ..HookOutput::default() }
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
