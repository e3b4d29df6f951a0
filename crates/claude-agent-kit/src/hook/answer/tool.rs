//! Tools and permissions.

use claude_wire::Json;
use claude_wire::control::{
    HookPermission, HookPermissionAllow, HookPermissionAnswer, HookPermissionDeny,
    PermissionDeniedOutput, PermissionRequestOutput, PermissionUpdate, PostToolBatchOutput,
    PostToolUseFailureOutput, PostToolUseOutput, PreToolUseOutput,
};

specific!(
    PreToolUseOutput,
    PostToolUseOutput,
    PostToolUseFailureOutput,
    PostToolBatchOutput,
    PermissionRequestOutput,
    PermissionDeniedOutput,
);

answer! {
    /// What a hook for [`PreToolUse`](crate::hook::PreToolUse) answers.
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
    PreToolUse(PreToolUseInput) => PreToolUseAnswer(PreToolUseOutput) {
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
    /// What a hook for [`PostToolUse`](crate::hook::PostToolUse) answers. The tool has run; `block`
    /// tells the model what is wrong with that.
    PostToolUse(PostToolUseInput) => PostToolUseAnswer(PostToolUseOutput) [block] {
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
    /// What a hook for [`PostToolUseFailure`](crate::hook::PostToolUseFailure) answers.
    PostToolUseFailure(PostToolUseFailureInput) => PostToolUseFailureAnswer(PostToolUseFailureOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`PostToolBatch`](crate::hook::PostToolBatch) answers. `block` ends the turn
    /// after the tools, with this reason.
    PostToolBatch(PostToolBatchInput) => PostToolBatchAnswer(PostToolBatchOutput) [block] {
        /// What the model is told besides.
        additional_context: String,
    }
}

answer! {
    /// What a hook for [`PermissionRequest`](crate::hook::PermissionRequest) answers. Undecided, the
    /// permission is asked for.
    ///
    /// `stop` on this event always comes together with a denial: the CLI takes no notice of it
    /// alone.
    PermissionRequest(PermissionRequestInput) => PermissionRequestAnswer(PermissionRequestOutput) {}
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

answer! {
    /// What a hook for [`PermissionDenied`](crate::hook::PermissionDenied) answers.
    PermissionDenied(PermissionDeniedInput) => PermissionDeniedAnswer(PermissionDeniedOutput) {
        /// Whether the model is told that it may try again.
        retry: bool,
    }
}
