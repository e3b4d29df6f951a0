//! Live sessions: many turns, steered while they run.

pub(crate) mod events;
mod interrupt;
mod mcp;
mod messages;
pub(crate) mod operations;

use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use claude_wire::control::InitializeResponse;
use claude_wire::id::{MessageId, SessionId};
use claude_wire::session::{Cost, Event, Exit, OutgoingMessage};

pub use events::{Events, SessionState};
pub use interrupt::{Interruption, TurnInterruption};
pub use messages::Messages;
pub use operations::{McpHandle, Operation};

use crate::commands::{DriverGone, PendingReply, Reply};
use crate::driver::{self, Handles, RunGuard, RunKind};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::prompt::Prompt;
use crate::turn::{Turn, TurnSlot};

/// A live session with a CLI.
///
/// It is a handle: clones are the same session, and calls work from any task and thread. The
/// session lives as long as a `Session`, a [`Turn`] or a [`Messages`] of it does; when the last is
/// dropped, the CLI is ended. Only a handle from [`CallbackContext::session`] does not keep the
/// session alive.
///
/// [`CallbackContext::session`]: crate::CallbackContext::session
#[derive(Clone)]
pub struct Session {
    pub(crate) shared: Arc<Shared>,
    timeout: Option<Duration>,
    /// `None` in handles that do not keep the session alive.
    keep_alive: Option<Arc<RunGuard>>,
}

/// What the handles of one session share.
pub(crate) struct Shared {
    pub(crate) handles: Handles,
    /// The MCP servers that the options name.
    pub(crate) servers: Vec<String>,
    /// Those of them that are in this process.
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

/// Leads from the callbacks of a run to its session. Empty in a query.
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
    /// Starts the CLI and returns as soon as it runs. What is asked of the session before its
    /// handshake is done waits for it.
    ///
    /// With [`Conversation::resume_or_start`](crate::Conversation::resume_or_start) it waits for the
    /// handshake, because the CLI may have to be started a second time.
    ///
    /// # Errors
    /// What keeps the CLI from being started, as for [`query`](crate::query()).
    ///
    /// # Cancel safety
    /// Dropping the future leaves no process behind.
    ///
    /// # Panics
    /// On a Tokio runtime whose I/O or time driver is not enabled.
    pub async fn open(options: impl Into<Options>) -> Result<Self> {
        let options = options.into();
        let session = Self::open_once(&options).await?;
        let Some(fallback) = options.fallback() else { return Ok(session) };
        match session.ready().await {
            Ok(()) => Ok(session),
            Err(error) if fallback.is_for(&error) => {
                fallback.check_other_projects(&error).await?;
                Self::open_once(&fallback.options).await
            }
            Err(error) => Err(error),
        }
    }

    async fn open_once(options: &Options) -> Result<Self> {
        let started = Box::pin(driver::start(options, RunKind::Session)).await?;
        let shared = Arc::new(Shared {
            handles: started.handles.clone(),
            servers: mcp::servers_of(options),
            hosted: options.host.callbacks.servers.names().collect(),
            verbatim_prompts: options.settings.verbatim_prompts,
            operation_timeout: options.host.operation_timeout,
        });
        // Before the driver runs: its first callback may ask for the session.
        started.link.set(&shared);
        let keep_alive = Some(Arc::new(started.run()));
        Ok(Self { shared, timeout: options.host.operation_timeout, keep_alive })
    }

    /// Starts the CLI and waits for the handshake.
    ///
    /// # Errors
    /// As [`Self::open`] and [`Self::ready`].
    ///
    /// # Cancel safety
    /// Dropping the future leaves no process behind.
    pub async fn start(options: impl Into<Options>) -> Result<Self> {
        let session = Self::open(options).await?;
        session.ready().await?;
        Ok(session)
    }

    /// Waits until the handshake is done.
    ///
    /// # Errors
    /// Why it failed: [`InitializeTimeout`](ErrorKind::InitializeTimeout),
    /// [`InitializeRejected`](ErrorKind::InitializeRejected),
    /// [`ExitedDuringInit`](ErrorKind::ExitedDuringInit), an option that the CLI does not know; or
    /// that the session was stopped before.
    ///
    /// # Cancel safety
    /// Dropping the future changes nothing.
    pub async fn ready(&self) -> Result<()> {
        self.shared.handles.ready().await
    }

    /// Sends a user message, and gives its turn.
    ///
    /// Waits for the handshake if that is not done, and while more than `Limits::max_unwritten_bytes` wait
    /// to be written; not for the turn to begin.
    ///
    /// # Errors
    /// When the session is over, its input was ended, or the prompt or its id is empty
    /// ([`InvalidOptions`](ErrorKind::InvalidOptions)).
    ///
    /// # Cancel safety
    /// Dropping the future before it is done withdraws the message if it is not written yet.
    pub async fn send(&self, prompt: impl Into<Prompt>) -> Result<Turn> {
        let prompt = prompt.into();
        if prompt.is_empty() {
            return Err(Error::new(ErrorKind::InvalidOptions, "the prompt is empty")
                .with_help("say something"));
        }
        if prompt.has_empty_id() {
            return Err(Error::new(ErrorKind::InvalidOptions, "the id of the prompt is empty")
                .with_help("give it another id, or none"));
        }
        let id = prompt.id().cloned().unwrap_or_else(|| MessageId::from(crate::random::uuid()));
        let line = prompt.line(&id, None, self.shared.verbatim_prompts)?;
        let slot = TurnSlot::new(id.clone(), self.shared.handles.feed.subscribe_turn());
        // Made first, so that its reader is let go if the message cannot be sent.
        let turn = Turn::new(self.clone(), &slot);
        let message = OutgoingMessage::new(id, line, prompt.id().is_some());
        let pending = self.post("send", Some(slot), |waiter| Event::Send { waiter, message });
        self.settled("send", pending).await?;
        Ok(turn)
    }

