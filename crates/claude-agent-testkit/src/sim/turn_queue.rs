//! Queues messages, assigns them to turns and reports their lifecycle.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::timeout;

use super::deferred::DeferredReplay;
use super::engine::Engine;
use super::hooks::HookCall;
use super::json::{Object, text};
use super::scope::Scope;
use super::state::{
    ActiveTurn, CancelToken, Conversation, Priority, QueuedMessage, SessionStatus, content_blocks,
    content_text, lock,
};
use super::turn::TurnEnd;
use crate::recording::Exit;

/// How long a turn waits for the dispatcher to handle the lines that arrived together with its
/// message. Bounded, because such a line may be a request that waits for the host.
const REST_OF_INPUT: Duration = Duration::from_millis(250);

/// The maximum number of queued messages; stdin is not read while the queue is full.
const MAX_QUEUED: usize = 4096;

impl Engine {
    /// Accepts a message of the host. Returns an error if it violates the protocol.
    pub(super) async fn accept_message(&self, frame: &Value) -> Result<(), String> {
        let message = &frame["message"];
        if message["role"] != "user" {
            let role = message["role"].as_str().unwrap_or("undefined");
            return Err(format!("Error: Expected message role 'user', got '{role}'"));
        }
        while self.state().queue.len() >= MAX_QUEUED {
            self.queue_space.notified().await;
        }
        let priority = match text(&frame["priority"]) {
            "now" => Priority::Now,
            "later" => Priority::Later,
            _ => Priority::Next,
        };
        let uuid = frame["uuid"].as_str().map(str::to_owned);
        if let Some(uuid) = &uuid
            && !self.is_new_message(uuid).await
        {
            return Ok(());
        }
        let content = message["content"].clone();
        self.enqueue(QueuedMessage { uuid, content, priority, origin: None }).await;
        Ok(())
    }

    /// Returns whether a message is new in this process and in the resumed conversation.
    async fn is_new_message(&self, uuid: &str) -> bool {
        let (is_known, is_first) = {
            let mut state = self.state();
            (state.known.contains(uuid), state.accepted.insert(uuid.to_owned()))
        };
        if is_known && is_first {
            self.emit_lifecycle(uuid, "completed").await;
        }
        let is_new = is_first && !is_known;
        if !is_new && self.state().turn.is_none() {
            self.emit_status().await;
        }
        is_new
    }

    /// Accepts the prompt of the command line.
    pub(super) async fn accept_prompt(&self, content: Value) {
        self.enqueue(QueuedMessage { uuid: None, content, priority: Priority::Next, origin: None })
            .await;
    }

    pub(super) async fn enqueue(&self, queued: QueuedMessage) {
        let idle = {
            let state = self.state();
            state.turn.is_none() && state.queue.is_empty()
        };
        if idle && queued.origin.is_none() {
            self.set_status(SessionStatus::Running).await;
        }
        if let Some(uuid) = &queued.uuid {
            self.emit_lifecycle(uuid, "queued").await;
        }
        // The first message must be reported as started before the next one is reported as queued.
        let at_once = idle && !self.has_tools_to_list();
        if let Some(uuid) = queued.uuid.as_ref().filter(|_| at_once) {
            self.emit_lifecycle(uuid, "started").await;
        }
        {
            let mut state = self.state();
            if at_once && state.turn.is_none() {
                state.turn = Some(Arc::new(ActiveTurn::new(vec![queued], true)));
            } else {
                let at = state.queue.partition_point(|other| other.priority <= queued.priority);
                state.queue.insert(at, queued);
            }
        }
        self.changed.notify_one();
    }

    /// Runs one turn after another until stdin is closed and nothing is left to do.
    pub(super) async fn run_turns(self: &Arc<Self>) -> Exit {
        loop {
            if let Some(turn) = self.next_turn() {
                Box::pin(self.process_turn(&turn)).await;
                self.state().turn = None;
                self.report_idle().await;
                continue;
            }
            if self.is_finished() {
                self.save_cost().await;
                return Exit::Code(i32::from(self.state().last_was_error));
            }
            self.changed.notified().await;
        }
    }

