//! Turns of a session.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use claude_wire::Body;
use claude_wire::id::{MessageId, SessionId};
use claude_wire::message::ResultMessage;
use claude_wire::session::{Cost, Subscriber, TurnEnd};
use futures_core::Stream;
use serde::{Serialize, Serializer};
use tokio::sync::watch;

use crate::cost::UncountedTokens;
use crate::diagnose::{retry_delay, turn_failure};
use crate::error::{Error, ErrorKind, Result};
use crate::item::Item;
use crate::json_object::JsonObject;
use crate::lock::lock;
use crate::panics;
use crate::reader::Reader;
use crate::session::{Session, TurnInterruption};
use crate::warning::Warning;

/// The turn of a user message: the stream of its items, up to its result.
///
/// The CLI decides how messages are grouped into turns. A message that is sent while a turn is running
/// may join that turn, and queued messages may share one. Several `Turn`s then return the same items
/// and the same result.
///
/// Dropping a turn affects neither the session nor the message.
pub struct Turn {
    session: Session,
    id: MessageId,
    reader: Reader,
    end: Arc<Mutex<Option<TurnEnd>>>,
    phase: watch::Receiver<Phase>,
    result: Option<Box<ResultMessage>>,
    uncounted: UncountedTokens,
    text: String,
    warnings: Vec<Warning>,
    /// The latest delay of the CLI before it retried an API request.
    retry_delay: Option<Duration>,
    /// The error that was the last item.
    error: Option<Error>,
    done: bool,
}

/// The driver's side of a turn.
#[derive(Debug)]
pub(crate) struct TurnSlot {
    pub(crate) id: MessageId,
    pub(crate) reader: Subscriber,
    end: Arc<Mutex<Option<TurnEnd>>>,
    phase: watch::Sender<Phase>,
    span: tracing::Span,
    began: Instant,
}

/// The progress of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The CLI has not started the turn.
    Waiting,
    Started,
    /// The CLI discarded the message.
    Cancelled,
    /// The turn has ended, with or without a result.
    Ended,
}

impl TurnSlot {
    pub(crate) fn new(id: MessageId, reader: Subscriber) -> Self {
        let span = tracing::debug_span!("claude_turn", %id);
        let phase = watch::Sender::new(Phase::Waiting);
        Self { id, reader, end: Arc::default(), phase, span, began: Instant::now() }
    }

    pub(crate) fn start(&self) {
        self.change(Phase::Started);
    }

    fn change(&self, phase: Phase) {
        // Wakers belong to the host's executor and may panic.
        if panics::catch(|| self.phase.send_replace(phase)).is_err() {
            tracing::warn!("a waker of the host's executor panicked");
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        *self.phase.borrow() == Phase::Started
    }

    pub(crate) fn end(&self, how: TurnEnd) {
        self.span.in_scope(|| tracing::debug!(took = ?self.began.elapsed(), "the turn ended"));
        let phase = match how {
            TurnEnd::Cancelled => Phase::Cancelled,
            TurnEnd::Result { .. } | TurnEnd::WithoutResult => Phase::Ended,
        };
        *lock(&self.end) = Some(how);
        self.change(phase);
    }
}

/// The outcome of a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnOutcome {
    /// The text of the model in the main conversation, without subagents.
    pub text: String,
    /// The result message. It may be an error: see [`Self::into_result`].
    pub result: Box<ResultMessage>,
    /// The cost of the turn: everything that the CLI counted since the previous result. The totals in
    /// the result are those of the conversation.
    pub cost: Cost,
    /// The other messages of this session with the same result. The text and the cost are those of the
    /// shared turn.
    pub shared_with: Vec<MessageId>,
    /// Whether the CLI confirmed that the result is for this message. Older CLIs do not; the result is
    /// then assigned to the oldest pending message.
    pub is_confirmed: bool,
    /// The warnings of the turn.
    pub warnings: Vec<Warning>,
    failure: Option<Error>,
}

impl Serialize for TurnOutcome {
    /// Serializes as `{"type":"turn_outcome","text":…,"result":{…},"cost":{…},"shared_with":[…],
    /// "warnings":[…],"error":{…}}`. Empty lists are omitted, and so is `error` if the turn succeeded.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "turn_outcome")?;
        object.field("text", &self.text)?;
        object.field("result", &self.result)?;
        object.field("cost", &self.cost)?;
        object.list("shared_with", &self.shared_with)?;
        object.list("warnings", &self.warnings)?;
        object.optional("error", self.failure.as_ref())?;
        object.end()
    }
}

