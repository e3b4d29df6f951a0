//! What the model says.

use crate::content::{ContentBlock, ToolUseBlock, text_of, tool_calls};
use crate::id::{AgentId, MessageId, SessionId, ToolUseId};
use crate::json::{Json, List, Number};
use crate::message::{ContextReport, Usage, UsageReport};
use crate::session::Tokens;

wire_struct! {
    /// A finished piece of the model's answer. The CLI sends one per content block; several share
    /// the API's message id.
    #[derive(Default)]
    pub struct AssistantMessage ["type" = "assistant"] {
        /// The API's message.
        message: Option<ApiMessage>,
        /// The tool call inside which a subagent said this.
        parent_tool_use_id: Option<ToolUseId>,
        /// Why the API gave no answer.
        error: Option<AssistantError>,
        /// Whether the text is the CLI's own account of an API error.
        is_api_error_message: Option<bool>,
        /// The HTTP status of the API's refusal.
        api_error_status: Option<Number>,
        /// The API's word for it.
        api_error_type: Option<String>,
        /// The API's request.
        request_id: Option<String>,
        /// This message.
        uuid: Option<MessageId>,
        /// The session.
        session_id: Option<SessionId>,
        /// The user message that this answers.
        user_message_uuid: Option<MessageId>,
        /// The user messages that this answers.
        user_message_uuids: List<MessageId>,
        /// Why the answer was taken up again.
        resume_reason: Option<String>,
        /// Whether the answer goes on from thinking that was cut.
        resumed_from_incomplete_thinking: Option<bool>,
        /// Messages that this one replaces.
        supersedes: List<MessageId>,
        /// Whether the answer was cut off.
        aborted: Option<bool>,
        /// The subagent that said this.
        agent_id: Option<AgentId>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// The subagent's task.
        task_description: Option<String>,
        /// When it was said.
        timestamp: Option<String>,
        /// How full the context is.
        context_usage: Option<Box<ContextReport>>,
        /// What was used so far.
        usage_report: Option<Box<UsageReport>>,
        /// How the tool calls are called for people.
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

    /// Returns why the model stopped; `None` while it is still writing.
    pub fn stop_reason(&self) -> Option<&StopReason> {
        self.message.as_ref()?.stop_reason.as_ref()
    }

    /// Returns the tokens of the response so far; 0 for each number that is absent.
    pub fn tokens(&self) -> Tokens {
        let usage = self.message.as_ref().and_then(|message| message.usage.as_ref());
        usage.map(Usage::tokens).unwrap_or_default()
    }
}

wire_struct! {
    /// A message of the Messages API.
    #[derive(Default)]
    pub struct ApiMessage {
        /// The API's id.
        id: Option<String>,
        /// Always `message`.
        kind: Option<ApiMessageKind> as "type",
        /// Always `assistant`.
        role: Option<Role>,
        /// The model.
        model: Option<String>,
        /// The blocks.
        content: List<ContentBlock>,
        /// Why the model stopped; absent while it still writes.
        stop_reason: Option<StopReason>,
        /// The sequence at which it stopped.
        stop_sequence: Option<String>,
        /// Details of the stop.
        stop_details: Option<Json>,
        /// The tokens.
        usage: Option<Usage>,
        /// What the API removed from the context.
        context_management: Option<Json>,
        /// The container that tools of the API ran in.
        container: Option<Json>,
        /// Hints for debugging.
        diagnostics: Option<Json>,
    }
}

open_enum! {
    /// What the API calls its messages.
    pub enum ApiMessageKind {
        /// A message.
        Message = "message",
    }
}

open_enum! {
    /// Who speaks.
    pub enum Role {
        /// The model.
        Assistant = "assistant",
        /// The host, its user, or a tool.
        User = "user",
    }
}

open_enum! {
    /// Why the model stopped.
    pub enum StopReason {
        /// It was done.
        EndTurn = "end_turn",
        /// It wants a tool to run.
        ToolUse = "tool_use",
        /// It wrote as much as it may.
        MaxTokens = "max_tokens",
        /// It wrote a sequence at which it should stop.
        StopSequence = "stop_sequence",
        /// It pauses and can go on.
        PauseTurn = "pause_turn",
        /// It refused.
        Refusal = "refusal",
        /// The context is full.
        ContextWindowExceeded = "model_context_window_exceeded",
    }
}

open_enum! {
    /// Why the API gave no answer.
    pub enum AssistantError {
        /// The login was refused.
        AuthenticationFailed = "authentication_failed",
        /// The organisation may not use this way in.
        OauthOrgNotAllowed = "oauth_org_not_allowed",
        /// The account is on hold.
        AccountOnHold = "account_on_hold",
        /// The account must be verified.
        VerificationRequired = "verification_required",
        /// Payment failed.
        BillingError = "billing_error",
        /// Too many requests.
        RateLimit = "rate_limit",
        /// The API is overloaded.
        Overloaded = "overloaded",
        /// The API refused the request.
        InvalidRequest = "invalid_request",
        /// No such model.
        ModelNotFound = "model_not_found",
        /// The API failed.
        ServerError = "server_error",
        /// Not said.
        Unknown = "unknown",
        /// The answer was longer than allowed.
        MaxOutputTokens = "max_output_tokens",
        /// The cloud's login was refused.
        CloudCredentialError = "cloud_credential_error",
    }
}
