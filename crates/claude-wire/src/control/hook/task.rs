//! Subagents, tasks and teammates.

use crate::id::TaskId;
use crate::json::List;

hook_input! {
    /// A subagent begins. Which one stands in `agent_id` and `agent_type`.
    SubagentStartInput = "SubagentStart" {}
}

hook_input! {
    /// A subagent is done. Which one stands in `agent_id` and `agent_type`.
    SubagentStopInput = "SubagentStop" {
        /// Whether it goes on only because of a hook.
        stop_hook_active: Option<bool>,
        /// Where its transcript is.
        agent_transcript_path: Option<String>,
        /// What it said last.
        last_assistant_message: Option<String>,
        /// Background tasks that still run.
        background_tasks: List<BackgroundTaskSummary>,
        /// Timers that are set.
        session_crons: List<SessionCronSummary>,
    }
}

hook_output! {
    /// For a subagent that is done.
    SubagentStopOutput = "SubagentStop" {
        /// What the subagent is told besides.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_output! {
    /// For a subagent that begins.
    SubagentStartOutput = "SubagentStart" {
        /// What the subagent is told besides.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// A task was put on the list.
    TaskCreatedInput = "TaskCreated" {
        /// The task.
        task_id: Option<TaskId>,
        /// What it is about.
        task_subject: Option<String>,
        /// What is to be done.
        task_description: Option<String>,
        /// Who does it.
        teammate_name: Option<String>,
        /// The team.
        team_name: Option<String>,
    }
}

hook_input! {
    /// A task of the list is done.
    TaskCompletedInput = "TaskCompleted" {
        /// The task.
        task_id: Option<TaskId>,
        /// What it is about.
        task_subject: Option<String>,
        /// What was to be done.
        task_description: Option<String>,
        /// Who did it.
        teammate_name: Option<String>,
        /// The team.
        team_name: Option<String>,
    }
}

hook_input! {
    /// A teammate has nothing to do.
    TeammateIdleInput = "TeammateIdle" {
        /// Who.
        teammate_name: Option<String>,
        /// The team.
        team_name: Option<String>,
    }
}

wire_struct! {
    /// A background task that still runs.
    #[derive(Default)]
    pub struct BackgroundTaskSummary {
        /// The task.
        id: Option<TaskId>,
        /// The kind of task.
        kind: Option<String> as "type",
        /// Where it stands.
        status: Option<String>,
        /// What it is for.
        description: Option<String>,
        /// The command of a shell.
        command: Option<String>,
        /// The kind of subagent.
        agent_type: Option<String>,
        /// The MCP server of a call.
        server: Option<String>,
        /// The tool of that call.
        tool: Option<String>,
        /// Its name.
        name: Option<String>,
    }
}

wire_struct! {
    /// A timer that is set.
    #[derive(Default)]
    pub struct SessionCronSummary {
        /// The timer.
        id: Option<String>,
        /// When it rings.
        schedule: Option<String>,
        /// Whether it rings again.
        recurring: Option<bool>,
        /// What the model is then told.
        prompt: Option<String>,
    }
}
