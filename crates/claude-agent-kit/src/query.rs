//! One-shot queries: ask, and stream the answer.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use claude_wire::content::{ToolResultBlock, ToolUseBlock};
use claude_wire::id::SessionId;
use claude_wire::message::ResultMessage;
use claude_wire::session::{Cost, Exit, RunCost};
use claude_wire::{Body, Message};
use futures_core::Stream;

use crate::cost::Uncounted;
use crate::diagnose::{retry_delay, turn_failure};
use crate::driver::{self, Handles, RunGuard, RunKind};
use crate::error::{Error, ErrorKind, Result};
use crate::item::Item;
#[cfg(feature = "tools")]
use crate::mask::Mask;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::reader::Reader;
use crate::warning::Warning;

/// Asks, and gives the stream of the answer.
///
/// With [`Conversation::resume_or_start`](crate::Conversation::resume_or_start) it waits for the
/// handshake, because the CLI may have to be started a second time.
///
/// The CLI runs from here until its run is over: a result came and no background agent works any
/// more. The stream ends then. Dropping it, or [`QueryStream::close`], ends the CLI before.
///
/// # Errors
/// What keeps the CLI from being started: [`CliNotFound`](crate::ErrorKind::CliNotFound), a version that
/// will not do, [`InvalidOptions`](crate::ErrorKind::InvalidOptions) with everything that is wrong,
/// [`SpawnFailed`](crate::ErrorKind::SpawnFailed), [`NoRuntime`](crate::ErrorKind::NoRuntime). What comes later
/// comes from the stream.
///
/// # Cancel safety
/// Dropping the future leaves no process behind.
///
/// # Panics
/// On a Tokio runtime whose I/O or time driver is not enabled.
pub async fn query(prompt: impl Into<Prompt>, options: impl Into<Options>) -> Result<QueryStream> {
    let (prompt, options) = (prompt.into(), options.into());
    let Some(fallback) = options.fallback() else { return query_once(prompt, &options).await };
    let stream = query_once(prompt.clone(), &options).await?;
    match stream.handles.ready().await {
        Err(error) if fallback.is_for(&error) => {
            fallback.check_other_projects(&error).await?;
            query_once(prompt, &fallback.options).await
        }
        // The stream says what else happened.
        Ok(()) | Err(_) => Ok(stream),
    }
}

async fn query_once(prompt: Prompt, options: &Options) -> Result<QueryStream> {
    let started = Box::pin(driver::start(options, RunKind::Query(prompt))).await?;
    let handles = started.handles.clone();
    let reader = handles.reader();
    Ok(QueryStream {
        session_id: handles.events.session_id(),
        handles,
        guard: Some(started.run()),
        reader,
        results: 0,
        uncounted: Uncounted::default(),
        done: false,
    })
}

/// The answer to a query: messages and warnings as they come.
///
/// An `Err` is always the last item; what can be survived is a warning. After the end the stream
/// gives `None` for ever.
pub struct QueryStream {
    handles: Handles,
    /// `None` once the CLI is being ended.
    guard: Option<RunGuard>,
    reader: Reader,
    /// How many results were read.
    results: u64,
    uncounted: Uncounted,
    session_id: Option<SessionId>,
    done: bool,
}

impl QueryStream {
    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// What ended the run before its result, once, as the last item.
    ///
    /// # Cancel safety
    /// Dropping the future loses no item.
    pub async fn next(&mut self) -> Option<Result<Item>> {
        poll_fn(|context| self.poll_item(context)).await
    }

