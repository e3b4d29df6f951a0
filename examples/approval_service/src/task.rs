//! Tasks: the conversations that this process knows.

use claude_agent_kit::SessionId;
use claude_agent_kit::approval::ApprovalId;
use serde::Serialize;

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
    pub(crate) prompt: String,
    pub(crate) state: TaskState,
    /// The answer, or the error.
    pub(crate) text: String,
    /// The approvals that a parked conversation waits for.
    #[serde(skip)]
    pub(crate) waits_for: Vec<ApprovalId>,
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

    /// Marks parked tasks as running if one of their approvals is no longer pending, and returns their
    /// sessions.
    pub(crate) fn take_ready(
        &mut self,
        is_pending: impl Fn(&ApprovalId) -> bool,
    ) -> Vec<SessionId> {
        let mut ready = Vec::new();
        for task in &mut self.0 {
            if task.state == TaskState::Parked && !task.waits_for.iter().all(&is_pending) {
                task.state = TaskState::Running;
                ready.push(task.session.clone());
            }
        }
        ready
    }
}
