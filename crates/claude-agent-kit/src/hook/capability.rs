//! What a response to an event can contain. Each trait lists the events to whose responses it adds
//! methods of [`HookResponse`](super::HookResponse).

use claude_wire::control::{
    HookElicitation, HookPermission, HookPermissionAllow, HookPermissionDeny,
    HookPermissionResponse,
};
use claude_wire::{Json, List};

use super::HookEvent;
use super::input::{
    ConfigChangeInput, CwdChangedInput, ElicitationInput, ElicitationResultInput, FileChangedInput,
    NotificationInput, PermissionRequestInput, PostModelSwitchInput, PostToolBatchInput,
    PostToolUseFailureInput, PostToolUseInput, PreCompactInput, PreModelSwitchInput,
    PreToolUseInput, SessionStartInput, SetupInput, StopInput, SubagentStartInput,
    SubagentStopInput, UserPromptExpansionInput, UserPromptSubmitInput,
};

/// Implements a capability for events.
macro_rules! capability {
    ($capability:ident: $($event:ident),+ $(,)?) => {
        $( impl $capability for $event {} )+
    };
    ($capability:ident { fn $field:ident() -> $type:ty }: $($event:ident),+ $(,)?) => {$(
        impl $capability for $event {}

        impl sealed::$capability for $event {
            fn $field(specific: &mut Self::Specific) -> &mut $type {
                &mut specific.$field
            }
        }
    )+};
}

/// Where the fields are in the part of a response that only one event has.
pub(super) mod sealed {
    use claude_wire::control::{HookElicitation, HookPermission};
    use claude_wire::{Json, List};

    use super::super::event::sealed::Event;

    pub trait CanDeny: Event {
        fn decide(specific: &mut Self::Specific, decision: HookPermission, reason: Option<String>);
    }

    pub trait CanUpdateInput: Event {
        fn update_input(specific: &mut Self::Specific, input: Json);
    }

    pub trait CanAddContext: Event {
        fn additional_context(specific: &mut Self::Specific) -> &mut Option<String>;
    }

    pub trait CanSetTitle: Event {
        fn session_title(specific: &mut Self::Specific) -> &mut Option<String>;
    }

    pub trait CanSuppressPrompt: Event {
        fn suppress_original_prompt(specific: &mut Self::Specific) -> &mut Option<bool>;
    }

    pub trait CanWatchPaths: Event {
        fn watch_paths(specific: &mut Self::Specific) -> &mut List<String>;
    }

    pub trait CanAnswerElicitation: Event {
        fn act(specific: &mut Self::Specific, action: HookElicitation, content: Option<Json>);
    }
}

/// Events whose response can [`block`](super::HookResponse::block) what happened.
#[diagnostic::on_unimplemented(
    message = "a response to `{Self}` cannot block",
    label = "the CLI ignores `block` here",
    note = "tool calls, permissions and model switches are denied with `deny`; \
            every response can end the turn with `stop`"
)]
pub trait CanBlock: HookEvent {}

capability!(
    CanBlock: PostToolUseInput,
    PostToolUseFailureInput,
    PostToolBatchInput,
    UserPromptSubmitInput,
    UserPromptExpansionInput,
    StopInput,
    SubagentStopInput,
    PreCompactInput,
    ConfigChangeInput,
);

/// Events whose response can [`allow`](super::HookResponse::allow) or [`deny`](super::HookResponse::deny) what is
/// about to happen.
#[diagnostic::on_unimplemented(
    message = "a response to `{Self}` cannot allow or deny",
    label = "the CLI does not ask for a permission here",
    note = "prompts, compactions and configuration changes are rejected with `block`; \
            every response can end the turn with `stop`"
)]
pub trait CanDeny: HookEvent + sealed::CanDeny {}

capability!(CanDeny: PreToolUseInput, PermissionRequestInput, PreModelSwitchInput);

/// Events whose response can [`ask`](super::HookResponse::ask) for a decision.
#[diagnostic::on_unimplemented(
    message = "a response to `{Self}` cannot ask for a decision",
    note = "return no response to leave the decision to the CLI"
)]
pub trait CanAsk: CanDeny {}

capability!(CanAsk: PreToolUseInput, PreModelSwitchInput);

/// Implements decisions of events that have them in two fields.
macro_rules! decide_in_fields {
    ($($event:ident),+) => {$(
        impl sealed::CanDeny for $event {
            fn decide(
                specific: &mut Self::Specific,
                decision: HookPermission,
                reason: Option<String>,
            ) {
                specific.permission_decision = Some(decision);
                specific.permission_decision_reason = reason;
            }
        }
    )+};
}

