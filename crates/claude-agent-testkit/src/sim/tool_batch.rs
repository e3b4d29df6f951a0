//! Runs the tool calls of one assistant message, concurrently where possible.

use std::collections::VecDeque;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::engine::Engine;
use super::future_set::FutureSet;
use super::hooks::{HookCall, PreToolUseOutcome};
use super::json::{Object, array, quoted};
use super::permission::PermissionVerdict;
use super::scope::{Scope, ToolCall};
use super::state::lock;
use super::tools::ToolOutput;

/// The tool calls of one assistant message.
pub(super) struct ToolBatch<'a> {
    engine: &'a Arc<Engine>,
    scope: &'a Scope,
    calls: Vec<ToolCall>,
    outcomes: Vec<Option<ToolOutcome>>,
    running: FutureSet<'a, ToolOutcome>,
    waiting: VecDeque<usize>,
}

/// The outcome of a tool call.
pub(super) struct ToolOutcome {
    /// The `tool_result` block; `None` if the call was handed over to the host.
    pub(super) block: Option<Value>,
    /// Context added by hooks.
    pub(super) context: Vec<String>,
    pub(super) response: Value,
    pub(super) input: Value,
}

impl<'a> ToolBatch<'a> {
    pub(super) fn new(engine: &'a Arc<Engine>, scope: &'a Scope) -> Self {
        Self {
            engine,
            scope,
            calls: Vec::new(),
            outcomes: Vec::new(),
            running: FutureSet::new(),
            waiting: VecDeque::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Discards all calls and ends those that are running.
    pub(super) fn clear(&mut self) {
        *self = Self::new(self.engine, self.scope);
    }

    /// Adds a call and starts it, if it may run concurrently with the running ones.
    pub(super) async fn add(&mut self, call: ToolCall) {
        self.waiting.push_back(self.calls.len());
        self.calls.push(call);
        self.outcomes.push(None);
        // Requests to the host are sent immediately. The outcome is collected when the answer is
        // complete or pauses.
        if self.start_ready() {
            let done = self.running.poll_last().await;
            self.record(done);
        }
    }

    /// Polls the calls until none is writing a line, because no one else can write meanwhile.
    pub(super) async fn finish_writes(&mut self) {
        loop {
            let written = self.engine.writing.decreased();
            if self.running.is_empty() || !self.engine.writing.is_active() {
                return;
            }
            let done = tokio::select! {
                biased;
                done = self.running.next() => done,
                () = written => Vec::new(),
            };
            self.record(done);
        }
    }

    /// Polls the calls forever; the future is meant to be dropped.
    pub(super) async fn drive(&mut self) {
        self.complete().await;
        std::future::pending::<()>().await;
    }

    async fn complete(&mut self) {
        while !self.running.is_empty() {
            let done = self.running.next().await;
            self.record(done);
        }
    }

    /// Starts the calls that may run now; returns whether there were any.
    fn start_ready(&mut self) -> bool {
        let mut begun = false;
        while let Some(next) = self.waiting.front().copied() {
            let may = self.running.is_empty()
                || (self.is_shared(next) && self.running.numbers().all(|at| self.is_shared(at)));
            if !may {
                break;
            }
            begun = true;
            self.waiting.pop_front();
            let (engine, scope) = (self.engine, self.scope);
            let call = self.calls[next].clone();
            self.running.push(next, async move { engine.execute(scope, call).await });
        }
        begun
    }

    fn is_shared(&self, at: usize) -> bool {
        self.engine.is_concurrent(&self.calls[at])
    }

    fn record(&mut self, done: impl IntoIterator<Item = (usize, ToolOutcome)>) {
        for (at, outcome) in done {
            self.outcomes[at] = Some(outcome);
        }
        self.start_ready();
    }

    /// Waits for all calls and adds their results to the conversation.
    pub(super) async fn finish(mut self) {
        self.scope.answering.send_replace(false);
        self.complete().await;
        let outcomes: Vec<(&ToolCall, &ToolOutcome)> = self
            .calls
            .iter()
            .zip(&self.outcomes)
            .filter_map(|(call, outcome)| Some((call, outcome.as_ref()?)))
            .collect();
        let mut blocks: Vec<Value> =
            outcomes.iter().filter_map(|(_, outcome)| outcome.block.clone()).collect();
        let contexts = outcomes.iter().flat_map(|(_, outcome)| &outcome.context);
        blocks.extend(contexts.map(|context| reminder(context)));
        lock(&self.scope.conversation).user(blocks);
        if !self.scope.cancel.is_cancelled() {
            self.engine.run_batch_hooks(self.scope, &outcomes).await;
            let late = std::mem::take(&mut *lock(&self.scope.late_hooks));
            for hook in late {
                self.engine.run_hooks(self.scope, hook).await;
            }
        }
    }
}

/// Returns a text block for the model that is not a prompt.
pub(super) fn reminder(text: &str) -> Value {
    json!({"type": "text", "text": format!("<system-reminder>\n{text}\n</system-reminder>")})
}

impl Engine {
    /// Executes a call, including its hooks and the permission check.
    pub(super) async fn execute(
        self: &Arc<Self>,
        scope: &Scope,
        mut call: ToolCall,
    ) -> ToolOutcome {
        if scope.cancel.is_cancelled() {
            return self.reject(scope, &call).await;
        }
        let known = self.has_tool(&call.name);
        if !known {
            let text = format!("Error: No such tool available: {}", call.name);
            let content = format!("<tool_use_error>{text}</tool_use_error>");
            return self.fail(scope, &call, &content, &text, Object::new()).await;
        }
        let hook_outcome = self.run_pre_tool_use_hooks(scope, &call).await;
        let hook_outcome = match hook_outcome {
            PreToolUseOutcome::Cancelled => return self.reject(scope, &call).await,
            PreToolUseOutcome::TimedOut => {
                let text = "The PreToolUse hook was not answered in time; the tool was not run.";
                return self.fail_with(scope, &call, text, Object::new()).await;
            }
            PreToolUseOutcome::Passed(hook_outcome) => hook_outcome,
        };
        if let Some(input) = &hook_outcome.updated_input {
            call.input.clone_from(input);
        }
        let meta = match self.check_permission(scope, &mut call, &hook_outcome).await {
            PermissionVerdict::Run(meta) => meta,
            PermissionVerdict::Deny { text, meta } => {
                return self.fail_with(scope, &call, &text, meta_field(&call.id, &meta)).await;
            }
            PermissionVerdict::Interrupt => return self.reject(scope, &call).await,
            PermissionVerdict::Defer => {
                self.defer_call(scope, &call).await;
                let (response, input) = (Value::Null, call.input);
                return ToolOutcome { block: None, context: Vec::new(), response, input };
            }
        };
        if !call.name.starts_with("mcp__") {
            // In the real CLI, the rest of the answer arrives before even the fastest tool
            // completes.
            scope.wait_for_answer().await;
        }
        self.run_tool(scope, &call, &meta, hook_outcome.context).await
    }

    async fn run_tool(
        self: &Arc<Self>,
        scope: &Scope,
        call: &ToolCall,
        meta: &str,
        mut context: Vec<String>,
    ) -> ToolOutcome {
        let began = Instant::now();
        lock(&scope.tools_used).push(call.name.clone());
        // The tool handles cancellation itself, because it may be writing a line.
        let done = Box::pin(self.use_tool(scope, call)).await;
        let Some(done) = done else { return self.reject(scope, call).await };
        let took = began.elapsed().as_millis();
        let event = if done.error { "PostToolUseFailure" } else { "PostToolUse" };
        let mut input = Object::new().str("tool_name", &call.name).value("tool_input", &call.input);
        input = if done.error {
            input
                .str("tool_use_id", &call.id)
                .value("error", &done.response)
                .plain("is_interrupt", false)
        } else {
            input.value("tool_response", &done.response).str("tool_use_id", &call.id)
        };
        let hook = HookCall::for_tool(event, call, input.plain("duration_ms", took));
        let outcome = self.run_hooks(scope, hook).await;
        context.extend(outcome.context.iter().cloned());
        context.extend(outcome.block.iter().cloned());
        // The real CLI ignores `continue: false` of a `PostToolUseFailure` hook.
        if let Some(reason) = outcome.stop.as_ref().filter(|_| !done.error) {
            lock(&scope.stopped).get_or_insert_with(|| reason.clone());
        }
        let block = self.emit_tool_result(scope, call, &done, meta_field(&call.id, meta)).await;
        for message in &outcome.messages {
            let text = format!("{event}:{} says: {message}", call.name);
            self.emit_informational(&text, "notice", Object::new()).await;
        }
        let response = done.batch_response();
        ToolOutcome { block: Some(block), context, response, input: call.input.clone() }
    }

    /// Writes the result of a tool; returns the block for the model.
    async fn emit_tool_result(
        &self,
        scope: &Scope,
        call: &ToolCall,
        done: &ToolOutput,
        meta: Object,
    ) -> Value {
        let block = done.block(&call.id);
        self.emit_replay_hooks(scope, call).await;
        scope.count_user_message();
        let mut fields = Object::new();
        if !scope.is_agent() {
            fields = fields.raw("tool_use_result", &done.result);
        }
        self.emit_user_line(scope, &array([&block]), fields.fields(&meta)).await;
        serde_json::from_str(&block).unwrap_or_default()
    }

    /// Fails a call with a message of the simulated CLI.
    async fn fail_with(
        &self,
        scope: &Scope,
        call: &ToolCall,
        text: &str,
        meta: Object,
    ) -> ToolOutcome {
        self.fail(scope, call, text, &format!("Error: {text}"), meta).await
    }

    async fn fail(
        &self,
        scope: &Scope,
        call: &ToolCall,
        content: &str,
        result: &str,
        meta: Object,
    ) -> ToolOutcome {
        let result = if result.starts_with("Error: ") {
            quoted(result)
        } else {
            quoted(&format!("Error: {result}"))
        };
        let done = ToolOutput { result, ..ToolOutput::error(content) };
        let block = self.emit_tool_result(scope, call, &done, meta).await;
        let (response, input) = (Value::from(content), call.input.clone());
        ToolOutcome { block: Some(block), context: Vec::new(), response, input }
    }

    /// Fails a call that the user rejected or interrupted.
    async fn reject(&self, scope: &Scope, call: &ToolCall) -> ToolOutcome {
        let text = "The user rejected this tool use. Stop and wait for the user.";
        let done =
            ToolOutput { result: quoted("User rejected tool use"), ..ToolOutput::error(text) };
        let entry =
            Object::new().str("id", &call.id).str("non_execution_kind", "user-rejected").done();
        let meta = Object::new().raw("tool_result_meta", &array([entry]));
        let block = self.emit_tool_result(scope, call, &done, meta).await;
        let (response, input) = (Value::from(text), call.input.clone());
        ToolOutcome { block: Some(block), context: Vec::new(), response, input }
    }
}

/// Returns the `tool_result_meta` of a call; `meta` contains the fields after its id.
fn meta_field(id: &str, meta: &str) -> Object {
    if meta.is_empty() {
        return Object::new();
    }
    let entry = format!(r#"{{"id":{},{meta}}}"#, quoted(id));
    Object::new().raw("tool_result_meta", &array([entry]))
}
