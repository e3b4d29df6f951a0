//! The context of a turn: the conversation of the session or of an agent.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::hooks::HookCall;
use super::json::Object;
use super::state::{CancelToken, Conversation, SessionState, lock};
use super::tool_batch::reminder;

/// The timeout for the rest of an answer that is already being streamed.
const REST_OF_ANSWER: Duration = Duration::from_millis(250);

/// One turn of a conversation, from its prompt to its end.
pub(super) struct Scope {
    pub(super) agent: Option<Agent>,
    pub(super) conversation: Arc<Mutex<Conversation>>,
    pub(super) cancel: CancelToken,
    /// The ids of the messages that this turn answers.
    pub(super) uuids: Mutex<Vec<String>>,
    /// The ids of the messages that joined the running turn.
    pub(super) joined: Mutex<Vec<String>>,
    /// Whether a message has already named the prompts.
    named: AtomicBool,
    /// The same for `message_start`.
    named_at_start: AtomicBool,
    pub(super) turn_id: String,
    pub(super) began: Instant,
    pub(super) counts: TurnCounts,
    /// The reason why the turn ends after the running tools, set by a hook.
    pub(super) stopped: Mutex<Option<String>>,
    pub(super) deferred: Mutex<Option<ToolCall>>,
    /// Whether a deferred call is being replayed, which belongs to no prompt.
    pub(super) replaying: AtomicBool,
    /// The hook callbacks of the replayed call that are not reported yet.
    pub(super) replay_hooks: AtomicUsize,
    pub(super) structured: Mutex<Option<Value>>,
    pub(super) denials: Mutex<Vec<String>>,
    /// The last text of the model, as a JSON string.
    pub(super) last_text: Mutex<String>,
    pub(super) tools_used: Mutex<Vec<String>>,
    /// Whether the model is currently answering.
    pub(super) answering: watch::Sender<bool>,
    /// Hooks to run after all tools of the answer.
    pub(super) late_hooks: Mutex<Vec<HookCall>>,
}

#[derive(Debug, Default)]
pub(super) struct TurnCounts {
    /// The number of written user messages, by which the CLI counts turns.
    pub(super) user_messages: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) input: AtomicU64,
    pub(super) output: AtomicU64,
    pub(super) first_input: AtomicU64,
    /// The tokens of the last response.
    last_input: AtomicU64,
    last_output: AtomicU64,
}

impl TurnCounts {
    /// Counts a response.
    pub(super) fn add(&self, input: u64, output: u64) {
        if self.requests.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first_input.store(input, Ordering::Relaxed);
        }
        self.input.fetch_add(input, Ordering::Relaxed);
        self.output.fetch_add(output, Ordering::Relaxed);
        self.last_input.store(input, Ordering::Relaxed);
        self.last_output.store(output, Ordering::Relaxed);
    }

    /// Excludes the last response: the usage of a result does not include the response that
    /// exceeded the budget.
    pub(super) fn exclude_last(&self) {
        self.input.fetch_sub(self.last_input.load(Ordering::Relaxed), Ordering::Relaxed);
        self.output.fetch_sub(self.last_output.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

/// An agent that was started by a tool call.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) description: String,
    pub(super) tool_use_id: String,
    pub(super) run_id: String,
    pub(super) instructions: Option<String>,
    pub(super) background: bool,
    pub(super) model: Option<String>,
}

/// A tool call of the model.
#[derive(Debug, Clone)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
}

impl Scope {
    pub(super) fn new(
        conversation: Arc<Mutex<Conversation>>,
        cancel: CancelToken,
        uuids: Vec<String>,
        turn_id: String,
    ) -> Self {
        Self {
            agent: None,
            conversation,
            cancel,
            uuids: Mutex::new(uuids),
            joined: Mutex::default(),
            named: AtomicBool::new(false),
            named_at_start: AtomicBool::new(false),
            turn_id,
            began: Instant::now(),
            counts: TurnCounts::default(),
            stopped: Mutex::default(),
            deferred: Mutex::default(),
            replaying: AtomicBool::new(false),
            replay_hooks: AtomicUsize::new(0),
            structured: Mutex::default(),
            denials: Mutex::default(),
            last_text: Mutex::default(),
            tools_used: Mutex::default(),
            answering: watch::Sender::new(false),
            late_hooks: Mutex::default(),
        }
    }

