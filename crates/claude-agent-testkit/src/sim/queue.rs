//! From messages to turns: which message gets which turn, and what is told of its life.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{OwnedMutexGuard, watch};
use tokio::time::timeout;

use super::engine::Engine;
use super::hooks::HookCall;
use super::json::{Object, text};
use super::replay::Replay;
use super::scope::Scope;
use super::state::{
    Cancel, Conversation, Priority, Queued, Told, TurnInfo, content_blocks, content_text, lock,
};
use super::turn::End;
use crate::recording::Exit;

/// How long a turn lets the lines be dealt with that came with its message. A request that waits for
/// the host must not hold it up.
const REST_OF_INPUT: Duration = Duration::from_millis(250);

/// How many messages may wait; beyond it stdin is read no further.
const WAITING: usize = 4096;

impl Engine {
    /// Takes a message of the host; an error is a breach of the protocol.
    pub(super) async fn accept(&self, frame: &Value) -> Result<(), String> {
        let message = &frame["message"];
        if message["role"] != "user" {
            let role = message["role"].as_str().unwrap_or("undefined");
            return Err(format!("Error: Expected message role 'user', got '{role}'"));
        }
        while self.state().queue.len() >= WAITING {
            self.room.notified().await;
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
        self.enqueue(Queued { uuid, content, priority, origin: None }).await;
        Ok(())
    }

    /// Whether a message was not sent before, in this process or in the conversation that it resumed.
    async fn is_new_message(&self, uuid: &str) -> bool {
        let (is_known, is_first) = {
            let mut state = self.state();
            (state.known.contains(uuid), state.accepted.insert(uuid.to_owned()))
        };
        if is_known && is_first {
            self.lifecycle(uuid, "completed").await;
        }
        let is_new = is_first && !is_known;
        if !is_new && self.state().turn.is_none() {
            self.repeat_state().await;
        }
        is_new
    }

    /// Takes the prompt of the command line.
    pub(super) async fn accept_prompt(&self, content: Value) {
        self.enqueue(Queued { uuid: None, content, priority: Priority::Next, origin: None }).await;
    }

    pub(super) async fn enqueue(&self, queued: Queued) {
        let idle = {
            let state = self.state();
            state.turn.is_none() && state.queue.is_empty()
        };
        if idle && queued.origin.is_none() {
            self.tell_state(Told::Running).await;
        }
        if let Some(uuid) = &queued.uuid {
            self.lifecycle(uuid, "queued").await;
        }
        // The first one is told as started before the next one is told as queued.
        let at_once = idle && !self.has_tools_to_list();
        if let Some(uuid) = queued.uuid.as_ref().filter(|_| at_once) {
            self.lifecycle(uuid, "started").await;
        }
        {
            let mut state = self.state();
            if at_once && state.turn.is_none() {
                state.turn = Some(Arc::new(TurnInfo::new(vec![queued], true)));
            } else {
                let at = state.queue.partition_point(|other| other.priority <= queued.priority);
                state.queue.insert(at, queued);
            }
        }
        self.changed.notify_one();
    }

    /// Runs one turn after the other until there can be no more.
    pub(super) async fn work(self: &Arc<Self>) -> Exit {
        loop {
            if let Some(turn) = self.next_turn() {
                Box::pin(self.turn(&turn)).await;
                self.state().turn = None;
                self.rest().await;
                continue;
            }
            if self.is_over() {
                self.save_cost().await;
                return Exit::Code(i32::from(self.state().last_was_error));
            }
            self.changed.notified().await;
        }
    }

    /// The turn that was begun, or one of what waits.
    fn next_turn(&self) -> Option<Arc<TurnInfo>> {
        let mut state = self.state();
        if let Some(turn) = &state.turn {
            return Some(Arc::clone(turn));
        }
        let mut batch: Vec<Queued> = Vec::new();
        while let Some(next) = state.queue.front() {
            let alone = stands_alone(next) || batch.first().is_some_and(stands_alone);
            if alone && !batch.is_empty() {
                break;
            }
            batch.extend(state.queue.pop_front());
            self.room.notify_one();
        }
        if batch.is_empty() {
            return None;
        }
        let turn = Arc::new(TurnInfo::new(batch, false));
        state.turn = Some(Arc::clone(&turn));
        Some(turn)
    }

    /// Tells that nothing is going on, if so.
    pub(super) async fn rest(&self) {
        let idle = {
            let state = self.state();
            state.turn.is_none() && state.queue.is_empty() && !state.has_running_agents()
        };
        if idle {
            self.tell_state(Told::Idle).await;
        }
        self.changed.notify_one();
    }

    fn is_over(&self) -> bool {
        let state = self.state();
        state.input_ended && state.queue.is_empty() && !state.has_running_agents()
    }

    async fn turn(self: &Arc<Self>, turn: &TurnInfo) {
        // What the host sent together is taken in together.
        drop(timeout(REST_OF_INPUT, self.unread.none()).await);
        self.tell_state(Told::Running).await;
        self.list_tools().await;
        let batch = &turn.batch;
        let uuids: Vec<String> = batch.iter().filter_map(|queued| queued.uuid.clone()).collect();
        if !turn.started {
            for uuid in &uuids {
                self.lifecycle(uuid, "started").await;
            }
        }
        let conversation = {
            let mut state = self.state();
            state.prompt_id = self.ids.uuid();
            Arc::clone(&state.conversation)
        };
        let cancel = Cancel::of(&turn.cancel);
        let scope = Scope::new(conversation, cancel, uuids, self.ids.uuid());
        let (cancelled, _floor) = match &turn.replay {
            Some(replay) => self.play_replay(&scope, replay).await,
            None => self.play(&scope, batch).await,
        };
        let end = if cancelled { "cancelled" } else { "completed" };
        let replay = turn.replay.iter().map(|replay| replay.uuid.clone());
        let uuids: Vec<String> = replay.chain(lock(&scope.uuids).clone()).collect();
        for uuid in uuids {
            self.lifecycle(&uuid, end).await;
        }
    }

    /// Plays a turn; true if its messages count as cancelled. What is held until that was told comes
    /// with it.
    async fn play(
        self: &Arc<Self>,
        scope: &Scope,
        batch: &[Queued],
    ) -> (bool, Option<OwnedMutexGuard<()>>) {
        let content = merged(batch);
        let prompt = content_text(&content);
        let origin = batch.iter().find_map(|queued| queued.origin.clone());
        let mut content = content;
        if origin.is_none() {
            if let Some(command) = prompt.strip_prefix('/') {
                match self.command(scope, command).await {
                    super::commands::Command::Done => return (false, None),
                    super::commands::Command::Prompt(expanded) => content = expanded.into(),
                    super::commands::Command::Unknown => {}
                }
            }
            let heard = self.submit_hook(scope, &prompt).await;
            if scope.cancel.is_cancelled() {
                self.init(scope).await;
                self.user_text(scope, "[Request interrupted by user]", Object::new()).await;
                return self.conclude(scope, &End::AbortedStreaming, None).await;
            }
            if let Some(reason) = heard.block.as_ref().or(heard.stop.as_ref()) {
                self.blocked(scope, reason, &prompt).await;
                return (false, None);
            }
            if content != merged(batch) {
                self.expansion_hook(scope, &prompt).await;
            }
            self.init(scope).await;
            self.replay_prompts(batch).await;
            lock(&scope.conversation).user(content_blocks(&content));
            scope.add_context(&heard.context);
            self.tell_messages("UserPromptSubmit", &heard.messages).await;
        } else {
            self.init(scope).await;
            lock(&scope.conversation).user(content_blocks(&content));
        }
        self.begin_checkpoint(scope);
        let end = self.converse(scope).await;
        self.conclude(scope, &end, origin.as_ref()).await
    }

    pub(super) async fn conclude(
        &self,
        scope: &Scope,
        end: &End,
        origin: Option<&super::state::Origin>,
    ) -> (bool, Option<OwnedMutexGuard<()>>) {
        let cancelled = matches!(
            end,
            End::AbortedStreaming | End::AbortedTools | End::Failed(_) | End::Budget(_)
        );
        let joined = lock(&scope.joined).clone();
        for uuid in joined {
            self.lifecycle(&uuid, if cancelled { "cancelled" } else { "completed" }).await;
        }
        self.save_transcript(scope).await;
        let floor = Arc::clone(&self.floor).lock_owned().await;
        self.result(scope, end, origin).await;
        (cancelled, Some(floor))
    }

    async fn submit_hook(&self, scope: &Scope, prompt: &str) -> super::hooks::Heard {
        let input = Object::new().str("prompt", prompt);
        self.hook(scope, HookCall::new("UserPromptSubmit", input)).await
    }

    pub(super) async fn tell_messages(&self, name: &str, messages: &[String]) {
        for message in messages {
            self.informational(&format!("{name} says: {message}"), "notice", Object::new()).await;
        }
    }

    /// A hook does not want this prompt.
    async fn blocked(&self, scope: &Scope, reason: &str, prompt: &str) {
        self.init(scope).await;
        let text = format!("Prompt blocked by a hook: {reason}\n\nOriginal prompt: {prompt}");
        let outcome = Object::new()
            .str("kind", "blocked_by_hook")
            .plain("prompt_kept", false)
            .str("reason", reason);
        let fields = Object::new()
            .plain("prevent_continuation", true)
            .raw("prompt_submit_outcome", &outcome.done());
        self.informational(&text, "warning", fields).await;
        self.local_result(scope, &text, None).await;
    }

    async fn replay_prompts(&self, batch: &[Queued]) {
        if !self.launch.replay {
            return;
        }
        for queued in batch {
            if let Some(uuid) = &queued.uuid {
                self.replay(&queued.content, uuid).await;
            }
        }
    }

    /// Begins anew, as after `/clear`.
    pub(super) fn forget_conversation(&self) {
        let mut state = self.state();
        *lock(&state.conversation) = Conversation::default();
        state.session_id = self.ids.uuid();
    }
}

impl TurnInfo {
    pub(super) fn new(batch: Vec<Queued>, started: bool) -> Self {
        Self { cancel: watch::Sender::new(false), batch, started, replay: None }
    }

    pub(super) fn replaying(replay: Replay) -> Self {
        Self { replay: Some(replay), ..Self::new(Vec::new(), true) }
    }
}

/// Commands, and what tasks say, are not put together with prompts.
fn stands_alone(queued: &Queued) -> bool {
    queued.origin.is_some() || content_text(&queued.content).starts_with('/')
}

fn merged(batch: &[Queued]) -> Value {
    match batch {
        [one] => one.content.clone(),
        many => many.iter().flat_map(|queued| content_blocks(&queued.content)).collect(),
    }
}
