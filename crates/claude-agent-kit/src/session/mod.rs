//! Sessions: many turns in one conversation, controlled while they run.

pub(crate) mod events;
mod interrupt;
pub(crate) mod mcp;
mod messages;
pub(crate) mod operations;
mod parked;
mod replayed_turn;

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use claude_agent_core::session::{Event, OutgoingMessage};
use claude_wire::control::InitializeResponse;
use claude_wire::id::{MessageId, SessionId};
use claude_wire::{Cost, Exit};

pub use events::{Events, SessionState};
pub use interrupt::{Interruption, TurnInterruption};
pub use messages::Messages;
pub use operations::{McpHandle, Operation};
pub(crate) use replayed_turn::ReplayedTurn;

use crate::commands::{DriverGone, PendingReply, Reply};
use crate::diagnose::method_of;
use crate::driver::{self, Handles, RunGuard, RunKind};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::prompt::Prompt;
use crate::tasks::BoxFuture;
use crate::turn::{Turn, TurnSlot};

/// A handle to a running CLI and its conversation.
///
/// Clones refer to the same session, and methods can be called from any task and thread. The
/// session lives as long as a `Session`, a [`Turn`] or a [`Messages`] of it; when the last one is
/// dropped, the CLI is shut down. A handle from [`CallbackContext::session`] does not keep the session
/// alive.
///
/// [`CallbackContext::session`]: crate::CallbackContext::session
#[derive(Clone)]
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    timeout: Option<Duration>,
    /// `None` in handles that do not keep the session alive.
    keep_alive: Option<Arc<RunGuard>>,
}

/// State shared by the handles of one session.
pub(crate) struct Shared {
    pub(crate) handles: Handles,
    /// The names of all MCP servers of the options.
    pub(crate) servers: Vec<String>,
    /// The names of the in-process servers among them.
    hosted: Vec<String>,
    verbatim_prompts: bool,
    operation_timeout: Option<Duration>,
}

impl Shared {
    /// Returns a handle that does not keep the session alive.
    fn borrowed(self: Arc<Self>) -> Session {
        Session { timeout: self.operation_timeout, shared: self, keep_alive: None }
    }
}

/// Gives the callbacks of a run access to its session. Empty in a query.
#[derive(Clone, Default)]
pub(crate) struct SessionLink(Arc<OnceLock<Weak<Shared>>>);

impl SessionLink {
    pub(crate) fn get(&self) -> Option<Session> {
        let shared = self.0.get()?.upgrade()?;
        shared.handles.feed.over().is_none().then(|| shared.borrowed())
    }

    fn set(&self, shared: &Arc<Shared>) {
        // Each run has a link of its own, which is set once.
        drop(self.0.set(Arc::downgrade(shared)));
    }
}

impl fmt::Debug for SessionLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionLink").finish_non_exhaustive()
    }
}

impl Session {
    /// Starts the CLI and returns as soon as the process runs. Prompts and operations are queued until
    /// the handshake is done.
    ///
    /// With [`Conversation::resume_or_start`](crate::Conversation::resume_or_start) this waits for the
    /// handshake, because the CLI may have to be started a second time.
    ///
    /// # Errors
    /// When the CLI cannot be started; the errors of [`query`](crate::query()).
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    ///
    /// # Panics
    /// On a Tokio runtime whose I/O or time driver is not enabled.
    pub async fn open(options: impl Into<Options>) -> Result<Self> {
        Self::open_boxed(options.into()).await
    }

