//! Slash commands.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::engine::Engine;
use super::hooks::HookCall;
use super::json::Object;
use super::messages::StopReason;
use super::scope::Scope;
use super::source::{ModelResponse, SourceEvent, assemble};
use super::state::{Conversation, lock};
use super::stream::unquoted;
use super::usage::UsageTotals;
use crate::mock_api::message::Event;
use crate::mock_api::reply::Block;

/// The prompt that asks the model for a summary of the conversation.
const SUMMARY_PROMPT: &str = "Write a summary of the conversation, inside <summary> tags.";

/// The outcome of a slash command.
pub(super) enum CommandOutcome {
    /// The command has been executed and its result written.
    Done,
    /// The model receives this prompt instead.
    Prompt(String),
    /// The model receives the prompt unchanged.
    Unknown,
}

impl Engine {
    pub(super) async fn run_command(self: &Arc<Self>, scope: &Scope, line: &str) -> CommandOutcome {
        let (name, arguments) = line.split_once(' ').unwrap_or((line, ""));
        match name {
            "context" => {
                self.emit_init(scope).await;
                let text = format!("Context: {}", self.context_usage().done());
                self.emit_synthetic(scope, &text, StopReason::EndTurn, Object::new()).await;
                self.emit_local_result(scope, &text, Some(name)).await;
            }
            "cost" | "usage" => {
                self.emit_init(scope).await;
                let text = format!("Total cost:            ${:.4}", self.state().usage.cost());
                self.emit_synthetic(scope, &text, StopReason::EndTurn, Object::new()).await;
                self.emit_local_result(scope, &text, Some(name)).await;
            }
            "clear" | "reset" | "new" => self.clear(scope).await,
            "compact" => self.compact(scope, arguments).await,
            "model" => {
                self.emit_init(scope).await;
                let model = super::catalog::resolve_model(Some(arguments.trim()));
                self.state().model.clone_from(&model);
                self.emit_local_output(&format!("Set model to `{model}`")).await;
                self.emit_local_result(scope, "", Some(name)).await;
            }
            _ => {
                let custom = self.custom_commands();
                let found = custom.into_iter().find(|command| command.name == name);
                if found.is_none() && self.launch.cli_version.answers_unknown_commands() {
                    self.emit_init(scope).await;
                    let text = format!("Unknown command: /{name}");
                    self.emit_local_result(scope, &text, None).await;
                    return CommandOutcome::Done;
                }
                return found.map_or(CommandOutcome::Unknown, |command| {
                    CommandOutcome::Prompt(command.body.replace("$ARGUMENTS", arguments))
                });
            }
        }
        CommandOutcome::Done
    }

    pub(super) async fn run_expansion_hooks(&self, scope: &Scope, prompt: &str) {
        let line = prompt.trim_start_matches('/');
        let (name, arguments) = line.split_once(' ').unwrap_or((line, ""));
        let input = Object::new()
            .str("expansion_type", "slash_command")
            .str("command_name", name)
            .str("command_args", arguments)
            .str("command_source", "projectSettings")
            .str("prompt", prompt);
        let outcome = self
            .run_hooks(scope, HookCall::new("UserPromptExpansion", input).with_subject(name))
            .await;
        scope.add_context(&outcome.context);
    }

    async fn clear(self: &Arc<Self>, scope: &Scope) {
        let ended =
            HookCall::new("SessionEnd", Object::new().str("reason", "clear")).with_subject("clear");
        self.run_hooks(scope, ended).await;
        let old = self.session_id();
        self.save_cost().await;
        self.reset_conversation();
        // The real CLI resets the totals when the conversation is cleared.
        self.state().usage = UsageTotals::default();
        let new = self.session_id();
        let line = Object::typed("conversation_reset")
            .str("new_conversation_id", &new)
            .str("uuid", &new)
            .str("trigger", "clear")
            .some_str("user_message_uuid", scope.first_prompt().as_deref())
            .str("timestamp", &super::ids::timestamp())
            .str("session_id", &old);
        self.emit("conversation_reset", line).await;
        self.emit_background_tasks().await;
        self.run_start_hooks(scope, "clear").await;
        self.emit_init(scope).await;
        self.emit_local_result(scope, "", Some("clear")).await;
    }

    async fn run_start_hooks(self: &Arc<Self>, scope: &Scope, source: &str) {
        let call =
            HookCall::new("SessionStart", Object::new().str("source", source)).with_subject(source);
        let outcome = self.run_hooks(scope, call).await;
        self.watch_paths(&outcome.outputs);
        if !outcome.context.is_empty() {
            scope.add_context(&outcome.context);
        }
    }

