//! The context of a tool call.

use claude_wire::id::{SessionId, ToolUseId};
use claude_wire::{Extra, Json};

use crate::callback::CancelToken;
use crate::error::Result;
use crate::mcp::McpClient;

/// The context of a tool call.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolContext {
    /// The session ID, if it is already known.
    pub session_id: Option<SessionId>,
    /// The ID of the call, as in messages and hooks.
    pub tool_use_id: Option<ToolUseId>,
    /// Signals that the call was cancelled. The future of the call is dropped then; use the token to
    /// cancel tasks, threads and processes that it has started.
    pub cancel: CancelToken,
    /// The CLI as the client of this server.
    pub client: McpClient,
    pub(super) progress_token: Option<Json>,
}

impl ToolContext {
    /// Reports the progress of the call, a number of steps or a [`ToolProgress`], and waits for the
    /// acknowledgement of the CLI. Does nothing if the CLI did not request progress.
    ///
    /// # Errors
    /// Returns the errors of [`McpClient::notify`].
    ///
    /// # Cancel safety
    /// Same as [`McpClient::notify`].
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

/// The progress of a tool call, for [`ToolContext::progress`].
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
    /// Creates a progress report with the amount of work done, in any unit. It should increase with
    /// each report.
    pub fn new(done: f64) -> Self {
        Self { done, total: None, message: None }
    }

    /// Sets the total amount of work, in the same unit. Default: unknown.
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
