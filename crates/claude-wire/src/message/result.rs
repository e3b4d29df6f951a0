//! The end of a turn.

use std::time::Duration;

use crate::Tokens;
use crate::id::{MessageId, SessionId, ToolUseId};
use crate::json::{Json, List, Number, count, dollars, millis};
use crate::message::{ModelUsageMap, Origin, StopReason, Usage};
use crate::tool_input::tool_call_view;

wire_struct! {
    /// The result of a turn, successful or not: see [`ResultMessage::is_error`]. The totals (cost,
    /// model usage) are those of the conversation: newer CLIs restore them on resume, and `/clear`
    /// resets them.
    #[derive(Default)]
    pub struct ResultMessage ["type" = "result"] {
        /// The outcome of the turn.
        subtype: Option<ResultSubtype>,
        /// Whether the turn failed.
        failed: Option<bool> as "is_error",
        /// The final text.
        result: Option<String>,
        /// The error.
        errors: List<String>,
        /// The HTTP status of the API error.
        api_error_status: Option<Number>,
        /// The error code of the API.
        api_error_type: Option<String>,
        /// The reason why the turn ended.
        terminal_reason: Option<TerminalReason>,
        /// The reason why the model stopped.
        stop_reason: Option<StopReason>,
        /// The session ID.
        session_id: Option<SessionId>,
        /// The ID of this message.
        uuid: Option<MessageId>,
        /// The total duration in milliseconds.
        duration_ms: Option<Number>,
        /// The time of API requests in milliseconds.
        duration_api_ms: Option<Number>,
        /// The number of model responses.
        num_turns: Option<Number>,
        /// The cost of the conversation in US dollars.
        total_cost_usd: Option<Number>,
        /// Tokens of the main conversation in this turn, without subagents and compaction.
        usage: Option<Usage>,
        /// The tokens and the cost of the conversation, by model.
        model_usage: Option<ModelUsageMap> as "modelUsage",
        /// The same since the previous result of this process. Older CLIs do not report it.
        model_usage_since_last_result: Option<ModelUsageMap>,
        /// The denied tool calls.
        permission_denials: List<PermissionDenial>,
        /// The structured output, if a schema was set.
        structured_output: Option<Json>,
        /// The tool call that a hook deferred.
        deferred_tool_use: Option<DeferredToolUse>,
        /// The origin of the turn, if the host did not start it.
        origin: Option<Origin>,
        /// The ID of the user message of the turn.
        user_message_uuid: Option<MessageId>,
        /// The IDs of the user messages of the turn.
        user_message_uuids: List<MessageId>,
        /// The index of this result in the process, from 0.
        result_index: Option<Number>,
        /// The number of queued messages.
        queued_turn_count: Option<Number>,
        /// Whether a command of the CLI answered instead of the model.
        local_command: Option<Json>,
        /// The reason why the turn was resumed.
        resume_reason: Option<String>,
        /// The reason why the process could not start.
        startup_failure_reason: Option<StartupFailure>,
        /// The config file that could not be read.
        invalid_config_file: Option<InvalidConfigFile>,
        /// The time to the first token in milliseconds.
        ttft_ms: Option<Number>,
        /// The time to the first event of the stream in milliseconds.
        ttft_stream_ms: Option<Number>,
        /// The time to the request in milliseconds.
        time_to_request_ms: Option<Number>,
        /// The time to the first line of content in milliseconds.
        first_content_frame_ms: Option<Number>,
        /// The wall-clock time when the request was sent.
        request_sent_wall_ms: Option<Number>,
        /// The time to the first forwarded event in milliseconds.
        first_stream_post_ms: Option<Number>,
        /// The time until it was acknowledged in milliseconds.
        first_stream_post_ack_ms: Option<Number>,
        /// The waiting time in milliseconds.
        first_stream_post_queue_wait_ms: Option<Number>,
        /// The reason of the waiting time.
        first_stream_post_queued_behind: Option<String>,
        /// The wall-clock time when it was forwarded.
        first_stream_post_wall_ms: Option<Number>,
        /// The time to the first forwarded text in milliseconds.
        first_text_post_ms: Option<Number>,
        /// The waiting time in milliseconds.
        first_text_post_queue_wait_ms: Option<Number>,
        /// The reason of the waiting time.
        first_text_post_queued_behind: Option<String>,
        /// The wall-clock time when it was forwarded.
        first_text_post_wall_ms: Option<Number>,
        /// The time from the start of the process to the request in milliseconds.
        time_to_request_from_spawn_ms: Option<Number>,
        /// Whether a pre-started process was used.
        warm_spare_claimed: Option<bool>,
        /// The reference point of the times.
        time_origin_ms: Option<Number>,
        /// The time when the login expires.
        credential_expires_at: Option<Json>,
        /// Whether fast mode is on.
        fast_mode_state: Option<String>,
        /// The reason why it is disabled.
        fast_mode_disabled_reason: Option<String>,
        /// The activity of subagents.
        subagent_stats: Option<Json>,
    }
}

