//! Runs a turn: requests to the model, tool calls and hooks until the result.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::engine::Engine;
use super::hooks::HookCall;
use super::json::{Object, quoted};
use super::messages::StopReason;
use super::scope::Scope;
use super::source::{ApiFailure, ModelResponse};
use super::state::{Priority, lock};
use super::stream::{Stream, StreamEnd, unquoted};
use super::tool_batch::ToolBatch;

/// How many times an answer that reached `max_tokens` is continued.
const CONTINUATIONS: u32 = 3;

/// How a turn ended.
#[derive(Debug)]
pub(super) enum TurnEnd {
    Completed {
        stop_reason: String,
    },
    /// A `Stop` hook ended it with `continue: false`.
    StopPrevented {
        stop_reason: String,
    },
    /// A hook stopped it.
    Stopped,
    /// A tool call was handed over to the host.
    Deferred,
    /// The model returned the structured output.
    Structured,
    MaxTurns(u64),
    Budget(f64),
    Failed(TurnFailure),
    AbortedStreaming,
    AbortedTools,
}

/// The decision of `Stop` and `SubagentStop` hooks.
enum StopHooks {
    /// The turn ends.
    End,
    /// The model must continue.
    Continue,
    /// The turn ends, and the result reports that a hook prevented continuation.
    Prevent,
}

/// The error that ended a turn.
#[derive(Debug, Clone)]
pub(super) struct TurnFailure {
    pub(super) status: Option<u16>,
    pub(super) kind: Option<String>,
    /// The error code of the CLI.
    pub(super) error: &'static str,
    pub(super) text: String,
    pub(super) retry_after: Option<Duration>,
    pub(super) may_retry: bool,
    /// Additional fields of the message.
    pub(super) extra: Object,
    pub(super) stop: StopReason,
}

/// The reminder for a model that answers with text instead of structured output; sent once.
const STRUCTURED_REMINDER: &str =
    "[structured output] Give the result with the StructuredOutput tool.";

impl Engine {
    /// Sends requests to the model and runs its tool calls until the turn ends.
    pub(super) async fn run_conversation(self: &Arc<Self>, scope: &Scope) -> TurnEnd {
        let mut stop_hook_active = false;
        let mut incomplete = 0;
        let mut reminded = false;
        loop {
            let requests = scope.counts.requests.load(Ordering::Relaxed);
            if let Some(limit) =
                self.launch.max_turns.filter(|limit| !scope.is_agent() && requests >= *limit)
            {
                return TurnEnd::MaxTurns(limit);
            }
            if let Some(end) = self.budget_end() {
                return end;
            }
            self.emit_requesting(scope).await;
            let mut batch = ToolBatch::new(self, scope);
            scope.answering.send_replace(true);
            let stop_reason = match self.request_answer(scope, &mut batch).await {
                Err(failure) => return self.fail_turn(scope, failure).await,
                Ok(StreamEnd::Interrupted | StreamEnd::Cut) if batch.is_empty() => {
                    return TurnEnd::AbortedStreaming;
                }
                Ok(StreamEnd::Interrupted | StreamEnd::Cut) => {
                    batch.finish().await;
                    return self.abort_tools(scope).await;
                }
                Ok(StreamEnd::Whole { stop_reason }) => stop_reason,
            };
            if let Some(end) = self.budget_end() {
                scope.counts.exclude_last();
                return end;
            }
            if batch.is_empty() {
                if let Some(again) =
                    self.handle_incomplete(scope, &stop_reason, &mut incomplete).await
                {
                    match again {
                        Ok(()) => continue,
                        Err(failure) => return self.fail_turn(scope, failure).await,
                    }
                }
                if self.needs_structured(scope) && !std::mem::replace(&mut reminded, true) {
                    let synthetic = Object::new().plain("isSynthetic", true);
                    self.emit_user_text(scope, STRUCTURED_REMINDER, synthetic).await;
                    continue;
                }
                match self.run_stop_hooks(scope, stop_hook_active).await {
                    StopHooks::Continue => stop_hook_active = true,
                    StopHooks::Prevent => return TurnEnd::StopPrevented { stop_reason },
                    StopHooks::End => return TurnEnd::Completed { stop_reason },
                }
                continue;
            }
            batch.finish().await;
            if let Some(end) = self.after_tools(scope).await {
                return end;
            }
            self.join_queued(scope).await;
        }
    }

