//! The `result` that ends a turn.

use std::sync::atomic::Ordering::Relaxed;

use super::arguments::OutputFormat;
use super::engine::Engine;
use super::ids::now_ms;
use super::json::{Object, array, quoted};
use super::scope::Scope;
use super::state::{Origin, lock};
use super::stream::unquoted;
use super::turn::{TurnEnd, TurnFailure};
use super::usage::{AgentStats, model_usage};

/// The end of a turn, in the format of a result.
struct ResultSummary {
    subtype: &'static str,
    is_error: bool,
    terminal: Option<&'static str>,
    stop_reason: Option<String>,
    /// `result` and related fields, or `errors`.
    outcome: Object,
    /// Whether the result contains the times to the first token.
    timed: bool,
}

impl Engine {
    /// Writes the result of a turn with requests to the model.
    pub(super) async fn emit_result(&self, scope: &Scope, end: &TurnEnd, origin: Option<&Origin>) {
        let summary = summarize(scope, end);
        let counts = &scope.counts;
        let time = scope.began.elapsed().as_millis();
        let index = self.next_result(summary.is_error);
        let (total, models, since, agents) = self.usage_summary();
        let denials = array(lock(&scope.denials).iter());
        let mut line = Object::new()
            .plain("duration_api_ms", time)
            .str_or_null("stop_reason", summary.stop_reason.as_deref())
            .str("session_id", &self.session_id())
            .plain("total_cost_usd", total)
            .raw("usage", &usage(counts.input.load(Relaxed), counts.output.load(Relaxed)))
            .raw("modelUsage", &models)
            .raw("permission_denials", &denials)
            .some_str("terminal_reason", summary.terminal)
            .fields(&fast_mode());
        if let Some(origin) = origin {
            line = line.raw("origin", &origin_json(origin));
        }
        line = line
            .raw("subagent_stats", &agents)
            .plain("safety_stops", 0)
            .plain("is_error", summary.is_error)
            .plain("num_turns", 1 + counts.user_messages.load(Relaxed))
            .str("subtype", summary.subtype)
            .fields(&summary.outcome);
        let names_all = origin.is_none() && !matches!(end, TurnEnd::Deferred);
        let errors = summary.subtype != "success";
        if errors {
            line = line.fields(&first_prompt(scope));
        }
        if summary.timed {
            line = line.plain("ttft_ms", time);
        }
        line = line.str("type", "result").plain("duration_ms", time).str("uuid", &self.ids.uuid());
        if summary.timed {
            line = line
                .plain("ttft_stream_ms", time)
                .plain("time_to_request_ms", 0)
                .plain("first_content_frame_ms", time);
        }
        let prompts =
            if errors { all_prompts(scope) } else { self.prompt_fields(scope, names_all) };
        line = line.fields(&prompts);
        if summary.timed && scope.first_prompt().is_some() {
            line = line
                .plain("request_sent_wall_ms", now_ms())
                .plain("first_request_input_tokens", counts.first_input.load(Relaxed))
                .plain("first_request_cache_read_input_tokens", 0);
        }
        let line = line
            .plain("queued_turn_count", 0)
            .plain("result_index", index)
            .raw("model_usage_since_last_result", &since);
        let text = lock(&scope.last_text).clone();
        self.write_result(line, &text).await;
    }

    /// Writes the result of a turn without a request to the model.
    pub(super) async fn emit_local_result(&self, scope: &Scope, text: &str, command: Option<&str>) {
        let prompts = self.prompt_fields(scope, false);
        let index = self.next_result(false);
        let (total, models, since, agents) = self.usage_summary();
        let line = Object::new()
            .plain("is_error", false)
            .plain("duration_api_ms", 0)
            .plain("num_turns", 0)
            .null("stop_reason")
            .str("session_id", &self.session_id())
            .plain("total_cost_usd", total)
            .raw("usage", &usage(0, 0))
            .raw("modelUsage", &models)
            .raw("permission_denials", "[]")
            .fields(&fast_mode())
            .raw("subagent_stats", &agents)
            .plain("safety_stops", 0)
            .str("subtype", "success")
            .str("result", text)
            .fields(&prompts)
            .some_str("local_command", command)
            .str("type", "result")
            .plain("duration_ms", scope.began.elapsed().as_millis())
            .str("uuid", &self.ids.uuid())
            .plain("queued_turn_count", 0)
            .plain("result_index", index)
            .raw("model_usage_since_last_result", &since);
        self.write_result(line, &quoted(text)).await;
    }