    async fn compact(self: &Arc<Self>, scope: &Scope, instructions: &str) {
        let began = Instant::now();
        let before =
            self.state().usage.total.values().map(|spent| spent.input + spent.output).sum::<u64>();
        self.emit_system_with("status", Object::new().str("status", "compacting"), Object::new())
            .await;
        let instructions = Some(instructions.trim()).filter(|text| !text.is_empty());
        let input =
            Object::new().str("trigger", "manual").str_or_null("custom_instructions", instructions);
        let outcome =
            self.run_hooks(scope, HookCall::new("PreCompact", input).with_subject("manual")).await;
        let arguments = instructions.unwrap_or_default();
        if outcome.block.is_some() {
            let text = "Compaction blocked by PreCompact hook: [callback]";
            return self
                .emit_compaction_failed(scope, arguments, text, &format!("skipped: {text}"))
                .await;
        }
        let is_short = lock(&scope.conversation).entries.len() <= 2;
        if is_short && !self.launch.cli_version.compacts_one_turn() {
            let text = "Not enough messages to compact.";
            return self.emit_compaction_failed(scope, arguments, text, text).await;
        }
        let Some(summary) = self.summarize(scope).await else {
            self.emit_init(scope).await;
            self.emit_local_result(
                scope,
                "The conversation could not be compacted.",
                Some("compact"),
            )
            .await;
            return;
        };
        *lock(&scope.conversation) = Conversation::default();
        let text = format!("The conversation until now, in short:\n{summary}");
        lock(&scope.conversation).user(vec![super::tool_batch::reminder(&text)]);
        self.run_start_hooks(scope, "compact").await;
        let input = Object::new().str("trigger", "manual").str("compact_summary", &summary);
        self.run_hooks(scope, HookCall::new("PostCompact", input).with_subject("manual")).await;
        let status = Object::new().null("status").str("compact_result", "success");
        self.emit_system_with("status", status, Object::new()).await;
        self.emit_init(scope).await;
        let metadata = Object::new()
            .str("trigger", "manual")
            .plain("pre_tokens", before)
            .plain("post_tokens", summary.len() / 4)
            .plain("cumulative_dropped_tokens", 0)
            .plain("duration_ms", began.elapsed().as_millis());
        let then = Object::new()
            .raw("compact_metadata", &metadata.done())
            .str("logical_parent_uuid", &self.ids.uuid());
        self.emit_system_with("compact_boundary", Object::new(), then).await;
        self.emit_summary(&text).await;
        self.emit_local_output("Compacted ").await;
        self.emit_local_result(scope, "", Some("compact")).await;
    }

    /// Reports that compaction failed; the conversation is unchanged.
    async fn emit_compaction_failed(
        &self,
        scope: &Scope,
        arguments: &str,
        text: &str,
        error: &str,
    ) {
        let status = Object::new()
            .null("status")
            .str("compact_result", "failed")
            .str("compact_error", error);
        self.emit_system_with("status", status, Object::new()).await;
        self.emit_init(scope).await;
        let run = Object::new().str("command", "compact").str("args", arguments).done();
        let source = format!("<local-command-stderr>{text}</local-command-stderr>");
        let fields = Object::new()
            .str("local_command_source", &source)
            .raw("local_command_run", &run)
            .raw("local_command_outcome", r#"{"kind":"failed"}"#);
        self.emit_synthetic(scope, text, StopReason::EndTurn, fields).await;
        self.emit_local_result(scope, text, Some("compact")).await;
    }

    async fn emit_summary(&self, text: &str) {
        let message = Object::new().str("role", "user").str("content", text).done();
        let line = Object::typed("user")
            .raw("message", &message)
            .str("session_id", &self.session_id())
            .null("parent_tool_use_id")
            .str("uuid", &self.ids.uuid())
            .str("timestamp", &super::ids::timestamp())
            .plain("isReplay", false)
            .plain("isSynthetic", true);
        self.emit("user", line).await;
    }

    /// Runs the `SubagentStop` hooks for the unnamed agent with which the real CLI generates the
    /// summary.
    async fn run_summary_hooks(&self, scope: &Scope) {
        if !self.state().hooks.has_hooks_for("SubagentStop") {
            return;
        }
        let id = self.ids.agent();
        let input = Object::new()
            .plain("stop_hook_active", false)
            .str("agent_transcript_path", &self.agent_transcript(&id))
            .str("last_assistant_message", "")
            .raw("background_tasks", "[]")
            .raw("session_crons", "[]");
        let call = HookCall::new("SubagentStop", input).with_agent(&id);
        self.run_hooks(scope, call).await;
    }

    /// Asks the model for a summary, without writing the answer to stdout. An answer without the
    /// `<summary>` tag is requested once more.
    async fn summarize(self: &Arc<Self>, scope: &Scope) -> Option<String> {
        let before = lock(&scope.conversation).clone();
        lock(&scope.conversation).user_text(SUMMARY_PROMPT);
        let mut summary = self.request_summary(scope).await;
        if summary.as_ref().is_some_and(|text| !text.contains("<summary>")) {
            summary = self.request_summary(scope).await;
        }
        *lock(&scope.conversation) = before;
        summary
    }

    async fn request_summary(self: &Arc<Self>, scope: &Scope) -> Option<String> {
        let mut source = match self.request_model(scope).await {
            ModelResponse::Stream(source) => source,
            ModelResponse::Error(error) => {
                self.write_stderr(&format!("The summary failed: {}", error.message)).await;
                return None;
            }
        };
        self.run_summary_hooks(scope).await;
        let (mut texts, mut start, mut deltas) = (Vec::new(), String::new(), Vec::new());
        loop {
            let event = match source.next().await {
                SourceEvent::Event(event) => event,
                SourceEvent::End => return Some(texts.join("\n")),
                SourceEvent::Cut => return None,
            };
            match event.name.as_str() {
                "content_block_start" => start = event.json,
                Event::DELTA => deltas.push(event.json),
                "content_block_stop" => {
                    let block = event.whole.or_else(|| assemble(&start, &deltas));
                    deltas.clear();
                    match block {
                        Some(Block::Text(text)) => texts.push(text),
                        Some(Block::RawText(literal)) => texts.push(unquoted(&literal)),
                        _ => {}
                    }
                }
                "message_delta" => self.record_summary_usage(&event.json),
                _ => {}
            }
        }
    }

    fn record_summary_usage(&self, event: &str) {
        let event: Value = serde_json::from_str(event).unwrap_or_default();
        let tokens = |field: &str| event["usage"][field].as_u64().unwrap_or_default();
        let mut state = self.state();
        let model = state.model.clone();
        state.usage.add(&model, tokens("input_tokens"), tokens("output_tokens"));
    }
}