    /// Returns whether the turn must return structured output.
    fn needs_structured(&self, scope: &Scope) -> bool {
        !scope.is_agent() && (self.launch.json_schema.is_some() || self.state().wants_schema)
    }

    /// Returns the end of the turn, if it ends after the tools that ran.
    pub(super) async fn after_tools(&self, scope: &Scope) -> Option<TurnEnd> {
        if lock(&scope.deferred).is_some() {
            return Some(TurnEnd::Deferred);
        }
        if scope.cancel.is_cancelled() {
            return Some(self.abort_tools(scope).await);
        }
        if lock(&scope.structured).is_some() {
            return Some(TurnEnd::Structured);
        }
        lock(&scope.stopped).is_some().then_some(TurnEnd::Stopped)
    }

    async fn abort_tools(&self, scope: &Scope) -> TurnEnd {
        let text = "[Request interrupted by user for tool use]";
        self.emit_user_text(scope, text, Object::new()).await;
        TurnEnd::AbortedTools
    }

    /// Returns the end of a turn that exceeded its budget.
    fn budget_end(&self) -> Option<TurnEnd> {
        let spent = self.state().usage.cost_of_process();
        self.launch.max_budget.filter(|limit| spent > *limit).map(TurnEnd::Budget)
    }

    async fn emit_requesting(&self, scope: &Scope) {
        if !self.launch.partial || scope.is_agent() {
            return;
        }
        let uuids = lock(&scope.uuids).clone();
        let then = if uuids.is_empty() {
            Object::new()
        } else {
            Object::new().strings("user_message_uuids", &uuids)
        };
        self.emit_system_with("status", Object::new().str("status", "requesting"), then).await;
    }

    /// Sends a request to the model, with retries.
    async fn request_answer(
        &self,
        scope: &Scope,
        batch: &mut ToolBatch<'_>,
    ) -> Result<StreamEnd, TurnFailure> {
        if self.launch.var("CLAUDE_SIM_LOGIN") == Some("none") {
            return Err(TurnFailure::new("authentication_failed", "Not logged in: run /login"));
        }
        let retries = self.launch.var("CLAUDE_CODE_MAX_RETRIES");
        let retries: u32 = retries.and_then(|retries| retries.parse().ok()).unwrap_or(10);
        let mut attempt = 0;
        loop {
            let response = tokio::select! {
                biased;
                () = scope.cancel.cancelled() => None,
                response = self.request_model(scope) => Some(response),
            };
            let failure = match response {
                None => return Ok(self.interrupt_before_answer(scope).await),
                Some(ModelResponse::Error(error)) => TurnFailure::from_api(error),
                Some(ModelResponse::Stream(source)) => {
                    match Stream::new(self, scope).run(source, batch).await {
                        StreamEnd::Cut => {
                            TurnFailure::new("unknown", "The connection broke").retryable()
                        }
                        streamed => return Ok(streamed),
                    }
                }
            };
            batch.clear();
            if attempt >= retries || !failure.may_retry {
                return Err(failure);
            }
            attempt += 1;
            self.emit_api_retry(attempt, retries, &failure).await;
            if !self.wait_for_retry(scope, failure.retry_after).await {
                return Ok(self.interrupt_before_answer(scope).await);
            }
        }
    }

