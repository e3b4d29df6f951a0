//! The inputs of the CLI's own tools, as types.
//!
//! A tool's input is [`Json`] wherever it occurs: in a content block, a hook, a permission request, a
//! denial. `tool_input()` on each of these reads it as a [`ToolInput`], on demand:
//!
//! ```
//! use claude_wire::Json;
//! use claude_wire::tool_input::ToolInput;
//!
//! let input = Json::from_text(r#"{"command": "cargo test", "description": "Runs the tests"}"#)?;
//! let ToolInput::Bash(bash) = ToolInput::new("Bash", &input) else { panic!() };
//! assert_eq!(bash.command, "cargo test");
//! # Ok::<(), claude_wire::DecodeError>(())
//! ```
//!
//! A field without `Option` is required: an input without it is [`ToolInput::Undecodable`]. Unknown
//! fields are kept in `extra`. The names and types are those of CLI 2.1.326 and of the older CLIs that
//! are supported; tests compare them with the schemas that the CLIs send to the API.

mod agent;
mod file;
mod shell;
mod web;

pub use agent::*;
pub use file::*;
pub use shell::*;
pub use web::*;

use crate::error::DecodeError;
use crate::json::{Extra, Json};
use crate::schema::Placeholder;

/// Declares the union: the type of each tool's input and the names under which CLIs offer the tool.
macro_rules! tool_inputs {
    ($( $(#[$meta:meta])* $variant:ident($type:ty) = $name:literal $(| $other:literal)*, )+) => {
        /// The input of a tool call, by tool.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum ToolInput {
            $( $(#[$meta])* $variant($type), )+
            /// The input of a tool without a type here: a tool of an MCP server, or one that this
            /// version does not know.
            Other {
                /// The name of the tool.
                name: String,
                /// The input.
                input: Json,
            },
            /// The undecodable input of a known tool. A fail-closed hook must deny it.
            Undecodable {
                /// The name of the tool.
                name: String,
                /// The input.
                input: Json,
                /// The reason why the input could not be decoded.
                reason: String,
            },
        }

        impl ToolInput {
            /// The tools whose inputs have a type, by each of their names.
            pub const KNOWN: &'static [&'static str] = &[$( $name $(, $other)* ),+];

            /// Decodes the input of the tool `name`.
            ///
            /// If a member occurs several times, the last one counts, as in the CLI.
            pub fn new(name: &str, input: &Json) -> Self {
                let mut typed = match name {
                    $( $name $(| $other)* => Self::$variant(Placeholder::placeholder()), )+
                    _ => return Self::Other { name: name.to_owned(), input: input.clone() },
                };
                let result = match &mut typed {
                    $( Self::$variant(value) => input.decode_into(value), )+
                    Self::Other { .. } | Self::Undecodable { .. } => Ok(()),
                };
                match result {
                    Ok(()) => typed,
                    Err(error) => undecodable(name, input, &error),
                }
            }

            /// Returns the fields of the input that its type does not name; `None` for an input
            /// without a type.
            pub fn extra(&self) -> Option<&Extra> {
                match self {
                    $( Self::$variant(input) => Some(&input.extra), )+
                    Self::Other { .. } | Self::Undecodable { .. } => None,
                }
            }
        }
    };
}

tool_inputs! {
    /// Runs a shell command.
    Bash(BashInput) = "Bash",
    /// Watches the output of a shell command, or a web socket. Runs any command, as `Bash` does.
    Monitor(MonitorInput) = "Monitor",
    /// Reads the output of a background task.
    TaskOutput(TaskOutputInput) = "TaskOutput",
    /// Stops a background task.
    TaskStop(TaskStopInput) = "TaskStop" | "KillShell",
    /// Reads a file.
    Read(ReadInput) = "Read",
    /// Writes a file.
    Write(WriteInput) = "Write",
    /// Replaces text in a file.
    Edit(EditInput) = "Edit",
    /// Replaces, inserts or deletes a cell of a notebook.
    NotebookEdit(NotebookEditInput) = "NotebookEdit",
    /// Finds files by name.
    Glob(GlobInput) = "Glob",
    /// Finds text in files.
    Grep(Box<GrepInput>) = "Grep",
    /// Fetches a web page.
    WebFetch(WebFetchInput) = "WebFetch",
    /// Searches the web.
    WebSearch(WebSearchInput) = "WebSearch",
    /// Lists the resources of MCP servers.
    ListMcpResources(ListMcpResourcesInput) = "ListMcpResourcesTool",
    /// Reads a resource of an MCP server.
    ReadMcpResource(ReadMcpResourceInput) = "ReadMcpResourceTool",
    /// Starts a subagent.
    Agent(Box<AgentInput>) = "Agent" | "Task",
    /// Sends a message to another agent.
    SendMessage(SendMessageInput) = "SendMessage",
    /// Runs a skill.
    Skill(SkillInput) = "Skill",
    /// Replaces the list of todos.
    TodoWrite(TodoWriteInput) = "TodoWrite",
    /// Asks the user.
    AskUserQuestion(AskUserQuestionInput) = "AskUserQuestion",
    /// Presents a plan and leaves plan mode.
    ExitPlanMode(ExitPlanModeInput) = "ExitPlanMode",
    /// Moves the session into a worktree.
    EnterWorktree(EnterWorktreeInput) = "EnterWorktree",
    /// Leaves the worktree.
    ExitWorktree(ExitWorktreeInput) = "ExitWorktree",
    /// Runs a script that starts subagents.
    Workflow(Box<WorkflowInput>) = "Workflow",
    /// Schedules a prompt.
    CronCreate(CronCreateInput) = "CronCreate",
}

#[cold]
fn undecodable(name: &str, input: &Json, error: &DecodeError) -> ToolInput {
    let reason = error.reason().to_owned();
    ToolInput::Undecodable { name: name.to_owned(), input: input.clone(), reason }
}

/// Gives types with an optional tool name and input the accessors for them.
macro_rules! tool_call_view {
    ($($type:ty),+ $(,)?) => {$(
        impl $type {
            /// Returns the name of the tool; empty if the CLI did not send it.
            pub fn tool(&self) -> &str {
                self.tool_name.as_deref().unwrap_or_default()
            }

            /// Reads the input of the tool as a type. An input that the CLI did not send reads as
            /// `null`.
            pub fn tool_input(&self) -> $crate::tool_input::ToolInput {
                let input = self.input.as_ref();
                let read = |input: &$crate::Json| {
                    $crate::tool_input::ToolInput::new(self.tool(), input)
                };
                input.map_or_else(|| read(&$crate::Json::null()), read)
            }
        }
    )+};
}
pub(crate) use tool_call_view;
