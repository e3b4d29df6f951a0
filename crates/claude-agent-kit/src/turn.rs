//! Turns of a session.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use claude_agent_core::session::TurnEnd;
use claude_wire::id::{MessageId, SessionId};
use claude_wire::message::ResultMessage;
use claude_wire::{Body, Cost};
use futures_core::Stream;
use serde::{Serialize, Serializer};
use tokio::sync::watch;

use crate::approval::settle::Settled;
use crate::approval::{self, Approval};
use crate::backlog::Subscriber;
use crate::cost::UncountedTokens;
use crate::diagnose::{retry_delay, turn_failure};
use crate::driver::WarningSink;
use crate::error::{Error, ErrorKind, Result};
use crate::feed::Feed;
use crate::item::Item;
use crate::lock::lock;
use crate::panics;
use crate::reader::Reader;
use crate::session::{Session, TurnInterruption};
use crate::warning::Warning;
use claude_session_store::json_object::JsonObject;

/// The turn of a user message: the stream of its items, up to its result.
///
/// The CLI decides how messages become turns: a message that is sent during a turn may join it, and
/// queued messages may share a turn. Several turns then have the same items and the same result.
///
/// [`Session::replayed_turn`] returns a turn without a user message, in which the CLI replays a deferred tool
/// call.
///
/// Dropping a turn does not affect the session.
pub struct Turn {
    session: Session,
    id: MessageId,
    reader: Reader,
    end: Arc<Mutex<Option<TurnEnd>>>,
    phase: watch::Receiver<Phase>,
    result: Option<Arc<ResultMessage>>,
    uncounted: UncountedTokens,
    text: String,
    warnings: Vec<Warning>,
    /// The delay before the last retry of the CLI.
    retry_delay: Option<Duration>,
    /// The error that was the last item.
    error: Option<Error>,
    done: bool,
}

/// The turn as the driver knows it.
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
    /// The turn has not begun.
    Waiting,
    Started,
    /// The CLI discarded the message.
    Cancelled,
    /// The turn has its result, or will have none.
    Ended,
}

/// A turn that is not attached to a session handle, which would keep the session alive.
#[derive(Debug)]
pub(crate) struct DetachedTurn {
    id: MessageId,
    reader: Reader,
    end: Arc<Mutex<Option<TurnEnd>>>,
    phase: watch::Receiver<Phase>,
}

impl TurnSlot {
    pub(crate) fn new(id: MessageId, reader: Subscriber) -> Self {
        let span = tracing::debug_span!("claude_turn", %id);
        let phase = watch::Sender::new(Phase::Waiting);
        Self { id, reader, end: Arc::default(), phase, span, began: Instant::now() }
    }

    /// Creates the host's side of the turn.
    pub(crate) fn detached(&self, feed: Arc<Feed>, warnings: WarningSink) -> DetachedTurn {
        DetachedTurn {
            id: self.id.clone(),
            reader: Reader::new(feed, warnings, self.reader),
            end: self.end.clone(),
            phase: self.phase.subscribe(),
        }
    }

    pub(crate) fn start(&self) {
        self.change(Phase::Started);
    }

    fn change(&self, phase: Phase) {
        // This runs wakers of the host.
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
    /// The text of the model in the main conversation.
    pub text: String,
    /// The result message, which may be an error: see [`Self::into_result`].
    pub result: Arc<ResultMessage>,
    /// The cost of the turn: everything that the CLI counted since the previous result. The result
    /// message has the totals of the conversation.
    pub cost: Cost,
    /// The other messages of this session that share this result. Text and cost are those of all of
    /// them.
    pub shared_with: Vec<MessageId>,
    /// Whether the CLI confirmed that the result is for this message. Before CLI
    /// 2.1.265, some results are not confirmed; then this is the last result since the message was started. A
    /// replayed turn has no message, so this is `false`.
    pub is_confirmed: bool,
    /// Whether the store had all entries before the result when the result was delivered; `None` without a
    /// [store](crate::Options::store).
    pub stored: Option<bool>,
    /// The [approvals](crate::approval) that the turn left open: those that are pending, decisions that no call has
    /// used, and calls whose outcome is unknown.
    pub approvals: Vec<Approval>,
    /// The warnings of the turn.
    pub warnings: Vec<Warning>,
    failure: Option<Error>,
}

impl Serialize for TurnOutcome {
    /// Serializes as `{"type":"turn_outcome","text":…,"result":{…},"cost":{…},"shared_with":[…],
    /// "stored":…,"approvals":[…],"warnings":[…],"error":{…}}`. Empty lists are omitted, and so are `error` if the turn
    /// succeeded and `stored` without a store.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "turn_outcome")?;
        object.field("text", &self.text)?;
        object.field("result", &*self.result)?;
        object.field("cost", &self.cost)?;
        object.list("shared_with", &self.shared_with)?;
        object.optional("stored", self.stored.as_ref())?;
        object.list("approvals", &self.approvals)?;
        object.list("warnings", &self.warnings)?;
        object.optional("error", self.failure.as_ref())?;
        object.end()
    }
}

