//! Background tasks: shells and agents, and the messages about them.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

use super::engine::Engine;
use super::ids::now_ms;
use super::json::{Object, array, text};
use super::scope::ToolCall;
use super::shell::{Shell, ShellOutput};
use super::state::{CancelToken, Origin, Priority, QueuedMessage};
use super::tools::ToolOutput;

/// A background shell or an agent.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) run_id: String,
    pub(super) tool_use_id: String,
    pub(super) description: String,
    /// The type of the agent; `None` for a shell.
    pub(super) agent: Option<String>,
    pub(super) background: bool,
    pub(super) prompt: Option<String>,
    pub(super) cancel: watch::Sender<bool>,
    pub(super) began: Instant,
    running: AtomicBool,
    /// Whether the task no longer has any effect on the session.
    settled: AtomicBool,
    /// Becomes `true` once the end has been reported to the host.
    end_reported: watch::Sender<bool>,
}

/// How a task ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskEnd {
    Completed,
    Failed,
    Stopped,
}

impl TaskEnd {
    /// Returns the names in `task_updated` and in `task_notification`.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Completed => ("completed", "completed"),
            Self::Failed => ("failed", "failed"),
            Self::Stopped => ("killed", "stopped"),
        }
    }
}

impl Task {
    pub(super) fn new(
        engine: &Engine,
        call: &ToolCall,
        agent: Option<String>,
        background: bool,
    ) -> Self {
        let id = if agent.is_some() { engine.ids.agent() } else { engine.ids.shell() };
        let description = call.input["description"].as_str();
        let description = description.or(call.input["command"].as_str()).unwrap_or_default();
        Self {
            id,
            run_id: engine.ids.run(),
            tool_use_id: call.id.clone(),
            description: description.to_owned(),
            prompt: agent.as_ref().map(|_| text(&call.input["prompt"]).to_owned()),
            agent,
            background,
            cancel: watch::Sender::new(false),
            began: Instant::now(),
            running: AtomicBool::new(true),
            settled: AtomicBool::new(false),
            end_reported: watch::Sender::new(false),
        }
    }

    pub(super) fn is_agent(&self) -> bool {
        self.agent.is_some()
    }

    pub(super) fn is_background(&self) -> bool {
        self.background
    }

    /// Returns whether the model may still be notified about the task.
    pub(super) fn is_unsettled(&self) -> bool {
        !self.settled.load(Relaxed)
    }

    pub(super) fn settle(&self) {
        self.settled.store(true, Relaxed);
    }

    pub(super) fn is_running(&self) -> bool {
        self.running.load(Relaxed)
    }

    fn kind(&self) -> &'static str {
        if self.is_agent() { "local_agent" } else { "local_bash" }
    }
}

impl Engine {
    /// Reports that a task has started.
    pub(super) async fn emit_task_started(&self, task: &Arc<Task>) {
        self.state().tasks.push(Arc::clone(task));
        if task.background {
            self.emit_background_tasks().await;
        }
        let mut fields = Object::new()
            .str("task_id", &task.id)
            .str("run_id", &task.run_id)
            .str("tool_use_id", &task.tool_use_id)
            .str("description", &task.description)
            .some_str("subagent_type", task.agent.as_deref())
            .plain("is_backgrounded", task.background);
        if task.is_agent() {
            fields = fields.plain("spawn_depth", 1);
        }
        fields = fields.str("task_type", task.kind()).some_str("prompt", task.prompt.as_deref());
        self.emit_system("task_started", fields).await;
    }

    /// Reports that a task has ended.
    pub(super) async fn emit_task_ended(
        &self,
        task: &Task,
        ended: TaskEnd,
        summary: &str,
        usage: Option<&str>,
    ) {
        if task.background {
            drop(self.result_lock.lock().await);
        }
        task.running.store(false, Relaxed);
        let (updated, notified) = ended.names();
        let patch = Object::new().str("status", updated).plain("end_time", now_ms()).done();
        let fields =
            Object::new().str("task_id", &task.id).str("run_id", &task.run_id).raw("patch", &patch);
        self.emit_system("task_updated", fields).await;
        let mut fields = Object::new()
            .str("task_id", &task.id)
            .str("run_id", &task.run_id)
            .str("tool_use_id", &task.tool_use_id)
            .str("status", notified)
            .str("output_file", &self.output_file(&task.id).to_string_lossy())
            .str("summary", summary);
        if let Some(usage) = usage {
            fields = fields.raw("usage", usage);
        }
        self.emit_system("task_notification", fields).await;
        if task.background {
            self.emit_background_tasks().await;
        }
        task.end_reported.send_replace(true);
    }

