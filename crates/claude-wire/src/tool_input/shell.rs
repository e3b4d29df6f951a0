//! Tools that run commands.

use crate::json::{List, Number};

wire_struct! {
    /// The input of `Bash`.
    #[derive(Default)]
    pub struct BashInput {
        /// The command, as the shell gets it.
        command: String,
        /// Milliseconds that the command may run.
        timeout: Option<Number>,
        /// What the command does, in the model's words.
        description: Option<String>,
        /// Whether the command runs in the background.
        run_in_background: Option<bool>,
        /// Whether the command runs outside the sandbox.
        dangerously_disable_sandbox: Option<bool> as "dangerouslyDisableSandbox",
    }
}

wire_struct! {
    /// The input of `Monitor`. One of `command` and `ws` is set.
    pub struct MonitorInput {
        /// What is watched, in the model's words.
        description: String,
        /// Milliseconds after which the watching ends.
        timeout_ms: Number,
        /// The command, as the shell gets it.
        command: Option<String>,
        /// The web socket.
        ws: Option<MonitorSocket>,
        /// Whether the watching goes on until the session ends.
        persistent: Option<bool>,
    }
}

wire_struct! {
    /// A web socket that `Monitor` watches.
    #[derive(Default)]
    pub struct MonitorSocket {
        /// The address.
        url: String,
        /// The protocols that are offered.
        protocols: List<String>,
    }
}

wire_struct! {
    /// The input of `TaskOutput`, which only older CLIs have.
    #[derive(Default)]
    pub struct TaskOutputInput {
        /// The task.
        task_id: String,
        /// Whether the tool waits until the task is done.
        block: Option<bool>,
        /// Milliseconds that the tool waits.
        timeout: Option<Number>,
    }
}

wire_struct! {
    /// The input of `TaskStop`.
    #[derive(Default)]
    pub struct TaskStopInput {
        /// The task.
        task_id: Option<String>,
        /// The task, in older CLIs.
        shell_id: Option<String>,
    }
}
