//! The end of a turn.

use std::time::Duration;

use crate::id::{MessageId, SessionId, ToolUseId};
use crate::json::{Json, List, Number, count, dollars, millis};
use crate::message::{ModelUsageMap, Origin, StopReason, Usage};
use crate::session::Tokens;
use crate::tool_input::tool_call_view;

wire_struct! {
    /// The end of a turn, good or bad: see [`ResultMessage::is_error`]. The CLI's totals (cost,
    /// model usage) are those of the conversation: newer CLIs restore them on resume, and `/clear`
    /// sets them to zero.
    #[derive(Default)]
    pub struct ResultMessage ["type" = "result"] {
        /// How the turn ended.
        subtype: Option<ResultSubtype>,
        /// Whether it failed.
        failed: Option<bool> as "is_error",
        /// The final text.
        result: Option<String>,
        /// What went wrong.
        errors: List<String>,
        /// The HTTP status of the API's refusal.
        api_error_status: Option<Number>,
        /// The API's word for its refusal.
        api_error_type: Option<String>,
        /// What ended the turn.
        terminal_reason: Option<TerminalReason>,
        /// Why the model stopped.
        stop_reason: Option<StopReason>,
        /// The session.
        session_id: Option<SessionId>,
        /// This message.
        uuid: Option<MessageId>,
        /// Milliseconds in all.
        duration_ms: Option<Number>,
        /// Milliseconds of waiting for the API.
        duration_api_ms: Option<Number>,
        /// Answers of the model.
        num_turns: Option<Number>,
        /// Dollars of the conversation.
        total_cost_usd: Option<Number>,
        /// Tokens of the main conversation in this turn, without subagents and compaction.
        usage: Option<Usage>,
        /// Tokens and dollars of the conversation, by model.
        model_usage: Option<ModelUsageMap> as "modelUsage",
        /// The same since the last result of the process. Older CLIs do not report it.
        model_usage_since_last_result: Option<ModelUsageMap>,
        /// Tool calls that were not allowed.
        permission_denials: List<PermissionDenial>,
        /// The answer that fits the schema, if one was asked for.
        structured_output: Option<Json>,
        /// The tool call that a hook put off.
        deferred_tool_use: Option<DeferredToolUse>,
        /// What started the turn, if not the host.
        origin: Option<Origin>,
        /// The user message that the turn answers.
        user_message_uuid: Option<MessageId>,
        /// The user messages that the turn answers.
        user_message_uuids: List<MessageId>,
        /// The number of this result in the process, from 0.
        result_index: Option<Number>,
        /// Messages still waiting.
        queued_turn_count: Option<Number>,
        /// Whether a command of the CLI answered, not the model.
        local_command: Option<Json>,
        /// Why the turn was taken up again.
        resume_reason: Option<String>,
        /// Why the process could not begin.
        startup_failure_reason: Option<StartupFailure>,
        /// The config file that could not be read.
        invalid_config_file: Option<InvalidConfigFile>,
        /// Milliseconds to the first token.
        ttft_ms: Option<Number>,
        /// Milliseconds to the first event of the stream.
        ttft_stream_ms: Option<Number>,
        /// Milliseconds to the request.
        time_to_request_ms: Option<Number>,
        /// Milliseconds to the first line of content.
        first_content_frame_ms: Option<Number>,
        /// When the request was sent, by the clock.
        request_sent_wall_ms: Option<Number>,
        /// Milliseconds to the first piece that was passed on.
        first_stream_post_ms: Option<Number>,
        /// Milliseconds until that was acknowledged.
        first_stream_post_ack_ms: Option<Number>,
        /// Milliseconds that it waited.
        first_stream_post_queue_wait_ms: Option<Number>,
        /// What it waited for.
        first_stream_post_queued_behind: Option<String>,
        /// When it was passed on, by the clock.
        first_stream_post_wall_ms: Option<Number>,
        /// Milliseconds to the first piece of text that was passed on.
        first_text_post_ms: Option<Number>,
        /// Milliseconds that it waited.
        first_text_post_queue_wait_ms: Option<Number>,
        /// What it waited for.
        first_text_post_queued_behind: Option<String>,
        /// When it was passed on, by the clock.
        first_text_post_wall_ms: Option<Number>,
        /// Milliseconds from the start of the process to the request.
        time_to_request_from_spawn_ms: Option<Number>,
        /// Whether a process that was started before was used.
        warm_spare_claimed: Option<bool>,
        /// What the times are counted from.
        time_origin_ms: Option<Number>,
        /// When the login ends.
        credential_expires_at: Option<Json>,
        /// Whether fast mode is on.
        fast_mode_state: Option<String>,
        /// Why it is not.
        fast_mode_disabled_reason: Option<String>,
        /// What subagents did.
        subagent_stats: Option<Json>,
    }
}

impl ResultMessage {
    /// Returns whether the turn failed; false if the CLI does not say.
    pub fn is_error(&self) -> bool {
        self.failed.unwrap_or(false)
    }

    /// Returns the final text; empty if there is none.
    pub fn text(&self) -> &str {
        self.result.as_deref().unwrap_or_default()
    }

    /// Returns how many responses of the model the turn took; 0 if the CLI does not say.
    pub fn turns(&self) -> u64 {
        count(self.num_turns.as_ref())
    }

    /// Returns how long the turn took; zero if the CLI does not say.
    pub fn duration(&self) -> Duration {
        millis(self.duration_ms.as_ref())
    }

    /// Returns how long the CLI waited for the API; zero if the CLI does not say.
    pub fn api_duration(&self) -> Duration {
        millis(self.duration_api_ms.as_ref())
    }

