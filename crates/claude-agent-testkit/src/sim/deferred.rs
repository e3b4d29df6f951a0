//! Deferred tool calls, which are replayed when their session is resumed.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::engine::Engine;
use super::ids::timestamp;
use super::json::{Object, text};
use super::scope::{Scope, ToolCall};
use super::state::{ActiveTurn, Conversation, SessionStatus, lock};

/// The prompt with which the real CLI makes the model continue after a replayed call.
const CONTINUE: &str = "Continue from where you left off.";

/// A deferred tool call and the turn in which it is replayed.
#[derive(Debug, Clone)]
pub(super) struct DeferredReplay {
    call: ToolCall,
    /// The id of the turn in `command_lifecycle`.
    pub(super) uuid: String,
    /// Whether the start of the turn was reported.
    pub(super) is_started: bool,
}

/// Returns the deferred call of a transcript that has no result yet. A call that is followed by an
/// assistant message is not replayed.
pub(super) fn find_pending_call(entries: &[Value]) -> Option<ToolCall> {
    let mut pending: Option<ToolCall> = None;
    for entry in entries {
        let attachment = &entry["attachment"];
        if attachment["type"] == "hook_deferred_tool" {
            let id = text(&attachment["toolUseID"]).to_owned();
            let name = text(&attachment["toolName"]).to_owned();
            pending = Some(ToolCall { id, name, input: attachment["toolInput"].clone() });
        }
        let is_finished = |call: &ToolCall| {
            entry["type"] == "assistant" || has_result(&entry["message"]["content"], &call.id)
        };
        pending = pending.filter(|call| !is_finished(call));
    }
    pending
}

fn has_result(content: &Value, id: &str) -> bool {
    content.as_array().into_iter().flatten().any(|block| block["tool_use_id"] == id)
}

/// Removes calls that have neither a result nor a replay, because no API accepts them.
pub(super) fn remove_dangling(conversation: &mut Conversation, pending: Option<&ToolCall>) {
    let blocks = conversation.entries.iter().flat_map(|entry| &entry.blocks);
    let answered: Vec<String> =
        blocks.filter_map(|block| block["tool_use_id"].as_str()).map(str::to_owned).collect();
    for entry in &mut conversation.entries {
        entry.blocks.retain(|block| {
            let id = text(&block["id"]);
            block["type"] != "tool_use"
                || answered.iter().any(|answered| answered == id)
                || pending.is_some_and(|call| call.id == id)
        });
    }
    conversation.entries.retain(|entry| !entry.blocks.is_empty());
}

impl Engine {
    /// Prepares the replay of a deferred call.
    pub(super) fn new_replay(&self, call: ToolCall) -> DeferredReplay {
        DeferredReplay { call, uuid: self.ids.uuid(), is_started: false }
    }

    /// Announces the replay, if a call is pending. Its turn starts later if the tools of a server have to be listed
    /// first.
    pub(super) async fn announce_replay(&self) {
        let replay = self.state().replay.clone();
        let Some(replay) = replay else { return };
        self.set_status(SessionStatus::Running).await;
        let is_started = !self.has_tools_to_list();
        if is_started {
            self.emit_lifecycle(&replay.uuid, "started").await;
        }
        self.state().replay = Some(DeferredReplay { is_started, ..replay });
    }

    /// Starts the replay as the active turn, if a call is pending.
    pub(super) fn start_replay(&self) {
        let mut state = self.state();
        if let Some(replay) = state.replay.take() {
            state.turn = Some(Arc::new(ActiveTurn::replaying(replay)));
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Executes the call again, adds its result to the conversation and lets the model continue. If
    /// the call is deferred again, the turn ends without a request to the model.
    pub(super) async fn run_replay(
        self: &Arc<Self>,
        scope: &Scope,
        replay: &DeferredReplay,
    ) -> (bool, Option<OwnedMutexGuard<()>>) {
        scope.replaying.store(true, Relaxed);
        let outcome = self.execute(scope, replay.call.clone()).await;
        self.reading.send_replace(true);
        lock(&scope.conversation).user(outcome.block.into_iter().collect());
        scope.add_context(&outcome.context);
        if let Some(end) = self.after_tools(scope).await {
            return self.finish_turn(scope, &end, None).await;
        }
        scope.replaying.store(false, Relaxed);
        // The real CLI counts user messages from the prompt that follows.
        scope.counts.user_messages.store(0, Relaxed);
        self.emit_init(scope).await;
        lock(&scope.conversation).user_text(CONTINUE);
        self.begin_checkpoint(scope);
        let end = self.run_conversation(scope).await;
        self.finish_turn(scope, &end, None).await
    }

    /// Reports the `PreToolUse` hooks of a replayed call. The real CLI does so together with the result of
    /// the call, and not for a call that a hook denied.
    pub(super) async fn emit_replay_hooks(&self, scope: &Scope, call: &ToolCall) {
        for _ in 0..scope.replay_hooks.swap(0, Relaxed) {
            let success = Object::typed("hook_success")
                .str("hookName", "PreToolUse:Callback")
                .str("toolUseID", &call.id)
                .str("hookEvent", "PreToolUse")
                .str("content", "")
                .str("command", "callback");
            self.emit_attachment(success).await;
        }
    }

    /// Keeps a deferred call for the result of the turn.
    pub(super) async fn defer_call(&self, scope: &Scope, call: &ToolCall) {
        if scope.replaying.load(Relaxed) {
            self.emit_replay_hooks(scope, call).await;
            self.emit_attachment(self.deferred_marker(call)).await;
        }
        // Of several deferred calls the last is kept.
        *lock(&scope.deferred) = Some(call.clone());
    }

    async fn emit_attachment(&self, attachment: Object) {
        let line = Object::typed("attachment")
            .raw("attachment", &attachment.done())
            .null("parent_tool_use_id")
            .str("session_id", &self.session_id())
            .str("uuid", &self.ids.uuid())
            .str("timestamp", &timestamp());
        self.emit("attachment", line).await;
    }

    /// Returns the attachment that marks a call as deferred, in the transcript and on stdout.
    pub(super) fn deferred_marker(&self, call: &ToolCall) -> Object {
        Object::typed("hook_deferred_tool")
            .str("hookName", "settings")
            .str("toolUseID", &call.id)
            .str("hookEvent", "PreToolUse")
            .str("toolName", &call.name)
            .value("toolInput", &call.input)
            .str("permissionMode", &self.state().mode)
    }
}
