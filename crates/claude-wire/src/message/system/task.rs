//! Background tasks: subagents, shells, workflows.

use crate::id::{TaskId, ToolUseId};
use crate::json::{Json, List, Number};

system_message! {
    /// A task began.
    TaskStartedMessage = "task_started" {
        /// The task.
        task_id: Option<TaskId>,
        /// The run of a workflow.
        run_id: Option<String>,
        /// The tool call that began it.
        tool_use_id: Option<ToolUseId>,
        /// What it is for.
        description: Option<String>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// Whether it runs in the background.
        is_backgrounded: Option<bool>,
        /// How many tasks it stands inside of.
        spawn_depth: Option<Number>,
        /// The task it stands inside of.
        parent_task_id: Option<TaskId>,
        /// The kind of task.
        task_type: Option<TaskType>,
        /// The workflow.
        workflow_name: Option<String>,
        /// The subagent's prompt.
        prompt: Option<String>,
        /// Whether it stays out of the transcript.
        skip_transcript: Option<bool>,
        /// Whether it belongs to the surroundings and not to the work.
        ambient: Option<bool>,
    }
}

open_enum! {
    /// The kind of a task. A run is not over while one of the first two is open.
    pub enum TaskType {
        /// A subagent.
        LocalAgent = "local_agent",
        /// A workflow.
        LocalWorkflow = "local_workflow",
        /// A shell.
        LocalBash = "local_bash",
    }
}

system_message! {
    /// A task goes on.
    TaskProgressMessage = "task_progress" {
        /// The task.
        task_id: Option<TaskId>,
        /// The run of a workflow.
        run_id: Option<String>,
        /// The tool call that began it.
        tool_use_id: Option<ToolUseId>,
        /// What it is doing.
        description: Option<String>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// What it used.
        usage: Option<TaskUsage>,
        /// The tool that it called last.
        last_tool_name: Option<String>,
        /// What it did, in one sentence.
        summary: Option<String>,
    }
}

wire_struct! {
    /// What a task used.
    #[derive(Default)]
    pub struct TaskUsage {
        /// Tokens.
        total_tokens: Option<Number>,
        /// Tool calls.
        tool_uses: Option<Number>,
        /// Milliseconds.
        duration_ms: Option<Number>,
    }
}

system_message! {
    /// A task changed.
    TaskUpdatedMessage = "task_updated" {
        /// The task.
        task_id: Option<TaskId>,
        /// The run of a workflow.
        run_id: Option<String>,
        /// What changed.
        patch: Option<TaskPatch>,
    }
}

wire_struct! {
    /// What changed in a task.
    #[derive(Default)]
    pub struct TaskPatch {
        /// Its status.
        status: Option<TaskStatus>,
        /// What it is for.
        description: Option<String>,
        /// When it ended.
        end_time: Option<Number>,
        /// Milliseconds for which it was paused.
        total_paused_ms: Option<Number>,
        /// What went wrong.
        error: Option<String>,
        /// Whether it runs in the background.
        is_backgrounded: Option<bool>,
    }
}

open_enum! {
    /// Where a task stands.
    pub enum TaskStatus {
        /// It waits.
        Pending = "pending",
        /// It runs.
        Running = "running",
        /// It ended well.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was ended.
        Killed = "killed",
        /// It was ended by the host.
        Stopped = "stopped",
        /// It is paused.
        Paused = "paused",
    }
}

system_message! {
    /// A task ended.
    TaskNotificationMessage = "task_notification" {
        /// The task.
        task_id: Option<TaskId>,
        /// The run of a workflow.
        run_id: Option<String>,
        /// The tool call that began it.
        tool_use_id: Option<ToolUseId>,
        /// How it ended.
        status: Option<TaskStatus>,
        /// Why, if not by itself.
        reason: Option<String>,
        /// Where its output is.
        output_file: Option<String>,
        /// What it did, in one sentence.
        summary: Option<String>,
        /// What it used.
        usage: Option<TaskUsage>,
        /// What it made.
        resource_links: Option<Json>,
        /// Whether it stays out of the transcript.
        skip_transcript: Option<bool>,
        /// Whether it belongs to the surroundings and not to the work.
        ambient: Option<bool>,
    }
}

system_message! {
    /// All background tasks, after a change.
    BackgroundTasksChangedMessage = "background_tasks_changed" {
        /// The tasks.
        tasks: List<BackgroundTask>,
    }
}

wire_struct! {
    /// A background task.
    #[derive(Default)]
    pub struct BackgroundTask {
        /// The task.
        task_id: Option<TaskId>,
        /// The run of a workflow.
        run_id: Option<String>,
        /// The kind of task.
        task_type: Option<TaskType>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// What it is for.
        description: Option<String>,
        /// The task it stands inside of.
        parent_task_id: Option<TaskId>,
        /// Whether it belongs to the surroundings and not to the work.
        ambient: Option<bool>,
    }
}
