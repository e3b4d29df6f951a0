//! What hooks answer, one type per event: what does not fit the event cannot be said.

use std::time::Duration;

use claude_wire::control::{
    HookDecision, HookOutput as WireOutput, HookPermission, HookPermissionAllow,
    HookPermissionAnswer, HookPermissionDeny, HookSpecificOutput, NotificationOutput,
    PermissionRequestOutput, PermissionUpdate, PostToolUseFailureOutput, PostToolUseOutput,
    PreToolUseOutput, StopOutput, SubagentStartOutput, SubagentStopOutput, UserPromptSubmitOutput,
};
use claude_wire::{Json, Number};

use super::{Encoded, HookOutput, sealed};

/// Declares an answer: the part that only its event has, whether it can block, and its own fields.
macro_rules! answer {
    (
        $(#[$meta:meta])*
        $name:ident($specific:ty) $([$block:ident])? {
            $( $(#[$field_meta:meta])* $field:ident: $type:ty ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq)]
        #[must_use]
        pub struct $name(Body<$specific>);

        impl $name {
            /// An answer that lets everything go on.
            pub fn new() -> Self {
                Self::default()
            }

            $( answer!(@$block); )?

            /// Lets everything go on at once, and says that the host is busy with it for so long.
            /// Nothing waits for it. Whatever else the answer says wins over this.
            pub fn run_async(limit: Duration) -> Self {
                Self(Body { run_async: Some(limit), ..Body::default() })
            }

            $(
                $(#[$field_meta])*
                pub fn $field(mut self, value: impl Into<$type>) -> Self {
                    self.0.specific.$field = Some(value.into());
                    self
                }
            )*

            /// Shows this to the user.
            pub fn system_message(mut self, message: impl Into<String>) -> Self {
                self.0.common.system_message = Some(message.into());
                self
            }

            /// Keeps the output out of the transcript.
            pub fn suppress_output(mut self) -> Self {
                self.0.common.suppress_output = Some(true);
                self
            }

            /// Ends the turn, for this reason.
            pub fn stop(mut self, reason: impl Into<String>) -> Self {
                self.0.common.go_on = Some(false);
                self.0.common.stop_reason = Some(reason.into());
                self
            }
        }

        impl sealed::Answer for $name {}

        impl HookOutput for $name {
            fn encode(self, _event: &str) -> Result<Encoded, String> {
                self.0.encode()
            }
        }
    };
    (@block) => {
        /// Blocks what happened; the model is told this reason.
        pub fn block(reason: impl Into<String>) -> Self {
            let mut answer = Self::default();
            answer.0.common.decision = Some(HookDecision::Block);
            answer.0.common.reason = Some(reason.into());
            answer
        }
    };
}

/// An answer that is being put together.
#[derive(Clone, Debug, Default, PartialEq)]
struct Body<S> {
    common: WireOutput,
    specific: S,
    run_async: Option<Duration>,
}

impl<S: Specific> Body<S> {
    fn encode(self) -> Result<Encoded, String> {
        let (mut output, mut specific) = (self.common, self.specific);
        if let (Some(false), Some(reason)) = (output.go_on, &output.stop_reason) {
            specific.refuse(reason);
        }
        if specific != S::default() {
            output.specific = specific.into_wire();
        }
        // The CLI looks at nothing else of an asynchronous answer: a denial beside it is lost.
        if let Some(limit) = self.run_async
            && output == WireOutput::default()
        {
            output.is_async = Some(true);
            output.async_timeout = Some(milliseconds(limit));
        }
        let json = Json::of(&output).map_err(|error| error.to_string())?;
        Ok(Encoded { json, dropped: Vec::new() })
    }
}

pub(super) fn milliseconds(time: Duration) -> Number {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).into()
}

/// The part of an answer that only one event has.
trait Specific: Default + PartialEq {
    fn into_wire(self) -> Option<HookSpecificOutput>;

    /// Says no as well, where ending the turn alone does not keep the tool from running.
    fn refuse(&mut self, _reason: &str) {}
}

/// For events that have no such part.
#[derive(Clone, Debug, Default, PartialEq)]
struct Nothing;

impl Specific for Nothing {
    fn into_wire(self) -> Option<HookSpecificOutput> {
        None
    }
}

macro_rules! specific {
    ($($name:ty),+) => {$(
        impl Specific for $name {
            fn into_wire(self) -> Option<HookSpecificOutput> {
                Some(self.into())
            }
        }
    )+};
}

specific!(
    PostToolUseOutput,
    PostToolUseFailureOutput,
    UserPromptSubmitOutput,
    StopOutput,
    SubagentStartOutput,
    SubagentStopOutput,
    NotificationOutput
);

impl Specific for PreToolUseOutput {
    fn into_wire(self) -> Option<HookSpecificOutput> {
        Some(self.into())
    }

    fn refuse(&mut self, reason: &str) {
        if self.permission_decision != Some(HookPermission::Deny) {
            self.permission_decision = Some(HookPermission::Deny);
            self.permission_decision_reason = Some(reason.to_owned());
        }
    }
}

impl Specific for PermissionRequestOutput {
    fn into_wire(self) -> Option<HookSpecificOutput> {
        Some(self.into())
    }

    fn refuse(&mut self, reason: &str) {
        let denied = matches!(self.decision, Some(HookPermissionAnswer::Deny(_)));
        let mut deny = match self.decision.take() {
            Some(HookPermissionAnswer::Deny(deny)) => deny,
            _ => HookPermissionDeny::default(),
        };
        if !denied {
            deny.message = Some(reason.to_owned());
        }
        deny.interrupt = Some(true);
        self.decision = Some(HookPermissionAnswer::Deny(deny));
    }
}

answer! {
    /// What a hook for [`PreToolUse`](super::PreToolUse) answers.
    ///
    /// `stop` on this event always comes together with a denial: alone it would end the turn only
    /// after the tool has run.
    ///
    /// ```
    /// use claude_agent_kit::hook::PreToolUseAnswer;
    ///
    /// let no = PreToolUseAnswer::deny("no shells here").system_message("A shell was refused.");
    /// let other = PreToolUseAnswer::allow()
    ///     .updated_input(claude_agent_kit::Json::from_text(r#"{"command": "ls"}"#)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    PreToolUseAnswer(PreToolUseOutput) {
        /// The arguments with which the tool runs, all of them. Alone it decides nothing about
        /// the permission.
        updated_input: Json,
        /// What the model is told besides.
        additional_context: String,
    }
}

impl PreToolUseAnswer {
    /// The tool may run, without asking anybody.
    pub fn allow() -> Self {
        Self::decided(HookPermission::Allow, None)
    }

    /// The tool may not run; the model is told this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::decided(HookPermission::Deny, Some(reason.into()))
    }

    /// The same as [`deny`](Self::deny), in the word that other events have.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::deny(reason)
    }

    /// Whoever decides about permissions is asked, for this reason.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::decided(HookPermission::Ask, Some(reason.into()))
    }

    /// The turn ends here, and the call can be taken up later.
    pub fn defer() -> Self {
        Self::decided(HookPermission::Defer, None)
    }

    /// Says why, for the model; `deny` and `ask` say it already.
    pub fn because(mut self, reason: impl Into<String>) -> Self {
        self.0.specific.permission_decision_reason = Some(reason.into());
        self
    }

    fn decided(decision: HookPermission, reason: Option<String>) -> Self {
        let mut answer = Self::default();
        answer.0.specific.permission_decision = Some(decision);
        answer.0.specific.permission_decision_reason = reason;
        answer
    }
}

