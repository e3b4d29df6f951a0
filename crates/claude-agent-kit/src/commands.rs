//! The command channel from handles and callbacks to the driver.
//!
//! The channel is not bounded itself. Each command belongs to a pending call or a running callback, both
//! of which are limited, or to a dropped handle, so their number is bounded.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use claude_agent_core::session::{Event, Waiter};
use claude_wire::Json;
use claude_wire::id::MessageId;
use tokio::sync::{mpsc, oneshot};

use crate::error::Result;
use crate::panics;
use crate::turn::TurnSlot;

/// A command from the host to the driver.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) event: Event,
    /// The destination of the reply, if the sender waits for one.
    pub(crate) reply: Option<ReplySender>,
    /// The turn of the message to send.
    pub(crate) turn: Option<TurnSlot>,
}

/// The reply to a command.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The message was queued, or stdin was closed.
    Accepted,
    /// The operation completed, with its response if there is one.
    Response(Option<Json>),
    /// An interrupt completed; of the turns open at the time of the request, these are still running.
    Interrupted(Option<Json>, Vec<MessageId>),
}

/// Sends the reply to a command.
#[derive(Debug)]
pub(crate) struct ReplySender {
    pub(crate) waiter: Waiter,
    /// The name of the operation, for errors.
    pub(crate) operation: String,
    /// The ID of the message, if the command sends one.
    pub(crate) turn: Option<MessageId>,
    /// The turns that were open at the time of an interrupt request.
    pub(crate) interrupts: Option<Vec<MessageId>>,
    sender: oneshot::Sender<Result<Reply>>,
}

impl ReplySender {
    pub(crate) fn send(self, reply: Result<Reply>) {
        // The receiver may have been dropped since; its waker belongs to the host.
        if panics::catch(|| drop(self.sender.send(reply))).is_err() {
            tracing::warn!("a waker of the host's executor panicked");
        }
    }
}

/// The driver has ended.
#[derive(Debug)]
pub(crate) struct DriverGone;

/// Sends commands to a driver.
#[derive(Clone, Debug)]
pub(crate) struct CommandSender {
    // Boxed, because a channel allocates blocks of many commands.
    commands: mpsc::UnboundedSender<Box<Command>>,
    next_waiter: Arc<AtomicU64>,
}

impl CommandSender {
    /// Sends an event that needs no reply.
    pub(crate) fn send(&self, event: Event) -> std::result::Result<(), DriverGone> {
        self.post(Command { event, reply: None, turn: None })
    }

    /// Sends an event and returns its pending reply.
    pub(crate) fn request(
        &self,
        operation: impl Into<String>,
        turn: Option<TurnSlot>,
        event: impl FnOnce(Waiter) -> Event,
    ) -> std::result::Result<PendingReply, DriverGone> {
        let (sender, receiver) = oneshot::channel();
        let waiter = Waiter(self.next_waiter.fetch_add(1, Ordering::Relaxed));
        let message = turn.as_ref().map(|slot| slot.id.clone());
        let operation = operation.into();
        let reply = ReplySender { waiter, operation, turn: message, interrupts: None, sender };
        self.post(Command { event: event(waiter), reply: Some(reply), turn })?;
        Ok(PendingReply { waiter, receiver, commands: self.clone(), is_done: false })
    }

    fn post(&self, command: Command) -> std::result::Result<(), DriverGone> {
        self.commands.send(Box::new(command)).map_err(|_| DriverGone)
    }
}

/// Receives the commands for a driver.
#[derive(Debug)]
pub(crate) struct CommandReceiver(mpsc::UnboundedReceiver<Box<Command>>);

impl CommandReceiver {
    /// Polls for the next command. The driver's own callbacks hold a sender, so the channel stays open.
    pub(crate) fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Box<Command>> {
        match ready!(self.0.poll_recv(context)) {
            Some(command) => Poll::Ready(command),
            None => Poll::Pending,
        }
    }

    /// Closes the channel and returns the remaining commands.
    pub(crate) fn close(&mut self) -> Vec<Command> {
        self.0.close();
        let mut rest = Vec::new();
        while let Ok(command) = self.0.try_recv() {
            rest.push(*command);
        }
        rest
    }
}

/// Creates the channel between handles and a driver.
pub(crate) fn channel() -> (CommandSender, CommandReceiver) {
    let (commands, receiver) = mpsc::unbounded_channel();
    (CommandSender { commands, next_waiter: Arc::default() }, CommandReceiver(receiver))
}

/// A pending reply. Dropping it cancels the wait.
pub(crate) struct PendingReply {
    waiter: Waiter,
    receiver: oneshot::Receiver<Result<Reply>>,
    commands: CommandSender,
    is_done: bool,
}

impl Future for PendingReply {
    /// `Err` if the driver ended without a reply.
    type Output = std::result::Result<Result<Reply>, DriverGone>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let polled = Pin::new(&mut self.receiver).poll(context);
        self.is_done = polled.is_ready();
        polled.map_err(|_| DriverGone)
    }
}

impl Drop for PendingReply {
    fn drop(&mut self) {
        if !self.is_done {
            // After the end of the driver there is nothing to forget.
            let _ = self.commands.send(Event::Forget(self.waiter));
        }
    }
}