    /// Reports that the session to resume does not exist, and returns the exit code.
    pub(super) async fn fail_resume(&self, reason: &str) -> crate::recording::Exit {
        self.out.write_stderr_line(reason).await;
        let line = Object::typed("result")
            .str("subtype", "error_during_execution")
            .plain("duration_ms", 0)
            .plain("duration_api_ms", 0)
            .plain("is_error", true)
            .plain("num_turns", 0)
            .null("stop_reason")
            .str("session_id", self.launch.resume.as_deref().unwrap_or_default())
            .plain("total_cost_usd", 0)
            .raw("usage", &usage(0, 0))
            .raw("modelUsage", "{}")
            .raw("permission_denials", "[]")
            .str("uuid", &self.ids.uuid())
            .strings("errors", &[reason])
            .plain("result_index", 0);
        self.emit("result", line).await;
        crate::recording::Exit::Code(1)
    }

    /// Returns the prompts that a result names; old versions name only some of them.
    fn prompt_fields(&self, scope: &Scope, always: bool) -> Object {
        let named = always || self.launch.cli_version.names_messages_in_every_result();
        if named { scope.prompts() } else { Object::new() }
    }

    async fn write_result(&self, line: Object, text: &str) {
        let line = line.done();
        match self.launch.output {
            OutputFormat::Text => self.write("result", &unquoted(text)).await,
            OutputFormat::Json | OutputFormat::StreamJson => self.write("result", &line).await,
        }
    }

    fn next_result(&self, is_error: bool) -> u64 {
        let mut state = self.state();
        state.last_was_error = is_error;
        state.results += 1;
        state.results - 1
    }

    fn usage_summary(&self) -> (f64, String, String, String) {
        let mut state = self.state();
        let total = state.usage.cost();
        let models = model_usage(&state.usage.total);
        let since = model_usage(&std::mem::take(&mut state.usage.since_last_result));
        (total, models, since, agent_stats(&state.usage.agents))
    }
}

fn origin_json(origin: &Origin) -> String {
    Object::new()
        .str("kind", "task-notification")
        .str("producer", "session-task")
        .str("runId", &origin.run_id)
        .done()
}

fn summarize(scope: &Scope, end: &TurnEnd) -> ResultSummary {
    let text = lock(&scope.last_text).clone();
    let success = |text: &str| Object::new().null("api_error_status").raw("result", text);
    let (terminal, stop_reason, outcome) = match end {
        TurnEnd::Completed { stop_reason } => {
            ("completed", Some(stop_reason.clone()), success(&text_or_empty(&text)))
        }
        TurnEnd::StopPrevented { stop_reason } => {
            ("stop_hook_prevented", Some(stop_reason.clone()), success(&text_or_empty(&text)))
        }
        TurnEnd::Stopped => ("hook_stopped", Some("tool_use".into()), success("\"\"")),
        TurnEnd::Structured => {
            let value = lock(&scope.structured).clone().unwrap_or_default();
            let outcome = success(&quoted(&value.to_string())).value("structured_output", &value);
            ("completed", Some("tool_use".into()), outcome)
        }
        TurnEnd::Deferred => {
            let outcome =
                Object::new().str("result", "").raw("deferred_tool_use", &deferred(scope));
            let summary = success_summary("tool_deferred", Some("tool_deferred".into()), outcome);
            let terminal = summary.terminal.filter(|_| !scope.replaying.load(Relaxed));
            return ResultSummary { timed: false, terminal, ..summary };
        }
        TurnEnd::Failed(failure) => return failure_summary(failure, &text),
        TurnEnd::MaxTurns(limit) => {
            let reason = format!("Reached maximum number of turns ({limit})");
            return error_summary("error_max_turns", "max_turns", Some("tool_use"), &reason);
        }
        TurnEnd::Budget(limit) => {
            let reason = format!("Reached maximum budget (${limit})");
            return error_summary(
                "error_max_budget_usd",
                "budget_exhausted",
                Some("tool_use"),
                &reason,
            );
        }
        TurnEnd::AbortedStreaming => return aborted_summary("aborted_streaming", None),
        TurnEnd::AbortedTools => return aborted_summary("aborted_tools", Some("tool_use")),
    };
    success_summary(terminal, stop_reason, outcome)
}

