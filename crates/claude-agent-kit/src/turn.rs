//! One turn of a session.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Instant;

use claude_wire::Body;
use claude_wire::id::MessageId;
use claude_wire::message::{ResultMessage, Usage};
use claude_wire::session::{Subscriber, TurnEnd};
use futures_core::Stream;

use crate::error::{Error, ErrorKind, Result};
use crate::item::Item;
use crate::reader::Reader;
use crate::session::Session;

/// The turn of a user message: a stream of its items, from its start to its result.
///
/// The CLI decides how messages become turns: one that is sent while a turn runs may join it, and
/// messages that wait may share one. Then several turns have the same items and the same result.
///
/// Dropping a turn does not disturb the session.
pub struct Turn {
    session: Session,
    id: MessageId,
    reader: Reader,
    end: Arc<Mutex<Option<Ended>>>,
    result: Option<Box<ResultMessage>>,
    text: String,
    /// The error that was its last item.
    error: Option<Error>,
    done: bool,
}

/// What the driver knows a turn by.
#[derive(Debug)]
pub(crate) struct TurnSlot {
    pub(crate) id: MessageId,
    pub(crate) reader: Subscriber,
    end: Arc<Mutex<Option<Ended>>>,
    span: tracing::Span,
    began: Instant,
}

/// How a turn ended.
#[derive(Clone, Debug)]
struct Ended {
    how: TurnEnd,
    /// What the CLI had counted before.
    before: Totals,
}

/// What the CLI counts for the whole session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    cost_usd: f64,
}

impl Totals {
    pub(crate) fn of(result: &ResultMessage) -> Option<Self> {
        let cost = result.total_cost_usd.as_ref()?;
        Some(Self { cost_usd: cost.as_f64() })
    }
}

impl TurnSlot {
    pub(crate) fn new(id: MessageId, reader: Subscriber) -> Self {
        let span = tracing::debug_span!("claude_turn", %id);
        Self { id, reader, end: Arc::default(), span, began: Instant::now() }
    }

    pub(crate) fn end(&self, how: TurnEnd, before: Totals) {
        self.span.in_scope(|| tracing::debug!(took = ?self.began.elapsed(), "the turn ended"));
        *self.end.lock().unwrap_or_else(PoisonError::into_inner) = Some(Ended { how, before });
    }
}

/// What came of a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TurnOutcome {
    /// What the model said in its main conversation.
    pub text: String,
    /// The result. It is not success: see [`ResultMessage::is_error`].
    pub result: Box<ResultMessage>,
    /// What the turn used.
    pub usage: Option<Usage>,
    /// What the turn cost in dollars; the result itself has the whole session's.
    pub cost_usd: f64,
    /// The other messages of this session that waited for this result. Text, usage and cost are
    /// those of all of them.
    pub shared_with: Vec<MessageId>,
    /// Whether the CLI said that the result is for this message. If not, it says no such things,
    /// and the result is that of the oldest message that waited.
    pub named: bool,
}

impl Turn {
    pub(crate) fn new(session: Session, slot: &TurnSlot) -> Self {
        let handles = &session.shared.handles;
        let reader = Reader::new(handles.feed.clone(), handles.warnings.clone(), slot.reader);
        Self {
            id: slot.id.clone(),
            reader,
            end: slot.end.clone(),
            session,
            result: None,
            text: String::new(),
            error: None,
            done: false,
        }
    }

    /// The message that the turn is for, as `rewind_files` wants it.
    pub fn message_id(&self) -> &MessageId {
        &self.id
    }

    /// The next item of the turn; `None` after its result.
    ///
    /// # Errors
    /// Once, as the last item: [`TurnCancelled`](ErrorKind::TurnCancelled) when the CLI dropped the
    /// message, why the session ended when it did, [`Lagged`](ErrorKind::Lagged).
    ///
    /// # Cancel safety
    /// Dropping the future loses no item.
    pub async fn next(&mut self) -> Option<Result<Item>> {
        std::future::poll_fn(|context| self.poll_item(context)).await
    }

    /// Withdraws the message if its turn has not begun. Says whether it could be.
    ///
    /// # Errors
    /// Those of every operation.
    ///
    /// # Cancel safety
    /// Dropping the future may or may not have withdrawn the message.
    pub async fn cancel(&self) -> Result<bool> {
        let answer = self.session.cancel_message(self.id.clone()).await?;
        Ok(answer.cancelled.unwrap_or(false))
    }

    /// Waits for the result, and gives what came of the turn. What was taken with
    /// [`Self::next`] before counts too.
    ///
    /// # Errors
    /// As for [`Self::next`].
    ///
    /// # Cancel safety
    /// Dropping the future drops the turn; the session goes on.
    pub async fn finish(mut self) -> Result<TurnOutcome> {
        while let Some(item) = self.next().await {
            item?;
        }
        let ended = self.ended();
        let Some(result) = self.result.take() else {
            let given = self.error.take();
            return Err(given.unwrap_or_else(|| self.without_result(ended.as_ref())));
        };
        let (shared_with, named) = match ended.as_ref().map(|ended| &ended.how) {
            Some(TurnEnd::Result { messages, named, .. }) => {
                let others = messages.iter().filter(|other| **other != self.id);
                (others.cloned().collect(), *named)
            }
            _ => (Vec::new(), false),
        };
        let before = ended.map(|ended| ended.before).unwrap_or_default();
        let cost = Totals::of(&result).map_or(0.0, |totals| totals.cost_usd - before.cost_usd);
        Ok(TurnOutcome {
            text: std::mem::take(&mut self.text),
            usage: result.usage.clone(),
            cost_usd: cost.max(0.0),
            result,
            shared_with,
            named,
        })
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Item>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let item = ready!(self.reader.poll_item(context));
        match &item {
            Some(Ok(item)) => self.look_at(item),
            Some(Err(error)) => {
                self.error = Some(error.clone());
                self.done = true;
            }
            None => {
                self.done = true;
                return Poll::Ready(self.end_error().map(Err));
            }
        }
        Poll::Ready(item)
    }

    fn look_at(&mut self, item: &Item) {
        let Item::Message(message) = item else { return };
        match &message.body {
            Body::Result(result) => self.result = Some(result.clone()),
            Body::Assistant(answer) if answer.parent_tool_use_id.as_ref().is_none() => {
                self.text.push_str(&answer.text());
            }
            _ => {}
        }
    }

    fn ended(&self) -> Option<Ended> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Why a turn came to its end, if not by its result.
    fn end_error(&self) -> Option<Error> {
        match self.ended().map(|ended| ended.how) {
            Some(TurnEnd::Result { .. }) => None,
            Some(_) => Some(
                Error::new(ErrorKind::TurnCancelled, "the CLI dropped the message")
                    .remedy("it was withdrawn or interrupted; send it again if it still matters"),
            ),
            None => Some(self.session.over_error("turn")),
        }
    }

    fn without_result(&self, ended: Option<&Ended>) -> Error {
        let oversized =
            matches!(ended, Some(Ended { how: TurnEnd::Result { oversized: true, .. }, .. }));
        if oversized {
            return Error::new(ErrorKind::LineTooLong, "the result was longer than a line may be")
                .remedy("raise `max_line_bytes`");
        }
        self.end_error().unwrap_or_else(|| {
            Error::new(ErrorKind::UndecodableAnswer, "the result could not be made out")
                .remedy("read the items of the turn to see it as it came")
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
