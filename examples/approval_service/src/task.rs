//! Tasks: the conversations that this process knows.

use claude_agent_kit::{SessionId, visible};
use serde::{Serialize, Serializer};

/// How many tasks that have ended are kept in memory.
const MAX_ENDED: usize = 100;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TaskState {
    /// The CLI runs, or waits for a free place.
    Running,
    /// Approvals are pending, and no CLI runs.
    Parked,
    Finished,
    Failed,
    /// The service died while a command ran.
    Interrupted,
}

/// A conversation.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Task {
    pub(crate) session: SessionId,
    #[serde(serialize_with = "serialize_visible")]
    pub(crate) prompt: String,
    pub(crate) state: TaskState,
    /// The answer, or the error.
    #[serde(serialize_with = "serialize_visible")]
    pub(crate) text: String,
}

/// Escapes what a browser would not show. The page has an element for each text, so that line breaks are harmless.
fn serialize_visible<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let lines: Vec<String> = text.split('\n').map(|line| format!("{:#}", visible(line))).collect();
    serializer.serialize_str(&lines.join("\n"))
}

/// The tasks, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Vec<Task>);

impl Tasks {
    pub(crate) fn all(&self) -> &[Task] {
        &self.0
    }

    /// Adds a task, and forgets the oldest of those that have ended if there are too many.
    pub(crate) fn add(&mut self, task: Task) {
        self.0.push(task);
        let is_ended = |task: &Task| !matches!(task.state, TaskState::Running | TaskState::Parked);
        if self.0.iter().filter(|task| is_ended(task)).count() > MAX_ENDED
            && let Some(oldest) = self.0.iter().position(is_ended)
        {
            self.0.remove(oldest);
        }
    }

    /// Changes a task.
    pub(crate) fn change(&mut self, session: &SessionId, change: impl FnOnce(&mut Task)) {
        if let Some(task) = self.0.iter_mut().find(|task| task.session == *session) {
            change(task);
        }
    }

    /// Marks the task of a session as running. A conversation that another process has parked becomes a task.
    pub(crate) fn resume(&mut self, session: &SessionId) {
        if self.0.iter().any(|task| task.session == *session) {
            self.change(session, |task| task.state = TaskState::Running);
            return;
        }
        let (prompt, text) = (String::new(), String::new());
        self.add(Task { session: session.clone(), prompt, state: TaskState::Running, text });
    }
}
