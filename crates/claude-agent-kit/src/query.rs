//! Queries: one prompt and the stream of its answer.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use claude_agent_core::session::RunCost;
use claude_wire::content::{ToolResultBlock, ToolUseBlock};
use claude_wire::id::{SessionId, ToolUseId};
use claude_wire::message::ResultMessage;
use claude_wire::{Body, Cost, Exit, Message};
use futures_core::Stream;
use serde::{Serialize, Serializer};

use crate::approval::settle::Settled;
use crate::approval::{self, Approval};
use crate::cost::UncountedTokens;
use crate::diagnose::{retry_delay, turn_failure};
use crate::driver::{self, Handles, RunGuard, RunKind};
use crate::error::{Error, ErrorKind, Result};
use crate::item::Item;
#[cfg(feature = "tools")]
use crate::mask::Mask;
use crate::options::Options;
use crate::prompt::Prompt;
use crate::reader::Reader;
use crate::tasks::BoxFuture;
use crate::warning::Warning;
use claude_session_store::json_object::JsonObject;

/// Starts the CLI, sends a prompt and returns the stream of the answer.
///
/// The stream ends when the CLI has sent a result and no background agent is running. Dropping the
/// stream, or [`QueryStream::close`], ends the CLI earlier.
///
/// With [`Conversation::resume_or_start`](crate::Conversation::resume_or_start), this function waits for
/// the handshake, because the CLI may have to be started a second time.
///
/// # Errors
/// Returns the errors that prevent the CLI from starting: [`CliNotFound`](crate::ErrorKind::CliNotFound),
/// an unsupported version, [`InvalidOptions`](crate::ErrorKind::InvalidOptions) with all problems,
/// [`SpawnFailed`](crate::ErrorKind::SpawnFailed), [`NoRuntime`](crate::ErrorKind::NoRuntime). Later
/// errors are items of the stream.
///
/// # Cancel safety
/// If the future is dropped, the CLI is ended if it was started.
///
/// # Panics
/// Panics if the I/O or time driver of the Tokio runtime is not enabled.
pub async fn query(prompt: impl Into<Prompt>, options: impl Into<Options>) -> Result<QueryStream> {
    start(prompt.into(), options.into()).await
}

/// Starts the CLI for a query. Boxed as a trait object, so that a host application does not compile the
/// whole startup sequence again.
fn start(prompt: Prompt, options: Options) -> BoxFuture<'static, Result<QueryStream>> {
    Box::pin(async move {
        let Some(fallback) = options.fallback() else { return query_once(prompt, &options).await };
        let stream = query_once(prompt.clone(), &options).await?;
        match stream.handles.ready().await {
            Err(error) if fallback.is_for(&error) => {
                fallback.prepare(&error).await?;
                query_once(prompt, &fallback.options).await
            }
            // The stream reports other errors.
            Ok(()) | Err(_) => Ok(stream),
        }
    })
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
        uncounted: UncountedTokens::default(),
        result: None,
        done: false,
    })
}

/// The stream of messages and warnings of a query.
///
/// An `Err` is always the last item; a problem that does not end the run is a warning. The stream is
/// fused: after its end it always returns `None`.
pub struct QueryStream {
    handles: Handles,
    /// `None` once the shutdown of the CLI has begun.
    guard: Option<RunGuard>,
    reader: Reader,
    /// The number of results that were read.
    results: u64,
    uncounted: UncountedTokens,
    session_id: Option<SessionId>,
    /// The last result that was read.
    result: Option<Arc<ResultMessage>>,
    done: bool,
}

impl QueryStream {
    /// Returns the next item, or `None` at the end of the stream.
    ///
    /// # Errors
    /// If the run ended before its result, its last item is the error.
    ///
    /// # Cancel safety
    /// This method is cancel safe: dropping the future loses no item.
    pub async fn next(&mut self) -> Option<Result<Item>> {
        poll_fn(|context| self.poll_item(context)).await
    }