    /// All messages and warnings from now on. The first such stream also has the warnings of the
    /// start and, if no message was sent before it, everything that came since.
    pub fn messages(&self) -> Messages {
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

    /// Returns what the CLI said about itself in the handshake: commands, agents, models, account,
    /// capabilities. `None` before the handshake is done.
    ///
    /// More capabilities are in
    /// [`InitMessage::capabilities`](claude_wire::message::InitMessage::capabilities) at the start of
    /// each turn; changed commands are reported by the message
    /// [`CommandsChanged`](claude_wire::message::SystemMessage::CommandsChanged).
    pub fn server_info(&self) -> Option<InitializeResponse> {
        let text = self.shared.handles.events.info()?;
        // A handshake that cannot be made out is one without anything in it.
        Some(serde_json::from_slice(&text).unwrap_or_default())
    }

    /// Returns the ID of the session. It is known from the start, because the SDK chooses the ID of a
    /// new conversation and of a fork; only for
    /// [`Conversation::latest`](crate::Conversation::latest), and where `extra_args` name the
    /// conversation, it is `None` until the CLI has named it. The ID changes with `/clear`.
    pub fn session_id(&self) -> Option<SessionId> {
        self.shared.handles.events.session_id()
    }

    /// Returns whether the session continues an earlier conversation, or a copy of one. `None` before
    /// the handshake is done, and for [`Conversation::latest`](crate::Conversation::latest), where the
    /// CLI does not say. After
    /// [`Conversation::resume_or_start`](crate::Conversation::resume_or_start) it tells the two apart.
    pub fn is_resumed(&self) -> Option<bool> {
        self.shared.handles.is_resumed()
    }

    /// Returns what the session has cost since it was started, up to the last result. The past of a
    /// conversation that was resumed is not included.
    ///
    /// This is the sum over all results: those of turns, each once, and those of turns that the CLI
    /// began itself, to which background agents are charged.
    pub fn cost(&self) -> Cost {
        self.shared.handles.cost().sum
    }

    /// The process of the CLI, if it is one of this machine.
    pub fn pid(&self) -> Option<u32> {
        self.shared.handles.pid
    }

    /// Returns a handle with another timeout for the operations called on it, in place of 30 s
    /// (120 s for those that take long).
    #[must_use]
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self.clone() }
    }

    /// Returns a handle on the MCP servers of the session.
    pub fn mcp(&self) -> McpHandle<'_> {
        McpHandle { session: self }
    }

    /// Ends the input: nothing more can be asked. The CLI finishes what it does and ends. Callbacks
    /// cannot be answered any more and are cancelled.
    ///
    /// # Errors
    /// When the session is over already.
    ///
    /// # Cancel safety
    /// Dropping the future may or may not have ended the input.
    pub async fn end_input(&self) -> Result<()> {
        let pending = self.post("end_input", None, Event::EndInput);
        self.settled("end_input", pending).await.map(drop)
    }

    /// Stops the session: interrupts a turn that runs, closes the input, and ends the CLI if it
    /// does not end by itself. Gives how the process ended. May be called many times.
    ///
    /// A turn that has its result is not interrupted: the input is closed as soon as the CLI is
    /// idle, or after one second.
    ///
    /// # Errors
    /// What the session failed with, if it did before.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the end.
    pub async fn stop(&self) -> Result<Option<Exit>> {
        let handles = &self.shared.handles;
        // A driver that is gone has left its process to the reaper thread.
        let _ = handles.commands.send(Event::Stop);
        let over = poll_fn(|context| handles.feed.poll_over(context)).await;
        match over.error {
            Some(error) => Err(error),
            None => Ok(over.exit),
        }
    }

    fn post(
        &self,
        operation: &str,
        turn: Option<TurnSlot>,
        event: impl FnOnce(claude_wire::session::Waiter) -> Event,
    ) -> std::result::Result<PendingReply, DriverGone> {
        self.shared.handles.commands.request(operation, turn, event)
    }

    async fn settled(
        &self,
        operation: &str,
        pending: std::result::Result<PendingReply, DriverGone>,
    ) -> Result<Reply> {
        match pending {
            Ok(pending) => match pending.await {
                Ok(settled) => settled,
                Err(DriverGone) => Err(self.over_error(operation)),
            },
            Err(DriverGone) => Err(self.over_error(operation)),
        }
    }

    /// Why nothing can be asked of a session that is over.
    pub(crate) fn over_error(&self, operation: &str) -> Error {
        match self.shared.handles.feed.error() {
            Some(error) => error.in_operation(operation),
            None => match self.shared.handles.feed.over() {
                Some(over) if over.completed => input_ended(operation),
                _ => stopped(operation),
            },
        }
    }
}

fn input_ended(operation: &str) -> Error {
    Error::new(ErrorKind::InputEnded, format!("`{operation}`: the input was ended before"))
        .with_help("start another session")
        .with(|facts| facts.operation = Some(operation.to_owned()))
}

fn stopped(operation: &str) -> Error {
    Error::new(ErrorKind::SessionStopped, format!("`{operation}`: the session was stopped"))
        .with_help("start another one")
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
