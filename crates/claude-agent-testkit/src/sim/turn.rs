//! Turns: from a message of the host to its result.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::engine::Engine;
use super::hooks::HookCall;
use super::json::{Object, quoted};
use super::lines::Stop;
use super::round::Round;
use super::scope::Scope;
use super::source::{ApiFailure, Said};
use super::state::{Priority, lock};
use super::stream::{Stream, Streamed, unquoted};

/// How often an answer that was too long is asked to go on.
const CONTINUATIONS: u32 = 3;

/// How a conversation with the model ended.
#[derive(Debug)]
pub(super) enum End {
    Completed {
        stop_reason: String,
    },
    /// A `Stop` hook ended it with `continue: false`.
    StopPrevented {
        stop_reason: String,
    },
    /// By a hook.
    Stopped,
    /// A tool call was handed to the host.
    Deferred,
    /// The value that was asked for has been given.
    Structured,
    MaxTurns(u64),
    Budget(f64),
    Failed(Failure),
    AbortedStreaming,
    AbortedTools,
}

/// What `Stop` and `SubagentStop` hooks decide.
enum StopHooks {
    /// The turn ends.
    End,
    /// The model has to go on.
    Continue,
    /// The turn ends, and the result says that a hook wanted it.
    Prevent,
}

/// Why the API gave no answer.
#[derive(Debug, Clone)]
pub(super) struct Failure {
    pub(super) status: Option<u16>,
    pub(super) kind: Option<String>,
    /// The CLI's word for it.
    pub(super) error: &'static str,
    pub(super) text: String,
    pub(super) retry_after: Option<Duration>,
    pub(super) may_retry: bool,
    /// Fields beside the usual ones.
    pub(super) extra: Object,
    pub(super) stop: Stop,
}

/// What a model is told, once, that answers in words where a value is wanted.
const VALUE_REMINDER: &str = "[structured output] Give the result with the StructuredOutput tool.";

impl Engine {
    /// Lets the model answer, and call tools, until it has nothing more to do.
    pub(super) async fn converse(self: &Arc<Self>, scope: &Scope) -> End {
        let mut stop_hook_active = false;
        let mut cut_short = 0;
        let mut is_reminded = false;
        loop {
            let requests = scope.counts.requests.load(Ordering::Relaxed);
            if let Some(limit) =
                self.launch.max_turns.filter(|limit| !scope.is_agent() && requests >= *limit)
            {
                return End::MaxTurns(limit);
            }
            if let Some(end) = self.budget_end() {
                return end;
            }
            self.tell_requesting(scope).await;
            let mut round = Round::new(self, scope);
            scope.answering.send_replace(true);
            let stop_reason = match self.answer(scope, &mut round).await {
                Err(failure) => return self.failed(scope, failure).await,
                Ok(Streamed::Interrupted | Streamed::Cut) if round.is_empty() => {
                    return End::AbortedStreaming;
                }
                Ok(Streamed::Interrupted | Streamed::Cut) => {
                    round.finish().await;
                    return self.aborted_tools(scope).await;
                }
                Ok(Streamed::Whole { stop_reason }) => stop_reason,
            };
            if let Some(end) = self.budget_end() {
                scope.counts.leave_last_out();
                return end;
            }
            if round.is_empty() {
                if let Some(again) = self.cut_short(scope, &stop_reason, &mut cut_short).await {
                    match again {
                        Ok(()) => continue,
                        Err(failure) => return self.failed(scope, failure).await,
                    }
                }
                if self.wants_value(scope) && !std::mem::replace(&mut is_reminded, true) {
                    let synthetic = Object::new().plain("isSynthetic", true);
                    self.user_text(scope, VALUE_REMINDER, synthetic).await;
                    continue;
                }
                match self.stop_hooks(scope, stop_hook_active).await {
                    StopHooks::Continue => stop_hook_active = true,
                    StopHooks::Prevent => return End::StopPrevented { stop_reason },
                    StopHooks::End => return End::Completed { stop_reason },
                }
                continue;
            }
            round.finish().await;
            if let Some(end) = self.after_tools(scope).await {
                return end;
            }
            self.join_queued(scope).await;
        }
    }