impl TurnOutcome {
    /// Returns the session ID, with which the conversation can be resumed.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.result.session_id.as_ref()
    }

    /// Returns `self` if the turn succeeded, and the error otherwise.
    ///
    /// A turn that the API rejected, that was interrupted or that reached a limit has a result, too, and
    /// [`Turn::finish`] returns `Ok` for it. This method turns such a result into an error.
    ///
    /// ```no_run
    /// # async fn example(session: claude_agent_kit::Session) -> claude_agent_kit::Result<()> {
    /// let outcome = session.send("Summarize README.md.").await?.finish().await?.into_result()?;
    /// println!("{}", outcome.text);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`LoginMissing`](ErrorKind::LoginMissing), [`RateLimited`](ErrorKind::RateLimited),
    /// [`Overloaded`](ErrorKind::Overloaded), [`ModelNotFound`](ErrorKind::ModelNotFound),
    /// [`ApiError`](ErrorKind::ApiError), [`MaxTurns`](ErrorKind::MaxTurns),
    /// [`BudgetExceeded`](ErrorKind::BudgetExceeded), [`PromptTooLong`](ErrorKind::PromptTooLong),
    /// [`Refused`](ErrorKind::Refused),
    /// [`Interrupted`](ErrorKind::Interrupted), [`NoStructuredOutput`](ErrorKind::NoStructuredOutput)
    /// and [`TurnFailed`](ErrorKind::TurnFailed).
    pub fn into_result(self) -> Result<Self> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok(self),
        }
    }
}

impl Turn {
    pub(crate) fn new(session: Session, slot: &TurnSlot) -> Self {
        let handles = &session.shared.handles;
        let reader = Reader::new(handles.feed.clone(), handles.warnings.clone(), slot.reader);
        Self {
            id: slot.id.clone(),
            reader,
            end: slot.end.clone(),
            phase: slot.phase.subscribe(),
            session,
            result: None,
            uncounted: UncountedTokens::default(),
            text: String::new(),
            warnings: Vec::new(),
            retry_delay: None,
            error: None,
            done: false,
        }
    }

    /// Returns the ID of the message, for example for [`Session::rewind_files`].
    pub fn message_id(&self) -> &MessageId {
        &self.id
    }

    /// Returns the cost of the turn. Before the result, and if the turn ends without one, it is an
    /// incomplete cost with the tokens of the messages that were read, without dollars.
    pub fn cost(&self) -> Cost {
        let so_far = || Cost::at_least(self.uncounted.tokens());
        match self.ended() {
            Some(TurnEnd::Result { cost, .. }) => cost.unwrap_or_else(so_far),
            Some(TurnEnd::Cancelled | TurnEnd::WithoutResult) => Cost::default(),
            None => so_far(),
        }
    }

    /// Returns the next item of the turn, or `None` after its result.
    ///
    /// # Errors
    /// The last item is an error if the CLI discarded the message
    /// ([`TurnCancelled`](ErrorKind::TurnCancelled)), if the session ended before the result, or if the
    /// reader lagged ([`Lagged`](ErrorKind::Lagged)).
    ///
    /// # Cancel safety
    /// This method is cancel safe: dropping the future loses no item.
    pub async fn next(&mut self) -> Option<Result<Item>> {
        std::future::poll_fn(|context| self.poll_item(context)).await
    }

    /// Cancels the message if its turn has not started. Returns whether the CLI cancelled it.
    ///
    /// Right after [`Session::send`] the CLI may not have read the message yet. It then returns `false`,
    /// but discards the message when it reads it, and the turn ends with
    /// [`TurnCancelled`](ErrorKind::TurnCancelled). [`Self::interrupt`] distinguishes these cases.
    ///
    /// # Errors
    /// Returns the errors of every operation.
    ///
    /// # Cancel safety
    /// If the future is dropped, the message may or may not have been cancelled.
    pub async fn cancel(&self) -> Result<bool> {
        let answer = self.session.cancel_message(self.id.clone()).await?;
        Ok(answer.cancelled.unwrap_or(false))
    }

