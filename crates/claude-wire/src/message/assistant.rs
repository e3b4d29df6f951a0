//! Messages of the model.

use crate::Tokens;
use crate::content::{ContentBlock, ToolUseBlock, text_of, tool_calls};
use crate::id::{AgentId, MessageId, SessionId, ToolUseId};
use crate::json::{Json, List, Number};
use crate::message::{ContextReport, Usage, UsageReport};

wire_struct! {
    /// A part of the model's answer. The CLI sends one message per content block; the blocks of one
    /// answer share the message ID of the API.
    #[derive(Default)]
    pub struct AssistantMessage ["type" = "assistant"] {
        /// The message of the Messages API.
        message: Option<ApiMessage>,
        /// The tool call that started the subagent of this message.
        parent_tool_use_id: Option<ToolUseId>,
        /// The reason why the API did not return an answer.
        error: Option<AssistantError>,
        /// Whether the text is an API error message of the CLI.
        is_api_error_message: Option<bool>,
        /// The HTTP status of the API error.
        api_error_status: Option<Number>,
        /// The error code of the API.
        api_error_type: Option<String>,
        /// The request ID of the API.
        request_id: Option<String>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The session ID.
        session_id: Option<SessionId>,
        /// The ID of the user message that this answers.
        user_message_uuid: Option<MessageId>,
        /// The IDs of the user messages that this answers.
        user_message_uuids: List<MessageId>,
        /// The reason why the answer was resumed.
        resume_reason: Option<String>,
        /// Whether the answer continues after truncated thinking.
        resumed_from_incomplete_thinking: Option<bool>,
        /// The IDs of the messages that this one replaces.
        supersedes: List<MessageId>,
        /// Whether the answer was truncated.
        aborted: Option<bool>,
        /// The ID of the subagent.
        agent_id: Option<AgentId>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// The subagent's task.
        task_description: Option<String>,
        /// The time of the message.
        timestamp: Option<String>,
        /// The usage of the context window.
        context_usage: Option<Box<ContextReport>>,
        /// The usage so far.
        usage_report: Option<Box<UsageReport>>,
        /// Display names of the tool calls.
        tool_use_meta: Option<Json>,
    }
}

impl AssistantMessage {
    /// Returns the content blocks.
    pub fn content(&self) -> &[ContentBlock] {
        self.message.as_ref().map(|message| message.content.as_slice()).unwrap_or_default()
    }

    /// Returns the texts of the message, joined.
    pub fn text(&self) -> String {
        text_of(self.content())
    }

    /// Returns the tool calls of the message.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolUseBlock> {
        tool_calls(self.content())
    }

    /// Returns the name of the model; empty if it is absent.
    pub fn model(&self) -> &str {
        let model = self.message.as_ref().and_then(|message| message.model.as_deref());
        model.unwrap_or_default()
    }

    /// Returns the stop reason; `None` while the model is still writing.
    pub fn stop_reason(&self) -> Option<&StopReason> {
        self.message.as_ref()?.stop_reason.as_ref()
    }

    /// Returns the tokens of the answer so far; 0 for each absent count.
    pub fn tokens(&self) -> Tokens {
        let usage = self.message.as_ref().and_then(|message| message.usage.as_ref());
        usage.map(Usage::tokens).unwrap_or_default()
    }
}

wire_struct! {
    /// A message of the Messages API.
    #[derive(Default)]
    pub struct ApiMessage {
        /// The message ID of the API.
        id: Option<String>,
        /// Always `message`.
        kind: Option<ApiMessageKind> as "type",
        /// Always `assistant`.
        role: Option<Role>,
        /// The model.
        model: Option<String>,
        /// The blocks.
        content: List<ContentBlock>,
        /// The stop reason; absent while the model is still writing.
        stop_reason: Option<StopReason>,
        /// The sequence at which it stopped.
        stop_sequence: Option<String>,
        /// Details of the stop.
        stop_details: Option<Json>,
        /// The tokens.
        usage: Option<Usage>,
        /// The context edits of the API.
        context_management: Option<Json>,
        /// The container of server-side tools.
        container: Option<Json>,
        /// Diagnostic information.
        diagnostics: Option<Json>,
    }
}

open_enum! {
    /// The object type of an API message.
    pub enum ApiMessageKind {
        /// A message.
        Message = "message",
    }
}

open_enum! {
    /// The role of a message.
    pub enum Role {
        /// The model.
        Assistant = "assistant",
        /// The user, the host application or a tool.
        User = "user",
    }
}

open_enum! {
    /// The reason why the model stopped.
    pub enum StopReason {
        /// The model finished its answer.
        EndTurn = "end_turn",
        /// The model called a tool.
        ToolUse = "tool_use",
        /// The model reached the maximum number of output tokens.
        MaxTokens = "max_tokens",
        /// The model wrote a stop sequence.
        StopSequence = "stop_sequence",
        /// The model paused and can continue.
        PauseTurn = "pause_turn",
        /// The model refused to answer.
        Refusal = "refusal",
        /// The context window is full.
        ContextWindowExceeded = "model_context_window_exceeded",
    }
}

open_enum! {
    /// The reason why the API did not return an answer.
    pub enum AssistantError {
        /// Authentication failed.
        AuthenticationFailed = "authentication_failed",
        /// OAuth is not allowed for this organization.
        OauthOrgNotAllowed = "oauth_org_not_allowed",
        /// The account is suspended.
        AccountOnHold = "account_on_hold",
        /// The account requires verification.
        VerificationRequired = "verification_required",
        /// Billing failed.
        BillingError = "billing_error",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The API is overloaded.
        Overloaded = "overloaded",
        /// The API rejected the request.
        InvalidRequest = "invalid_request",
        /// The model does not exist.
        ModelNotFound = "model_not_found",
        /// The API failed.
        ServerError = "server_error",
        /// The reason is unknown.
        Unknown = "unknown",
        /// The answer exceeded the maximum number of output tokens.
        MaxOutputTokens = "max_output_tokens",
        /// Authentication with the cloud provider failed.
        CloudCredentialError = "cloud_credential_error",
    }
}