    /// Returns the ID of the session, for resuming it. It is known from the start, because the SDK
    /// chooses the ID of a new conversation and of a fork; only for
    /// [`Conversation::latest`](crate::Conversation::latest), in print mode, and where `extra_args` name
    /// the conversation, it is `None` until a message has named it.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.session_id.as_ref()
    }

    /// Returns whether the query continues an earlier conversation, or a copy of one. `None` before the
    /// handshake is done, and for [`Conversation::latest`](crate::Conversation::latest), where the CLI
    /// does not say. After [`Conversation::resume_or_start`](crate::Conversation::resume_or_start) it
    /// tells the two apart.
    pub fn is_resumed(&self) -> Option<bool> {
        self.handles.is_resumed()
    }

    /// Returns what the query has cost: what its results report, and until then the tokens of the
    /// messages that were read, without dollars and not complete.
    ///
    /// A query that is cut off has cost something too. After [`Self::close`] this includes the result
    /// with which the CLI ended its turn.
    pub fn cost(&self) -> Cost {
        let RunCost { sum: mut cost, results } = self.handles.cost();
        // A result that was not read yet counts what was read before it.
        if results <= self.results {
            let uncounted = self.uncounted.tokens();
            cost.tokens += uncounted;
            cost.is_complete &= self.results > 0 && uncounted.total() == 0;
        }
        cost
    }

    #[cfg(feature = "tools")]
    pub(crate) fn mask(&self) -> &Mask {
        &self.handles.mask
    }

    /// The process of the CLI, if it is one of this machine.
    pub fn pid(&self) -> Option<u32> {
        self.handles.pid
    }

    /// Ends the CLI and waits until it has ended; gives how. What was not read is dropped, and the
    /// stream is at its end. Closing again changes nothing.
    ///
    /// # Cancel safety
    /// Dropping the future does not stop the end of the CLI.
    pub async fn close(&mut self) -> Option<Exit> {
        self.release();
        poll_fn(|context| self.handles.feed.poll_over(context)).await.exit
    }

    /// Everything until the end, with the error that was the end of it, if one was.
    ///
    /// # Cancel safety
    /// Dropping the future ends the CLI.
    pub async fn collect(mut self) -> Collected {
        let mut collected = Collected::default();
        while let Some(item) = self.next().await {
            match item {
                Ok(item) => collected.items.push(item),
                Err(error) => collected.error = Some(error),
            }
        }
        collected.cost = self.cost();
        let delays = collected.messages().filter_map(|message| retry_delay(&message.body));
        let delay = delays.last();
        let failure =
            collected.result().and_then(|result| turn_failure(result, &self.handles.mask, delay));
        collected.failure = failure.map(|failure| failure.with_cost(collected.cost));
        collected
    }

    fn poll_item(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Item>>> {
        if self.done {
            return Poll::Ready(None);
        }
        let item = match ready!(self.reader.poll_item(context)) {
            Some(Ok(item)) => {
                if let Item::Message(message) = &item {
                    self.look_at(message);
                }
                Ok(item)
            }
            Some(Err(error)) => {
                self.release();
                Err(error.with_cost(self.cost()))
            }
            None => {
                self.done = true;
                let error = self.end_error().map(|error| error.with_cost(self.cost()));
                return Poll::Ready(error.map(Err));
            }
        };
        Poll::Ready(Some(item))
    }

    /// Why the run ended before its result, if it did.
    fn end_error(&self) -> Option<Error> {
        let feed = self.reader.feed();
        let is_stopped = self.results == 0 && feed.over().is_some_and(|over| over.stopped);
        feed.error().or_else(|| is_stopped.then(stopped))
    }

    fn look_at(&mut self, message: &Message) {
        // Also one that does not decode.
        if message.body.kind() == Some("result") {
            self.results += 1;
        }
        self.uncounted.look_at(&message.body);
        if let Some(id) = message.session_id()
            && self.session_id.as_ref() != Some(id)
        {
            self.session_id = Some(id.clone());
        }
    }

    /// Reads no more and lets the CLI end.
    fn release(&mut self) {
        self.done = true;
        self.reader.release();
        self.guard = None;
    }
}

impl Stream for QueryStream {
    type Item = Result<Item>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_item(context)
    }
}

impl Drop for QueryStream {
    fn drop(&mut self) {
        self.release();
    }
}

impl fmt::Debug for QueryStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryStream")
            .field("pid", &self.handles.pid)
            .field("session_id", &self.session_id)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

fn stopped() -> Error {
    Error::new(ErrorKind::SessionStopped, "the query was stopped before its result")
        .with_help("start another one")
}

/// Everything that a query gave.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Collected {
    /// Messages and warnings, in order.
    pub items: Vec<Item>,
    /// What ended the run before its result, if something did.
    pub error: Option<Error>,
    /// What the run cost. Not complete if it was cut off.
    pub cost: Cost,
    /// Why the turn of the last result failed.
    failure: Option<Error>,
}

impl Collected {
    /// Returns everything that a run gave which succeeded, and why it failed otherwise.
    ///
    /// A run that the API refused, or that reached a limit, has a result all the same.
    ///
    /// ```no_run
    /// # use claude_agent_kit::{Options, query};
    /// # async fn example() -> claude_agent_kit::Result<()> {
    /// let answer = query("Why is the sky blue?", Options::new()).await?.collect().await.into_result()?;
    /// println!("{} ({})", answer.text(), answer.cost);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// What ended the run before its result, [`NoResult`](ErrorKind::NoResult) if it ended without one,
    /// and those of [`TurnOutcome::into_result`](crate::TurnOutcome::into_result) if its last result is
    /// that of a failure.
    pub fn into_result(mut self) -> Result<Self> {
        if let Some(error) = self.error.take().or_else(|| self.failure.take()) {
            return Err(error);
        }
        if self.result().is_none() {
            let error = Error::new(ErrorKind::NoResult, "the CLI exited without a result");
            return Err(error.with_help("see the warnings of the run").with_cost(self.cost));
        }
        Ok(self)
    }

    /// Returns the session, with which the conversation can be resumed.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.messages().filter_map(Message::session_id).last()
    }

    /// The messages.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.items.iter().filter_map(Item::message)
    }

    /// Returns the tool calls of the model, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolUseBlock> {
        self.messages().flat_map(Message::tool_calls)
    }

    /// Returns the results of tool calls, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResultBlock> {
        self.messages().flat_map(Message::tool_results)
    }

    /// The warnings.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        self.items.iter().filter_map(Item::warning)
    }

    /// The last result. It may be that of a failure: see [`Self::into_result`].
    pub fn result(&self) -> Option<&ResultMessage> {
        let results = self.messages().filter_map(|message| match &message.body {
            Body::Result(result) => Some(&**result),
            _ => None,
        });
        results.last()
    }

    /// What the model said in its main conversation, without what subagents said.
    pub fn text(&self) -> String {
        let answers = self.messages().filter_map(|message| match &message.body {
            Body::Assistant(answer) => {
                answer.parent_tool_use_id.as_ref().is_none().then(|| answer.text())
            }
            _ => None,
        });
        answers.collect()
    }
}
