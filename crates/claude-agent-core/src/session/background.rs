//! Background tasks of the CLI that a query waits for.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use claude_wire::Envelope;

/// The maximum number of tasks that are tracked by ID; more are only counted.
const MAX_KNOWN_TASKS: usize = 4096;

/// Agents and shells that run in the background.
#[derive(Debug)]
pub(super) struct Background {
    agents: RunningTasks,
    /// Tracked only if the query waits for shells: the CLI is idle while they run.
    shells: RunningTasks,
    wait_for_shells: bool,
}

impl Background {
    pub(super) fn new(wait_for_shells: bool) -> Self {
        Self { agents: RunningTasks::default(), shells: RunningTasks::default(), wait_for_shells }
    }

    pub(super) fn has_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    pub(super) fn has_shells(&self) -> bool {
        !self.shells.is_empty()
    }

    /// Records the start or the end of a task that a system message reports.
    pub(super) fn record(&mut self, line: &Envelope<'_>) {
        let Some(task) = line.task_id.as_deref() else { return };
        match line.subtype.as_deref() {
            Some("task_started") => match line.task_type.as_deref() {
                Some("local_agent" | "local_workflow") => self.agents.insert(task),
                Some(_) if self.wait_for_shells => self.shells.insert(task),
                _ => {}
            },
            Some("task_notification" | "task_updated")
                if matches!(
                    line.status.as_deref(),
                    Some("completed" | "failed" | "killed" | "stopped")
                ) =>
            {
                self.agents.remove(task);
                self.shells.remove(task);
            }
            _ => {}
        }
    }
}

/// Running tasks. The CLI chooses their IDs and their number, so both are limited here.
#[derive(Debug, Default)]
struct RunningTasks {
    /// Hashes of the IDs, sorted.
    known: Vec<u64>,
    /// The number of further tasks.
    others: usize,
}

impl RunningTasks {
    fn insert(&mut self, id: &str) {
        let id = hash(id);
        match self.known.binary_search(&id) {
            Ok(_) => {}
            Err(index) if self.known.len() < MAX_KNOWN_TASKS => self.known.insert(index, id),
            Err(_) => self.others += 1,
        }
    }

    fn remove(&mut self, id: &str) {
        match self.known.binary_search(&hash(id)) {
            Ok(index) => drop(self.known.remove(index)),
            Err(_) => self.others = self.others.saturating_sub(1),
        }
    }

    fn is_empty(&self) -> bool {
        self.known.is_empty() && self.others == 0
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}
