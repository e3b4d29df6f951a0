//! Interrupting turns, and what came of it.

use std::time::Duration;

use claude_wire::Extra;
use claude_wire::control::{Interrupt, InterruptResponse};
use claude_wire::id::MessageId;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::Session;
use super::operations::{OPERATION_TIMEOUT, decoded};
use crate::commands::Reply;
use crate::error::Result;
use crate::turn::Phase;

/// How long the CLI may take to say where a message is, before it is asked once more.
const PAUSE: Duration = Duration::from_millis(100);

/// What came of an interrupt of a session.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Interruption {
    /// The messages whose turn ran and was interrupted: it ends with an error result, unless it came
    /// to its end at the same moment. A turn that the CLI began by itself has no message, and is
    /// interrupted too.
    pub turns: Vec<MessageId>,
    /// The messages that still wait for their turn, which will come.
    pub still_queued: Vec<MessageId>,
    /// The messages that were dropped before their turn began.
    pub cancelled: Vec<MessageId>,
    /// What else the CLI said.
    pub extra: Extra,
}

/// What came of [`Turn::interrupt`](crate::Turn::interrupt).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnInterruption {
    /// The message waited for its turn and was withdrawn. The turn ends with
    /// [`TurnCancelled`](crate::ErrorKind::TurnCancelled).
    Withdrawn,
    /// The turn ran and was interrupted. It ends with an error result, unless it came to its end at
    /// the same moment.
    Interrupted,
    /// The turn had ended before.
    AlreadyEnded,
    /// Nothing was interrupted: the message still waits, and the CLI did not withdraw it within the
    /// time that an operation has. Not seen of any CLI.
    StillQueued,
}

impl Session {
    /// Interrupts the turn that runs. Messages that wait for a turn stay, and their turns come next.
    ///
    /// A message that was just sent may still wait, and then it is not interrupted:
    /// [`Interruption::turns`] does not name it, and [`Interruption::still_queued`] does if the CLI has
    /// read it. [`Turn::interrupt`](crate::Turn::interrupt) ends a
    /// certain message in either case, [`Self::interrupt_all`] all of them.
    ///
    /// # Errors
    /// Those of [`Self::request`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn interrupt(&self) -> Result<Interruption> {
        self.interrupt_with(Interrupt::default()).await
    }

    /// Interrupts the turn that runs and drops the messages that wait for a turn.
    ///
    /// A CLI without the capability `interrupt_cancel_queued_v1`, which it tells with the first
    /// turn ([`InitMessage::capabilities`](claude_wire::message::InitMessage::capabilities)), only
    /// interrupts the turn; [`Interruption::still_queued`] names what then still waits.
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
        let (answer, turns) = match self.ask(interrupt.into()).await? {
            Reply::Interrupted(response, turns) => (response, turns),
            Reply::Response(response) => (response, Vec::new()),
            Reply::Accepted => (None, Vec::new()),
        };
        let answer: InterruptResponse = decoded("interrupt", answer)?;
        let (still_queued, cancelled) =
            (answer.still_queued.into_vec(), answer.cancelled.into_vec());
        Ok(Interruption { turns, still_queued, cancelled, extra: answer.extra })
    }

    /// Ends the turn of one message: withdraws the message while it waits, interrupts its turn once
    /// that runs. Never interrupts before the turn runs: that would hit the turn before it.
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
            // The message is on its way into the queue of the CLI or just out of it, which the CLI
            // tells next. A session that is over is told by the next request.
            let changed = timeout(PAUSE, phase.wait_for(|phase| *phase != now));
            drop(changed.await);
        }
    }
}
