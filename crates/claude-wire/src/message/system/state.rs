//! The state of the session.

use crate::control::PermissionMode;
use crate::id::{MessageId, RequestId};
use crate::json::{List, Number};

system_message! {
    /// The session state changed.
    SessionStateMessage = "session_state_changed" {
        /// The new state.
        state: Option<SessionState>,
        /// Whether the message is for the SDK and not for its user.
        sdk_host_only: Option<bool>,
    }
}

open_enum! {
    /// The state of a session.
    pub enum SessionState {
        /// Idle.
        Idle = "idle",
        /// Running a turn.
        Running = "running",
        /// Waiting for the host.
        RequiresAction = "requires_action",
    }
}

system_message! {
    /// The activity of the CLI.
    StatusMessage = "status" {
        /// `compacting`, `requesting`, or absent.
        status: Option<String>,
        /// The permission mode, after a change.
        permission_mode: Option<PermissionMode> as "permissionMode",
        /// How the compaction ended.
        compact_result: Option<String>,
        /// Why it failed.
        compact_error: Option<String>,
        /// The IDs of the user messages of the turn.
        user_message_uuids: List<MessageId>,
    }
}

system_message! {
    /// The conversation was compacted.
    CompactBoundaryMessage = "compact_boundary" {
        /// The details of the compaction.
        compact_metadata: Option<CompactMetadata>,
    }
}

wire_struct! {
    /// The details of a compaction.
    #[derive(Default)]
    pub struct CompactMetadata {
        /// `manual` or `auto`.
        trigger: Option<String>,
        /// The tokens before the compaction.
        pre_tokens: Option<Number>,
        /// The tokens after the compaction.
        post_tokens: Option<Number>,
        /// The duration in milliseconds.
        duration_ms: Option<Number>,
        /// The preserved range of messages.
        preserved_segment: Option<PreservedSegment>,
        /// The preserved messages.
        preserved_messages: Option<PreservedMessages>,
    }
}

wire_struct! {
    /// A preserved range of messages.
    #[derive(Default)]
    pub struct PreservedSegment {
        /// The first.
        head_uuid: Option<MessageId>,
        /// The message that they follow now.
        anchor_uuid: Option<MessageId>,
        /// The last.
        tail_uuid: Option<MessageId>,
    }
}

wire_struct! {
    /// Preserved messages.
    #[derive(Default)]
    pub struct PreservedMessages {
        /// The message that they follow now.
        anchor_uuid: Option<MessageId>,
        /// The preserved messages.
        uuids: List<MessageId>,
    }
}

system_message! {
    /// A request to the API is retried.
    ApiRetryMessage = "api_retry" {
        /// The number of the attempt.
        attempt: Option<Number>,
        /// The maximum number of attempts.
        max_retries: Option<Number>,
        /// The delay before the attempt in milliseconds.
        retry_delay_ms: Option<Number>,
        /// The HTTP status of the failure; absent if there was no response.
        error_status: Option<Number>,
        /// The kind of failure.
        error: Option<String>,
        /// The timeouts of a request without a response.
        no_response: Option<NoResponse>,
    }
}

wire_struct! {
    /// The timeouts of a request without a response.
    #[derive(Default)]
    pub struct NoResponse {
        /// The elapsed timeout in milliseconds.
        waited_ms: Option<Number>,
        /// The timeout of the next attempt in milliseconds.
        retry_wait_ms: Option<Number>,
    }
}

system_message! {
    /// A control request is in progress.
    ControlRequestProgressMessage = "control_request_progress" {
        /// Which.
        request_id: Option<RequestId>,
        /// `started` or `api_retry`.
        status: Option<String>,
        /// The number of the attempt.
        attempt: Option<Number>,
        /// The maximum number of attempts.
        max_retries: Option<Number>,
        /// The delay before the attempt in milliseconds.
        retry_delay_ms: Option<Number>,
        /// The HTTP status of the failure.
        error_status: Option<Number>,
    }
}

system_message! {
    /// The thinking tokens so far.
    ThinkingTokensMessage = "thinking_tokens" {
        /// The total.
        estimated_tokens: Option<Number>,
        /// The number since the previous such message.
        estimated_tokens_delta: Option<Number>,
        /// The ID of the user message of the turn.
        user_message_uuid: Option<MessageId>,
    }
}

system_message! {
    /// The process is about to exit.
    WorkerShuttingDownMessage = "worker_shutting_down" {
        /// The reason.
        reason: Option<String>,
    }
}

system_message! {
    /// A model refused, and another model answers.
    ModelRefusalFallbackMessage = "model_refusal_fallback" {
        /// The cause.
        trigger: Option<String>,
        /// `retry`, `revert` or `sticky`.
        direction: Option<String>,
        /// Whether it applies to the session or to this answer.
        scope: Option<String>,
        /// The model that refused.
        original_model: Option<String>,
        /// The model that answers.
        fallback_model: Option<String>,
        /// The request ID of the API.
        request_id: Option<String>,
        /// The kind of refusal.
        api_refusal_category: Option<String>,
        /// The explanation of the API.
        api_refusal_explanation: Option<String>,
        /// The IDs of the retracted messages.
        retracted_message_uuids: List<MessageId>,
        /// The user message that was refused.
        refused_user_message_uuid: Option<MessageId>,
        /// The text for the user.
        content: Option<String>,
    }
}

system_message! {
    /// A model refused, and no other model answers.
    ModelRefusalNoFallbackMessage = "model_refusal_no_fallback" {
        /// The model that refused.
        original_model: Option<String>,
        /// The request ID of the API.
        request_id: Option<String>,
        /// The kind of refusal.
        api_refusal_category: Option<String>,
        /// The explanation of the API.
        api_refusal_explanation: Option<String>,
        /// The user message that was refused.
        refused_user_message_uuid: Option<MessageId>,
        /// The text for the user.
        content: Option<String>,
    }
}
