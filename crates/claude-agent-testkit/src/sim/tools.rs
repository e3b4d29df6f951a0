//! Executes tools.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::engine::Engine;
use super::json::{Object, quoted, text};
use super::scope::{Scope, ToolCall};
use super::state::{SessionState, lock};

/// The output of a tool.
#[derive(Debug, Clone)]
pub(super) struct ToolOutput {
    /// The content for the model, as JSON: a string or a list of blocks.
    pub(super) content: String,
    pub(super) error: bool,
    /// Whether a success has `is_error: false`.
    pub(super) reports_success: bool,
    /// Whether `tool_use_id` comes after the content.
    pub(super) id_last: bool,
    /// `tool_use_result`, as JSON.
    pub(super) result: String,
    /// The `tool_response` for hooks.
    pub(super) response: Value,
}

impl ToolOutput {
    /// Creates a success with a text for the model and a structured result for the host.
    pub(super) fn text(text: &str, result: String) -> Self {
        Self::content(quoted(text), result)
    }

    pub(super) fn content(content: String, result: String) -> Self {
        let response = serde_json::from_str(&result).unwrap_or_default();
        Self { content, error: false, reports_success: false, id_last: false, result, response }
    }

    pub(super) fn error(text: &str) -> Self {
        Self {
            content: quoted(text),
            error: true,
            reports_success: false,
            id_last: true,
            result: quoted(&format!("Error: {text}")),
            response: text.into(),
        }
    }

    pub(super) fn with_id_last(mut self) -> Self {
        self.id_last = true;
        self
    }

    /// Returns the `tool_result` block.
    pub(super) fn block(&self, id: &str) -> String {
        if self.id_last {
            let block = Object::typed("tool_result").raw("content", &self.content);
            let block = if self.error { block.plain("is_error", true) } else { block };
            return block.str("tool_use_id", id).done();
        }
        let block = Object::new()
            .str("tool_use_id", id)
            .str("type", "tool_result")
            .raw("content", &self.content);
        let block = if self.reports_success { block.plain("is_error", false) } else { block };
        block.done()
    }

    /// Returns the `tool_response` for `PostToolBatch` hooks.
    pub(super) fn batch_response(&self) -> Value {
        serde_json::from_str(&self.content).unwrap_or_default()
    }
}

impl Engine {
    /// Runs a tool; returns `None` if the turn is interrupted.
    pub(super) async fn use_tool(
        self: &Arc<Self>,
        scope: &Scope,
        call: &ToolCall,
    ) -> Option<ToolOutput> {
        let input = &call.input;
        match call.name.as_str() {
            "Bash" => self.bash(scope, call).await,
            "Read" => Some(self.read_file(scope, input)),
            "Write" => Some(self.write_file(input)),
            "Edit" => Some(self.edit_file(input)),
            "Agent" | "Task" => self.agent_tool(scope, call).await,
            "TaskCreate" => Some(self.create_todo(scope, input).await),
            "TaskUpdate" => Some(self.update_todo(scope, input).await),
            "TaskStop" => Some(self.stop_task_tool(input).await),
            "AskUserQuestion" => Some(answered_questions(input)),
            "ExitPlanMode" => Some(self.exit_plan_mode().await),
            "EnterWorktree" => Some(self.enter_worktree(scope, input).await),
            "ExitWorktree" => Some(self.exit_worktree(scope).await),
            "StructuredOutput" => {
                *lock(&scope.structured) = Some(input.clone());
                let text = "The value was taken.";
                Some(ToolOutput::text(text, quoted(text)))
            }
            "ListMcpResourcesTool" | "ReadMcpResourceTool" => Some(self.mcp_resources(call).await),
            name if name.starts_with("mcp__") => self.call_mcp_tool(scope, call).await,
            name => {
                let text = format!("{name} does nothing here.");
                let result = Object::new().plain("simulated", true).done();
                Some(ToolOutput::text(&text, result))
            }
        }
    }

    /// Returns whether a call may run concurrently with others.
    pub(super) fn is_concurrent(&self, call: &ToolCall) -> bool {
        match call.name.as_str() {
            "Read" | "Glob" | "Grep" | "WebFetch" | "WebSearch" | "Agent" | "Task"
            | "ToolSearch" => true,
            name if name.starts_with("mcp__") => self.is_read_only_mcp(name),
            _ => false,
        }
    }

    /// Resolves a path against the working directory.
    pub(super) fn resolve(&self, path: &str, state: &SessionState) -> PathBuf {
        let joined = Path::new(&self.working_directory(state)).join(path);
        // `..` is removed lexically, because the path need not exist.
        joined.components().fold(PathBuf::new(), |mut clean, part| {
            match part {
                std::path::Component::ParentDir => drop(clean.pop()),
                std::path::Component::CurDir => {}
                part => clean.push(part),
            }
            clean
        })
    }

    pub(super) fn working_directory(&self, state: &SessionState) -> String {
        let moved = state.shell_directory.as_ref().or(state.worktree.as_ref());
        moved.cloned().unwrap_or_else(|| self.launch.cwd.to_string_lossy().into_owned())
    }