impl ResultMessage {
    /// Returns whether the turn failed; false if the field is absent.
    pub fn is_error(&self) -> bool {
        self.failed.unwrap_or(false)
    }

    /// Returns the final text; empty if there is none.
    pub fn text(&self) -> &str {
        self.result.as_deref().unwrap_or_default()
    }

    /// Returns the number of model responses in the turn; 0 if the field is absent.
    pub fn turns(&self) -> u64 {
        count(self.num_turns.as_ref())
    }

    /// Returns the duration of the turn; zero if the field is absent.
    pub fn duration(&self) -> Duration {
        millis(self.duration_ms.as_ref())
    }

    /// Returns the time of API requests; zero if the field is absent.
    pub fn api_duration(&self) -> Duration {
        millis(self.duration_api_ms.as_ref())
    }

    /// Returns the tokens of the main conversation in this turn; 0 for each absent count.
    pub fn tokens(&self) -> Tokens {
        self.usage.as_ref().map(Usage::tokens).unwrap_or_default()
    }

    /// Returns the cost of the conversation so far in US dollars; 0 if the field is absent. Newer
    /// CLIs include the earlier cost of a resumed conversation.
    pub fn conversation_dollars(&self) -> f64 {
        dollars(self.total_cost_usd.as_ref())
    }
}

open_enum! {
    /// The outcome of a turn. `Success` can still be an error (`is_error`): an API error is then in
    /// the text.
    pub enum ResultSubtype {
        /// The turn completed.
        Success = "success",
        /// The turn failed or was interrupted.
        ErrorDuringExecution = "error_during_execution",
        /// The turn exceeded `max_turns`.
        ErrorMaxTurns = "error_max_turns",
        /// The turn exceeded the budget.
        ErrorMaxBudgetUsd = "error_max_budget_usd",
        /// No answer matched the schema.
        ErrorMaxStructuredOutputRetries = "error_max_structured_output_retries",
    }
}

open_enum! {
    /// The reason why a turn ended.
    pub enum TerminalReason {
        /// The model finished.
        Completed = "completed",
        /// The conversation exceeds the context window.
        BlockingLimit = "blocking_limit",
        /// The context filled up again too quickly after compaction.
        RapidRefillBreaker = "rapid_refill_breaker",
        /// The prompt is too long.
        PromptTooLong = "prompt_too_long",
        /// An image is invalid.
        ImageError = "image_error",
        /// The model failed.
        ModelError = "model_error",
        /// The API failed.
        ApiError = "api_error",
        /// The model wrote malformed tool calls.
        MalformedToolUseExhausted = "malformed_tool_use_exhausted",
        /// The turn was interrupted while the model was writing.
        AbortedStreaming = "aborted_streaming",
        /// The turn was interrupted while tools were running.
        AbortedTools = "aborted_tools",
        /// A `Stop` hook prevented the end.
        StopHookPrevented = "stop_hook_prevented",
        /// A hook ended the turn.
        HookStopped = "hook_stopped",
        /// A hook deferred a tool call.
        ToolDeferred = "tool_deferred",
        /// The turn exceeded `max_turns`.
        MaxTurns = "max_turns",
        /// The work continued in the background.
        BackgroundRequested = "background_requested",
        /// The budget is exhausted.
        BudgetExhausted = "budget_exhausted",
        /// No answer matched the schema.
        StructuredOutputRetryExhausted = "structured_output_retry_exhausted",
        /// A deferred tool call could not be resumed.
        ToolDeferredUnavailable = "tool_deferred_unavailable",
        /// The turn could not start.
        TurnSetupFailed = "turn_setup_failed",
    }
}

