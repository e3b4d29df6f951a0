//! Hooks: callbacks of the host and commands from settings files.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::engine::Engine;
use super::host_requests::{HostRequest, ResponseOutcome};
use super::json::{Object, array, quoted, text};
use super::matcher;
use super::scope::{Scope, ToolCall};
use super::state::{HostResponse, PendingKind, lock};
use super::stream::unquoted;
use super::tool_batch::ToolOutcome;

/// The timeout of a callback whose registration has none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// All hook registrations.
#[derive(Debug, Clone, Default)]
pub(super) struct Hooks {
    pub(super) matchers: Vec<HookMatcher>,
    pub(super) commands: Vec<CommandHook>,
}

/// A hook registration of the host.
#[derive(Debug, Clone)]
pub(super) struct HookMatcher {
    pub(super) event: String,
    pattern: Option<String>,
    ids: Vec<String>,
    timeout: Duration,
    /// Whether a failure or timeout blocks instead of being ignored.
    blocks_on_failure: bool,
}

/// A hook command of a settings file.
#[derive(Debug, Clone)]
pub(super) struct CommandHook {
    pub(super) event: String,
    pub(super) pattern: Option<String>,
    pub(super) command: String,
}

impl Hooks {
    pub(super) fn new(commands: Vec<CommandHook>) -> Self {
        Self { matchers: Vec::new(), commands }
    }

    /// Replaces the registrations of the host with the `hooks` of an `initialize` request.
    pub(super) fn register(&mut self, hooks: &Value) {
        self.matchers.clear();
        for (event, matchers) in hooks.as_object().into_iter().flatten() {
            for matcher in matchers.as_array().into_iter().flatten() {
                let ids = matcher["hookCallbackIds"].as_array().into_iter().flatten();
                let timeout = matcher["timeout"].as_f64().map(Duration::try_from_secs_f64);
                self.matchers.push(HookMatcher {
                    event: event.clone(),
                    pattern: matcher["matcher"].as_str().map(str::to_owned),
                    ids: ids.map(|id| text(id).to_owned()).collect(),
                    timeout: timeout.and_then(Result::ok).unwrap_or(DEFAULT_TIMEOUT),
                    blocks_on_failure: matcher["onFailure"] == "block",
                });
            }
        }
    }

    pub(super) fn has_hooks_for(&self, event: &str) -> bool {
        self.matchers.iter().any(|matcher| matcher.event == event)
            || self.commands.iter().any(|command| command.event == event)
    }
}

/// An event to run hooks for.
pub(super) struct HookCall {
    pub(super) event: &'static str,
    /// The event-specific fields of the input.
    input: Object,
    /// The string that matchers are applied to.
    subject: Option<String>,
    tool_use_id: Option<String>,
    /// The id of an unnamed agent.
    agent: Option<String>,
    kind: PendingKind,
}

impl HookCall {
    pub(super) fn new(event: &'static str, input: Object) -> Self {
        Self {
            event,
            input,
            subject: None,
            tool_use_id: None,
            agent: None,
            kind: PendingKind::Turn,
        }
    }

    pub(super) fn for_tool(event: &'static str, call: &ToolCall, input: Object) -> Self {
        let (subject, id) = (Some(call.name.clone()), Some(call.id.clone()));
        Self { subject, tool_use_id: id, ..Self::new(event, input) }
    }

    /// Creates a call outside any turn, which an interrupt does not cancel.
    pub(super) fn for_session(event: &'static str, input: Object) -> Self {
        Self { kind: PendingKind::Session, ..Self::new(event, input) }
    }

    pub(super) fn with_subject(mut self, subject: &str) -> Self {
        self.subject = Some(subject.to_owned());
        self
    }

    pub(super) fn with_agent(mut self, id: &str) -> Self {
        self.agent = Some(id.to_owned());
        self
    }

    /// Returns the display name: the event and its subject.
    pub(super) fn name(&self) -> String {
        match &self.subject {
            Some(subject) => format!("{}:{subject}", self.event),
            None => self.event.to_owned(),
        }
    }