impl TurnOutcome {
    /// Returns the ID of the session, for resuming the conversation.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.result.session_id.as_ref()
    }

    /// Returns whether the conversation is parked: calls wait for an [approval](crate::approval). Such a turn is
    /// not an error.
    pub fn is_parked(&self) -> bool {
        approval::is_parked(&self.approvals)
    }

    /// Returns `self` if the turn succeeded, and its error otherwise.
    ///
    /// A turn that the API rejected, that was interrupted or that reached a limit has a result too, and
    /// [`Turn::finish`] returns `Ok` for it.
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

/// For how long an interrupted turn is waited for.
const AFTER_INTERRUPT: Duration = Duration::from_secs(30);

/// Creates the error of a CLI that acknowledged an interrupt and does not end the turn.
pub(crate) fn not_interrupted() -> Error {
    let message = format!("the turn did not end within {AFTER_INTERRUPT:?} after its interrupt");
    Error::new(ErrorKind::ControlTimeout, message)
        .with_help("stop the session")
        .with(|facts| facts.limit = Some(AFTER_INTERRUPT))
}

impl Turn {
    pub(crate) fn new(session: Session, slot: &TurnSlot) -> Self {
        let handles = &session.shared.handles;
        let detached = slot.detached(handles.feed.clone(), handles.warnings.clone());
        Self::attach(session, detached)
    }

