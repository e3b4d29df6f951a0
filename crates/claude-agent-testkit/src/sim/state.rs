//! The state of a simulated CLI.

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

/// The mutable state of a session.
#[derive(Default)]
pub(super) struct SessionState {
    pub(super) session_id: String,
    pub(super) model: String,
    pub(super) mode: String,
    /// The permission mode to restore after plan mode.
    pub(super) mode_before_plan: Option<String>,
    pub(super) allow: Vec<PermissionRule>,
    pub(super) deny: Vec<PermissionRule>,
    pub(super) directories: Vec<String>,
    pub(super) hooks: Hooks,
    /// The agents that the host defined: name and definition.
    pub(super) agents: BTreeMap<String, Value>,
    pub(super) forward_subagent_text: bool,
    /// The parts of the system prompt from `initialize`.
    pub(super) own_prompt: Option<Vec<String>>,
    pub(super) appended_prompt: Option<String>,
    /// Whether `initialize` requested structured output.
    pub(super) wants_schema: bool,
    pub(super) conversation: Arc<Mutex<Conversation>>,
    pub(super) queue: VecDeque<QueuedMessage>,
    /// The ids of accepted messages; duplicates are ignored.
    pub(super) accepted: BTreeSet<String>,
    /// The ids of the messages in the resumed conversation.
    pub(super) known: BTreeSet<String>,
    pub(super) turn: Option<Arc<ActiveTurn>>,
    /// The deferred call of the resumed session, until its replay starts.
    pub(super) replay: Option<DeferredReplay>,
    pub(super) status: SessionStatus,
    /// Whether stdin has reached EOF, after which no responses arrive.
    pub(super) stdin_closed: bool,
    /// Whether all lines of stdin have been handled.
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
    /// The directory in which a command has left the shell of the main conversation.
    pub(super) shell_directory: Option<String>,
    pub(super) prompt_id: String,
    pub(super) title: Option<String>,
}

impl SessionState {
    /// Returns whether a background agent is running. Shells do not count.
    pub(super) fn has_running_agents(&self) -> bool {
        self.tasks.iter().any(|task| task.is_agent() && task.is_background() && task.is_unsettled())
    }
}

/// The status of the session, as reported to the host.
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
    /// Set if the message comes from the CLI because a task has ended.
    pub(super) origin: Option<Origin>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Priority {
    Now,
    Next,
    Later,
}

/// The origin of a turn that was not started by a message of the host.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    pub(super) run_id: String,
}

/// The running turn.
#[derive(Debug)]
pub(super) struct ActiveTurn {
    pub(super) cancel: watch::Sender<bool>,
    pub(super) batch: Vec<QueuedMessage>,
    /// Whether its start has been reported to the host.
    pub(super) started: bool,
    /// The deferred call that is replayed instead of prompts.
    pub(super) replay: Option<DeferredReplay>,
}

/// Signals that a turn or task is cancelled.
#[derive(Debug, Clone)]
pub(super) struct CancelToken(watch::Receiver<bool>);

impl CancelToken {
    pub(super) fn new(sender: &watch::Sender<bool>) -> Self {
        Self(sender.subscribe())
    }

    pub(super) fn is_cancelled(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes when the turn is cancelled; never completes once the sender is dropped.
    pub(super) async fn cancelled(&self) {
        let mut receiver = self.0.clone();
        if receiver.wait_for(|cancelled| *cancelled).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// A control request that the host has not responded to.
pub(super) struct PendingRequest {
    pub(super) id: String,
    pub(super) kind: PendingKind,
    pub(super) response: oneshot::Sender<HostResponse>,
}

/// The context of a pending request, which determines how it is cancelled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingKind {
    /// Part of the running turn: an interrupt cancels it.
    Turn,
    /// A call to a tool of the host: it is cancelled with an MCP notification.
    McpCall { server: String, rpc_id: u64 },
    /// Outside any turn.
    Session,
}

/// The response of the host to a control request.
#[derive(Debug, Clone)]
pub(super) enum HostResponse {
    Success(Value),
    Error(String),
    /// Stdin was closed first.
    Closed,
}

/// An entry of the task list of the model.
#[derive(Debug, Clone)]
pub(super) struct TodoItem {
    pub(super) subject: String,
    pub(super) description: String,
    pub(super) status: String,
}

/// The messages of a conversation, as in an API request.
#[derive(Debug, Clone, Default)]
pub(super) struct Conversation {
    pub(super) entries: Vec<ConversationEntry>,
    /// The number of entries that have been written to the transcript, which never change again.
    pub(super) sealed: usize,
    /// The last entry of the transcript, which the next one follows.
    pub(super) last_uuid: Option<String>,
}

#[derive(Debug, Clone)]
pub(super) struct ConversationEntry {
    pub(super) role: &'static str,
    /// The id of an assistant message; empty for the user.
    pub(super) id: String,
    pub(super) blocks: Vec<Value>,
}

impl Conversation {
    /// Appends to the last user entry, or adds a new entry, because roles alternate.
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

    /// Adds a block to the assistant message with this id.
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

/// Returns the blocks of a `content` field, which is a string or a list.
pub(super) fn content_blocks(content: &Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks.clone(),
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    }
}

/// Returns the texts of a `content` field.
pub(super) fn content_text(content: &Value) -> String {
    let blocks = content_blocks(content);
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// Locks a mutex under which no user code runs, so a poisoned one is still consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