wire_struct! {
    /// A config file that could not be read.
    #[derive(Default)]
    pub struct InvalidConfigFile {
        /// The file.
        path: Option<String>,
        /// Whether it is the configuration file of the user.
        is_global: Option<bool>,
        /// Whether a backup was searched for.
        backup_searched: Option<bool>,
        /// The backup.
        backup_path: Option<String>,
    }
}

open_enum! {
    /// The reason why the process could not start.
    pub enum StartupFailure {
        /// The API key does not belong to the required organization.
        OrgPinApiKeyConflict = "org_pin_api_key_conflict",
        /// The organization does not allow the API provider.
        ProviderNotAllowed = "provider_not_allowed",
        /// The organization could not be verified.
        OrgVerifyFailed = "org_verify_failed",
        /// The organization does not match.
        OrgPinMismatch = "org_pin_mismatch",
        /// The managed settings are invalid.
        ManagedSettingsInvalid = "managed_settings_invalid",
        /// The managed settings are unavailable.
        RemoteSettingsRequiredUnavailable = "remote_settings_required_unavailable",
        /// The gateway requires a login.
        GatewaySigninRequired = "gateway_signin_required",
        /// The gateway rejected the login.
        GatewayAccessDenied = "gateway_access_denied",
        /// The proxy is invalid.
        ProxyInvalid = "proxy_invalid",
        /// The directory for temporary files cannot be used.
        TempDirUnusable = "temp_dir_unusable",
        /// The working directory cannot be used.
        CwdUnavailable = "cwd_unavailable",
        /// No shell is available.
        ShellToolMissing = "shell_tool_missing",
        /// The session runs in the background.
        SessionHeldByBackground = "session_held_by_background",
        /// The worktree of the session does not exist.
        WorktreeResumeRefused = "worktree_resume_refused",
        /// The worktree of the session could not be verified.
        WorktreeUnverified = "worktree_unverified",
        /// The CLI is too old.
        CliVersionTooOld = "cli_version_too_old",
        /// Permissions cannot be bypassed as root.
        BypassRoot = "bypass_root",
        /// The managed configuration is unavailable.
        OrgConfigRequiredUnavailable = "org_config_required_unavailable",
        /// The managed configuration was rejected.
        OrgConfigRefused = "org_config_refused",
        /// A sandbox is required but unavailable.
        SandboxRequiredUnavailable = "sandbox_required_unavailable",
        /// A message was sent before the handshake.
        InitializeNotFirst = "initialize_not_first",
        /// A config file cannot be read.
        ConfigFileInvalid = "config_file_invalid",
        /// The managed settings were not received.
        ManagedSettingsNotDelivered = "managed_settings_not_delivered",
    }
}

wire_struct! {
    /// A denied tool call.
    #[derive(Default)]
    pub struct PermissionDenial {
        /// The tool.
        tool_name: Option<String>,
        /// The call.
        tool_use_id: Option<ToolUseId>,
        /// The input.
        input: Option<Json> as "tool_input",
    }
}

wire_struct! {
    /// A tool call that a hook deferred.
    #[derive(Default)]
    pub struct DeferredToolUse {
        /// The call.
        id: Option<ToolUseId>,
        /// The tool.
        tool_name: Option<String> as "name",
        /// The input.
        input: Option<Json>,
    }
}

tool_call_view!(PermissionDenial, DeferredToolUse);