    /// Returns the session ID, with which the conversation can be resumed. The ID is known from the
    /// start, because the SDK generates the ID of a new conversation and of a fork. With
    /// [`Conversation::latest`](crate::Conversation::latest), in print mode, and if extra arguments set
    /// the conversation, it is `None` until a message contains it.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.session_id.as_ref()
    }

    /// Returns whether the query resumed an earlier conversation or a copy of one, for example with
    /// [`Conversation::resume_or_start`](crate::Conversation::resume_or_start). Returns `None` before
    /// the handshake is complete, and with [`Conversation::latest`](crate::Conversation::latest), for
    /// which the CLI does not report it.
    pub fn is_resumed(&self) -> Option<bool> {
        self.handles.is_resumed()
    }

    /// Returns the cost of the query so far: the cost reported by its results. Before the first result
    /// it is an incomplete cost with the tokens of the messages that were read, without dollars.
    ///
    /// After [`Self::close`], the cost includes the result with which the CLI ended the interrupted
    /// turn.
    pub fn cost(&self) -> Cost {
        let RunCost { sum: mut cost, results } = self.handles.cost();
        // A result that was not read yet already includes the messages that were read before it.
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

    /// Returns whether the store had all entries before the last result when the result was delivered.
    /// Returns `None` before the first result, and without a [store](Options::store).
    pub fn is_stored(&self) -> Option<bool> {
        self.handles.is_stored()
    }

    /// Returns the [approvals](crate::approval) that the query left open, like
    /// [`Collected::approvals`]. Call it at the end of the stream if you do not [collect](Self::collect) it: this
    /// records that the conversation is parked.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect; call it again.
    pub async fn approvals(&self) -> Vec<Approval> {
        self.handles.settle(self.result.as_deref()).await.approvals
    }

    /// Returns the process ID of the CLI, if it runs on this machine.
    pub fn pid(&self) -> Option<u32> {
        self.handles.pid
    }

    /// Ends the CLI, waits for its exit and returns its exit status. Unread items are discarded, and
    /// the stream ends. Calling it again has no effect.
    ///
    /// # Cancel safety
    /// If the future is dropped, the shutdown continues.
    pub async fn close(&mut self) -> Option<Exit> {
        self.release();
        poll_fn(|context| self.handles.feed.poll_over(context)).await.exit
    }

    /// Reads the stream to its end and returns all items, together with the error, if the run failed.
    ///
    /// # Cancel safety
    /// If the future is dropped, the CLI is ended.
    pub async fn collect(mut self) -> Collected {
        let mut collected = Collected::default();
        while let Some(item) = self.next().await {
            match item {
                Ok(item) => collected.items.push(item),
                Err(error) => collected.error = Some(error),
            }
        }
        collected.cost = self.cost();
        collected.stored = self.is_stored();
        let Settled { approvals, held, warnings } = self.handles.settle(collected.result()).await;
        collected.approvals = approvals;
        collected.release_held(&held);
        collected.items.extend(warnings.into_iter().map(Item::Warning));
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
                    self.record(message);
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

    /// Returns the error that ended the run before its result, if any.
    fn end_error(&self) -> Option<Error> {
        let feed = self.reader.feed();
        let is_stopped = self.results == 0 && feed.over().is_some_and(|over| over.stopped);
        feed.error().or_else(|| is_stopped.then(stopped))
    }

    fn record(&mut self, message: &Message) {
        // An undecodable result counts, too.
        if message.body.kind() == Some("result") {
            self.results += 1;
        }
        if let Body::Result(result) = &message.body {
            self.result = Some(result.clone());
        }
        self.uncounted.record(&message.body);
        if let Some(id) = message.session_id()
            && self.session_id.as_ref() != Some(id)
        {
            self.session_id = Some(id.clone());
        }
    }

    /// Stops reading and starts the shutdown of the CLI.
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

pub(crate) fn stopped() -> Error {
    Error::new(ErrorKind::SessionStopped, "the query was stopped before its result")
        .with_help("start a new query")
}

pub(crate) fn no_result() -> Error {
    Error::new(ErrorKind::NoResult, "the CLI exited without sending a result")
        .with_help("check the warnings of the run, and that `cli_path` names the `claude` program")
}

/// All items of a query, with its cost and its error.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Collected {
    /// Messages and warnings, in order.
    pub items: Vec<Item>,
    /// The error that ended the run before its result, if any.
    pub error: Option<Error>,
    /// The cost of the run. Not complete if the run ended early.
    pub cost: Cost,
    /// Whether the store had all entries before the last result when the result was delivered; `None` without
    /// a result, and without a [store](Options::store).
    pub stored: Option<bool>,
    /// The [approvals](crate::approval) that the run left open: those that are pending, decisions that no call has
    /// used, and calls whose outcome is unknown.
    pub approvals: Vec<Approval>,
    /// The error of the last result, if that turn failed.
    failure: Option<Error>,
}

impl Serialize for Collected {
    /// `{"type":"query_output","items":[…],"cost":{…},"stored":…,"approvals":[…],"error":{…}}`; the error, of the run or
    /// else of its last turn, is left out if the run succeeded, and `stored` without a store.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut object = JsonObject::new(serializer, "query_output")?;
        object.field("items", &self.items)?;
        object.field("cost", &self.cost)?;
        object.optional("stored", self.stored.as_ref())?;
        object.list("approvals", &self.approvals)?;
        object.optional("error", self.error.as_ref().or(self.failure.as_ref()))?;
        object.end()
    }
}

