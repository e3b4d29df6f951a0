//! What handles and callbacks tell the driver.
//!
//! The channel has no limit of its own. Each command belongs to a call that is waited for, to a
//! callback that runs, both of which have their limits, or to a handle that is dropped, so there are
//! no more commands than those.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use claude_wire::Json;
use claude_wire::id::MessageId;
use claude_wire::session::{Event, Waiter};
use tokio::sync::{mpsc, oneshot};

use crate::error::Result;
use crate::panics;
use crate::turn::TurnSlot;

/// Something that the host tells the driver.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) event: Event,
    /// Where the reply goes, if one is waited for.
    pub(crate) reply: Option<ReplySender>,
    /// The turn of the message that is sent.
    pub(crate) turn: Option<TurnSlot>,
}

/// The reply to a command.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The message waits to be written, or the input is closed.
    Accepted,
    /// The operation was done, with this response if there is one.
    Response(Option<Json>),
    /// The same for an interrupt, with those of the turns that were open when it was asked for that
    /// run now.
    Interrupted(Option<Json>, Vec<MessageId>),
}

/// Takes the reply to a command.
#[derive(Debug)]
pub(crate) struct ReplySender {
    pub(crate) waiter: Waiter,
    /// The operation, for an error.
    pub(crate) operation: String,
    /// The message that is sent, if it is one.
    pub(crate) turn: Option<MessageId>,
    /// The turns that were open when an interrupt was asked for.
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

/// The driver is gone.
#[derive(Debug)]
pub(crate) struct DriverGone;

/// Sends commands to a driver.
#[derive(Clone, Debug)]
pub(crate) struct CommandSender {
    // In boxes, because a channel keeps room for many of them.
    commands: mpsc::UnboundedSender<Box<Command>>,
    next_waiter: Arc<AtomicU64>,
}

impl CommandSender {
    /// Sends an event that needs no reply.
    pub(crate) fn send(&self, event: Event) -> std::result::Result<(), DriverGone> {
        self.post(Command { event, reply: None, turn: None })
    }

    /// Sends an event, and returns the reply that will come.
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

    /// Takes no more commands, and returns those that are left.
    pub(crate) fn close(&mut self) -> impl Iterator<Item = Box<Command>> {
        self.0.close();
        std::iter::from_fn(|| self.0.try_recv().ok())
    }
}

/// Creates the channel between handles and a driver.
pub(crate) fn channel() -> (CommandSender, CommandReceiver) {
    let (commands, receiver) = mpsc::unbounded_channel();
    (CommandSender { commands, next_waiter: Arc::default() }, CommandReceiver(receiver))
}

/// The reply that will come. Dropping it tells the driver that it is not waited for any more.
pub(crate) struct PendingReply {
    waiter: Waiter,
    receiver: oneshot::Receiver<Result<Reply>>,
    commands: CommandSender,
    is_done: bool,
}

impl Future for PendingReply {
    /// `Err` when the driver is gone without a reply.
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
            // A driver that is gone remembers nothing.
            let _ = self.commands.send(Event::Forget(self.waiter));
        }
    }
}