    pub(super) fn model(&self, state: &SessionState) -> String {
        let own = self.agent.as_ref().and_then(|agent| agent.model.clone());
        own.unwrap_or_else(|| state.model.clone())
    }

    /// Waits until the current answer is complete, with a timeout.
    pub(super) async fn wait_for_answer(&self) {
        let mut answering = self.answering.subscribe();
        drop(timeout(REST_OF_ANSWER, answering.wait_for(|answering| !*answering)).await);
    }

    pub(super) fn is_agent(&self) -> bool {
        self.agent.is_some()
    }

    /// Returns `parent_tool_use_id` and related fields.
    pub(super) fn parent_fields(&self) -> Object {
        match &self.agent {
            Some(agent) => Object::new()
                .str("parent_tool_use_id", &agent.tool_use_id)
                .str("agent_id", &agent.id),
            None => Object::new().null("parent_tool_use_id"),
        }
    }

    /// Returns the fields at the end of a message of an agent.
    pub(super) fn agent_fields(&self) -> Object {
        match &self.agent {
            Some(agent) => Object::new()
                .str("subagent_type", &agent.kind)
                .str("task_description", &agent.description),
            None => Object::new(),
        }
    }

    /// Returns the prompts of the turn on the first call, and nothing afterwards.
    pub(super) fn name_prompts(&self) -> Object {
        let uuids = lock(&self.uuids);
        if uuids.is_empty() || self.named.swap(true, Ordering::Relaxed) {
            return Object::new();
        }
        prompts(&uuids)
    }

    /// The same for the first `message_start`.
    pub(super) fn name_prompts_on_start(&self) -> Object {
        let uuids = lock(&self.uuids);
        if uuids.is_empty() || self.named_at_start.swap(true, Ordering::Relaxed) {
            return Object::new();
        }
        prompts(&uuids).raw("owed_rows", "[]")
    }

    /// Returns the prompts of the turn for its result.
    pub(super) fn prompts(&self) -> Object {
        let (uuids, joined) = (lock(&self.uuids), lock(&self.joined));
        // A turn without a prompt of its own names the messages that joined it.
        match uuids.last().or(joined.last()) {
            Some(last) => {
                let all: Vec<&String> = uuids.iter().chain(joined.iter()).collect();
                Object::new().str("user_message_uuid", last).strings("user_message_uuids", &all)
            }
            None => Object::new(),
        }
    }

    pub(super) fn first_prompt(&self) -> Option<String> {
        lock(&self.uuids).last().cloned()
    }

    /// Records a denied call for the result.
    pub(super) fn record_denial(&self, call: &ToolCall) {
        let denial = Object::new()
            .str("tool_name", &call.name)
            .str("tool_use_id", &call.id)
            .value("tool_input", &call.input);
        lock(&self.denials).push(denial.done());
    }

    /// Adds context for the model after the prompt.
    pub(super) fn add_context(&self, texts: &[String]) {
        if !texts.is_empty() {
            let blocks = texts.iter().map(|text| reminder(text)).collect();
            lock(&self.conversation).user(blocks);
        }
    }

    pub(super) fn count_user_message(&self) {
        self.counts.user_messages.fetch_add(1, Ordering::Relaxed);
    }
}

fn prompts(uuids: &[String]) -> Object {
    let last = uuids.last().map(String::as_str).unwrap_or_default();
    Object::new().str("user_message_uuid", last).strings("user_message_uuids", uuids)
}
