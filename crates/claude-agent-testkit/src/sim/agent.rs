//! Subagents.

use std::pin::Pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

use super::engine::Engine;
use super::hooks::HookCall;
use super::json::{Object, array, text};
use super::result::usage;
use super::scope::{Agent, Scope, ToolCall};
use super::state::{CancelToken, Conversation, lock};
use super::stream::unquoted;
use super::tasks::{Task, TaskEnd};
use super::tools::ToolOutput;
use super::turn::TurnEnd;
use crate::mock_api::reply::Block;

impl Engine {
    /// Runs the `Agent` tool, in the foreground or in the background.
    pub(super) async fn agent_tool(
        self: &Arc<Self>,
        scope: &Scope,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let kind = call.input["subagent_type"].as_str().unwrap_or("general-purpose").to_owned();
        if !self.agent_names().contains(&kind) {
            return Some(ToolOutput::error(&format!("There is no agent of the type {kind}.")));
        }
        let background = call.input["run_in_background"] == true;
        let task = Arc::new(Task::new(self, call, Some(kind.clone()), background));
        self.count_agent(call, &kind, background);
        self.emit_task_started(&task).await;
        let cancel = if background { CancelToken::new(&task.cancel) } else { scope.cancel.clone() };
        let own = Arc::new(self.agent_scope(&task, call, cancel));
        if background {
            let (engine, watched) = (Arc::clone(self), Arc::clone(&task));
            self.spawn(async move { engine.run_in_background(&watched, &own).await });
            return Some(self.background_output(&task));
        }
        let end = self.run_agent(&own).await;
        let text = unquoted(&lock(&own.last_text));
        if scope.cancel.is_cancelled() {
            self.finish_agent(&task, &own, &end, &text).await;
            return None;
        }
        self.finish_agent(&task, &own, &end, &text).await;
        Some(self.completed_output(&task, &own, &end, &text))
    }

    fn count_agent(&self, call: &ToolCall, kind: &str, background: bool) {
        let mut state = self.state();
        let agents = &mut state.usage.agents;
        agents.spawned += 1;
        match call.input["run_in_background"].as_bool() {
            Some(true) => agents.background += 1,
            Some(false) => agents.foreground += 1,
            None => agents.unset += 1,
        }
        debug_assert!(background == (call.input["run_in_background"] == true));
        *agents.by_type.entry(kind.to_owned()).or_default() += 1;
    }

    fn agent_scope(&self, task: &Task, call: &ToolCall, cancel: CancelToken) -> Scope {
        let mut conversation = Conversation::default();
        conversation.user_text(text(&call.input["prompt"]));
        let kind = task.agent.clone().unwrap_or_default();
        let (instructions, model) = {
            let state = self.state();
            let definition = state.agents.get(&kind);
            let named =
                |field: &str| definition.and_then(|agent| agent[field].as_str()).map(str::to_owned);
            (named("prompt"), named("model").filter(|model| model != "inherit"))
        };
        let agent = Agent {
            id: task.id.clone(),
            kind,
            description: task.description.clone(),
            tool_use_id: call.id.clone(),
            run_id: task.run_id.clone(),
            instructions,
            background: task.background,
            model: model.map(|model| super::catalog::resolve_model(Some(&model))),
        };
        let conversation = Arc::new(Mutex::new(conversation));
        let mut scope = Scope::new(conversation, cancel, Vec::new(), self.ids.uuid());
        scope.agent = Some(agent);
        scope
    }

