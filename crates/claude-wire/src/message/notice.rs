//! Messages beside the conversation.

use crate::id::{AgentId, MessageId, SessionId, TaskId, ToolUseId};
use crate::json::{Json, List, Number};

wire_struct! {
    /// How much of the account's allowance is used.
    #[derive(Default)]
    pub struct RateLimitMessage ["type" = "rate_limit_event"] {
        /// The numbers.
        rate_limit_info: Option<RateLimitInfo>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// The state of a usage limit.
    #[derive(Default)]
    pub struct RateLimitInfo {
        /// Whether requests are let through.
        status: Option<RateLimitStatus>,
        /// When the limit begins anew, in seconds since 1970.
        resets_at: Option<Number> as "resetsAt",
        /// Which limit.
        limit_type: Option<String> as "rateLimitType",
        /// The part that is used, from 0 to 1.
        utilization: Option<Number>,
        /// Whether requests beyond the limit are let through.
        overage_status: Option<RateLimitStatus> as "overageStatus",
        /// When that begins anew.
        overage_resets_at: Option<Number> as "overageResetsAt",
        /// Why they are not.
        overage_disabled_reason: Option<String> as "overageDisabledReason",
        /// Whether one is being made now.
        is_using_overage: Option<bool> as "isUsingOverage",
        /// Whether some were made.
        overage_in_use: Option<bool> as "overageInUse",
        /// Whether they are allowed at all.
        overage_enabled: Option<bool> as "overageEnabled",
        /// The threshold that was passed.
        surpassed_threshold: Option<Number> as "surpassedThreshold",
        /// Whom the limit is for.
        limit_scope: Option<Json> as "limitScope",
        /// The API's word for it.
        error_code: Option<String> as "errorCode",
        /// Whether the user can buy more.
        can_user_purchase_credits: Option<bool> as "canUserPurchaseCredits",
        /// Whether there is something to pay with.
        has_chargeable_saved_payment_method: Option<bool> as "hasChargeableSavedPaymentMethod",
    }
}

open_enum! {
    /// Whether requests are let through.
    pub enum RateLimitStatus {
        /// Yes.
        Allowed = "allowed",
        /// Yes, but not for long.
        AllowedWarning = "allowed_warning",
        /// No.
        Rejected = "rejected",
    }
}

wire_struct! {
    /// A tool is still running.
    #[derive(Default)]
    pub struct ToolProgressMessage ["type" = "tool_progress"] {
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The tool.
        tool_name: Option<String>,
        /// The tool call inside which a subagent called it.
        parent_tool_use_id: Option<ToolUseId>,
        /// Seconds so far.
        elapsed_time_seconds: Option<Number>,
        /// The background task.
        task_id: Option<TaskId>,
        /// Whether this only says that it is alive.
        heartbeat: Option<bool>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// A retry of the subagent's request.
        subagent_retry: Option<SubagentRetry>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// A request of a subagent that is made once more.
    #[derive(Default)]
    pub struct SubagentRetry {
        /// The subagent.
        agent_id: Option<AgentId>,
        /// Which try.
        attempt: Option<Number>,
        /// How many there will be.
        max_retries: Option<Number>,
        /// Milliseconds until then.
        retry_delay_ms: Option<Number>,
        /// The HTTP status of the failure.
        error_status: Option<Number>,
        /// The kind of failure.
        error_category: Option<String>,
    }
}

wire_struct! {
    /// What a row of tool calls did, in one sentence.
    #[derive(Default)]
    pub struct ToolUseSummaryMessage ["type" = "tool_use_summary"] {
        /// The sentence.
        summary: Option<String>,
        /// The calls.
        preceding_tool_use_ids: List<ToolUseId>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// A login is going on.
    #[derive(Default)]
    pub struct AuthStatusMessage ["type" = "auth_status"] {
        /// Whether it still is.
        is_authenticating: Option<bool> as "isAuthenticating",
        /// What to show.
        output: List<String>,
        /// What went wrong.
        error: Option<String>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// What the user might say next.
    #[derive(Default)]
    pub struct PromptSuggestionMessage ["type" = "prompt_suggestion"] {
        /// The prompt.
        suggestion: Option<String>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// The conversation began anew.
    #[derive(Default)]
    pub struct ConversationResetMessage ["type" = "conversation_reset"] {
        /// The new conversation.
        new_conversation_id: Option<String>,
        /// What began it.
        trigger: Option<String>,
        /// The user message that began it.
        user_message_uuid: Option<MessageId>,
        /// When.
        timestamp: Option<String>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// The goal that the session works towards.
    #[derive(Default)]
    pub struct ActiveGoalMessage ["type" = "active_goal"] {
        /// The goal; absent when there is none any more.
        value: Option<Goal>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// A goal.
    #[derive(Default)]
    pub struct Goal {
        /// When it is reached.
        condition: Option<String>,
        /// How often it was tried.
        iterations: Option<Number>,
        /// When it was set.
        set_at: Option<Json>,
        /// Tokens used when it was set.
        tokens_at_start: Option<Number>,
        /// Why the last try did not reach it.
        last_reason: Option<String>,
    }
}

wire_struct! {
    /// Where a user message stands.
    #[derive(Default)]
    pub struct CommandLifecycleMessage ["type" = "command_lifecycle"] {
        /// The user message.
        command_uuid: Option<MessageId>,
        /// Where it stands.
        state: Option<CommandState>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

open_enum! {
    /// Where a user message stands.
    pub enum CommandState {
        /// It waits.
        Queued = "queued",
        /// It is being answered.
        Started = "started",
        /// It was answered.
        Completed = "completed",
        /// It was withdrawn or dropped.
        Cancelled = "cancelled",
    }
}

wire_struct! {
    /// When the context will be made smaller.
    #[derive(Default)]
    pub struct AutocompactStateMessage ["type" = "autocompact_state"] {
        /// The numbers.
        value: Option<AutocompactState>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// When the context is made smaller.
    #[derive(Default)]
    pub struct AutocompactState {
        /// Whether it is at all.
        enabled: Option<bool>,
        /// The tokens that count.
        effective_window: Option<Number>,
        /// How many of them may be used.
        threshold: Option<Number>,
        /// Whether that is enforced.
        enforced: Option<bool>,
        /// Who set it.
        source: Option<String>,
    }
}
