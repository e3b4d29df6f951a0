//! Interrupting turns.

use std::time::Duration;

use claude_wire::Extra;
use claude_wire::control::{Interrupt, InterruptResponse};
use claude_wire::id::MessageId;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::Session;
use super::operations::{OPERATION_TIMEOUT, decode};
use crate::commands::Reply;
use crate::error::Result;
use crate::turn::Phase;

/// How long to wait for news about a message before the CLI is asked again.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// The outcome of [`Session::interrupt`] and [`Session::interrupt_all`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Interruption {
    /// The messages whose running turn was interrupted: it ends with an error result, unless it ended
    /// at the same moment. A turn that the CLI began by itself has no message, and is interrupted too.
    pub turns: Vec<MessageId>,
    /// The messages that still wait for their turn.
    pub still_queued: Vec<MessageId>,
    /// The messages that were discarded before their turn began.
    pub cancelled: Vec<MessageId>,
    /// Unknown fields of the response.
    pub extra: Extra,
}

/// The outcome of [`Turn::interrupt`](crate::Turn::interrupt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnInterruption {
    /// The message waited for its turn and was withdrawn. The turn ends with
    /// [`TurnCancelled`](crate::ErrorKind::TurnCancelled).
    Withdrawn,
    /// The running turn was interrupted. It ends with an error result, unless it ended at the same
    /// moment.
    Interrupted,
    /// The turn had ended before.
    AlreadyEnded,
    /// Nothing was interrupted: the message is still queued, and the CLI did not withdraw it within the
    /// timeout of an operation. Not observed with any CLI.
    StillQueued,
}

impl Session {
    /// Interrupts the running turn. Queued messages stay, and their turns come next.
    ///
    /// A message that was just sent may still be queued and is then not interrupted:
    /// [`Interruption::turns`] does not contain it, and [`Interruption::still_queued`] does if the CLI
    /// has read it. [`Turn::interrupt`](crate::Turn::interrupt) ends the turn of one message in either
    /// case, [`Self::interrupt_all`] the turns of all messages.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn interrupt(&self) -> Result<Interruption> {
        self.interrupt_with(Interrupt::default()).await
    }

    /// Interrupts the running turn and discards the queued messages.
    ///
    /// A CLI without the capability `interrupt_cancel_queued_v1`, which is reported at the start of
    /// each turn ([`InitMessage::capabilities`](claude_wire::message::InitMessage::capabilities)), only
    /// interrupts the turn; [`Interruption::still_queued`] contains the remaining messages.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn interrupt_all(&self) -> Result<Interruption> {
        let mut interrupt = Interrupt::default();
        interrupt.cancel_queued = Some(true);
        self.interrupt_with(interrupt).await
    }

    async fn interrupt_with(&self, interrupt: Interrupt) -> Result<Interruption> {
        let (response, turns) = match self.send_request(interrupt.into()).await? {
            Reply::Interrupted(response, turns) => (response, turns),
            Reply::Response(response) => (response, Vec::new()),
            Reply::Accepted => (None, Vec::new()),
        };
        let InterruptResponse { still_queued, cancelled, extra, .. } =
            decode("interrupt", response)?;
        let (still_queued, cancelled) = (still_queued.into_vec(), cancelled.into_vec());
        Ok(Interruption { turns, still_queued, cancelled, extra })
    }

    /// Ends the turn of one message: withdraws the message while it is queued, interrupts its turn
    /// once it runs. An interrupt before that would hit the turn before it.
    pub(crate) async fn interrupt_turn(
        &self,
        message: &MessageId,
        mut phase: watch::Receiver<Phase>,
    ) -> Result<TurnInterruption> {
        let deadline = Instant::now().checked_add(self.timeout.unwrap_or(OPERATION_TIMEOUT));
        loop {
            let now = *phase.borrow_and_update();
            match now {
                Phase::Cancelled => return Ok(TurnInterruption::Withdrawn),
                Phase::Ended => return Ok(TurnInterruption::AlreadyEnded),
                Phase::Waiting => {
                    if self.cancel_message(message.clone()).await?.cancelled == Some(true) {
                        return Ok(TurnInterruption::Withdrawn);
                    }
                }
                Phase::Started => {
                    if self.interrupt().await?.turns.contains(message) {
                        return Ok(TurnInterruption::Interrupted);
                    }
                }
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(TurnInterruption::StillQueued);
            }
            // The message is about to enter the queue of the CLI or has just left it, which the CLI
            // reports next. The next request fails if the session has ended.
            let changed = timeout(RETRY_INTERVAL, phase.wait_for(|phase| *phase != now));
            drop(changed.await);
        }
    }
}
