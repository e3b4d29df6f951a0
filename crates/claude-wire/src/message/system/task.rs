//! Background tasks: subagents, shells, workflows.

use crate::id::{TaskId, ToolUseId};
use crate::json::{Json, List, Number};

system_message! {
    /// A task started.
    TaskStartedMessage = "task_started" {
        /// The task.
        task_id: Option<TaskId>,
        /// The run of a workflow.
        run_id: Option<String>,
        /// The ID of the tool call that started it.
        tool_use_id: Option<ToolUseId>,
        /// The description.
        description: Option<String>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// Whether it runs in the background.
        is_backgrounded: Option<bool>,
        /// The nesting depth.
        spawn_depth: Option<Number>,
        /// The parent task.
        parent_task_id: Option<TaskId>,
        /// The kind of task.
        task_type: Option<TaskType>,
        /// The workflow.
        workflow_name: Option<String>,
        /// The subagent's prompt.
        prompt: Option<String>,
        /// Whether it is hidden from the transcript.
        skip_transcript: Option<bool>,
        /// Whether it is an ambient task.
        ambient: Option<bool>,
    }
}

open_enum! {
    /// The kind of a task. A run does not end while an agent or a workflow is running.
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
    /// The progress of a task.
    TaskProgressMessage = "task_progress" {
        /// The task.
        task_id: Option<TaskId>,
        /// The run of a workflow.
        run_id: Option<String>,
        /// The ID of the tool call that started it.
        tool_use_id: Option<ToolUseId>,
        /// The current activity.
        description: Option<String>,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// The usage.
        usage: Option<TaskUsage>,
        /// The tool of the last call.
        last_tool_name: Option<String>,
        /// A one-sentence summary.
        summary: Option<String>,
    }
}

wire_struct! {
    /// The usage of a task.
    #[derive(Default)]
    pub struct TaskUsage {
        /// The tokens.
        total_tokens: Option<Number>,
        /// The tool calls.
        tool_uses: Option<Number>,
        /// The duration in milliseconds.
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
        /// The changes.
        patch: Option<TaskPatch>,
    }
}

wire_struct! {
    /// The changes of a task.
    #[derive(Default)]
    pub struct TaskPatch {
        /// Its status.
        status: Option<TaskStatus>,
        /// The description.
        description: Option<String>,
        /// The end time.
        end_time: Option<Number>,
        /// The paused time in milliseconds.
        total_paused_ms: Option<Number>,
        /// The error.
        error: Option<String>,
        /// Whether it runs in the background.
        is_backgrounded: Option<bool>,
    }
}

open_enum! {
    /// The status of a task.
    pub enum TaskStatus {
        /// It is queued.
        Pending = "pending",
        /// It is running.
        Running = "running",
        /// It completed.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was killed.
        Killed = "killed",
        /// The host stopped it.
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
        /// The ID of the tool call that started it.
        tool_use_id: Option<ToolUseId>,
        /// The final status.
        status: Option<TaskStatus>,
        /// The reason, if it did not end by itself.
        reason: Option<String>,
        /// The file with its output.
        output_file: Option<String>,
        /// A one-sentence summary.
        summary: Option<String>,
        /// The usage.
        usage: Option<TaskUsage>,
        /// The artifacts.
        resource_links: Option<Json>,
        /// Whether it is hidden from the transcript.
        skip_transcript: Option<bool>,
        /// Whether it is an ambient task.
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
        /// The description.
        description: Option<String>,
        /// The parent task.
        parent_task_id: Option<TaskId>,
        /// Whether it is an ambient task.
        ambient: Option<bool>,
    }
}
