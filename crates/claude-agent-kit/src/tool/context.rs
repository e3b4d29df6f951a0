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
    /// Tells the CLI how far the call is, and waits until that has arrived. Does nothing if the CLI
    /// did not ask for it.
    ///
    /// # Errors
    /// Those of [`McpClient::notify`].
    ///
    /// # Cancel safety
    /// That of [`McpClient::notify`].
    pub async fn progress(
        &self,
        done: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Result<()> {
        let Some(token) = &self.progress_token else { return Ok(()) };
        let number = |value: f64| Json::from_serialize(&value).unwrap_or_default();
        let mut params = Extra::default();
        params.set("progressToken", token.clone());
        params.set("progress", number(done));
        if let Some(total) = total {
            params.set("total", number(total));
        }
        if let Some(message) = message {
            params.set("message", message);
        }
        self.client.notify("notifications/progress", Json::from(&params)).await
    }
}
