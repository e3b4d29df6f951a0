//! Continues a parked conversation in a session.

use super::Session;
use crate::error::Result;
use crate::turn::Turn;

/// The prompt that makes the model issue its calls again, if the CLI replays none. The model reads it.
const CONTINUE: &str = "Decisions about the tool calls that were waiting for approval are available. Issue these calls again, unchanged.";

impl Session {
    /// Continues a parked conversation, and returns the turn in which its calls run, to be streamed like any other.
    /// `None` if there is nothing to continue: the CLI has no deferred call, and no decision about a call is unused.
    ///
    /// The CLI replays the call that it deferred: see [`Self::replayed_turn`]. If it deferred none, because all requests
    /// were made by subagents, a prompt asks the model to issue the calls again.
    ///
    /// [`approval::resume`](crate::approval::resume) does this in one call if only the outcome matters.
    ///
    /// ```no_run
    /// use claude_agent_kit::{Body, Item, Options, Session};
    ///
    /// # async fn example(options: Options) -> claude_agent_kit::Result<()> {
    /// // The options of the first run, with `Conversation::resume`.
    /// let session = Session::start(options).await?;
    /// if let Some(mut turn) = session.continue_parked().await? {
    ///     while let Some(item) = turn.next().await {
    ///         if let Item::Message(message) = item?
    ///             && let Body::Assistant(answer) = &message.body
    ///         {
    ///             println!("{}", answer.text());
    ///         }
    ///     }
    ///     let outcome = turn.finish().await?;
    ///     println!("parked again: {}", outcome.is_parked());
    /// }
    /// session.wait_until_idle().await;
    /// session.stop().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Self::replayed_turn`] and [`Self::send`]; [`StoreFailed`](crate::ErrorKind::StoreFailed) if the
    /// approvals cannot be read.
    ///
    /// # Cancel safety
    /// If the future is dropped, the conversation may or may not continue; the messages of its turn are among those of
    /// [`Self::messages`].
    pub async fn continue_parked(&self) -> Result<Option<Turn>> {
        if let Some(turn) = self.replayed_turn().await? {
            return Ok(Some(turn));
        }
        if self.shared.handles.has_unused_decision().await? {
            return self.send(CONTINUE).await.map(Some);
        }
        Ok(None)
    }

    /// Waits until neither a turn nor an agent in the background is running, or the session has ended. A query does so
    /// before it ends; a session that is [stopped](Self::stop) ends its agents.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn wait_until_idle(&self) {
        self.shared.handles.idle().await;
    }
}