    pub(super) async fn emit_background_tasks(&self) {
        let tasks = self.background_tasks_json();
        self.emit_system("background_tasks_changed", Object::new().raw("tasks", &tasks)).await;
    }

    pub(super) fn background_tasks_json(&self) -> String {
        let state = self.state();
        let running = state.tasks.iter().filter(|task| task.background && task.is_running());
        array(running.map(|task| {
            Object::new()
                .str("task_id", &task.id)
                .str("run_id", &task.run_id)
                .str("task_type", task.kind())
                .some_str("subagent_type", task.agent.as_deref())
                .str("description", &task.description)
                .done()
        }))
    }

    /// Notifies the model of the end of a task, in a separate turn.
    pub(super) async fn notify_model(&self, task: &Task, text: &str) {
        // A reminder, because it is not a prompt of the user.
        let content = format!("<system-reminder>\n{text}\n</system-reminder>");
        let origin = Some(Origin { run_id: task.run_id.clone() });
        let (content, priority) = (Value::from(content), Priority::Next);
        self.enqueue(QueuedMessage { uuid: None, content, priority, origin }).await;
    }

    pub(super) async fn start_background_shell(
        self: &Arc<Self>,
        call: &ToolCall,
        command: &str,
    ) -> ToolOutput {
        let task = Arc::new(Task::new(self, call, None, true));
        let path = self.output_file(&task.id);
        let file =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| File::create(&path));
        // A shell whose output file cannot be created runs without one.
        let output = file.map_or(ShellOutput::None, ShellOutput::File);
        let shell = match Shell::start(self, command, &output) {
            Ok(shell) => shell,
            Err(error) => return ToolOutput::error(&format!("The shell cannot start: {error}")),
        };
        self.emit_task_started(&task).await;
        let (engine, watched, command) = (Arc::clone(self), Arc::clone(&task), command.to_owned());
        self.spawn(async move { engine.watch_shell(shell, &watched, &command).await });
        let text = format!("Running in the background as {}; output: {}", task.id, path.display());
        let result = Object::new()
            .str("stdout", "")
            .str("stderr", "")
            .plain("interrupted", false)
            .plain("isImage", false)
            .plain("noOutputExpected", false)
            .str("backgroundTaskId", &task.id);
        ToolOutput { reports_success: true, ..ToolOutput::text(&text, result.done()) }
    }

    async fn watch_shell(&self, mut shell: Shell, task: &Task, command: &str) {
        let cancel = CancelToken::new(&task.cancel);
        let Some(code) = shell.wait(&cancel).await else {
            drop(shell);
            self.emit_task_ended(task, TaskEnd::Stopped, command, None).await;
            self.changed.notify_one();
            return;
        };
        let ended = if code == 0 { TaskEnd::Completed } else { TaskEnd::Failed };
        let summary = format!("Background command {command:?} ended with exit code {code}");
        self.emit_task_ended(task, ended, &summary, None).await;
        self.notify_model(task, &summary).await;
    }

    /// Stops a task and waits until its end has been reported. Returns `false` if it is not
    /// running.
    pub(super) async fn stop_task(&self, id: &str) -> bool {
        let task = self.state().tasks.iter().find(|task| task.id == id).cloned();
        let Some(task) = task.filter(|task| task.background && task.is_running()) else {
            return false;
        };
        let mut end_reported = task.end_reported.subscribe();
        task.cancel.send_replace(true);
        // The sender lives in the task, which is held here, so this does not fail.
        drop(end_reported.wait_for(|end_reported| *end_reported).await);
        true
    }

    pub(super) async fn stop_task_tool(&self, input: &Value) -> ToolOutput {
        let id = text(&input["task_id"]);
        if self.stop_task(id).await {
            return ToolOutput::text("Stopped.", Object::new().str("task_id", id).done());
        }
        ToolOutput::error(&format!("There is no task {id}."))
    }

    /// Returns the path of the output file of a task.
    pub(super) fn output_file(&self, id: &str) -> PathBuf {
        self.temporary_directory().join("tasks").join(format!("{id}.output"))
    }

    /// Returns the temporary directory of this session, which is removed when the CLI exits.
    pub(super) fn temporary_directory(&self) -> PathBuf {
        let path = self.temp_dir.get_or_init(|| {
            let named = self.launch.var("CLAUDE_CODE_TMPDIR").or(self.launch.var("TMPDIR"));
            let base = named.map_or_else(std::env::temp_dir, PathBuf::from);
            base.join("claude-sim").join(self.session_id())
        });
        path.clone()
    }
}