    pub(crate) fn attach(session: Session, detached: DetachedTurn) -> Self {
        let DetachedTurn { id, reader, end, phase } = detached;
        Self {
            id,
            reader,
            end,
            phase,
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

    /// Returns the ID of the message of the turn, as `rewind_files` expects it. The ID of a replayed turn is
    /// chosen by the CLI.
    pub fn message_id(&self) -> &MessageId {
        &self.id
    }

    /// Returns the cost of the turn. Before its result, and when it ends without one, these are the
    /// tokens of the messages that were read, without dollars and not complete.
    pub fn cost(&self) -> Cost {
        let so_far = || Cost::at_least(self.uncounted.tokens());
        match self.ended() {
            Some(TurnEnd::Result { cost, .. }) => cost.unwrap_or_else(so_far),
            Some(TurnEnd::Cancelled | TurnEnd::WithoutResult) => Cost::default(),
            None => so_far(),
        }
    }

    /// Returns the next item of the turn; `None` after its result.
    ///
    /// # Errors
    /// Once, as the last item: [`TurnCancelled`](ErrorKind::TurnCancelled) when the CLI discarded the
    /// message, [`Lagged`](ErrorKind::Lagged), or the error that ended the session.
    ///
    /// # Cancel safety
    /// This method is cancel safe: dropping the future loses no item.
    pub async fn next(&mut self) -> Option<Result<Item>> {
        std::future::poll_fn(|context| self.poll_item(context)).await
    }

    /// Cancels the message if its turn has not begun. Returns whether it was cancelled.
    ///
    /// Right after [`Session::send`] the CLI may not have received the message yet. This then returns
    /// `false`, and the CLI discards the message when it arrives: the turn ends with
    /// [`TurnCancelled`](ErrorKind::TurnCancelled). [`Self::interrupt`] distinguishes the two cases.
    ///
    /// # Errors
    /// Returns the errors of every operation.
    ///
    /// # Cancel safety
    /// If the future is dropped, the message may or may not be cancelled.
    pub async fn cancel(&self) -> Result<bool> {
        let answer = self.session.cancel_message(self.id.clone()).await?;
        Ok(answer.cancelled.unwrap_or(false))
    }

    /// Ends the turn of this message: cancels the message while it is queued, interrupts the turn once it
    /// is running. Returns which of the two happened.
    ///
    /// Works at any time, also right after [`Session::send`]. A turn that several messages share ends for
    /// all of them. An interrupt cannot name its turn: if this turn ends and the next one begins just
    /// before the interrupt arrives, the next one is interrupted.
    ///
    /// # Errors
    /// Returns the errors of every operation.
    ///
    /// # Cancel safety
    /// If the future is dropped, the turn may or may not be interrupted.
    pub async fn interrupt(&self) -> Result<TurnInterruption> {
        self.session.interrupt_turn(&self.id, self.phase.clone()).await
    }

    /// As [`Self::finish`], but interrupts the turn after `limit` and waits for the result of the interrupted turn, which
    /// the CLI sends soon: its outcome has everything that was read, and [`TurnOutcome::into_result`] returns
    /// [`Interrupted`](ErrorKind::Interrupted). A message that is still queued then is cancelled.
    ///
    /// `tokio::time::timeout` around [`Self::finish`] would only stop waiting: the turn would go on, and so would its
    /// cost.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn example(session: claude_agent_kit::Session) -> claude_agent_kit::Result<()> {
    /// let turn = session.send("Summarize README.md.").await?;
    /// let outcome = turn.finish_within(Duration::from_secs(120)).await?;
    /// println!("{} ({})", outcome.text, outcome.cost);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::finish`] and [`Self::interrupt`]; [`TurnCancelled`](ErrorKind::TurnCancelled) if the turn had not
    /// begun; [`ControlTimeout`](ErrorKind::ControlTimeout) if the CLI sends no result within 30 seconds after the
    /// interrupt.
    ///
    /// # Cancel safety
    /// Dropping the future drops the turn; the session continues, and the turn is not interrupted.
    pub async fn finish_within(mut self, limit: Duration) -> Result<TurnOutcome> {
        let read = async {
            while let Some(item) = self.next().await {
                item?;
            }
            Result::Ok(())
        };
        if let Ok(read) = tokio::time::timeout(limit, read).await {
            read?;
            return self.finish().await;
        }
        self.interrupt().await?;
        let interrupted = tokio::time::timeout(AFTER_INTERRUPT, self.finish()).await;
        interrupted.unwrap_or_else(|_| Err(not_interrupted()))
    }

    /// Waits for the result and returns the outcome of the turn, including the items that
    /// [`Self::next`] has returned. A turn that failed has a result too: see
    /// [`TurnOutcome::into_result`].
    ///
    /// # Errors
    /// Those of [`Self::next`].
    ///
    /// # Cancel safety
    /// Dropping the future drops the turn; the session continues.
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
        let (shared_with, is_confirmed, stored) = match &ended {
            Some(TurnEnd::Result { messages, named, stored, .. }) => {
                let mut others = messages.to_vec();
                others.retain(|other| *other != self.id);
                (others, *named, *stored)
            }
            Some(TurnEnd::Cancelled | TurnEnd::WithoutResult) | None => (Vec::new(), false, None),
        };
        let cost = self.cost();
        let Settled { approvals, held, warnings } =
            self.session.shared.handles.settle(Some(&result)).await;
        let result = approval::without_held(result, &held);
        self.warnings.extend(warnings);
        let failure = turn_failure(&result, &self.session.shared.handles.mask, self.retry_delay);
        Ok(TurnOutcome {
            text: std::mem::take(&mut self.text),
            cost,
            approvals,
            warnings: std::mem::take(&mut self.warnings),
            failure: failure.map(|failure| failure.with_cost(cost)),
            result,
            shared_with,
            is_confirmed,
            stored,
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

    /// Returns why the turn ended without a result, if it did.
    fn end_error(&self) -> Option<Error> {
        match self.ended() {
            Some(TurnEnd::Result { .. }) => None,
            Some(TurnEnd::WithoutResult) => Some(completed_without_result()),
            Some(TurnEnd::Cancelled) => Some(cancelled()),
            None => Some(self.session.ended_error("turn")),
        }
    }

    fn without_result(&self, ended: Option<&TurnEnd>) -> Error {
        if let Some(TurnEnd::Result { oversized: true, .. }) = ended {
            return result_too_long();
        }
        self.end_error().unwrap_or_else(undecodable_result)
    }
}

pub(crate) fn completed_without_result() -> Error {
    Error::new(ErrorKind::NoResult, "the CLI completed the message without a result")
        .with_help("send the message again with an ID that was not used before")
}

pub(crate) fn cancelled() -> Error {
    let message = "the message was cancelled or interrupted before its turn began";
    Error::new(ErrorKind::TurnCancelled, message)
        .with_help("send the message again if it is still needed")
}

pub(crate) fn result_too_long() -> Error {
    Error::new(ErrorKind::LineTooLong, "the result message exceeds `Limits::max_line_bytes`")
        .with_help("increase `Limits::max_line_bytes`")
}

pub(crate) fn undecodable_result() -> Error {
    Error::new(ErrorKind::UndecodableResponse, "failed to decode the result message")
        .with_help("iterate the turn to inspect the raw message")
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
