//! Background work of the CLI that a query waits for.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::envelope::Envelope;

/// The most tasks that are told apart; more are only counted.
const MAX_KNOWN_TASKS: usize = 4096;

/// Agents and shells that run in the background.
#[derive(Debug)]
pub(super) struct Background {
    agents: OpenTasks,
    /// Only where they are waited for: the CLI is idle while they run.
    shells: OpenTasks,
    wait_for_shells: bool,
}

impl Background {
    pub(super) fn new(wait_for_shells: bool) -> Self {
        Self { agents: OpenTasks::default(), shells: OpenTasks::default(), wait_for_shells }
    }

    pub(super) fn any_agents(&self) -> bool {
        !self.agents.is_empty()
    }

    pub(super) fn any_shells(&self) -> bool {
        !self.shells.is_empty()
    }

    /// Notes that a task starts or ends, if a system message says so.
    pub(super) fn note(&mut self, line: &Envelope<'_>) {
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

/// Tasks that run. The CLI chooses their ids and their number, so both are bounded here.
#[derive(Debug, Default)]
struct OpenTasks {
    /// Hashes of the ids.
    known: BTreeSet<u64>,
    /// How many more there are.
    others: usize,
}

impl OpenTasks {
    fn insert(&mut self, id: &str) {
        let id = hash(id);
        if self.known.len() < MAX_KNOWN_TASKS {
            self.known.insert(id);
        } else if !self.known.contains(&id) {
            self.others += 1;
        }
    }

    fn remove(&mut self, id: &str) {
        if !self.known.remove(&hash(id)) {
            self.others = self.others.saturating_sub(1);
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
