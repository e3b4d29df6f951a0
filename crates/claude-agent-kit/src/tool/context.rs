//! What a call knows besides its arguments.

use claude_wire::id::{SessionId, ToolUseId};
use claude_wire::{Extra, Json};

use crate::callback::CancelToken;
use crate::error::Result;
use crate::mcp::McpClient;

/// What a tool knows of a call besides its arguments.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolContext {
    /// The session, if it is known by now.
    pub session_id: Option<SessionId>,
    /// The call, as messages and hooks name it.
    pub tool_use_id: Option<ToolUseId>,
    /// Tells when the call is withdrawn. Its future is dropped then, so this is for what it has
    /// started elsewhere: tasks, threads, processes.
    pub cancel: CancelToken,
    /// The CLI, as the client of this server.
    pub client: McpClient,
    pub(super) progress_token: Option<Json>,
}

impl ToolContext {
    /// Reports the progress of the call to the CLI and waits for its acknowledgement: a number of
    /// steps done, or a [`ToolProgress`]. Does nothing if the CLI did not ask for progress.
    ///
    /// # Errors
    /// Those of [`McpClient::notify`].
    ///
    /// # Cancel safety
    /// That of [`McpClient::notify`].
    pub async fn progress(&self, progress: impl Into<ToolProgress>) -> Result<()> {
        let ToolProgress { done, total, message } = progress.into();
        let Some(token) = &self.progress_token else { return Ok(()) };
        let number = |value: f64| Json::from_serialize(&value).unwrap_or_default();
        let mut params = Extra::default();
        params.set("progressToken", token.clone());
        params.set("progress", number(done));
        if let Some(total) = total {
            params.set("total", number(total));
        }
        if let Some(message) = message {
            params.set("message", message.as_str());
        }
        self.client.notify("notifications/progress", Json::from(&params)).await
    }
}

/// How far a tool call is, for [`ToolContext::progress`].
///
/// ```
/// use claude_agent_kit::ToolProgress;
///
/// let progress = ToolProgress::new(1.0).total(3.0).message("counting");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct ToolProgress {
    done: f64,
    total: Option<f64>,
    message: Option<String>,
}

impl ToolProgress {
    /// Creates a report of this much done, in any unit. It should increase with each report.
    pub fn new(done: f64) -> Self {
        Self { done, total: None, message: None }
    }

    /// Sets how much there is to do, in the same unit. Default: not known.
    pub fn total(mut self, total: f64) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets a message for the user. Default: none.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }
}

impl From<f64> for ToolProgress {
    fn from(done: f64) -> Self {
        Self::new(done)
    }
}
