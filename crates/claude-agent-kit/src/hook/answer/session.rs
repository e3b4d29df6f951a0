//! The session, its context and its model.

use claude_wire::control::{
    HookPermission, PostModelSwitchOutput, PreModelSwitchOutput, SessionStartOutput, SetupOutput,
};

use super::Nothing;

specific!(SessionStartOutput, SetupOutput, PreModelSwitchOutput, PostModelSwitchOutput);

answer! {
    /// What a hook for [`SessionStart`](crate::hook::SessionStart) answers.
    SessionStart(SessionStartInput) => SessionStartAnswer(SessionStartOutput) [watch_paths] {
        /// What the model is told besides.
        additional_context: String,
        /// A first prompt.
        initial_user_message: String,
        /// The session's title.
        session_title: String,
        /// Whether the skills are read anew.
        reload_skills: bool,
    }
}

answer! {
    /// What a hook for [`SessionEnd`](crate::hook::SessionEnd) answers. Nothing can be changed any
    /// more.
    SessionEnd(SessionEndInput) => SessionEndAnswer(Nothing) {}
}

answer! {
    /// What a hook for [`Setup`](crate::hook::Setup) answers.
    Setup(SetupInput) => SetupAnswer(SetupOutput) {
        /// What the model is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`PreCompact`](crate::hook::PreCompact) answers. `block` keeps the context as it
    /// is; the CLI does not show the reason.
    PreCompact(PreCompactInput) => PreCompactAnswer(Nothing) [block] {}
}

answer! {
    /// What a hook for [`PostCompact`](crate::hook::PostCompact) answers. Nothing can be changed any
    /// more.
    PostCompact(PostCompactInput) => PostCompactAnswer(Nothing) {}
}

answer! {
    /// What a hook for [`PreModelSwitch`](crate::hook::PreModelSwitch) answers.
    ///
    /// `stop` on this event always comes together with a denial.
    PreModelSwitch(PreModelSwitchInput) => PreModelSwitchAnswer(PreModelSwitchOutput) {}
}

impl PreModelSwitchAnswer {
    /// The model may change.
    pub fn allow() -> Self {
        Self::decided(HookPermission::Allow, None)
    }

    /// The model stays as it is, for this reason.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self::decided(HookPermission::Deny, Some(reason.into()))
    }

    /// The same as [`deny`](Self::deny), in the word that other events have.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::deny(reason)
    }

    /// The user is asked, for this reason.
    pub fn ask(reason: impl Into<String>) -> Self {
        Self::decided(HookPermission::Ask, Some(reason.into()))
    }

    fn decided(decision: HookPermission, reason: Option<String>) -> Self {
        let mut answer = Self::default();
        answer.0.specific.permission_decision = Some(decision);
        answer.0.specific.permission_decision_reason = reason;
        answer
    }
}

answer! {
    /// What a hook for [`PostModelSwitch`](crate::hook::PostModelSwitch) answers.
    PostModelSwitch(PostModelSwitchInput) => PostModelSwitchAnswer(PostModelSwitchOutput) {
        /// What the model is told besides.
        additional_context: String,
    }
}