    fn with_tool_use_id(mut self, id: String) -> Self {
        self.tool_use_id = Some(id);
        self
    }
}

/// The combined outcome of all hooks of an event.
#[derive(Debug, Default)]
pub(super) struct HookOutcome {
    pub(super) block: Option<String>,
    pub(super) stop: Option<String>,
    pub(super) context: Vec<String>,
    pub(super) messages: Vec<String>,
    pub(super) decision: Option<HookDecision>,
    pub(super) updated_input: Option<Value>,
    /// The `hookSpecificOutput` of each hook that has one.
    pub(super) outputs: Vec<Value>,
    /// The number of callbacks that responded.
    responses: usize,
    timed_out: bool,
    cancelled: bool,
}

/// The decision of `PreToolUse` hooks; of two decisions, the greater one wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum HookDecision {
    Allow,
    Ask,
    Defer,
    Deny(String),
}

/// The outcome of the `PreToolUse` hooks of a tool call.
pub(super) enum PreToolUseOutcome {
    Passed(HookOutcome),
    TimedOut,
    Cancelled,
}

impl Engine {
    /// Runs all hooks of an event concurrently and waits for them.
    pub(super) async fn run_hooks(&self, scope: &Scope, call: HookCall) -> HookOutcome {
        self.run_hooks_in(Some(scope), call).await
    }

    pub(super) async fn run_hooks_in(&self, scope: Option<&Scope>, call: HookCall) -> HookOutcome {
        let (callbacks, commands) = self.matching_hooks(&call);
        let mut outcome = HookOutcome::default();
        if callbacks.is_empty() && commands.is_empty() {
            return outcome;
        }
        let input = self.hook_input(scope, &call);
        let started: Vec<String> = self.emit_hooks_started(&call, commands.len()).await;
        let tool_use_id = call.tool_use_id.clone().unwrap_or_else(|| self.ids.uuid());
        let mut pending = Vec::new();
        for (id, matcher) in callbacks {
            let request = Object::new()
                .str("subtype", "hook_callback")
                .str("callback_id", &id)
                .raw("input", &input)
                .str("tool_use_id", &tool_use_id);
            let request = self.send_request("hook_callback", request, call.kind.clone()).await;
            pending.push((id, matcher, request));
        }
        let sent_at = Instant::now();
        for (command, hook_id) in commands.iter().zip(&started) {
            let output = self.run_hook_command(&call, command, &input, hook_id).await;
            outcome.merge(&output);
        }
        for (id, matcher, mut request) in pending {
            let left = matcher.timeout.saturating_sub(sent_at.elapsed());
            self.collect_hook_response(
                scope,
                &call,
                &id,
                &matcher,
                &mut request,
                left,
                &mut outcome,
            )
            .await;
        }
        outcome
    }

    #[expect(clippy::too_many_arguments, reason = "one callback among several")]
    async fn collect_hook_response(
        &self,
        scope: Option<&Scope>,
        call: &HookCall,
        id: &str,
        matcher: &HookMatcher,
        request: &mut HostRequest,
        left: Duration,
        outcome: &mut HookOutcome,
    ) {
        let cancel = scope.map(|scope| &scope.cancel);
        match self.wait_for_response(request, cancel, Some(left)).await {
            ResponseOutcome::Response(HostResponse::Success(output)) => {
                outcome.responses += 1;
                outcome.merge(&output);
            }
            ResponseOutcome::Response(HostResponse::Error(reason)) => {
                self.report_hook_failure(call, id, &reason).await;
                outcome.record_failure(matcher, "the hook failed");
            }
            ResponseOutcome::Response(HostResponse::Closed) => {
                outcome.record_failure(matcher, "the host is gone");
            }
            ResponseOutcome::TimedOut => {
                self.cancel_request(&request.id).await;
                outcome.timed_out = true;
                outcome.record_failure(matcher, "the hook was not answered in time");
            }
            ResponseOutcome::Cancelled => outcome.cancelled = true,
        }
    }