    /// Returns the tokens of the main conversation in this turn; 0 for each number that is absent.
    pub fn tokens(&self) -> Tokens {
        self.usage.as_ref().map(Usage::tokens).unwrap_or_default()
    }

    /// Returns the cost of the conversation so far in US dollars; 0 if the CLI does not say. Newer
    /// CLIs include what a resumed conversation cost before.
    pub fn conversation_dollars(&self) -> f64 {
        dollars(self.total_cost_usd.as_ref())
    }
}

open_enum! {
    /// How a turn ended. `Success` can still be an error (`is_error`): the API's refusal is told
    /// in the text.
    pub enum ResultSubtype {
        /// The turn came to its end.
        Success = "success",
        /// It failed or was interrupted.
        ErrorDuringExecution = "error_during_execution",
        /// It took more turns than allowed.
        ErrorMaxTurns = "error_max_turns",
        /// It cost more than allowed.
        ErrorMaxBudgetUsd = "error_max_budget_usd",
        /// No answer fitted the schema.
        ErrorMaxStructuredOutputRetries = "error_max_structured_output_retries",
    }
}

open_enum! {
    /// What ended a turn.
    pub enum TerminalReason {
        /// The model was done.
        Completed = "completed",
        /// The conversation does not fit into the context any more.
        BlockingLimit = "blocking_limit",
        /// The context filled up again too fast.
        RapidRefillBreaker = "rapid_refill_breaker",
        /// The prompt is too long.
        PromptTooLong = "prompt_too_long",
        /// An image could not be used.
        ImageError = "image_error",
        /// The model failed.
        ModelError = "model_error",
        /// The API failed.
        ApiError = "api_error",
        /// The model wrote tool calls that could not be read.
        MalformedToolUseExhausted = "malformed_tool_use_exhausted",
        /// Interrupted while the model wrote.
        AbortedStreaming = "aborted_streaming",
        /// Interrupted while tools ran.
        AbortedTools = "aborted_tools",
        /// A Stop hook forbade the end.
        StopHookPrevented = "stop_hook_prevented",
        /// A hook ended it.
        HookStopped = "hook_stopped",
        /// A hook put a tool call off.
        ToolDeferred = "tool_deferred",
        /// Too many turns.
        MaxTurns = "max_turns",
        /// It went on in the background.
        BackgroundRequested = "background_requested",
        /// The budget is used up.
        BudgetExhausted = "budget_exhausted",
        /// No answer fitted the schema.
        StructuredOutputRetryExhausted = "structured_output_retry_exhausted",
        /// A tool call that was put off could not be taken up.
        ToolDeferredUnavailable = "tool_deferred_unavailable",
        /// The turn could not begin.
        TurnSetupFailed = "turn_setup_failed",
    }
}

wire_struct! {
    /// A config file that could not be read.
    #[derive(Default)]
    pub struct InvalidConfigFile {
        /// The file.
        path: Option<String>,
        /// Whether it is the user's.
        is_global: Option<bool>,
        /// Whether a copy of it was looked for.
        backup_searched: Option<bool>,
        /// The copy.
        backup_path: Option<String>,
    }
}

open_enum! {
    /// Why the process could not begin.
    pub enum StartupFailure {
        /// The API key is not of the organisation that is demanded.
        OrgPinApiKeyConflict = "org_pin_api_key_conflict",
        /// The organisation forbids who serves the API.
        ProviderNotAllowed = "provider_not_allowed",
        /// The organisation could not be made sure of.
        OrgVerifyFailed = "org_verify_failed",
        /// It is another organisation.
        OrgPinMismatch = "org_pin_mismatch",
        /// The organisation's settings are not valid.
        ManagedSettingsInvalid = "managed_settings_invalid",
        /// The organisation's settings cannot be had.
        RemoteSettingsRequiredUnavailable = "remote_settings_required_unavailable",
        /// The gateway wants a login.
        GatewaySigninRequired = "gateway_signin_required",
        /// The gateway refuses the login.
        GatewayAccessDenied = "gateway_access_denied",
        /// The proxy is not valid.
        ProxyInvalid = "proxy_invalid",
        /// The directory for temporary files cannot be used.
        TempDirUnusable = "temp_dir_unusable",
        /// The working directory cannot be used.
        CwdUnavailable = "cwd_unavailable",
        /// There is no shell.
        ShellToolMissing = "shell_tool_missing",
        /// The session runs in the background.
        SessionHeldByBackground = "session_held_by_background",
        /// The session's worktree is gone.
        WorktreeResumeRefused = "worktree_resume_refused",
        /// The session's worktree could not be made sure of.
        WorktreeUnverified = "worktree_unverified",
        /// The CLI is too old.
        CliVersionTooOld = "cli_version_too_old",
        /// Permissions cannot be bypassed as root.
        BypassRoot = "bypass_root",
        /// The organisation's configuration cannot be had.
        OrgConfigRequiredUnavailable = "org_config_required_unavailable",
        /// The organisation's configuration was refused.
        OrgConfigRefused = "org_config_refused",
        /// There must be a sandbox, and there is none.
        SandboxRequiredUnavailable = "sandbox_required_unavailable",
        /// Something was said before the handshake.
        InitializeNotFirst = "initialize_not_first",
        /// A config file cannot be read.
        ConfigFileInvalid = "config_file_invalid",
        /// The organisation's settings did not come.
        ManagedSettingsNotDelivered = "managed_settings_not_delivered",
    }
}

wire_struct! {
    /// A tool call that was not allowed.
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
    /// A tool call that a hook put off.
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
