//! Subagents, tasks and teammates.

use crate::id::TaskId;
use crate::json::List;

hook_input! {
    /// A subagent starts. `agent_id` and `agent_type` identify it.
    SubagentStartInput = "SubagentStart" {}
}

hook_input! {
    /// A subagent ends. `agent_id` and `agent_type` identify it.
    SubagentStopInput = "SubagentStop" {
        /// Whether a hook has already made it continue.
        stop_hook_active: Option<bool>,
        /// The path of its transcript.
        agent_transcript_path: Option<String>,
        /// The last message of the subagent.
        last_assistant_message: Option<String>,
        /// The running background tasks.
        background_tasks: List<BackgroundTaskSummary>,
        /// The scheduled prompts.
        session_crons: List<SessionCronSummary>,
    }
}

hook_output! {
    /// The output for a subagent that ends.
    SubagentStopOutput = "SubagentStop" {
        /// Additional context for the subagent.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_output! {
    /// The output for a subagent that starts.
    SubagentStartOutput = "SubagentStart" {
        /// Additional context for the subagent.
        additional_context: Option<String> as "additionalContext",
    }
}

hook_input! {
    /// A task was created.
    TaskCreatedInput = "TaskCreated" {
        /// The task.
        task_id: Option<TaskId>,
        /// The subject.
        task_subject: Option<String>,
        /// The description of the task.
        task_description: Option<String>,
        /// The teammate.
        teammate_name: Option<String>,
        /// The team.
        team_name: Option<String>,
    }
}

hook_input! {
    /// A task was completed.
    TaskCompletedInput = "TaskCompleted" {
        /// The task.
        task_id: Option<TaskId>,
        /// The subject.
        task_subject: Option<String>,
        /// The description of the task.
        task_description: Option<String>,
        /// The teammate.
        teammate_name: Option<String>,
        /// The team.
        team_name: Option<String>,
    }
}

hook_input! {
    /// A teammate is idle.
    TeammateIdleInput = "TeammateIdle" {
        /// The teammate.
        teammate_name: Option<String>,
        /// The team.
        team_name: Option<String>,
    }
}

wire_struct! {
    /// A running background task.
    #[derive(Default)]
    pub struct BackgroundTaskSummary {
        /// The task.
        id: Option<TaskId>,
        /// The kind of task.
        kind: Option<String> as "type",
        /// The state.
        status: Option<String>,
        /// The description.
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
    /// A scheduled prompt.
    #[derive(Default)]
    pub struct SessionCronSummary {
        /// The ID of the schedule.
        id: Option<String>,
        /// The schedule.
        schedule: Option<String>,
        /// Whether it recurs.
        recurring: Option<bool>,
        /// The prompt.
        prompt: Option<String>,
    }
}
