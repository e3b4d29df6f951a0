//! The session states in which faults are injected.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

/// The state of a session when a fault is injected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum State {
    /// The process was started and has not read anything.
    Spawning,
    /// `initialize` was read; the response is held back.
    Handshake,
    /// No turn is running.
    Idle,
    /// The answer of a turn is being streamed.
    Streaming,
    /// A turn runs a shell command.
    Tool,
    /// A hook callback is running.
    Hook,
    /// A permission callback is running.
    Permission,
    /// A tool of an in-process server is running.
    Mcp,
    /// An operation was read; the response is held back.
    Operation,
    /// The session is being stopped, and the CLI does not react.
    Stopping,
    /// Stdin was closed while a turn is running.
    InputEnded,
}

use State::{
    Handshake, Hook, Idle, InputEnded, Mcp, Operation, Permission, Spawning, Stopping, Streaming,
    Tool,
};

impl State {
    /// All states, in the order of a session's life cycle.
    pub const ALL: [Self; 11] = [
        Spawning, Handshake, Idle, Streaming, Tool, Hook, Permission, Mcp, Operation, Stopping,
        InputEnded,
    ];

    /// Returns the name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Spawning => "spawning",
            Handshake => "handshake",
            Idle => "idle",
            Streaming => "streaming",
            Tool => "tool",
            Hook => "hook",
            Permission => "permission",
            Mcp => "mcp",
            Operation => "operation",
            Stopping => "stopping",
            InputEnded => "input-ended",
        }
    }

    /// Describes the state and the future that is pending in it.
    pub fn about(self) -> &'static str {
        match self {
            Spawning => "the process was started and has not read anything; `ready()` is pending",
            Handshake => "`initialize` was read, the response is held back; `ready()` is pending",
            Idle => {
                "no turn is running and no future is pending; a session that survives runs a turn"
            }
            Streaming => "an answer is being streamed; `Turn::finish` is pending",
            Tool => "a turn runs a shell command; `Turn::finish` is pending",
            Hook => "a `PreToolUse` callback is running; `Turn::finish` is pending",
            Permission => "`can_use_tool` is running; `Turn::finish` is pending",
            Mcp => "a tool of a `ToolServer` is running; `Turn::finish` is pending",
            Operation => "`mcp_status` was read, the response is held back; its future is pending",
            Stopping => {
                "`stop()` is pending, an operation is in flight, and the CLI does not react"
            }
            InputEnded => "`end_input()` was called during a turn; `Turn::finish` is pending",
        }
    }

    /// Returns the state with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether the handshake has not completed.
    pub(super) fn is_before_handshake(self) -> bool {
        matches!(self, Spawning | Handshake)
    }

    /// Whether a turn is running.
    pub(super) fn has_turn(self) -> bool {
        matches!(self, Streaming | Tool | Hook | Permission | Mcp | InputEnded)
    }

    /// Whether a callback is running.
    pub(super) fn has_callback(self) -> bool {
        matches!(self, Hook | Permission | Mcp)
    }

    /// Whether operations can be sent.
    pub(super) fn can_send(self) -> bool {
        !self.is_before_handshake() && !matches!(self, Stopping | InputEnded)
    }

    /// Returns the script of the model.
    pub(super) fn model(self) -> Script {
        let done = || Reply::text("Done.");
        let call = |name: &str, input| Script::new().otherwise([Reply::tool(name, input), done()]);
        match self {
            Streaming | InputEnded => {
                Script::new().otherwise([Reply::text("Once upon a time").deltas_of(5).hold()])
            }
            // The loop ends with the directory at the latest.
            Tool => call(
                "Bash",
                json!({"command": "touch runs; while [ -e runs ] && [ ! -e go ]; do sleep 0.02; done",
                       "description": "Wait"}),
            ),
            Hook | Permission => {
                call("Bash", json!({"command": "touch made", "description": "Make it"}))
            }
            Mcp => call("mcp__gate__pass", json!({})),
            _ => Script::new().otherwise([done()]),
        }
    }

    /// Returns the lines of a script file that hold the CLI in the state.
    pub(super) fn held(self) -> &'static str {
        match self {
            Handshake => {
                "on control_request/initialize stderr 1\n\
                 before control_response/initialize swallow\n"
            }
            Operation => {
                "on control_request/mcp_status stderr 1\n\
                 before control_response/mcp_status behind\n"
            }
            Stopping => "on control_request/set_model stderr 1 stop-reading\n",
            _ => "",
        }
    }
}
