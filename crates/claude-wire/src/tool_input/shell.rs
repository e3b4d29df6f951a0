//! Tools that run commands.

use crate::json::{List, Number};

wire_struct! {
    /// The input of `Bash`.
    #[derive(Default)]
    pub struct BashInput {
        /// The shell command.
        command: String,
        /// The timeout of the command in milliseconds.
        timeout: Option<Number>,
        /// A description of the command by the model.
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
        /// A description by the model.
        description: String,
        /// The timeout in milliseconds.
        timeout_ms: Number,
        /// The shell command.
        command: Option<String>,
        /// The web socket.
        ws: Option<MonitorSocket>,
        /// Whether to watch until the session ends.
        persistent: Option<bool>,
    }
}

wire_struct! {
    /// A web socket that `Monitor` watches.
    #[derive(Default)]
    pub struct MonitorSocket {
        /// The URL.
        url: String,
        /// The offered subprotocols.
        protocols: List<String>,
    }
}

wire_struct! {
    /// The input of `TaskOutput`, which only older CLIs have.
    #[derive(Default)]
    pub struct TaskOutputInput {
        /// The task.
        task_id: String,
        /// Whether to wait until the task ends.
        block: Option<bool>,
        /// The maximum waiting time in milliseconds.
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