    /// Runs an agent until its end. Boxed, because agents can start agents.
    fn run_agent<'a>(
        self: &'a Arc<Self>,
        scope: &'a Scope,
    ) -> Pin<Box<dyn Future<Output = TurnEnd> + Send + 'a>> {
        Box::pin(async move {
            let kind = scope.agent.as_ref().map(|agent| agent.kind.clone()).unwrap_or_default();
            let hook = HookCall::new("SubagentStart", Object::new()).with_subject(&kind);
            let outcome = self.run_hooks(scope, hook).await;
            if scope.agent.as_ref().is_some_and(|agent| !agent.background) {
                let prompt = lock(&scope.conversation).entries[0].blocks[0]["text"].clone();
                let block = Object::typed("text").value("text", &prompt).done();
                self.emit_user_line(scope, &array([block]), Object::new()).await;
            }
            if !outcome.context.is_empty() {
                scope.add_context(&outcome.context);
            }
            self.run_conversation(scope).await
        })
    }

    async fn run_in_background(self: &Arc<Self>, task: &Arc<Task>, scope: &Scope) {
        let end = self.run_agent(scope).await;
        let text = unquoted(&lock(&scope.last_text));
        self.finish_agent(task, scope, &end, &text).await;
        if !scope.cancel.is_cancelled() {
            let text = format!("The agent {:?} has ended: {text}", task.description);
            self.notify_model(task, &text).await;
        }
        task.settle();
        self.report_idle().await;
    }

    async fn finish_agent(&self, task: &Task, scope: &Scope, end: &TurnEnd, summary: &str) {
        let ended = match end {
            TurnEnd::AbortedStreaming | TurnEnd::AbortedTools => TaskEnd::Stopped,
            TurnEnd::Failed(_) => TaskEnd::Failed,
            _ => TaskEnd::Completed,
        };
        {
            let mut state = self.state();
            let agents = &mut state.usage.agents;
            match ended {
                TaskEnd::Completed => agents.completed += 1,
                TaskEnd::Failed => agents.failed += 1,
                TaskEnd::Stopped => agents.killed += 1,
            }
        }
        let usage = agent_usage(task, scope);
        self.emit_task_ended(task, ended, summary, Some(&usage)).await;
    }

    /// Returns the tool output for an agent that was started in the background.
    fn background_output(&self, task: &Task) -> ToolOutput {
        let text = format!("The agent {} works in the background.", task.id);
        let model = self.state().model.clone();
        let block = Object::typed("text").str("text", &text).done();
        let result = Object::new()
            .plain("isAsync", true)
            .str("status", "async_launched")
            .str("agentId", &task.id)
            .str("description", &task.description)
            .str("resolvedModel", &model)
            .str_or_null("prompt", task.prompt.as_deref())
            .str("outputFile", &self.output_file(&task.id).to_string_lossy())
            .plain("canReadOutputFile", true)
            .plain("canContinueAgent", true);
        ToolOutput::content(array([block]), result.done())
    }

    /// Returns the tool output for a completed agent.
    fn completed_output(
        &self,
        task: &Task,
        scope: &Scope,
        end: &TurnEnd,
        text: &str,
    ) -> ToolOutput {
        if let TurnEnd::Failed(failure) = end {
            return ToolOutput::error(&failure.text);
        }
        let counts = &scope.counts;
        let (input, output) = (counts.input.load(Relaxed), counts.output.load(Relaxed));
        let used = lock(&scope.tools_used).clone();
        let model = scope.model(&self.state());
        let block = Object::typed("text").str("text", text).done();
        let mut result = Object::new()
            .str("status", "completed")
            .str_or_null("prompt", task.prompt.as_deref())
            .str("agentId", &task.id)
            .str_or_null("agentType", task.agent.as_deref());
        if !used.is_empty() {
            result = result.strings("toolsUsed", &used);
        }
        let result = result
            .plain("harnessNoteCount", usize::from(!used.is_empty()))
            .plain("harnessTailCount", 0)
            .str("harnessSectionHash", "0000000000000000")
            .raw("content", &array([&block]))
            .str("resolvedModel", &model)
            .plain("totalDurationMs", task.began.elapsed().as_millis())
            .plain("totalTokens", input + output)
            .plain("totalToolUseCount", used.len())
            .raw("usage", &usage(input, output))
            .plain("canContinueAgent", true);
        ToolOutput::content(array([block]), result.done())
    }

    /// Returns whether a block of the model is written to stdout.
    pub(super) fn shows_block(&self, scope: &Scope, block: &Block) -> bool {
        match (&scope.agent, block) {
            (None, _) | (Some(_), Block::Tool { .. }) => true,
            (Some(agent), _) => agent.background || self.state().forward_subagent_text,
        }
    }

    /// Reports the progress of an agent.
    pub(super) async fn emit_task_progress(&self, scope: &Scope, block: &Block) {
        let (Some(agent), Block::Tool { name, input, .. }) = (&scope.agent, block) else { return };
        let uses = lock(&scope.tools_used).len() + 1;
        let counts = &scope.counts;
        let usage = Object::new()
            .plain("total_tokens", counts.input.load(Relaxed) + counts.output.load(Relaxed))
            .plain("tool_uses", uses)
            .plain("duration_ms", scope.began.elapsed().as_millis());
        let what = input["command"].as_str().unwrap_or(name);
        let fields = Object::new()
            .str("task_id", &agent.id)
            .str("run_id", &agent.run_id)
            .str("tool_use_id", &agent.tool_use_id)
            .str("description", &format!("Running {what}"))
            .str("subagent_type", &agent.kind)
            .raw("usage", &usage.done())
            .str("last_tool_name", name);
        self.emit_system("task_progress", fields).await;
    }

    /// Returns the names of the available agents, in order.
    pub(super) fn agent_names(&self) -> Vec<String> {
        let state = self.state();
        let mut names: Vec<String> =
            super::catalog::AGENTS.iter().map(|(name, _, _)| (*name).to_owned()).collect();
        names.extend(state.agents.keys().cloned());
        names.sort_by_key(|name| name.to_lowercase());
        names.dedup();
        names
    }
}

fn agent_usage(task: &Task, scope: &Scope) -> String {
    let counts = &scope.counts;
    Object::new()
        .plain("total_tokens", counts.input.load(Relaxed) + counts.output.load(Relaxed))
        .plain("tool_uses", lock(&scope.tools_used).len())
        .plain("duration_ms", task.began.elapsed().as_millis())
        .done()
}