impl Collected {
    /// Returns `self` if the run succeeded, and the error otherwise.
    ///
    /// A run that the API rejected, or that reached a limit, has a result, too. This method turns such
    /// a result into an error.
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
    /// Returns the error that ended the run before its result, [`NoResult`](ErrorKind::NoResult) if it
    /// ended without a result, and the errors of
    /// [`TurnOutcome::into_result`](crate::TurnOutcome::into_result) if its last result is an error.
    pub fn into_result(mut self) -> Result<Self> {
        if let Some(error) = self.error.take().or_else(|| self.failure.take()) {
            return Err(error);
        }
        if self.result().is_none() {
            return Err(no_result().with_cost(self.cost));
        }
        Ok(self)
    }

    /// Returns whether the conversation is parked: calls wait for an [approval](crate::approval). Such a run is not
    /// an error.
    pub fn is_parked(&self) -> bool {
        approval::is_parked(&self.approvals)
    }

    /// Removes calls that wait for their approval from the denials of the results.
    fn release_held(&mut self, held: &[ToolUseId]) {
        for item in &mut self.items {
            if let Item::Message(message) = item
                && let Body::Result(result) = &mut message.body
            {
                *result = approval::without_held(result.clone(), held);
            }
        }
    }

    /// Returns the session ID, with which the conversation can be resumed.
    pub fn session_id(&self) -> Option<&SessionId> {
        self.messages().filter_map(Message::session_id).last()
    }

    /// Returns the messages, in order.
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

    /// Returns the warnings, in order.
    pub fn warnings(&self) -> impl Iterator<Item = &Warning> {
        self.items.iter().filter_map(Item::warning)
    }

    /// Returns the last result, which may be an error: see [`Self::into_result`].
    pub fn result(&self) -> Option<&ResultMessage> {
        let results = self.messages().filter_map(|message| match &message.body {
            Body::Result(result) => Some(&**result),
            _ => None,
        });
        results.last()
    }

    /// Returns the text of the model in the main conversation, without subagents.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for message in self.messages() {
            if let Body::Assistant(answer) = &message.body
                && answer.parent_tool_use_id.is_none()
            {
                text.push_str(&answer.text());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warning::WarningCode;

    #[test]
    fn collected_output_serializes_with_its_items_and_error() {
        let warning = Warning::new(WarningCode::EmptyOutput, "no output");
        let mut collected =
            Collected { items: vec![Item::Warning(warning)], ..Collected::default() };
        let cost = serde_json::to_string(&Cost::default()).unwrap();
        let items = r#"[{"type":"warning","code":"empty_output","text":"no output"}]"#;
        assert_eq!(
            serde_json::to_string(&collected).unwrap(),
            format!(r#"{{"type":"query_output","items":{items},"cost":{cost}}}"#)
        );
        collected.failure = Some(Error::new(ErrorKind::MaxTurns, "too many turns"));
        let json = serde_json::to_value(&collected).unwrap();
        assert_eq!(json["error"]["kind"], "max_turns");
        collected.error = Some(stopped());
        let json = serde_json::to_value(&collected).unwrap();
        assert_eq!(json["error"]["kind"], "session_stopped", "the error of the run comes first");
    }
}
