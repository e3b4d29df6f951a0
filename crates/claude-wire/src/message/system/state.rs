//! What the session is doing.

use crate::control::PermissionMode;
use crate::id::{MessageId, RequestId};
use crate::json::{List, Number};

system_message! {
    /// The session works, waits for the host, or is idle.
    SessionStateMessage = "session_state_changed" {
        /// Which of these.
        state: Option<SessionState>,
        /// Whether it is meant for the SDK and not for its user.
        sdk_host_only: Option<bool>,
    }
}

open_enum! {
    /// What a session is doing.
    pub enum SessionState {
        /// Nothing.
        Idle = "idle",
        /// A turn.
        Running = "running",
        /// It waits for an answer of the host.
        RequiresAction = "requires_action",
    }
}

system_message! {
    /// What the CLI is doing.
    StatusMessage = "status" {
        /// `compacting`, `requesting`, or nothing.
        status: Option<String>,
        /// The permission mode, after a change.
        permission_mode: Option<PermissionMode> as "permissionMode",
        /// How the compaction ended.
        compact_result: Option<String>,
        /// Why it failed.
        compact_error: Option<String>,
        /// The user messages that are being answered.
        user_message_uuids: List<MessageId>,
    }
}

system_message! {
    /// The context was made smaller.
    CompactBoundaryMessage = "compact_boundary" {
        /// By whom, and by how much.
        compact_metadata: Option<CompactMetadata>,
    }
}

wire_struct! {
    /// How the context was made smaller.
    #[derive(Default)]
    pub struct CompactMetadata {
        /// `manual` or `auto`.
        trigger: Option<String>,
        /// Tokens before.
        pre_tokens: Option<Number>,
        /// Tokens after.
        post_tokens: Option<Number>,
        /// Milliseconds that it took.
        duration_ms: Option<Number>,
        /// The row of messages that stayed.
        preserved_segment: Option<PreservedSegment>,
        /// The messages that stayed.
        preserved_messages: Option<PreservedMessages>,
    }
}

wire_struct! {
    /// A row of messages that stayed.
    #[derive(Default)]
    pub struct PreservedSegment {
        /// The first.
        head_uuid: Option<MessageId>,
        /// The one that they stand after now.
        anchor_uuid: Option<MessageId>,
        /// The last.
        tail_uuid: Option<MessageId>,
    }
}

wire_struct! {
    /// Messages that stayed.
    #[derive(Default)]
    pub struct PreservedMessages {
        /// The one that they stand after now.
        anchor_uuid: Option<MessageId>,
        /// They.
        uuids: List<MessageId>,
    }
}

system_message! {
    /// A request to the API is made once more.
    ApiRetryMessage = "api_retry" {
        /// Which try.
        attempt: Option<Number>,
        /// How many there will be.
        max_retries: Option<Number>,
        /// Milliseconds until then.
        retry_delay_ms: Option<Number>,
        /// The HTTP status of the failure; absent when there was no answer.
        error_status: Option<Number>,
        /// The kind of failure.
        error: Option<String>,
        /// How long there was no answer.
        no_response: Option<NoResponse>,
    }
}

wire_struct! {
    /// How long there was no answer.
    #[derive(Default)]
    pub struct NoResponse {
        /// Milliseconds that were waited.
        waited_ms: Option<Number>,
        /// Milliseconds that the next try waits.
        retry_wait_ms: Option<Number>,
    }
}

system_message! {
    /// A control request is being worked on.
    ControlRequestProgressMessage = "control_request_progress" {
        /// Which.
        request_id: Option<RequestId>,
        /// `started` or `api_retry`.
        status: Option<String>,
        /// Which try.
        attempt: Option<Number>,
        /// How many there will be.
        max_retries: Option<Number>,
        /// Milliseconds until then.
        retry_delay_ms: Option<Number>,
        /// The HTTP status of the failure.
        error_status: Option<Number>,
    }
}

system_message! {
    /// How much the model thought so far.
    ThinkingTokensMessage = "thinking_tokens" {
        /// In all.
        estimated_tokens: Option<Number>,
        /// Since the last such message.
        estimated_tokens_delta: Option<Number>,
        /// The user message that is answered.
        user_message_uuid: Option<MessageId>,
    }
}

system_message! {
    /// The process is about to end.
    WorkerShuttingDownMessage = "worker_shutting_down" {
        /// Why.
        reason: Option<String>,
    }
}

system_message! {
    /// A model refused and another one answers.
    ModelRefusalFallbackMessage = "model_refusal_fallback" {
        /// What began it.
        trigger: Option<String>,
        /// `retry`, `revert` or `sticky`.
        direction: Option<String>,
        /// For the session or for this answer.
        scope: Option<String>,
        /// The model that refused.
        original_model: Option<String>,
        /// The model that answers.
        fallback_model: Option<String>,
        /// The API's request.
        request_id: Option<String>,
        /// The kind of refusal.
        api_refusal_category: Option<String>,
        /// The API's words.
        api_refusal_explanation: Option<String>,
        /// Messages that are taken back.
        retracted_message_uuids: List<MessageId>,
        /// The user message that was refused.
        refused_user_message_uuid: Option<MessageId>,
        /// What to show.
        content: Option<String>,
    }
}

system_message! {
    /// A model refused and none other answers.
    ModelRefusalNoFallbackMessage = "model_refusal_no_fallback" {
        /// The model that refused.
        original_model: Option<String>,
        /// The API's request.
        request_id: Option<String>,
        /// The kind of refusal.
        api_refusal_category: Option<String>,
        /// The API's words.
        api_refusal_explanation: Option<String>,
        /// The user message that was refused.
        refused_user_message_uuid: Option<MessageId>,
        /// What to show.
        content: Option<String>,
    }
}