    /// Opens a session. Boxed as a trait object, so that a host application does not compile the whole
    /// startup sequence again.
    fn open_boxed(options: Options) -> BoxFuture<'static, Result<Self>> {
        Box::pin(async move {
            let session = Self::open_once(&options).await?;
            let Some(fallback) = options.fallback() else { return Ok(session) };
            match session.ready().await {
                Ok(()) => Ok(session),
                Err(error) if fallback.is_for(&error) => {
                    fallback.prepare(&error).await?;
                    Self::open_once(&fallback.options).await
                }
                Err(error) => Err(error),
            }
        })
    }

    async fn open_once(options: &Options) -> Result<Self> {
        let started = Box::pin(driver::start(options, RunKind::Session)).await?;
        let shared = Arc::new(Shared {
            handles: started.handles.clone(),
            servers: mcp::servers_of(options),
            hosted: options.host.callbacks.servers.names(),
            verbatim_prompts: options.settings.verbatim_prompts,
            operation_timeout: options.host.operation_timeout,
        });
        // Before the driver runs: its first callback may use the session.
        started.link.set(&shared);
        let keep_alive = Some(Arc::new(started.run()));
        Ok(Self { shared, timeout: options.host.operation_timeout, keep_alive })
    }

    /// Starts the CLI and waits for the handshake.
    ///
    /// # Errors
    /// Those of [`Self::open`] and [`Self::ready`].
    ///
    /// # Cancel safety
    /// Dropping the future ends the process.
    pub async fn start(options: impl Into<Options>) -> Result<Self> {
        let session = Self::open(options).await?;
        session.ready().await?;
        Ok(session)
    }

    /// Waits until the handshake is complete.
    ///
    /// # Errors
    /// When the handshake fails: [`InitializeTimeout`](ErrorKind::InitializeTimeout),
    /// [`InitializeRejected`](ErrorKind::InitializeRejected),
    /// [`ExitedDuringInit`](ErrorKind::ExitedDuringInit), or an error for an option that the CLI does
    /// not know; and when the session was stopped before.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn ready(&self) -> Result<()> {
        self.shared.handles.ready().await
    }

    /// Sends a user message and returns its turn.
    ///
    /// Waits for the handshake, and while more than `Limits::max_unwritten_bytes` wait to be written.
    /// Does not wait for the turn to begin.
    ///
    /// # Errors
    /// When the session has ended, its input was ended, or the prompt or its ID is empty
    /// ([`InvalidOptions`](ErrorKind::InvalidOptions)).
    ///
    /// # Cancel safety
    /// Dropping the future withdraws the message if it has not been written yet.
    pub async fn send(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        let prompt = prompt.into();
        if prompt.is_empty() {
            return Err(empty_prompt());
        }
        if prompt.has_empty_id() {
            return Err(empty_prompt_id());
        }
        let id = prompt.id().cloned().unwrap_or_else(|| MessageId::from(crate::random::uuid()));
        let line = prompt.line(&id, None, self.shared.verbatim_prompts)?;
        self.shared.handles.replay.give_up();
        let slot = TurnSlot::new(id.clone(), self.shared.handles.feed.subscribe_turn());
        // Created first, so that its reader is dropped if the message cannot be sent.
        let turn = Turn::new(self.clone(), &slot);
        let message = OutgoingMessage::new(id, line, prompt.id().is_some());
        let pending = self.post("send", Some(slot), |waiter| Event::Send { waiter, message });
        self.reply("send", pending).await?;
        Ok(turn)
    }

    /// Waits for the handshake, and returns the turn in which the CLI replays a tool call that an earlier run
    /// deferred with [`HookResponse::defer`](crate::hook::HookResponse::defer). `None` if the CLI replays
    /// nothing.
    ///
    /// The CLI starts the turn by itself when a conversation is resumed: it calls the `PreToolUse` hooks again,
    /// executes or denies the call, and lets the model continue. If the call is deferred again, the result of the
    /// turn has [`deferred_tool_use`](claude_wire::message::ResultMessage::deferred_tool_use), and the next
    /// resume replays the call.
    ///
    /// A call is replayed until the transcript has its result: if the CLI is killed while the tool runs, the next
    /// resume calls the hooks again and executes the call a second time.
    ///
    /// The turn is returned once. After [`Self::messages`] or [`Self::send`] this returns `None`: the replay runs
    /// nevertheless, and its messages are among those of [`Self::messages`].
    ///
    /// ```no_run
    /// # async fn example(options: claude_agent_kit::Options) -> claude_agent_kit::Result<()> {
    /// let session = claude_agent_kit::Session::open(options).await?;
    /// if let Some(turn) = session.replayed_turn().await? {
    ///     println!("{}", turn.finish().await?.into_result()?.text);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::ready`].
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn replayed_turn(&self) -> Result<Option<Turn>> {
        self.ready().await?;
        let handles = &self.shared.handles;
        let Some(turn) = poll_fn(|context| handles.replay.poll_take(context)).await else {
            // The run may have failed before the replay started.
            return handles.feed.error().map_or(Ok(None), Err);
        };
        // The host reads by turn: earlier messages would be kept without a reader.
        handles.feed.release_early();
        Ok(Some(Turn::attach(self.clone(), turn)))
    }

    /// Returns a stream of all messages and warnings from now on. The first such stream also yields
    /// the warnings of the start and, if no message was sent before, everything received since then.
    pub fn messages(&self) -> Messages {
        self.shared.handles.replay.give_up();
        Messages::new(self.clone())
    }

    /// Returns the current state of the session.
    pub fn state(&self) -> SessionState {
        self.shared.handles.events.state()
    }

    /// Returns the states of the session as they change, starting with the current one.
    pub fn events(&self) -> Events {
        Events::new(self.shared.handles.events.clone())
    }

    /// Returns the CLI's response to the handshake: commands, agents, models, account, capabilities.
    /// `None` before the handshake is done.
    ///
    /// More capabilities are in
    /// [`InitMessage::capabilities`](claude_wire::message::InitMessage::capabilities) at the start of
    /// each turn; changed commands are reported by the message
    /// [`CommandsChanged`](claude_wire::message::SystemMessage::CommandsChanged).
    pub fn server_info(&self) -> Option<InitializeResponse> {
        let text = self.shared.handles.events.info()?;
        // An undecodable response counts as an empty one.
        let text = str::from_utf8(&text).unwrap_or_default();
        Some(serde_json::from_str(text).unwrap_or_default())
    }

    /// Returns the ID of the session. It is known from the start, because the SDK chooses the ID of a
    /// new conversation and of a fork. Only for
    /// [`Conversation::latest`](crate::Conversation::latest), and where extra arguments choose the
    /// conversation, it is `None` until the CLI reports it. The ID changes with `/clear`.
    pub fn session_id(&self) -> Option<SessionId> {
        self.shared.handles.events.session_id()
    }

    /// Returns whether the session continues an earlier conversation, or a copy of one: the outcome of
    /// [`Conversation::resume_or_start`](crate::Conversation::resume_or_start). `None` before the
    /// handshake is done, and for [`Conversation::latest`](crate::Conversation::latest), where the CLI
    /// does not report it.
    pub fn is_resumed(&self) -> Option<bool> {
        self.shared.handles.is_resumed()
    }

    /// Returns the cost of the session since it was started, up to the last result. Earlier costs of a
    /// resumed conversation are not included.
    ///
    /// This is the sum over all results, including those of turns that the CLI began itself, to which
    /// background agents are charged.
    pub fn cost(&self) -> Cost {
        self.shared.handles.cost().sum
    }

    /// Returns the process ID of the CLI, if it runs on this machine.
    pub fn pid(&self) -> Option<u32> {
        self.shared.handles.pid
    }

    /// Returns a handle to the same session with another timeout for its operations. Default: 30 s,
    /// and 120 s for operations that connect to servers or write files.
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self.clone() }
    }

    /// Returns a handle that controls the MCP servers of the session.
    pub fn mcp(&self) -> McpHandle<'_> {
        McpHandle { session: self }
    }

    /// Closes stdin of the CLI, after which no prompts and operations can be sent. The CLI finishes
    /// its work and exits. Pending callbacks are cancelled.
    ///
    /// # Errors
    /// When the session has already ended.
    ///
    /// # Cancel safety
    /// If the future is dropped, the input may or may not have been ended.
    pub async fn end_input(&self) -> Result<()> {
        let pending = self.post("end_input", None, Event::EndInput);
        self.reply("end_input", pending).await.map(drop)
    }

    /// Stops the session and returns the exit of the process: interrupts the running turn, closes
    /// stdin, and kills the CLI if it does not exit by itself. Can be called several times.
    ///
    /// A turn that has its result is not interrupted: stdin is closed as soon as the CLI is idle, or
    /// after one second.
    ///
    /// # Errors
    /// The error of the session, if it failed before, or if it turns out that another host owns it.
    ///
    /// # Cancel safety
    /// Dropping the future does not cancel the shutdown.
    pub async fn stop(&self) -> Result<Option<Exit>> {
        let handles = &self.shared.handles;
        // A driver that is gone has left its process to the reaper thread.
        let _ = handles.commands.send(Event::Stop);
        let end = poll_fn(|context| handles.feed.poll_over(context)).await;
        match end.error {
            Some(error) => Err(error),
            None => Ok(end.exit),
        }
    }

    fn post(
        &self,
        operation: &str,
        turn: Option<TurnSlot>,
        event: impl FnOnce(claude_agent_core::session::Waiter) -> Event,
    ) -> std::result::Result<PendingReply, DriverGone> {
        self.shared.handles.commands.request(operation, turn, event)
    }

    /// Waits for the reply to a command.
    async fn reply(
        &self,
        operation: &str,
        pending: std::result::Result<PendingReply, DriverGone>,
    ) -> Result<Reply> {
        match pending {
            Ok(pending) => match pending.await {
                Ok(reply) => reply,
                Err(DriverGone) => Err(self.ended_error(operation)),
            },
            Err(DriverGone) => Err(self.ended_error(operation)),
        }
    }

    /// Returns the error of an operation on a session that has ended.
    pub(crate) fn ended_error(&self, operation: &str) -> Error {
        match self.shared.handles.feed.error() {
            Some(error) => error.in_operation(operation),
            None => match self.shared.handles.feed.over() {
                Some(end) if end.completed => input_ended(operation),
                _ => stopped(operation),
            },
        }
    }
}

pub(crate) fn empty_prompt() -> Error {
    Error::new(ErrorKind::InvalidOptions, "prompt is empty")
        .with_help("pass a non-empty string or at least one content block")
}

pub(crate) fn empty_prompt_id() -> Error {
    Error::new(ErrorKind::InvalidOptions, "the ID of the prompt is empty")
        .with_help("pass a non-empty ID, or omit it")
}

pub(crate) fn input_ended(operation: &str) -> Error {
    Error::new(
        ErrorKind::InputEnded,
        format!("`{}` failed: the input of the session was ended", method_of(operation)),
    )
    .with_help("start a new session")
    .with(|facts| facts.operation = Some(operation.to_owned()))
}

pub(crate) fn stopped(operation: &str) -> Error {
    let message = format!("`{}` failed: the session was stopped", method_of(operation));
    Error::new(ErrorKind::SessionStopped, message)
        .with_help("start a new session")
        .with(|facts| facts.operation = Some(operation.to_owned()))
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("pid", &self.pid())
            .field("state", &self.state())
            .field("keeps_alive", &self.keep_alive.is_some())
            .finish_non_exhaustive()
    }
}