answer! {
    /// What a hook for [`PostToolUse`](super::PostToolUse) answers. The tool has run; `block`
    /// tells the model what is wrong with that.
    PostToolUseAnswer(PostToolUseOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
        /// What the model that decides about permissions is told.
        classifier_context: String,
        /// What the tool gave, changed.
        updated_tool_output: Json,
        /// The same for a tool of an MCP server.
        updated_mcp_tool_output: Json,
    }
}

answer! {
    /// What a hook for [`PostToolUseFailure`](super::PostToolUseFailure) answers.
    PostToolUseFailureAnswer(PostToolUseFailureOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`UserPromptSubmit`](super::UserPromptSubmit) answers. A blocked prompt
    /// does not reach the model.
    UserPromptSubmitAnswer(UserPromptSubmitOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
        /// The session's title.
        session_title: String,
        /// Whether the prompt itself is left out.
        suppress_original_prompt: bool,
    }
}

answer! {
    /// What a hook for [`Stop`](super::Stop) answers. `block` makes the model go on, with the
    /// reason as its task; look at the input's `stop_hook_active`, or it goes on for ever.
    StopAnswer(StopOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`SubagentStart`](super::SubagentStart) answers.
    SubagentStartAnswer(SubagentStartOutput) {
        /// What the subagent is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`SubagentStop`](super::SubagentStop) answers. `block` makes the subagent
    /// go on.
    SubagentStopAnswer(SubagentStopOutput) [block] {
        /// What the subagent is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`PreCompact`](super::PreCompact) answers. `block` keeps the context as it
    /// is; the CLI does not show the reason.
    PreCompactAnswer(Nothing) [block] {}
}

answer! {
    /// What a hook for [`Notification`](super::Notification) answers.
    NotificationAnswer(NotificationOutput) {
        /// What the model is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`PermissionRequest`](super::PermissionRequest) answers. Undecided, the
    /// permission is asked for.
    ///
    /// `stop` on this event always comes together with a denial: the CLI takes no notice of it
    /// alone.
    PermissionRequestAnswer(PermissionRequestOutput) {}
}

impl PermissionRequestAnswer {
    /// The tool may run.
    pub fn allow() -> Self {
        Self::decided(HookPermissionAnswer::Allow(HookPermissionAllow::default()))
    }

    /// The tool may not run; the model is told this.
    pub fn deny(message: impl Into<String>) -> Self {
        let mut deny = HookPermissionDeny::default();
        deny.message = Some(message.into());
        Self::decided(HookPermissionAnswer::Deny(deny))
    }

    /// The arguments with which the tool runs, all of them. A denial is not changed by it.
    pub fn with_input(self, input: impl Into<Json>) -> Self {
        self.change_allow(|allow| allow.updated_input = Some(input.into()))
    }

    /// Changes of the rules that come with it. A denial is not changed by it.
    pub fn with_permissions(self, updates: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        self.change_allow(|allow| allow.updated_permissions = updates.into_iter().collect())
    }

    /// Ends the turn with a denial. A permission is not changed by it.
    pub fn and_interrupt(mut self) -> Self {
        if let Some(HookPermissionAnswer::Deny(deny)) = &mut self.0.specific.decision {
            deny.interrupt = Some(true);
        }
        self
    }

    fn decided(decision: HookPermissionAnswer) -> Self {
        let mut answer = Self::default();
        answer.0.specific.decision = Some(decision);
        answer
    }

    fn change_allow(mut self, change: impl FnOnce(&mut HookPermissionAllow)) -> Self {
        if let Some(HookPermissionAnswer::Allow(allow)) = &mut self.0.specific.decision {
            change(allow);
        }
        self
    }
}