    /// Whether the answer has to be a value that fits a schema.
    fn wants_value(&self, scope: &Scope) -> bool {
        !scope.is_agent() && (self.launch.json_schema.is_some() || self.state().wants_schema)
    }

    /// Whether the turn ends with the tools that ran.
    pub(super) async fn after_tools(&self, scope: &Scope) -> Option<End> {
        if lock(&scope.deferred).is_some() {
            return Some(End::Deferred);
        }
        if scope.cancel.is_cancelled() {
            return Some(self.aborted_tools(scope).await);
        }
        if lock(&scope.structured).is_some() {
            return Some(End::Structured);
        }
        lock(&scope.stopped).is_some().then_some(End::Stopped)
    }

    async fn aborted_tools(&self, scope: &Scope) -> End {
        let text = "[Request interrupted by user for tool use]";
        self.user_text(scope, text, Object::new()).await;
        End::AbortedTools
    }

    /// The end of a turn for which there is no money left.
    fn budget_end(&self) -> Option<End> {
        let spent = self.state().accounts.cost_of_process();
        self.launch.max_budget.filter(|limit| spent > *limit).map(End::Budget)
    }

    async fn tell_requesting(&self, scope: &Scope) {
        if !self.launch.partial || scope.is_agent() {
            return;
        }
        let uuids = lock(&scope.uuids).clone();
        let then = if uuids.is_empty() {
            Object::new()
        } else {
            Object::new().strings("user_message_uuids", &uuids)
        };
        self.system_then("status", Object::new().str("status", "requesting"), then).await;
    }

    /// Asks until there is an answer or no sense in asking again.
    async fn answer(&self, scope: &Scope, round: &mut Round<'_>) -> Result<Streamed, Failure> {
        if self.launch.var("CLAUDE_SIM_LOGIN") == Some("none") {
            return Err(Failure::new("authentication_failed", "Not logged in: run /login"));
        }
        let retries = self.launch.var("CLAUDE_CODE_MAX_RETRIES");
        let retries: u32 = retries.and_then(|retries| retries.parse().ok()).unwrap_or(10);
        let mut attempt = 0;
        loop {
            let said = tokio::select! {
                biased;
                () = scope.cancel.cancelled() => None,
                said = self.ask_model(scope) => Some(said),
            };
            let failure = match said {
                None => return Ok(self.interrupted_before(scope).await),
                Some(Said::Error(error)) => Failure::from_api(error),
                Some(Said::Stream(source)) => {
                    match Stream::new(self, scope).run(source, round).await {
                        Streamed::Cut => {
                            Failure::new("unknown", "The connection broke").retryable()
                        }
                        streamed => return Ok(streamed),
                    }
                }
            };
            round.clear();
            if attempt >= retries || !failure.may_retry {
                return Err(failure);
            }
            attempt += 1;
            self.tell_retry(attempt, retries, &failure).await;
            if !self.idle_for(scope, failure.retry_after).await {
                return Ok(self.interrupted_before(scope).await);
            }
        }
    }

    /// Waits as long as a script says; false if the turn was interrupted meanwhile.
    async fn idle_for(&self, scope: &Scope, time: Option<Duration>) -> bool {
        let Some(time) = time else { return !scope.cancel.is_cancelled() };
        tokio::select! {
            biased;
            () = scope.cancel.cancelled() => false,
            () = tokio::time::sleep(time) => true,
        }
    }

    async fn interrupted_before(&self, scope: &Scope) -> Streamed {
        self.user_text(scope, "[Request interrupted by user]", Object::new()).await;
        Streamed::Interrupted
    }

    async fn tell_retry(&self, attempt: u32, retries: u32, failure: &Failure) {
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
        self.system_then("api_retry", fields.str("error", error), Object::new()).await;
    }

