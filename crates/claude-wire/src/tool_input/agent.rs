//! Tools for subagents, plans and the user.

use crate::control::PermissionMode;
use crate::json::{Json, List, Number};

wire_struct! {
    /// The input of `Agent`, called `Task` in older CLIs.
    #[derive(Default)]
    pub struct AgentInput {
        /// A short description of the task.
        description: String,
        /// The prompt of the subagent.
        prompt: String,
        /// The kind of subagent.
        subagent_type: Option<String>,
        /// The model of the subagent.
        model: Option<String>,
        /// The effort level of the model.
        effort: Option<String>,
        /// Whether the subagent runs in the background.
        run_in_background: Option<bool>,
        /// The name of the subagent.
        name: Option<String>,
        /// The team of the subagent.
        team_name: Option<String>,
        /// The permission mode of the subagent.
        mode: Option<PermissionMode>,
        /// The isolation of the subagent: `worktree` or `remote`.
        isolation: Option<String>,
        /// The subagent to resume.
        resume: Option<String>,
        /// The maximum number of turns of the subagent.
        max_turns: Option<Number>,
    }
}

wire_struct! {
    /// The input of `SendMessage`.
    #[derive(Default)]
    pub struct SendMessageInput {
        /// The recipient.
        to: String,
        /// The message.
        message: Json,
        /// A summary of the message.
        summary: Option<String>,
        /// Whether the sender is notified when the agent is idle.
        notify_when_idle: Option<bool>,
    }
}

wire_struct! {
    /// The input of `Skill`.
    #[derive(Default)]
    pub struct SkillInput {
        /// The skill.
        skill: String,
        /// Its arguments.
        args: Option<String>,
    }
}

wire_struct! {
    /// The input of `TodoWrite`.
    #[derive(Default)]
    pub struct TodoWriteInput {
        /// The whole list.
        todos: Vec<Todo>,
    }
}

wire_struct! {
    /// An entry of the list of todos.
    #[derive(Default)]
    pub struct Todo {
        /// The description.
        content: String,
        /// `pending`, `in_progress` or `completed`.
        status: String,
        /// The text that is displayed while it is in progress.
        active_form: String as "activeForm",
    }
}

wire_struct! {
    /// The input of `AskUserQuestion`.
    #[derive(Default)]
    pub struct AskUserQuestionInput {
        /// One to four questions.
        questions: Vec<Question>,
        /// The answers by question, once the user has given them.
        answers: Option<Json>,
        /// The annotations of the user.
        annotations: Option<Json>,
        /// Metadata for statistics.
        metadata: Option<Json>,
    }
}

wire_struct! {
    /// A question to the user.
    #[derive(Default)]
    pub struct Question {
        /// The question.
        question: String,
        /// A short label.
        header: Option<String>,
        /// The options.
        options: Vec<QuestionOption>,
        /// Whether the user may choose several options.
        multi_select: Option<bool> as "multiSelect",
    }
}

impl Question {
    /// Returns whether the user may choose several options; no if the model does not say.
    pub fn is_multi_select(&self) -> bool {
        self.multi_select.unwrap_or_default()
    }
}

wire_struct! {
    /// An option of a question.
    #[derive(Default)]
    pub struct QuestionOption {
        /// The label.
        label: String,
        /// The description.
        description: Option<String>,
        /// The preview.
        preview: Option<String>,
    }
}

wire_struct! {
    /// The input of `ExitPlanMode`.
    #[derive(Default)]
    pub struct ExitPlanModeInput {
        /// The plan, which the CLI adds for callbacks.
        plan: Option<String>,
        /// The file with the plan.
        plan_file_path: Option<String> as "planFilePath",
        /// The permissions that the plan requires.
        allowed_prompts: List<AllowedPrompt> as "allowedPrompts",
    }
}

wire_struct! {
    /// A permission that a plan requires.
    #[derive(Default)]
    pub struct AllowedPrompt {
        /// The tool.
        tool: String,
        /// What the tool does.
        prompt: String,
    }
}

wire_struct! {
    /// The input of `EnterWorktree`.
    #[derive(Default)]
    pub struct EnterWorktreeInput {
        /// The name of a new worktree.
        name: Option<String>,
        /// The path of an existing worktree.
        path: Option<String>,
    }
}

wire_struct! {
    /// The input of `ExitWorktree`.
    #[derive(Default)]
    pub struct ExitWorktreeInput {
        /// `keep` or `remove`.
        action: String,
        /// Whether uncommitted changes may be discarded.
        discard_changes: Option<bool>,
    }
}

wire_struct! {
    /// The input of `CronCreate`.
    #[derive(Default)]
    pub struct CronCreateInput {
        /// The schedule in cron format with five fields.
        cron: String,
        /// The prompt.
        prompt: String,
        /// Whether the schedule recurs.
        recurring: Option<bool>,
        /// Whether the schedule outlives the session.
        durable: Option<bool>,
    }
}

wire_struct! {
    /// The input of `Workflow`.
    #[derive(Default)]
    pub struct WorkflowInput {
        /// The script.
        script: Option<String>,
        /// The name of a workflow to run instead of a script.
        name: Option<String>,
        /// A description of the workflow by the model.
        description: Option<String>,
        /// The title of the workflow.
        title: Option<String>,
        /// The arguments of the script.
        args: Option<Json>,
        /// The file with the script.
        script_path: Option<String> as "scriptPath",
        /// The run to resume.
        resume_from_run_id: Option<String> as "resumeFromRunId",
    }
}