fn text_or_empty(literal: &str) -> String {
    if literal.is_empty() { "\"\"".to_owned() } else { literal.to_owned() }
}

fn success_summary(
    terminal: &'static str,
    stop_reason: Option<String>,
    outcome: Object,
) -> ResultSummary {
    let terminal = Some(terminal);
    ResultSummary {
        subtype: "success",
        is_error: false,
        terminal,
        stop_reason,
        outcome,
        timed: true,
    }
}

fn failure_summary(failure: &TurnFailure, text: &str) -> ResultSummary {
    let mut outcome = match failure.status {
        Some(status) => Object::new().plain("api_error_status", status),
        None => Object::new().null("api_error_status"),
    };
    outcome = outcome.some_str("api_error_type", failure.kind.as_deref());
    if failure.error == "max_output_tokens" {
        outcome = outcome.str("api_error", failure.error);
    }
    let stop_reason = if failure.error == "invalid_request" { "refusal" } else { "stop_sequence" };
    let outcome = outcome.raw("result", text);
    let is_too_long = failure.status == Some(400) && text.contains("prompt is too long");
    let terminal = if is_too_long { "prompt_too_long" } else { "api_error" };
    let summary = success_summary(terminal, Some(stop_reason.into()), outcome);
    ResultSummary { is_error: true, timed: false, ..summary }
}

fn error_summary(
    subtype: &'static str,
    terminal: &'static str,
    stop_reason: Option<&str>,
    reason: &str,
) -> ResultSummary {
    ResultSummary {
        subtype,
        is_error: true,
        terminal: Some(terminal),
        stop_reason: stop_reason.map(str::to_owned),
        outcome: Object::new().strings("errors", &[reason]),
        timed: false,
    }
}

fn aborted_summary(terminal: &'static str, stop_reason: Option<&str>) -> ResultSummary {
    let shown = stop_reason.unwrap_or("null");
    let reason =
        format!("[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={shown}");
    error_summary("error_during_execution", terminal, stop_reason, &reason)
}

fn deferred(scope: &Scope) -> String {
    let call = lock(&scope.deferred).clone();
    call.map_or_else(
        || "null".to_owned(),
        |call| {
            let object = Object::new().str("id", &call.id).str("name", &call.name);
            object.value("input", &call.input).done()
        },
    )
}

fn first_prompt(scope: &Scope) -> Object {
    Object::new().some_str("user_message_uuid", scope.first_prompt().as_deref())
}

/// Returns the prompts of an error result, which names the first one earlier.
fn all_prompts(scope: &Scope) -> Object {
    let all = [lock(&scope.uuids).clone(), lock(&scope.joined).clone()].concat();
    if all.is_empty() { Object::new() } else { Object::new().strings("user_message_uuids", &all) }
}

fn fast_mode() -> Object {
    Object::new()
        .str("fast_mode_state", "off")
        .str("fast_mode_disabled_reason", "sdk_opt_in_required")
}

/// Returns the usage of a result or an agent.
pub(super) fn usage(input: u64, output: u64) -> String {
    format!(
        r#"{{"input_tokens":{input},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":{output},"output_tokens_details":{{"thinking_tokens":0}},"server_tool_use":{{"web_search_requests":0,"web_fetch_requests":0}},"service_tier":"standard","cache_creation":{{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0}},"inference_geo":"","iterations":[],"speed":"standard","fallback_credit":null}}"#
    )
}

fn agent_stats(stats: &AgentStats) -> String {
    let requested = Object::new()
        .plain("background", stats.background)
        .plain("foreground", stats.foreground)
        .plain("unset", stats.unset);
    let killed = Object::new().plain("parent", 0).plain("user", stats.killed).plain("system", 0);
    let by_type =
        stats.by_type.iter().fold(Object::new(), |object, (kind, count)| object.plain(kind, count));
    Object::new()
        .plain("spawned", stats.spawned)
        .raw("requested", &requested.done())
        .plain("started_in_background", stats.background)
        .plain("max_depth", u64::from(stats.spawned > 0))
        .plain("spawned_by_subagents", 0)
        .plain("completed", stats.completed)
        .plain("failed", stats.failed)
        .raw("killed", &killed.done())
        .raw("refused", r#"{"depth_limit":0,"concurrency_limit":0,"budget":0}"#)
        .raw("by_type", &by_type.done())
        .done()
}