    /// Waits before a retry; returns `false` if the turn is interrupted.
    async fn wait_for_retry(&self, scope: &Scope, time: Option<Duration>) -> bool {
        let Some(time) = time else { return !scope.cancel.is_cancelled() };
        tokio::select! {
            biased;
            () = scope.cancel.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }

    async fn interrupt_before_answer(&self, scope: &Scope) -> StreamEnd {
        self.emit_user_text(scope, "[Request interrupted by user]", Object::new()).await;
        StreamEnd::Interrupted
    }

    async fn emit_api_retry(&self, attempt: u32, retries: u32, failure: &TurnFailure) {
        let delay = failure.retry_after.unwrap_or_default().as_millis();
        let mut fields = Object::new()
            .plain("attempt", attempt)
            .plain("max_retries", retries)
            .plain("retry_delay_ms", delay);
        fields = match failure.status {
            Some(status) => fields.plain("error_status", status),
            None => fields.null("error_status"),
        };
        let error = if failure.status == Some(529) { "overloaded" } else { failure.error };
        self.emit_system_with("api_retry", fields.str("error", error), Object::new()).await;
    }

    /// Writes the error as an assistant message and runs the `StopFailure` hooks.
    async fn fail_turn(&self, scope: &Scope, failure: TurnFailure) -> TurnEnd {
        self.run_display_hooks(scope, &quoted(&failure.text)).await;
        let mut fields =
            Object::new().str("error", failure.error).plain("is_api_error_message", true);
        if let (Some(status), Some(kind)) = (failure.status, &failure.kind) {
            fields = fields.plain("api_error_status", status).str("api_error_type", kind);
        }
        let fields = fields.fields(&failure.extra);
        *lock(&scope.last_text) = quoted(&failure.text);
        self.emit_synthetic(scope, &failure.text, failure.stop, fields).await;
        if !scope.is_agent() {
            let input = Object::new()
                .str("error", failure.error)
                .str("last_assistant_message", &failure.text);
            self.run_hooks(scope, HookCall::new("StopFailure", input)).await;
        }
        TurnEnd::Failed(failure)
    }

    /// Handles an incomplete answer: continues it, or fails.
    async fn handle_incomplete(
        &self,
        scope: &Scope,
        stop_reason: &str,
        times: &mut u32,
    ) -> Option<Result<(), TurnFailure>> {
        let synthetic = Object::new().plain("isSynthetic", true);
        match stop_reason {
            "max_tokens" if *times < CONTINUATIONS => {
                self.emit_user_text(
                    scope,
                    "The answer was cut off. Continue where it ended.",
                    synthetic,
                )
                .await;
            }
            "max_tokens" => {
                let params = Object::new().str("cut", "output_limit").done();
                let extra = Object::new()
                    .str("api_error", "max_output_tokens")
                    .raw("api_error_params", &params);
                let text = "API Error: the answer is longer than the limit of output tokens.";
                return Some(Err(TurnFailure {
                    extra,
                    ..TurnFailure::new("max_output_tokens", text)
                }));
            }
            "refusal" if *times == 0 => {
                let text = "The model stopped its answer; it is asked to continue once.";
                self.emit_informational(text, "notice", Object::new()).await;
                let text = "Your answer was stopped. Do not give it again.";
                self.emit_user_text(scope, text, synthetic.str("refused_message_id", "msg_1"))
                    .await;
            }
            "refusal" => return Some(Err(self.emit_refusal(scope).await)),
            _ => return None,
        }
        *times += 1;
        Some(Ok(()))
    }

    async fn emit_refusal(&self, scope: &Scope) -> TurnFailure {
        let model = self.state().model.clone();
        let line = Object::typed("system")
            .str("subtype", "model_refusal_no_fallback")
            .str("uuid", &self.ids.uuid())
            .str("original_model", &model)
            .null("request_id")
            .null("api_refusal_category")
            .null("api_refusal_explanation")
            .str_or_null("refused_user_message_uuid", scope.first_prompt().as_deref())
            .str("content", "")
            .str("session_id", &self.session_id());
        self.emit("system/model_refusal_no_fallback", line).await;
        let extra = Object::new().str("refused_message_id", "msg_2");
        let text = "API Error: the model refuses to answer this message.";
        TurnFailure {
            extra,
            stop: StopReason::OperationError,
            ..TurnFailure::new("invalid_request", text)
        }
    }

    /// Runs the `Stop` or `SubagentStop` hooks.
    async fn run_stop_hooks(&self, scope: &Scope, active: bool) -> StopHooks {
        let last = unquoted(&lock(&scope.last_text));
        let event = if scope.is_agent() { "SubagentStop" } else { "Stop" };
        let mut input = Object::new().plain("stop_hook_active", active);
        if let Some(agent) = &scope.agent {
            input = input.str("agent_transcript_path", &self.agent_transcript(&agent.id));
        }
        let input = input
            .str("last_assistant_message", &last)
            .raw("background_tasks", &self.background_tasks_json())
            .raw("session_crons", "[]");
        let outcome = self.run_hooks(scope, HookCall::new(event, input)).await;
        if scope.cancel.is_cancelled() {
            return StopHooks::End;
        }
        let prevents = outcome.stop.is_some();
        let Some(reason) = outcome.block else {
            return if prevents { StopHooks::Prevent } else { StopHooks::End };
        };
        let synthetic = Object::new().plain("isSynthetic", true);
        self.emit_user_text(scope, &format!("{event} hook feedback:\n{reason}"), synthetic).await;
        let notice = Object::new()
            .str("key", "stop-hook-error")
            .str("text", "A Stop hook wants more")
            .str("priority", "immediate");
        self.emit_system_with("notification", notice, Object::new()).await;
        if prevents {
            // The feedback is the last message, so the result has no text.
            lock(&scope.last_text).clear();
            return StopHooks::Prevent;
        }
        StopHooks::Continue
    }

    /// Adds messages to the turn that arrived while tools were running.
    async fn join_queued(&self, scope: &Scope) {
        if scope.is_agent() {
            return;
        }
        let joined: Vec<_> = {
            let mut state = self.state();
            let queue = std::mem::take(&mut state.queue);
            let (joins, stays): (Vec<_>, Vec<_>) = queue.into_iter().partition(may_join);
            state.queue = stays.into();
            joins
        };
        for queued in joined {
            self.queue_space.notify_one();
            if let Some(uuid) = &queued.uuid {
                lock(&scope.joined).push(uuid.clone());
                self.emit_lifecycle(uuid, "started").await;
            }
            lock(&scope.conversation).user(super::state::content_blocks(&queued.content));
        }
    }
}

impl TurnFailure {
    fn new(error: &'static str, text: &str) -> Self {
        Self {
            status: None,
            kind: None,
            error,
            text: text.to_owned(),
            retry_after: None,
            may_retry: false,
            extra: Object::new(),
            stop: StopReason::Sequence,
        }
    }

    fn retryable(mut self) -> Self {
        self.may_retry = true;
        self
    }

    fn from_api(error: ApiFailure) -> Self {
        let word = match error.status {
            Some(401 | 403) => "authentication_failed",
            Some(429) => "rate_limit",
            Some(500..) => "server_error",
            _ => "unknown",
        };
        let text = match error.status {
            Some(401) => "Invalid API key · Fix external API key".to_owned(),
            Some(status) => format!("API Error: {status} {}", error.message),
            None => format!("API Error: {}", error.message),
        };
        let passing = matches!(error.status, None | Some(401 | 408 | 409 | 429 | 500..));
        Self {
            status: error.status,
            kind: error.status.map(|_| error.kind),
            retry_after: error.retry_after,
            may_retry: error.should_retry.unwrap_or(passing),
            ..Self::new(word, &text)
        }
    }
}

/// Returns whether a message may join a running turn. Commands and messages with the priority
/// `later` wait for their own turn.
fn may_join(queued: &super::state::QueuedMessage) -> bool {
    queued.origin.is_none()
        && queued.priority != Priority::Later
        && !super::state::content_text(&queued.content).starts_with('/')
}
