//! What a simulated CLI remembers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::checkpoint::Checkpoints;
use super::deferred::DeferredReplay;
use super::hooks::Hooks;
use super::mcp_server::McpServer;
use super::permission_rule::PermissionRule;
use super::tasks::Task;
use super::usage::UsageTotals;

/// Everything that changes while the CLI runs.
#[derive(Default)]
pub(super) struct SessionState {
    pub(super) session_id: String,
    pub(super) model: String,
    pub(super) mode: String,
    /// The mode to go back to when a plan was agreed to.
    pub(super) mode_before_plan: Option<String>,
    pub(super) allow: Vec<PermissionRule>,
    pub(super) deny: Vec<PermissionRule>,
    pub(super) directories: Vec<String>,
    pub(super) hooks: Hooks,
    /// Agents that the host brought along: name and definition.
    pub(super) agents: BTreeMap<String, Value>,
    pub(super) forward_subagent_text: bool,
    /// The system prompt of the handshake, in its parts.
    pub(super) own_prompt: Option<Vec<String>>,
    pub(super) appended_prompt: Option<String>,
    /// Whether the handshake asked for an answer of some shape.
    pub(super) wants_schema: bool,
    pub(super) conversation: Arc<Mutex<Conversation>>,
    pub(super) queue: VecDeque<QueuedMessage>,
    /// The messages that this process has accepted; a second one of the same id is ignored.
    pub(super) accepted: BTreeSet<String>,
    /// The messages of the conversation that was resumed.
    pub(super) known: BTreeSet<String>,
    pub(super) turn: Option<Arc<ActiveTurn>>,
    /// The deferred call of the resumed session, until its replay begins.
    pub(super) replay: Option<DeferredReplay>,
    pub(super) status: SessionStatus,
    /// Stdin has ended: nobody answers any more.
    pub(super) stdin_closed: bool,
    /// Everything that stood on stdin has been dealt with.
    pub(super) input_ended: bool,
    pub(super) pending: Vec<PendingRequest>,
    pub(super) usage: UsageTotals,
    pub(super) results: u64,
    pub(super) last_was_error: bool,
    pub(super) servers: Vec<Arc<McpServer>>,
    pub(super) tasks: Vec<Arc<Task>>,
    pub(super) todo: Vec<TodoItem>,
    pub(super) checkpoints: Checkpoints,
    pub(super) worktree: Option<String>,
    pub(super) prompt_id: String,
    pub(super) title: Option<String>,
}

impl SessionState {
    /// Whether an agent works in the background. Shells do not count.
    pub(super) fn has_running_agents(&self) -> bool {
        self.tasks.iter().any(|task| task.is_agent() && task.is_background() && task.is_open())
    }
}

/// What the host was last told about the session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum SessionStatus {
    #[default]
    Idle,
    Running,
    RequiresAction,
}

impl SessionStatus {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
            Self::RequiresAction => "requires_action",
        }
    }
}

/// A message that waits for its turn.
#[derive(Debug, Clone)]
pub(super) struct QueuedMessage {
    pub(super) uuid: Option<String>,
    pub(super) content: Value,
    pub(super) priority: Priority,
    /// Set when the CLI itself is the sender: a task has ended.
    pub(super) origin: Option<Origin>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Now,
    Next,
    Later,
}

/// Where a turn comes from that no message of the host started.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) run_id: String,
}

/// The turn that runs.
#[derive(Debug)]
pub(super) struct ActiveTurn {
    pub(super) cancel: watch::Sender<bool>,
    pub(super) batch: Vec<QueuedMessage>,
    /// Whether the host knows that it has started.
    pub(super) started: bool,
    /// The deferred call that is replayed in place of prompts.
    pub(super) replay: Option<DeferredReplay>,
}

/// Tells a turn or task that it is to end.
#[derive(Debug, Clone)]
pub(super) struct CancelToken(watch::Receiver<bool>);

impl CancelToken {
    pub(super) fn of(sender: &watch::Sender<bool>) -> Self {
        Self(sender.subscribe())
    }

    pub(super) fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns when the turn is cancelled; never if nobody can do so any more.
    pub(super) async fn cancelled(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|cancelled| *cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A request of the CLI that the host has not answered.
pub(super) struct PendingRequest {
    pub(super) id: String,
    pub(super) kind: PendingKind,
    pub(super) response: oneshot::Sender<HostResponse>,
}

/// What a pending request is about; decides how it is withdrawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingKind {
    /// Part of the running turn: an interrupt withdraws it.
    Turn,
    /// A call of an in-process server: it is withdrawn in the words of MCP.
    McpCall { server: String, rpc_id: u64 },
    /// Beside any turn.
    Session,
}

/// What the host said to a request.
#[derive(Debug, Clone)]
pub(super) enum HostResponse {
    Success(Value),
    Error(String),
    /// Stdin closed first.
    Gone,
}

/// An entry of the task list that the model keeps.
#[derive(Debug, Clone)]
pub(super) struct TodoItem {
    pub(super) subject: String,
    pub(super) description: String,
    pub(super) status: String,
}

/// What the model has seen: the messages of an API request.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    pub(super) entries: Vec<ConversationEntry>,
    /// What is written down is not added to any more.
    pub(super) sealed: usize,
}

#[derive(Debug, Clone)]
pub(super) struct ConversationEntry {
    pub(super) role: &'static str,
    /// Tells the messages of the model apart; empty for the user's.
    pub(super) id: String,
    pub(super) blocks: Vec<Value>,
}

impl Conversation {
    /// Adds to what the user said last, or begins a new entry: roles alternate.
    pub(super) fn user(&mut self, blocks: Vec<Value>) {
        if blocks.is_empty() {
            return;
        }
        let open = self.entries.len() > self.sealed;
        match self.entries.last_mut().filter(|_| open) {
            Some(entry) if entry.role == "user" => entry.blocks.extend(blocks),
            _ => self.entries.push(ConversationEntry { role: "user", id: String::new(), blocks }),
        }
    }

    pub(super) fn user_text(&mut self, text: &str) {
        self.user(vec![json!({"type": "text", "text": text})]);
    }

    /// Adds a block to the message of this id.
    pub(super) fn assistant(&mut self, id: &str, block: Value) {
        match self.entries.last_mut() {
            Some(entry) if entry.role == "assistant" && entry.id == id => entry.blocks.push(block),
            _ => self.entries.push(ConversationEntry {
                role: "assistant",
                id: id.to_owned(),
                blocks: vec![block],
            }),
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let entries = self.entries.iter();
        entries.map(|entry| json!({"role": entry.role, "content": entry.blocks})).collect()
    }
}

/// The blocks of a `content` field, which is a text or a list.
pub(super) fn content_blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks.clone(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

/// The texts of a `content` field.
pub(super) fn content_text(content: &Value) -> String {
    let blocks = content_blocks(content);
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Locks a mutex under which no foreign code runs, so that a poisoned one is still whole.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
