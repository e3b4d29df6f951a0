//! The states of a session in which something goes wrong.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

/// Where a session stands when something goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum State {
    /// The process was started and has read nothing.
    Spawning,
    /// The handshake was read and is not answered.
    Handshake,
    /// Nothing goes on.
    Idle,
    /// The answer of a turn comes piece by piece.
    Streaming,
    /// A shell of a turn runs.
    Tool,
    /// A hook is asked.
    Hook,
    /// A permission callback is asked.
    Permission,
    /// A tool inside of the host is called.
    Mcp,
    /// An operation was read and is not answered.
    Operation,
    /// The session is being stopped, and the CLI takes its time.
    Stopping,
    /// The input was ended while a turn runs.
    InputEnded,
}

use State::{
    Handshake, Hook, Idle, InputEnded, Mcp, Operation, Permission, Spawning, Stopping, Streaming,
    Tool,
};

impl State {
    /// All of them, in the order of a session's life.
    pub const ALL: [Self; 11] = [
        Spawning, Handshake, Idle, Streaming, Tool, Hook, Permission, Mcp, Operation, Stopping,
        InputEnded,
    ];

    /// Its name, as in the table.
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

    /// What it is, and who waits in it.
    pub fn about(self) -> &'static str {
        match self {
            Spawning => "the process was started and has read nothing; `ready()` waits",
            Handshake => "the handshake was read and is not answered; `ready()` waits",
            Idle => "nothing goes on and nobody waits; if the session goes on, a turn is made",
            Streaming => "an answer comes piece by piece; `Turn::finish` waits",
            Tool => "a shell of a turn runs; `Turn::finish` waits",
            Hook => "a `PreToolUse` hook is asked; `Turn::finish` waits",
            Permission => "`can_use_tool` is asked; `Turn::finish` waits",
            Mcp => "a tool of a `ToolServer` is called; `Turn::finish` waits",
            Operation => "`mcp_status` was read and is not answered; its future waits",
            Stopping => "`stop()` waits, with an operation open, and the CLI does not hear it",
            InputEnded => "`end_input()` was called during a turn; `Turn::finish` waits",
        }
    }

    /// The state of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// Whether the handshake is not done.
    pub(super) fn is_before_handshake(self) -> bool {
        matches!(self, Spawning | Handshake)
    }

    /// Whether a turn runs.
    pub(super) fn has_turn(self) -> bool {
        matches!(self, Streaming | Tool | Hook | Permission | Mcp | InputEnded)
    }

    /// Whether a callback of the host runs.
    pub(super) fn has_callback(self) -> bool {
        matches!(self, Hook | Permission | Mcp)
    }

    /// Whether the CLI can be asked something.
    pub(super) fn can_ask(self) -> bool {
        !self.is_before_handshake() && !matches!(self, Stopping | InputEnded)
    }

    /// What the model does in it.
    pub(super) fn model(self) -> Script {
        let done = || Reply::text("Done.");
        let call = |name: &str, input| Script::new().otherwise([Reply::tool(name, input), done()]);
        match self {
            Streaming | InputEnded => {
                Script::new().otherwise([Reply::text("Once upon a time").deltas_of(5).hold()])
            }
            // It ends with the directory at the latest.
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

    /// How the CLI is held in it, as lines of a script file.
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