    /// Returns the active turn, or starts one with queued messages.
    fn next_turn(&self) -> Option<Arc<ActiveTurn>> {
        let mut state = self.state();
        if let Some(turn) = &state.turn {
            return Some(Arc::clone(turn));
        }
        let mut batch: Vec<QueuedMessage> = Vec::new();
        while let Some(next) = state.queue.front() {
            let alone = is_exclusive(next) || batch.first().is_some_and(is_exclusive);
            if alone && !batch.is_empty() {
                break;
            }
            batch.extend(state.queue.pop_front());
            self.queue_space.notify_one();
        }
        if batch.is_empty() {
            return None;
        }
        let turn = Arc::new(ActiveTurn::new(batch, false));
        state.turn = Some(Arc::clone(&turn));
        Some(turn)
    }

    /// Reports the status `idle` if nothing is running or queued.
    pub(super) async fn report_idle(&self) {
        let idle = {
            let state = self.state();
            state.turn.is_none() && state.queue.is_empty() && !state.has_running_agents()
        };
        if idle {
            self.set_status(SessionStatus::Idle).await;
        }
        self.changed.notify_one();
    }

    fn is_finished(&self) -> bool {
        let state = self.state();
        state.input_ended && state.queue.is_empty() && !state.has_running_agents()
    }

    async fn process_turn(self: &Arc<Self>, turn: &ActiveTurn) {
        // Waits for lines that the host sent together with the message.
        drop(timeout(REST_OF_INPUT, self.undispatched.wait_idle()).await);
        self.set_status(SessionStatus::Running).await;
        self.list_tools().await;
        let batch = &turn.batch;
        let uuids: Vec<String> = batch.iter().filter_map(|queued| queued.uuid.clone()).collect();
        if !turn.started {
            let replay = turn.replay.iter().map(|replay| &replay.uuid);
            for uuid in replay.chain(&uuids) {
                self.emit_lifecycle(uuid, "started").await;
            }
        }
        let conversation = {
            let mut state = self.state();
            state.prompt_id = self.ids.uuid();
            Arc::clone(&state.conversation)
        };
        let cancel = CancelToken::new(&turn.cancel);
        let scope = Scope::new(conversation, cancel, uuids, self.ids.uuid());
        let (cancelled, _result_lock) = match &turn.replay {
            Some(replay) => self.run_replay(&scope, replay).await,
            None => self.run_turn(&scope, batch).await,
        };
        let end = if cancelled { "cancelled" } else { "completed" };
        let replay = turn.replay.iter().map(|replay| replay.uuid.clone());
        let uuids: Vec<String> = replay.chain(lock(&scope.uuids).clone()).collect();
        for uuid in uuids {
            self.emit_lifecycle(&uuid, end).await;
        }
    }

    /// Runs a turn. Returns whether its messages count as cancelled, and the lock to hold until
    /// that has been reported.
    async fn run_turn(
        self: &Arc<Self>,
        scope: &Scope,
        batch: &[QueuedMessage],
    ) -> (bool, Option<OwnedMutexGuard<()>>) {
        let content = merge_content(batch);
        let prompt = content_text(&content);
        let origin = batch.iter().find_map(|queued| queued.origin.clone());
        let mut content = content;
        if origin.is_none() {
            if let Some(command) = prompt.strip_prefix('/') {
                match self.run_command(scope, command).await {
                    super::commands::CommandOutcome::Done => return (false, None),
                    super::commands::CommandOutcome::Prompt(expanded) => content = expanded.into(),
                    super::commands::CommandOutcome::Unknown => {}
                }
            }
            let outcome = self.run_submit_hooks(scope, &prompt).await;
            if scope.cancel.is_cancelled() {
                self.emit_init(scope).await;
                self.emit_user_text(scope, "[Request interrupted by user]", Object::new()).await;
                return self.finish_turn(scope, &TurnEnd::AbortedStreaming, None).await;
            }
            if let Some(reason) = outcome.block.as_ref().or(outcome.stop.as_ref()) {
                self.emit_prompt_blocked(scope, reason, &prompt).await;
                return (false, None);
            }
            if content != merge_content(batch) {
                self.run_expansion_hooks(scope, &prompt).await;
            }
            self.emit_init(scope).await;
            self.replay_prompts(batch).await;
            lock(&scope.conversation).user(content_blocks(&content));
            scope.add_context(&outcome.context);
            self.emit_hook_messages("UserPromptSubmit", &outcome.messages).await;
        } else {
            self.emit_init(scope).await;
            lock(&scope.conversation).user(content_blocks(&content));
        }
        self.begin_checkpoint(scope);
        let end = self.run_conversation(scope).await;
        self.finish_turn(scope, &end, origin.as_ref()).await
    }