decide_in_fields!(PreToolUseInput, PreModelSwitchInput);

impl sealed::CanDeny for PermissionRequestInput {
    fn decide(specific: &mut Self::Specific, decision: HookPermission, reason: Option<String>) {
        specific.decision = Some(if decision == HookPermission::Allow {
            HookPermissionResponse::Allow(HookPermissionAllow::default())
        } else {
            let mut deny = HookPermissionDeny::default();
            deny.message = reason;
            HookPermissionResponse::Deny(deny)
        });
    }
}

/// Events whose response can change the [input](super::HookResponse::updated_input) of the tool.
#[diagnostic::on_unimplemented(message = "a response to `{Self}` cannot change a tool's input")]
pub trait CanUpdateInput: HookEvent + sealed::CanUpdateInput {}

capability!(CanUpdateInput: PreToolUseInput, PermissionRequestInput);

impl sealed::CanUpdateInput for PreToolUseInput {
    fn update_input(specific: &mut Self::Specific, input: Json) {
        specific.updated_input = Some(input);
    }
}

impl sealed::CanUpdateInput for PermissionRequestInput {
    fn update_input(specific: &mut Self::Specific, input: Json) {
        if let Some(HookPermissionResponse::Allow(allow)) = &mut specific.decision {
            allow.updated_input = Some(input);
        }
    }
}

/// Events whose response can add [context](super::HookResponse::additional_context) for the model.
#[diagnostic::on_unimplemented(message = "a response to `{Self}` cannot add context for the model")]
pub trait CanAddContext: HookEvent + sealed::CanAddContext {}

capability!(
    CanAddContext { fn additional_context() -> Option<String> }:
    PreToolUseInput,
    PostToolUseInput,
    PostToolUseFailureInput,
    PostToolBatchInput,
    UserPromptSubmitInput,
    UserPromptExpansionInput,
    StopInput,
    NotificationInput,
    SessionStartInput,
    SetupInput,
    PostModelSwitchInput,
    SubagentStartInput,
    SubagentStopInput,
);

/// Events whose response can set the [title](super::HookResponse::session_title) of the session.
#[diagnostic::on_unimplemented(message = "a response to `{Self}` cannot set the session's title")]
pub trait CanSetTitle: HookEvent + sealed::CanSetTitle {}

capability!(
    CanSetTitle { fn session_title() -> Option<String> }: UserPromptSubmitInput,
    SessionStartInput,
);

/// Events whose response can keep the prompt from the model
/// ([`suppress_original_prompt`](super::HookResponse::suppress_original_prompt)).
#[diagnostic::on_unimplemented(message = "a response to `{Self}` cannot suppress a prompt")]
pub trait CanSuppressPrompt: HookEvent + sealed::CanSuppressPrompt {}

capability!(
    CanSuppressPrompt { fn suppress_original_prompt() -> Option<bool> }: UserPromptSubmitInput,
    UserPromptExpansionInput,
);

/// Events whose response can set the [files to watch](super::HookResponse::watch_paths).
#[diagnostic::on_unimplemented(message = "a response to `{Self}` cannot set files to watch")]
pub trait CanWatchPaths: HookEvent + sealed::CanWatchPaths {}

capability!(
    CanWatchPaths { fn watch_paths() -> List<String> }: SessionStartInput,
    CwdChangedInput,
    FileChangedInput,
);

/// Events whose response can answer a question of an MCP server: [`accept`](super::HookResponse::accept),
/// [`decline`](super::HookResponse::decline) or [`cancel`](super::HookResponse::cancel).
#[diagnostic::on_unimplemented(message = "a response to `{Self}` cannot answer an elicitation")]
pub trait CanAnswerElicitation: HookEvent + sealed::CanAnswerElicitation {}

capability!(CanAnswerElicitation: ElicitationInput, ElicitationResultInput);

/// Implements the answers to elicitations, which both events have in the same fields.
macro_rules! answer_elicitation {
    ($($event:ident),+) => {$(
        impl sealed::CanAnswerElicitation for $event {
            fn act(
                specific: &mut Self::Specific,
                action: HookElicitation,
                content: Option<Json>,
            ) {
                specific.action = Some(action);
                specific.content = content;
            }
        }
    )+};
}

answer_elicitation!(ElicitationInput, ElicitationResultInput);