    /// Ends the turn of this message: cancels the message if it is queued, or interrupts the turn if it
    /// is running. Returns which of the two happened.
    ///
    /// This method can be called at any time, also right after [`Session::send`]. A turn that several
    /// messages share ends for all of them. The protocol cannot address an interrupt to a turn: if this
    /// turn ends and the next one starts before the CLI reads the interrupt, the next turn is
    /// interrupted.
    ///
    /// # Errors
    /// Returns the errors of every operation.
    ///
    /// # Cancel safety
    /// If the future is dropped, the turn may or may not have been ended.
    pub async fn interrupt(&self) -> Result<TurnInterruption> {
        self.session.interrupt_turn(&self.id, self.phase.clone()).await
    }

    /// Waits for the result and returns the outcome of the turn. The outcome includes items that were
    /// already read with [`Self::next`]. A failed turn has an outcome, too:
    /// [`TurnOutcome::into_result`] turns it into an error.
    ///
    /// # Errors
    /// Returns the errors of [`Self::next`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the turn is dropped; the session continues.
    pub async fn finish(mut self) -> Result<TurnOutcome> {
        while let Some(item) = self.next().await {
            item?;
        }
        let ended = self.ended();
        let Some(result) = self.result.take() else {
            let given = self.error.take();
            let error = given.unwrap_or_else(|| self.without_result(ended.as_ref()));
            return Err(error.with_cost(self.cost()));
        };
        let (shared_with, is_confirmed) = match &ended {
            Some(TurnEnd::Result { messages, named, .. }) => {
                let others = messages.iter().filter(|other| **other != self.id);
                (others.cloned().collect(), *named)
            }
            Some(TurnEnd::Cancelled | TurnEnd::WithoutResult) | None => (Vec::new(), false),
        };
        let cost = self.cost();
        let failure = turn_failure(&result, &self.session.shared.handles.mask, self.retry_delay);
        Ok(TurnOutcome {
            text: std::mem::take(&mut self.text),
            cost,
            warnings: std::mem::take(&mut self.warnings),
            failure: failure.map(|failure| failure.with_cost(cost)),
            result,
            shared_with,
            is_confirmed,
        })
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Item>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let item = ready!(self.reader.poll_item(context));
        match &item {
            Some(Ok(item)) => self.record(item),
            Some(Err(error)) => {
                let error = error.clone().with_cost(self.cost());
                self.error = Some(error.clone());
                self.done = true;
                return Poll::Ready(Some(Err(error)));
            }
            None => {
                self.done = true;
                let error = self.end_error().map(|error| error.with_cost(self.cost()));
                return Poll::Ready(error.map(Err));
            }
        }
        Poll::Ready(item)
    }

    fn record(&mut self, item: &Item) {
        let message = match item {
            Item::Message(message) => message,
            Item::Warning(warning) => {
                self.warnings.push(warning.clone());
                return;
            }
            Item::PermissionRequest(_) => return,
        };
        self.uncounted.record(&message.body);
        self.retry_delay = retry_delay(&message.body).or(self.retry_delay);
        match &message.body {
            Body::Result(result) => self.result = Some(result.clone()),
            Body::Assistant(answer) if answer.parent_tool_use_id.as_ref().is_none() => {
                self.text.push_str(&answer.text());
            }
            _ => {}
        }
    }

    fn ended(&self) -> Option<TurnEnd> {
        lock(&self.end).clone()
    }

    /// Returns the error of a turn that ended without a result.
    fn end_error(&self) -> Option<Error> {
        match self.ended() {
            Some(TurnEnd::Result { .. }) => None,
            Some(TurnEnd::WithoutResult) => Some(
                Error::new(ErrorKind::NoResult, "the CLI completed the message without a result")
                    .with_help("send the message again with an ID that was not used before"),
            ),
            Some(TurnEnd::Cancelled) => Some(
                Error::new(ErrorKind::TurnCancelled, "the CLI discarded the message").with_help(
                    "the message was cancelled or interrupted; send it again if necessary",
                ),
            ),
            None => Some(self.session.over_error("turn")),
        }
    }

    fn without_result(&self, ended: Option<&TurnEnd>) -> Error {
        if let Some(TurnEnd::Result { oversized: true, .. }) = ended {
            return Error::new(
                ErrorKind::LineTooLong,
                "the result exceeds the maximum line length",
            )
            .with_help("raise `Limits::max_line_bytes`");
        }
        self.end_error().unwrap_or_else(|| {
            Error::new(ErrorKind::UndecodableResponse, "failed to decode the result message")
                .with_help("read the items of the turn to inspect the raw message")
        })
    }
}

impl Stream for Turn {
    type Item = Result<Item>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(context)
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("id", &self.id)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}
