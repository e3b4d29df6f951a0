//! Streams one answer of the model to the host.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::engine::Engine;
use super::json::{Object, text};
use super::messages::MessageHead;
use super::scope::{Scope, ToolCall};
use super::source::{Source, SourceEvent, StreamEvent, assemble, thinking_length};
use super::state::lock;
use super::tool_batch::ToolBatch;
use crate::mock_api::message::{Event, whole_block};
use crate::mock_api::reply::Block;

fn utf16_length(value: &Value) -> usize {
    text(value).encode_utf16().count()
}

/// How an answer ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Whole {
        stop_reason: String,
    },
    /// The connection was closed early.
    Cut,
    Interrupted,
}

/// An answer that is being streamed to the host.
pub(super) struct Stream<'a> {
    engine: &'a Engine,
    scope: &'a Scope,
    id: String,
    model: String,
    input_tokens: u64,
    stop_reason: String,
    /// The current block: its index, its first event and its deltas.
    block: usize,
    start: String,
    deltas: Vec<String>,
    thinking_tokens: usize,
    /// The length of the answer so far, in UTF-16 code units.
    length: usize,
    /// Whether the response has reported its tokens.
    is_counted: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(engine: &'a Engine, scope: &'a Scope) -> Self {
        Self {
            engine,
            scope,
            id: String::new(),
            model: String::new(),
            input_tokens: 0,
            stop_reason: String::new(),
            block: 0,
            start: String::new(),
            deltas: Vec::new(),
            thinking_tokens: 0,
            length: 0,
            is_counted: false,
        }
    }

    /// Writes the answer; each tool starts as soon as its call is complete.
    pub(super) async fn run(&mut self, mut source: Source, batch: &mut ToolBatch<'_>) -> StreamEnd {
        loop {
            let next = tokio::select! {
                biased;
                () = self.scope.cancel.cancelled() => None,
                next = source.next() => Some(next),
                () = batch.drive() => None,
            };
            batch.finish_writes().await;
            match next {
                Some(SourceEvent::Event(event)) => self.handle_event(event, batch).await,
                Some(SourceEvent::Cut) => {
                    self.record_cut_usage();
                    self.emit_abandoned("0").await;
                    return StreamEnd::Cut;
                }
                Some(SourceEvent::End) => {
                    let stop_reason = std::mem::take(&mut self.stop_reason);
                    return StreamEnd::Whole { stop_reason };
                }
                None => return self.handle_interrupt(batch.is_empty()).await,
            }
        }
    }

    fn record_usage(&mut self, output: u64) {
        self.is_counted = true;
        self.scope.counts.add(self.input_tokens, output);
        self.engine.state().usage.add(&self.model, self.input_tokens, output);
    }

    /// Counts the tokens of a response that was cut.
    fn record_cut_usage(&self) {
        if !self.model.is_empty() {
            self.scope.counts.input.fetch_add(self.input_tokens, Ordering::Relaxed);
            let output = self.estimated_output().unwrap_or_default();
            self.engine.state().usage.add(&self.model, self.input_tokens, output);
        }
    }

    /// Counts the tokens of a response that was interrupted before it reported them.
    fn record_interrupted_usage(&self) {
        if let Some(output) = self.estimated_output()
            && !self.model.is_empty()
            && !self.is_counted
        {
            self.engine.state().usage.add(&self.model, self.input_tokens, output);
        }
    }

    /// Estimates the output tokens of an incomplete response: a third of its length. `None` if this
    /// version does not count them.
    fn estimated_output(&self) -> Option<u64> {
        let is_estimated = self.engine.launch.cli_version.estimates_incomplete_output();
        is_estimated.then(|| ((2 * self.length + 3) / 6) as u64)
    }

    async fn handle_event(&mut self, event: StreamEvent, batch: &mut ToolBatch<'_>) {
        match event.name.as_str() {
            "message_start" => self.handle_message_start(&event.json).await,
            Event::DELTA => self.handle_delta(event.json).await,
            "content_block_stop" => self.handle_block_stop(event, batch).await,
            "content_block_start" => {
                self.deltas.clear();
                self.start = event.json;
                let value: Value = serde_json::from_str(&self.start).unwrap_or_default();
                self.length += utf16_length(&value["content_block"]["name"]);
                self.emit_partial(&self.start, self.thinking_display()).await;
            }
            name => {
                if name == "message_delta" {
                    let value: Value = serde_json::from_str(&event.json).unwrap_or_default();
                    text(&value["delta"]["stop_reason"]).clone_into(&mut self.stop_reason);
                    self.record_usage(value["usage"]["output_tokens"].as_u64().unwrap_or_default());
                }
                self.emit_partial(&event.json, Object::new()).await;
            }
        }
    }

    async fn handle_message_start(&mut self, json: &str) {
        let value: Value = serde_json::from_str(json).unwrap_or_default();
        let message = &value["message"];
        text(&message["id"]).clone_into(&mut self.id);
        text(&message["model"]).clone_into(&mut self.model);
        self.input_tokens = message["usage"]["input_tokens"].as_u64().unwrap_or_default();
        if !self.engine.launch.partial || self.scope.is_agent() {
            return;
        }
        let time = self.scope.began.elapsed().as_millis();
        let prompts = self.scope.name_prompts_on_start();
        let line = self
            .stream_event(json)
            .plain("ttft_ms", time)
            .str("thinking_display", "updates")
            .str("api_message_id", &self.id)
            .fields(&prompts);
        self.engine.emit("stream_event", line).await;
    }

    async fn handle_delta(&mut self, json: String) {
        let mut extra = Object::new();
        if self.is_thinking() && !json.contains(r#""type":"signature_delta""#) {
            extra = self.thinking_display();
            self.count_thinking(thinking_length(&json)).await;
        }
        let value: Value = serde_json::from_str(&json).unwrap_or_default();
        for field in ["text", "partial_json", "thinking"] {
            self.length += utf16_length(&value["delta"][field]);
        }
        self.emit_partial(&json, extra).await;
        self.deltas.push(json);
    }

    fn is_thinking(&self) -> bool {
        self.start.contains(r#""content_block":{"type":"thinking""#)
    }

    fn thinking_display(&self) -> Object {
        if self.is_thinking() {
            return Object::new().str("thinking_display", "updates");
        }
        Object::new()
    }

    async fn count_thinking(&mut self, characters: usize) {
        if self.scope.is_agent() {
            return;
        }
        let tokens = characters.div_ceil(4);
        self.thinking_tokens += tokens;
        let fields = Object::new()
            .plain("estimated_tokens", self.thinking_tokens)
            .plain("estimated_tokens_delta", tokens);
        let prompt = self.scope.first_prompt();
        let then = Object::new().some_str("user_message_uuid", prompt.as_deref());
        self.engine.emit_system_with("thinking_tokens", fields, then).await;
    }

    async fn handle_block_stop(&mut self, event: StreamEvent, batch: &mut ToolBatch<'_>) {
        let block = event.whole.or_else(|| assemble(&self.start, &self.deltas));
        if let Some(block) = &block {
            self.emit_block(block, &whole_block(block)).await;
        }
        self.emit_partial(&event.json, Object::new()).await;
        if let Some(Block::Tool { id, name, input }) = block {
            batch.add(ToolCall { id, name, input }).await;
            batch.finish_writes().await;
        }
        self.deltas.clear();
        self.block += 1;
    }

    /// Writes a complete block and adds it to the conversation.
    async fn emit_block(&self, block: &Block, json: &str) {
        let value = serde_json::from_str(json).unwrap_or_else(|_| lossy(block));
        lock(&self.scope.conversation).assistant(&self.id, value);
        let uuid = self.engine.ids.uuid();
        let mut json = Cow::Borrowed(json);
        if let Some(literal) = text_literal(block) {
            let displayed = self.engine.run_display_hooks(self.scope, &literal).await;
            lock(&self.scope.last_text).clone_from(displayed.as_ref().unwrap_or(&literal));
            match displayed.as_deref() {
                // A text that a hook hides is not written at all.
                Some("\"\"") => return,
                Some(text) => json = Cow::Owned(Object::typed("text").raw("text", text).done()),
                None => {}
            }
        }
        if !self.engine.shows_block(self.scope, block) {
            return;
        }
        let fields = match block {
            Block::Thinking(_) => {
                Object::new().plain("thinking_duration_ms", 0).str("thinking_display", "updates")
            }
            Block::Tool { id, name, .. } => self.engine.tool_use_meta(id, name),
            Block::Text(_) | Block::RawText(_) => Object::new(),
        };
        self.engine.emit_task_progress(self.scope, block).await;
        self.engine.emit_assistant(self.scope, &self.head(&uuid), &json, fields).await;
    }

    fn head<'s>(&'s self, uuid: &'s str) -> MessageHead<'s> {
        let input_tokens = self.input_tokens;
        MessageHead { id: &self.id, model: &self.model, input_tokens, uuid }
    }

    /// Handles an interrupt: the partial block is written.
    async fn handle_interrupt(&mut self, no_tools: bool) -> StreamEnd {
        self.record_interrupted_usage();
        let from = match self.partial_block() {
            Some(json) => {
                let uuid = self.engine.ids.uuid();
                let fields = Object::new().plain("aborted", true);
                self.engine.emit_assistant(self.scope, &self.head(&uuid), &json, fields).await;
                self.block + 1
            }
            None => self.block,
        };
        if no_tools {
            let text = "[Request interrupted by user]";
            self.engine.emit_user_text(self.scope, text, Object::new()).await;
        }
        self.emit_partial_end(from).await;
        StreamEnd::Interrupted
    }

    /// Returns the partial text or thinking block.
    fn partial_block(&self) -> Option<String> {
        let block = assemble(&self.start, &self.deltas).filter(|_| !self.deltas.is_empty())?;
        (!matches!(block, Block::Tool { .. })).then(|| whole_block(&block))
    }

    /// Writes the events that close a partial message.
    async fn emit_partial_end(&self, from: usize) {
        let stop = format!(r#"{{"type":"content_block_stop","index":{}}}"#, self.block);
        self.emit_partial(&stop, Object::new()).await;
        let usage = format!(
            r#"{{"output_tokens_details":{{"thinking_tokens":0}},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"input_tokens":{},"iterations":[],"output_tokens":0,"server_tool_use":{{"web_search_requests":0,"web_fetch_requests":0}},"fallback_credit":null}}"#,
            self.input_tokens
        );
        let delta =
            r#"{"container":null,"stop_details":null,"stop_reason":null,"stop_sequence":null}"#;
        let end = format!(
            r#"{{"type":"message_delta","context_management":null,"delta":{delta},"usage":{usage}}}"#
        );
        self.emit_partial(&end, Object::new()).await;
        self.emit_message_stop(&from.to_string()).await;
    }

    async fn emit_abandoned(&self, from: &str) {
        let stop = format!(r#"{{"type":"content_block_stop","index":{}}}"#, self.block);
        self.emit_partial(&stop, Object::new()).await;
        self.emit_message_stop(from).await;
    }

    async fn emit_message_stop(&self, from: &str) {
        let abandoned =
            Object::new().str("api_message_id", &self.id).raw("from_block_index", from).done();
        let extra = Object::new().raw("abandoned_blocks", &abandoned);
        if self.engine.launch.partial && !self.scope.is_agent() {
            let line = self
                .stream_event(r#"{"type":"message_stop"}"#)
                .str("api_message_id", &self.id)
                .fields(&extra);
            self.engine.emit("stream_event", line).await;
        }
    }

    async fn emit_partial(&self, event: &str, extra: Object) {
        if !self.engine.launch.partial || self.scope.is_agent() {
            return;
        }
        let line = self.stream_event(event).fields(&extra).str("api_message_id", &self.id);
        self.engine.emit("stream_event", line).await;
    }

    fn stream_event(&self, event: &str) -> Object {
        Object::typed("stream_event")
            .raw("event", event)
            .str("session_id", &self.engine.session_id())
            .fields(&self.scope.parent_fields())
            .str("uuid", &self.engine.ids.uuid())
    }
}

/// Returns a text block as a JSON string.
fn text_literal(block: &Block) -> Option<String> {
    match block {
        Block::Text(text) => Some(super::json::quoted(text)),
        Block::RawText(literal) => Some(literal.clone()),
        Block::Thinking(_) | Block::Tool { .. } => None,
    }
}

/// Returns a valid JSON value for a literal that is not quite JSON.
fn lossy(block: &Block) -> Value {
    let literal = text_literal(block).unwrap_or_default();
    serde_json::json!({"type": "text", "text": literal.trim_matches('"')})
}

/// Returns the text of a JSON string; an invalid literal is returned without its quotes.
pub(super) fn unquoted(literal: &str) -> String {
    serde_json::from_str::<Value>(literal)
        .map_or_else(|_| literal.trim_matches('"').to_owned(), |value| text(&value).to_owned())
}
