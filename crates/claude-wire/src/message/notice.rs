//! Messages outside of the conversation.

use crate::id::{AgentId, MessageId, SessionId, TaskId, ToolUseId};
use crate::json::{Json, List, Number};

wire_struct! {
    /// The usage of the account's rate limits.
    #[derive(Default)]
    pub struct RateLimitMessage ["type" = "rate_limit_event"] {
        /// The values.
        rate_limit_info: Option<RateLimitInfo>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// The state of a usage limit.
    #[derive(Default)]
    pub struct RateLimitInfo {
        /// Whether requests are allowed.
        status: Option<RateLimitStatus>,
        /// The time when the limit resets, in seconds since 1970.
        resets_at: Option<Number> as "resetsAt",
        /// The kind of limit.
        limit_type: Option<String> as "rateLimitType",
        /// The used fraction, from 0 to 1.
        utilization: Option<Number>,
        /// Whether overage requests are allowed.
        overage_status: Option<RateLimitStatus> as "overageStatus",
        /// The time when the overage limit resets.
        overage_resets_at: Option<Number> as "overageResetsAt",
        /// The reason why overage is disabled.
        overage_disabled_reason: Option<String> as "overageDisabledReason",
        /// Whether overage is in use now.
        is_using_overage: Option<bool> as "isUsingOverage",
        /// Whether overage was used.
        overage_in_use: Option<bool> as "overageInUse",
        /// Whether overage is enabled.
        overage_enabled: Option<bool> as "overageEnabled",
        /// The threshold that was exceeded.
        surpassed_threshold: Option<Number> as "surpassedThreshold",
        /// The scope of the limit.
        limit_scope: Option<Json> as "limitScope",
        /// The error code of the API.
        error_code: Option<String> as "errorCode",
        /// Whether the user can buy additional usage.
        can_user_purchase_credits: Option<bool> as "canUserPurchaseCredits",
        /// Whether a payment method is available.
        has_chargeable_saved_payment_method: Option<bool> as "hasChargeableSavedPaymentMethod",
    }
}

open_enum! {
    /// Whether requests are allowed.
    pub enum RateLimitStatus {
        /// Requests are allowed.
        Allowed = "allowed",
        /// Requests are allowed, but the limit is near.
        AllowedWarning = "allowed_warning",
        /// Requests are rejected.
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
        /// The elapsed time in seconds.
        elapsed_time_seconds: Option<Number>,
        /// The background task.
        task_id: Option<TaskId>,
        /// Whether this is only a heartbeat.
        heartbeat: Option<bool>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// The retry of a request of the subagent.
        subagent_retry: Option<SubagentRetry>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// The retry of a request of a subagent.
    #[derive(Default)]
    pub struct SubagentRetry {
        /// The subagent.
        agent_id: Option<AgentId>,
        /// The number of the attempt.
        attempt: Option<Number>,
        /// The maximum number of attempts.
        max_retries: Option<Number>,
        /// The delay before the attempt in milliseconds.
        retry_delay_ms: Option<Number>,
        /// The HTTP status of the failure.
        error_status: Option<Number>,
        /// The kind of failure.
        error_category: Option<String>,
    }
}

wire_struct! {
    /// A one-sentence summary of several tool calls.
    #[derive(Default)]
    pub struct ToolUseSummaryMessage ["type" = "tool_use_summary"] {
        /// The summary.
        summary: Option<String>,
        /// The tool calls.
        preceding_tool_use_ids: List<ToolUseId>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// A login is in progress.
    #[derive(Default)]
    pub struct AuthStatusMessage ["type" = "auth_status"] {
        /// Whether the login is in progress.
        is_authenticating: Option<bool> as "isAuthenticating",
        /// The text for the user.
        output: List<String>,
        /// The error.
        error: Option<String>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// A suggestion for the next prompt.
    #[derive(Default)]
    pub struct PromptSuggestionMessage ["type" = "prompt_suggestion"] {
        /// The prompt.
        suggestion: Option<String>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// The conversation was reset.
    #[derive(Default)]
    pub struct ConversationResetMessage ["type" = "conversation_reset"] {
        /// The new conversation.
        new_conversation_id: Option<String>,
        /// The cause.
        trigger: Option<String>,
        /// The user message that caused it.
        user_message_uuid: Option<MessageId>,
        /// The time.
        timestamp: Option<String>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// The goal of the session.
    #[derive(Default)]
    pub struct ActiveGoalMessage ["type" = "active_goal"] {
        /// The goal; absent after it was removed.
        value: Option<Goal>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// A goal.
    #[derive(Default)]
    pub struct Goal {
        /// The condition under which the goal is reached.
        condition: Option<String>,
        /// The number of attempts.
        iterations: Option<Number>,
        /// The time when the goal was set.
        set_at: Option<Json>,
        /// The tokens used when the goal was set.
        tokens_at_start: Option<Number>,
        /// The reason why the last attempt failed.
        last_reason: Option<String>,
    }
}

wire_struct! {
    /// The state of a user message.
    #[derive(Default)]
    pub struct CommandLifecycleMessage ["type" = "command_lifecycle"] {
        /// The user message.
        command_uuid: Option<MessageId>,
        /// The state.
        state: Option<CommandState>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// A note in the conversation, as in the transcript. Sent during the replay of a deferred tool call.
    #[derive(Default)]
    pub struct AttachmentMessage ["type" = "attachment"] {
        /// The attachment, with its own `type`: `hook_success` when a hook responded to a replayed call,
        /// `hook_deferred_tool` when the call was deferred again.
        attachment: Option<Json>,
        /// The tool call inside which a subagent received it.
        parent_tool_use_id: Option<ToolUseId>,
        /// The time.
        timestamp: Option<String>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

open_enum! {
    /// The state of a user message.
    pub enum CommandState {
        /// It is queued.
        Queued = "queued",
        /// The turn of the message has started.
        Started = "started",
        /// The turn of the message has completed.
        Completed = "completed",
        /// The message was cancelled.
        Cancelled = "cancelled",
    }
}

wire_struct! {
    /// The settings of automatic compaction.
    #[derive(Default)]
    pub struct AutocompactStateMessage ["type" = "autocompact_state"] {
        /// The values.
        value: Option<AutocompactState>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
    }
}

wire_struct! {
    /// The settings of automatic compaction.
    #[derive(Default)]
    pub struct AutocompactState {
        /// Whether it is enabled.
        enabled: Option<bool>,
        /// The tokens of the context.
        effective_window: Option<Number>,
        /// The limit in tokens.
        threshold: Option<Number>,
        /// Whether the limit is enforced.
        enforced: Option<bool>,
        /// The source of the setting.
        source: Option<String>,
    }
}