    pub(super) async fn finish_turn(
        &self,
        scope: &Scope,
        end: &TurnEnd,
        origin: Option<&super::state::Origin>,
    ) -> (bool, Option<OwnedMutexGuard<()>>) {
        let cancelled = matches!(
            end,
            TurnEnd::AbortedStreaming
                | TurnEnd::AbortedTools
                | TurnEnd::Failed(_)
                | TurnEnd::Budget(_)
        );
        let joined = lock(&scope.joined).clone();
        for uuid in joined {
            self.emit_lifecycle(&uuid, if cancelled { "cancelled" } else { "completed" }).await;
        }
        self.save_transcript(scope).await;
        let result_lock = Arc::clone(&self.result_lock).lock_owned().await;
        self.emit_result(scope, end, origin).await;
        (cancelled, Some(result_lock))
    }

    async fn run_submit_hooks(&self, scope: &Scope, prompt: &str) -> super::hooks::HookOutcome {
        let input = Object::new().str("prompt", prompt);
        self.run_hooks(scope, HookCall::new("UserPromptSubmit", input)).await
    }

    pub(super) async fn emit_hook_messages(&self, name: &str, messages: &[String]) {
        for message in messages {
            self.emit_informational(&format!("{name} says: {message}"), "notice", Object::new())
                .await;
        }
    }

    /// Reports that a hook blocked the prompt.
    async fn emit_prompt_blocked(&self, scope: &Scope, reason: &str, prompt: &str) {
        self.emit_init(scope).await;
        let text = format!("Prompt blocked by a hook: {reason}\n\nOriginal prompt: {prompt}");
        let outcome = Object::new()
            .str("kind", "blocked_by_hook")
            .plain("prompt_kept", false)
            .str("reason", reason);
        let fields = Object::new()
            .plain("prevent_continuation", true)
            .raw("prompt_submit_outcome", &outcome.done());
        self.emit_informational(&text, "warning", fields).await;
        self.emit_local_result(scope, &text, None).await;
    }

    async fn replay_prompts(&self, batch: &[QueuedMessage]) {
        if !self.launch.replay {
            return;
        }
        for queued in batch {
            if let Some(uuid) = &queued.uuid {
                self.emit_replay(&queued.content, uuid).await;
            }
        }
    }

    /// Starts a new conversation, as after `/clear`.
    pub(super) fn reset_conversation(&self) {
        let mut state = self.state();
        *lock(&state.conversation) = Conversation::default();
        state.session_id = self.ids.uuid();
    }
}

impl ActiveTurn {
    pub(super) fn new(batch: Vec<QueuedMessage>, started: bool) -> Self {
        Self { cancel: watch::Sender::new(false), batch, started, replay: None }
    }

    pub(super) fn replaying(replay: DeferredReplay) -> Self {
        let started = replay.is_started;
        Self { replay: Some(replay), ..Self::new(Vec::new(), started) }
    }
}

/// Returns whether a message needs its own turn: commands and task notifications are not merged
/// with prompts.
fn is_exclusive(queued: &QueuedMessage) -> bool {
    queued.origin.is_some() || content_text(&queued.content).starts_with('/')
}

fn merge_content(batch: &[QueuedMessage]) -> Value {
    match batch {
        [one] => one.content.clone(),
        many => many.iter().flat_map(|queued| content_blocks(&queued.content)).collect(),
    }
}
