//! What can be asked of a session while it runs.

use std::time::{Duration, Instant};

use claude_wire::Json;
use claude_wire::control::{
    CancelAsyncMessage, CancelAsyncMessageAnswer, ContextUsage, GetContextUsage, HostRequest,
    Interrupt, InterruptAnswer, McpReconnect, McpSetServers, McpSetServersAnswer, McpStatus,
    McpStatusAnswer, McpToggle, PermissionMode, RewindFiles, RewindFilesAnswer,
    SetMaxThinkingTokens, SetModel, SetModelAnswer, SetPermissionMode, SetPermissionModeAnswer,
    StopTask,
};
use claude_wire::id::{MessageId, TaskId};
use claude_wire::session::Event;
use serde::de::DeserializeOwned;
use tracing::Instrument as _;

use super::Session;
use crate::error::{Error, ErrorKind, Result};
use crate::mailbox::Done;

/// How long an operation may take, if nothing else is said.
const LIMIT: Duration = Duration::from_secs(30);
/// The same for those that connect to servers or write files.
const LONG_LIMIT: Duration = Duration::from_secs(120);

impl Session {
    /// Ends the turn that runs. Says which messages still wait.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn interrupt(&self) -> Result<InterruptAnswer> {
        self.operate(HostRequest::Interrupt(Interrupt::default())).await
    }

    /// Ends the turn that runs and drops the messages that wait.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn interrupt_all(&self) -> Result<InterruptAnswer> {
        let mut interrupt = Interrupt::default();
        interrupt.cancel_queued = Some(true);
        self.operate(HostRequest::Interrupt(interrupt)).await
    }

    /// Changes the permission mode.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn set_permission_mode(
        &self,
        mode: impl Into<PermissionMode>,
    ) -> Result<SetPermissionModeAnswer> {
        self.operate(HostRequest::SetPermissionMode(SetPermissionMode::new(mode))).await
    }

    /// Changes the model, from the next request on.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn set_model(&self, model: impl Into<String>) -> Result<SetModelAnswer> {
        let mut change = SetModel::default();
        change.model = Some(model.into()).into();
        self.operate(HostRequest::SetModel(change)).await
    }

    /// Goes back to the default model.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn reset_model(&self) -> Result<SetModelAnswer> {
        self.operate(HostRequest::SetModel(SetModel::default())).await
    }

    /// Changes how many tokens the model may think; `None` is the default.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u64>) -> Result<()> {
        let mut change = SetMaxThinkingTokens::default();
        change.max_thinking_tokens = tokens.map(Into::into).into();
        self.acknowledge(HostRequest::SetMaxThinkingTokens(change)).await
    }

    /// Puts files back to where they were before a user message; with `dry_run` it only says what
    /// would be done. Needs [`file_checkpointing`](crate::Options::file_checkpointing).
    ///
    /// # Errors
    /// Those of [`Self::request`], and
    /// [`CheckpointingNotEnabled`](ErrorKind::CheckpointingNotEnabled).
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn rewind_files(
        &self,
        message: impl Into<MessageId>,
        dry_run: bool,
    ) -> Result<RewindFilesAnswer> {
        let mut rewind = RewindFiles::new(message);
        rewind.dry_run = dry_run.then_some(true);
        self.operate(HostRequest::RewindFiles(rewind)).await
    }

    /// The MCP servers and how they are.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn mcp_status(&self) -> Result<McpStatusAnswer> {
        self.operate(HostRequest::McpStatus(McpStatus::default())).await
    }

    /// Connects an MCP server again.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn mcp_reconnect(&self, server: impl Into<String>) -> Result<()> {
        self.acknowledge(HostRequest::McpReconnect(McpReconnect::new(server))).await
    }

    /// Switches an MCP server on or off.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn mcp_toggle(&self, server: impl Into<String>, enabled: bool) -> Result<()> {
        self.acknowledge(HostRequest::McpToggle(McpToggle::new(server, enabled))).await
    }

    /// Replaces the MCP servers that were set this way before: [`McpServers`](crate::mcp::McpServers),
    /// or JSON with configurations by name.
    ///
    /// ```no_run
    /// use claude_agent_kit::mcp::{McpServers, RemoteServer, StdioServer};
    ///
    /// # async fn example(session: claude_agent_kit::Session) -> claude_agent_kit::Result<()> {
    /// let servers = McpServers::new()
    ///     .with("files", StdioServer::new("files-server"))
    ///     .with("tracker", RemoteServer::http("https://tracker.example/mcp"));
    /// let answer = session.mcp_set_servers(servers).await?;
    /// println!("{:?} are new", answer.added);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn mcp_set_servers(&self, servers: impl Into<Json>) -> Result<McpSetServersAnswer> {
        self.operate(HostRequest::McpSetServers(McpSetServers::new(servers))).await
    }

    /// Ends a background task.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn stop_task(&self, task: impl Into<TaskId>) -> Result<()> {
        self.acknowledge(HostRequest::StopTask(StopTask::new(task))).await
    }

    /// What fills the context.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn get_context_usage(&self) -> Result<ContextUsage> {
        self.operate(HostRequest::GetContextUsage(GetContextUsage::default())).await
    }

    /// Withdraws a message that waits for its turn. Says whether it still could be.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn cancel_message(
        &self,
        message: impl Into<MessageId>,
    ) -> Result<CancelAsyncMessageAnswer> {
        self.operate(HostRequest::CancelAsyncMessage(CancelAsyncMessage::new(message))).await
    }

    /// Asks for any operation, also one that this version has no method for, and gives the answer
    /// as it came.
    ///
    /// # Errors
    /// - [`ControlRejected`](ErrorKind::ControlRejected) when the CLI refuses,
    ///   [`Unsupported`](ErrorKind::Unsupported) when it does not know the operation,
    ///   [`ControlTimeout`](ErrorKind::ControlTimeout) when it does not answer in time: then the
    ///   operation may have taken effect.
    /// - [`TransportClosed`](ErrorKind::TransportClosed),
    ///   [`SessionStopped`](ErrorKind::SessionStopped), [`InputEnded`](ErrorKind::InputEnded),
    ///   [`NotInitialized`](ErrorKind::NotInitialized) when there is nobody to ask any more.
    /// - [`InitQueueFull`](ErrorKind::InitQueueFull),
    ///   [`TooManyPending`](ErrorKind::TooManyPending) when too much is asked at once.
    /// - [`AnswerTooLarge`](ErrorKind::AnswerTooLarge),
    ///   [`UndecodableAnswer`](ErrorKind::UndecodableAnswer) when the answer cannot be used.
    ///
    /// # Cancel safety
    /// Dropping the future frees its place; the operation may still take effect.
    pub async fn request(&self, request: HostRequest) -> Result<Option<Json>> {
        let operation = request.kind().unwrap_or("request").to_owned();
        let limit = self.limit.unwrap_or_else(|| default_limit(&request));
        let pending = self.post(&operation, None, |waiter| Event::Ask { waiter, request, limit });
        let span = tracing::debug_span!("claude_operation", operation);
        let began = Instant::now();
        let settled = self.settled(&operation, pending).instrument(span.clone()).await;
        span.in_scope(|| tracing::debug!(took = ?began.elapsed(), "the operation ended"));
        match settled? {
            Done::Answered(answer) => Ok(answer),
            Done::Accepted => Ok(None),
        }
    }

    async fn operate<A: DeserializeOwned + Default>(&self, request: HostRequest) -> Result<A> {
        let operation = request.kind().unwrap_or("request").to_owned();
        match self.request(request).await? {
            Some(answer) => answer.parse().map_err(|error| undecodable(&operation, &error)),
            None => Ok(A::default()),
        }
    }

    /// Success needs nothing but `success`.
    async fn acknowledge(&self, request: HostRequest) -> Result<()> {
        self.request(request).await.map(drop)
    }
}

fn default_limit(request: &HostRequest) -> Duration {
    match request {
        HostRequest::McpReconnect(_)
        | HostRequest::McpSetServers(_)
        | HostRequest::RewindFiles(_) => LONG_LIMIT,
        _ => LIMIT,
    }
}

fn undecodable(operation: &str, error: &claude_wire::DecodeError) -> Error {
    let message = format!("the answer to `{operation}` could not be made out ({error})");
    Error::new(ErrorKind::UndecodableAnswer, message)
        .remedy("use `request` to get it as it came")
        .with(|facts| facts.operation = Some(operation.to_owned()))
}