    async fn create_todo(&self, scope: &Scope, input: &Value) -> ToolOutput {
        let (subject, description) = (text(&input["subject"]), text(&input["description"]));
        let id = {
            let mut state = self.state();
            state.todo.push(super::state::TodoItem {
                subject: subject.to_owned(),
                description: description.to_owned(),
                status: "pending".to_owned(),
            });
            state.todo.len().to_string()
        };
        self.run_todo_hooks(scope, "TaskCreated", &id, subject, description).await;
        let task = Object::new().str("id", &id).str("subject", subject);
        let task = task.str("description", description).done();
        let text = format!("Task #{id} created: {subject}");
        ToolOutput::text(&text, Object::new().raw("task", &task).done())
    }

    async fn update_todo(&self, scope: &Scope, input: &Value) -> ToolOutput {
        let id = text(&input["taskId"]);
        let to = text(&input["status"]).to_owned();
        let found = {
            let mut state = self.state();
            let at = id.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
            at.and_then(|at| state.todo.get_mut(at)).map(|todo| {
                let from = std::mem::replace(&mut todo.status, to.clone());
                (from, todo.subject.clone(), todo.description.clone())
            })
        };
        let Some((from, subject, description)) = found else {
            return ToolOutput::error(&format!("There is no task #{id}."));
        };
        if to == "completed" {
            self.run_todo_hooks(scope, "TaskCompleted", id, &subject, &description).await;
        }
        let change = Object::new().str("from", &from).str("to", &to).done();
        let result = Object::new()
            .plain("success", true)
            .str("taskId", id)
            .strings("updatedFields", &["status"])
            .raw("statusChange", &change);
        ToolOutput::text(&format!("Updated task #{id} status"), result.done())
    }

    async fn run_todo_hooks(
        &self,
        scope: &Scope,
        event: &'static str,
        id: &str,
        subject: &str,
        description: &str,
    ) {
        let input = Object::new()
            .str("task_id", id)
            .str("task_subject", subject)
            .str("task_description", description);
        self.run_hooks(scope, super::hooks::HookCall::new(event, input)).await;
    }

    async fn exit_plan_mode(&self) -> ToolOutput {
        let mode = {
            let mut state = self.state();
            let before = state.mode_before_plan.take();
            state.mode = before.unwrap_or_else(|| "default".to_owned());
            state.mode.clone()
        };
        self.emit_mode(&mode).await;
        let path = format!("{}/plans/plan.md", self.config_directory());
        let result = Object::new().null("plan").plain("isAgent", false).str("filePath", &path);
        ToolOutput::text("The plan was approved.", result.done()).with_id_last()
    }

    async fn enter_worktree(&self, scope: &Scope, input: &Value) -> ToolOutput {
        let name = input["name"].as_str().unwrap_or("worktree");
        let call = super::hooks::HookCall::new("WorktreeCreate", Object::new().str("name", name));
        let outcome = self.run_hooks(scope, call).await;
        let path = outcome.outputs.iter().find_map(|output| output["worktreePath"].as_str());
        let Some(path) = path else {
            return ToolOutput::error("Only a WorktreeCreate hook can make a worktree here.");
        };
        {
            let mut state = self.state();
            state.worktree = Some(path.to_owned());
            state.shell_directory = None;
        }
        let text = format!("Now working in the worktree {path}.");
        let result = Object::new().str("worktreePath", path).str("message", &text);
        ToolOutput::text(&text, result.done()).with_id_last()
    }

    async fn exit_worktree(&self, scope: &Scope) -> ToolOutput {
        let Some(path) = self.state().worktree.clone() else {
            return ToolOutput::error("The session is not in a worktree.");
        };
        let input = Object::new().str("worktree_path", &path);
        self.run_hooks(scope, super::hooks::HookCall::new("WorktreeRemove", input)).await;
        {
            let mut state = self.state();
            (state.worktree, state.shell_directory) = (None, None);
        }
        let cwd = self.launch.cwd.to_string_lossy().into_owned();
        let text = format!("Left the worktree {path}; back in {cwd}.");
        let result = Object::new()
            .str("action", "remove")
            .str("originalCwd", &cwd)
            .str("worktreePath", &path)
            .plain("discardedFiles", 0)
            .plain("discardedCommits", 0)
            .str("restoredCwd", &cwd)
            .plain("originalCwdMissing", false)
            .str("message", &text);
        ToolOutput::text(&text, result.done()).with_id_last()
    }
}

/// Returns the output of `AskUserQuestion`, whose input contains the answers that the host added.
fn answered_questions(input: &Value) -> ToolOutput {
    let answers = input["answers"].as_object();
    let given: Vec<String> = answers
        .into_iter()
        .flatten()
        .map(|(question, answer)| format!("{question:?}={answer}"))
        .collect();
    let text = format!("The user has answered: {}.", given.join(", "));
    let result = Object::new()
        .value("questions", &input["questions"])
        .value("answers", if answers.is_some() { &input["answers"] } else { &Value::Null });
    let done = ToolOutput::text(&text, result.done()).with_id_last();
    ToolOutput { response: json!({"answers": input["answers"]}), ..done }
}