    /// Says in the name of the model that there is no answer.
    async fn failed(&self, scope: &Scope, failure: Failure) -> End {
        self.display_hook(scope, &quoted(&failure.text)).await;
        let mut fields =
            Object::new().str("error", failure.error).plain("is_api_error_message", true);
        if let (Some(status), Some(kind)) = (failure.status, &failure.kind) {
            fields = fields.plain("api_error_status", status).str("api_error_type", kind);
        }
        let fields = fields.fields(&failure.extra);
        *lock(&scope.last_text) = quoted(&failure.text);
        self.synthetic(scope, &failure.text, failure.stop, fields).await;
        if !scope.is_agent() {
            let input = Object::new()
                .str("error", failure.error)
                .str("last_assistant_message", &failure.text);
            self.hook(scope, HookCall::new("StopFailure", input)).await;
        }
        End::Failed(failure)
    }

    /// Deals with answers that are not complete: asks again, or gives up.
    async fn cut_short(
        &self,
        scope: &Scope,
        stop_reason: &str,
        times: &mut u32,
    ) -> Option<Result<(), Failure>> {
        let synthetic = Object::new().plain("isSynthetic", true);
        match stop_reason {
            "max_tokens" if *times < CONTINUATIONS => {
                self.user_text(scope, "The answer was cut off. Go on where it ended.", synthetic)
                    .await;
            }
            "max_tokens" => {
                let params = Object::new().str("cut", "output_limit").done();
                let extra = Object::new()
                    .str("api_error", "max_output_tokens")
                    .raw("api_error_params", &params);
                let text = "API Error: the answer is longer than the limit of output tokens.";
                return Some(Err(Failure { extra, ..Failure::new("max_output_tokens", text) }));
            }
            "refusal" if *times == 0 => {
                let text = "The model stopped its answer; it goes on once.";
                self.informational(text, "notice", Object::new()).await;
                let text = "Your answer was stopped. Do not give it again.";
                self.user_text(scope, text, synthetic.str("refused_message_id", "msg_1")).await;
            }
            "refusal" => return Some(Err(self.refused(scope).await)),
            _ => return None,
        }
        *times += 1;
        Some(Ok(()))
    }

    async fn refused(&self, scope: &Scope) -> Failure {
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
        self.say("system/model_refusal_no_fallback", line).await;
        let extra = Object::new().str("refused_message_id", "msg_2");
        let text = "API Error: the model refuses to answer this message.";
        Failure { extra, stop: Stop::Refusal, ..Failure::new("invalid_request", text) }
    }

    /// Asks the hooks whether the turn may end.
    async fn stop_hooks(&self, scope: &Scope, active: bool) -> StopHooks {
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
        let heard = self.hook(scope, HookCall::new(event, input)).await;
        if scope.cancel.is_cancelled() {
            return StopHooks::End;
        }
        let prevents = heard.stop.is_some();
        let Some(reason) = heard.block else {
            return if prevents { StopHooks::Prevent } else { StopHooks::End };
        };
        let synthetic = Object::new().plain("isSynthetic", true);
        self.user_text(scope, &format!("{event} hook feedback:\n{reason}"), synthetic).await;
        let notice = Object::new()
            .str("key", "stop-hook-error")
            .str("text", "A Stop hook wants more")
            .str("priority", "immediate");
        self.system_then("notification", notice, Object::new()).await;
        if prevents {
            // The feedback is the last message, so the turn ends without a text.
            lock(&scope.last_text).clear();
            return StopHooks::Prevent;
        }
        StopHooks::Continue
    }

    /// Messages that came while tools ran become part of the turn.
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
            self.room.notify_one();
            if let Some(uuid) = &queued.uuid {
                lock(&scope.joined).push(uuid.clone());
                self.lifecycle(uuid, "started").await;
            }
            lock(&scope.conversation).user(super::state::content_blocks(&queued.content));
        }
    }
}

impl Failure {
    fn new(error: &'static str, text: &str) -> Self {
        Self {
            status: None,
            kind: None,
            error,
            text: text.to_owned(),
            retry_after: None,
            may_retry: false,
            extra: Object::new(),
            stop: Stop::Sequence,
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

/// Commands and messages for later wait for a turn of their own.
fn may_join(queued: &super::state::Queued) -> bool {
    queued.origin.is_none()
        && queued.priority != Priority::Later
        && !super::state::content_text(&queued.content).starts_with('/')
}