    async fn report_hook_failure(&self, call: &HookCall, id: &str, reason: &str) {
        self.write_stderr(&format!("Error in hook callback {id}: {reason}")).await;
        let text = format!("{}: callback {id} failed and was ignored.", call.event);
        let tag = Object::new().str("tag", "hook_callback_failed");
        self.emit_informational(&text, "warning", tag).await;
    }

    fn matching_hooks(&self, call: &HookCall) -> (Vec<(String, HookMatcher)>, Vec<CommandHook>) {
        let state = self.state();
        let applies = |event: &str, pattern: Option<&str>| {
            event == call.event && matcher::applies(pattern, call.subject.as_deref())
        };
        let matchers = state.hooks.matchers.iter();
        let callbacks = matchers
            .filter(|matcher| applies(&matcher.event, matcher.pattern.as_deref()))
            .flat_map(|matcher| matcher.ids.iter().map(|id| (id.clone(), matcher.clone())))
            .collect();
        let commands = state.hooks.commands.iter();
        let commands = commands
            .filter(|command| applies(&command.event, command.pattern.as_deref()))
            .cloned()
            .collect();
        (callbacks, commands)
    }

    /// Returns the input of a hook: the common fields and those of the event.
    fn hook_input(&self, scope: Option<&Scope>, call: &HookCall) -> String {
        let (mode, effort) = common_fields(call.event);
        let state = self.state();
        let mut input = Object::new()
            .str("session_id", &state.session_id)
            .str("transcript_path", &self.transcript_path(&state.session_id))
            .str("cwd", &self.working_directory(&state));
        let replays = scope.is_some_and(|scope| scope.replaying.load(Relaxed));
        if call.event != "SessionStart" && !replays {
            input = input.str("prompt_id", &state.prompt_id);
        }
        if mode {
            input = input.str("permission_mode", &state.mode);
        }
        if let Some(agent) = scope.and_then(|scope| scope.agent.as_ref()) {
            input = input.str("agent_id", &agent.id).str("agent_type", &agent.kind);
        }
        if let Some(id) = &call.agent {
            input = input.str("agent_id", id).str("agent_type", "");
        }
        if effort {
            input = input.raw("effort", r#"{"level":"medium"}"#);
        }
        input.str("hook_event_name", call.event).fields(&call.input).done()
    }

    /// Runs the `PreToolUse` hooks.
    pub(super) async fn run_pre_tool_use_hooks(
        &self,
        scope: &Scope,
        call: &ToolCall,
    ) -> PreToolUseOutcome {
        let input = Object::new()
            .str("tool_name", &call.name)
            .value("tool_input", &call.input)
            .str("tool_use_id", &call.id);
        let outcome = self.run_hooks(scope, HookCall::for_tool("PreToolUse", call, input)).await;
        self.reading.send_replace(true);
        if outcome.cancelled {
            return PreToolUseOutcome::Cancelled;
        }
        if outcome.timed_out {
            return PreToolUseOutcome::TimedOut;
        }
        self.emit_hook_messages(&format!("PreToolUse:{}", call.name), &outcome.messages).await;
        if scope.replaying.load(Relaxed) && !matches!(outcome.decision, Some(HookDecision::Deny(_)))
        {
            scope.replay_hooks.store(outcome.responses, Relaxed);
        }
        if let Some(reason) = &outcome.stop {
            lock(&scope.stopped).get_or_insert_with(|| reason.clone());
        }
        PreToolUseOutcome::Passed(outcome)
    }

    /// Runs the `PostToolBatch` hooks.
    pub(super) async fn run_batch_hooks(
        &self,
        scope: &Scope,
        outcomes: &[(&ToolCall, &ToolOutcome)],
    ) {
        if !self.state().hooks.has_hooks_for("PostToolBatch") {
            return;
        }
        let calls = outcomes.iter().map(|(call, outcome)| {
            Object::new()
                .str("tool_name", &call.name)
                .value("tool_input", &outcome.input)
                .str("tool_use_id", &call.id)
                .value("tool_response", &outcome.response)
                .done()
        });
        let input = Object::new().raw("tool_calls", &array(calls));
        let call = HookCall::new("PostToolBatch", input)
            .with_tool_use_id(format!("hook-{}", self.ids.uuid()));
        let outcome = self.run_hooks(scope, call).await;
        scope.add_context(&outcome.context);
        if let Some(reason) = outcome.stop {
            lock(&scope.stopped).get_or_insert(reason);
        }
    }

    /// Runs the `MessageDisplay` hooks for a text of the model, and returns the replacement text,
    /// if any. Both are JSON strings.
    pub(super) async fn run_display_hooks(&self, scope: &Scope, literal: &str) -> Option<String> {
        if scope.is_agent() || !self.state().hooks.has_hooks_for("MessageDisplay") {
            return None;
        }
        let message_id = self.ids.uuid();
        let input = Object::new()
            .str("turn_id", &scope.turn_id)
            .str("message_id", &message_id)
            .plain("index", 0)
            .plain("final", true)
            .str("delta", &unquoted(literal));
        let call =
            HookCall::new("MessageDisplay", input).with_tool_use_id(format!("{message_id}-0"));
        let outcome = self.run_hooks(scope, call).await;
        outcome.outputs.iter().find_map(|output| output["displayContent"].as_str()).map(quoted)
    }
}

/// Returns whether the input of an event has `permission_mode`, and whether it has `effort`.
fn common_fields(event: &str) -> (bool, bool) {
    match event {
        "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "PostToolBatch" | "Stop"
        | "SubagentStop" | "PermissionRequest" | "PermissionDenied" => (true, true),
        "UserPromptSubmit" | "UserPromptExpansion" => (true, false),
        "StopFailure" | "InstructionsLoaded" => (false, true),
        _ => (false, false),
    }
}

impl HookOutcome {
    /// Merges the output of one hook.
    fn merge(&mut self, output: &Value) {
        // The output of an asynchronous hook is not available yet.
        if output["async"] == true {
            return;
        }
        let reason = || output["reason"].as_str().unwrap_or("blocked by a hook").to_owned();
        if output["decision"] == "block" {
            self.block.get_or_insert_with(reason);
            self.raise_decision(HookDecision::Deny(reason()));
        }
        if output["decision"] == "approve" {
            self.raise_decision(HookDecision::Allow);
        }
        if output["continue"] == false {
            let reason = output["stopReason"].as_str().unwrap_or("stopped by a hook");
            self.stop.get_or_insert_with(|| reason.to_owned());
        }
        self.messages.extend(output["systemMessage"].as_str().map(str::to_owned));
        let specific = &output["hookSpecificOutput"];
        if specific.is_object() {
            self.merge_specific(specific);
            self.outputs.push(specific.clone());
        }
    }

    fn merge_specific(&mut self, specific: &Value) {
        self.context.extend(specific["additionalContext"].as_str().map(str::to_owned));
        if specific["updatedInput"].is_object() {
            self.updated_input = Some(specific["updatedInput"].clone());
        }
        let reason = specific["permissionDecisionReason"].as_str().unwrap_or("denied by a hook");
        match text(&specific["permissionDecision"]) {
            "allow" => self.raise_decision(HookDecision::Allow),
            "ask" => self.raise_decision(HookDecision::Ask),
            "defer" => self.raise_decision(HookDecision::Defer),
            "deny" => self.raise_decision(HookDecision::Deny(reason.to_owned())),
            _ => {}
        }
    }

    fn raise_decision(&mut self, decision: HookDecision) {
        if self.decision.as_ref().is_none_or(|known| *known < decision) {
            self.decision = Some(decision);
        }
    }

    /// Handles a failed hook: it is ignored, unless its registration blocks on failure.
    fn record_failure(&mut self, matcher: &HookMatcher, reason: &str) {
        if matcher.blocks_on_failure {
            self.block.get_or_insert_with(|| reason.to_owned());
            self.raise_decision(HookDecision::Deny(reason.to_owned()));
        }
    }
}
