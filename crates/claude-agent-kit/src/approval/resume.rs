//! Continues parked conversations.

use crate::error::Result;
use crate::options::Options;
use crate::session::Session;
use crate::tasks::BoxFuture;
use crate::turn::TurnOutcome;

/// The prompt that makes the model issue its calls again, if the CLI replays none. The model reads it.
const CONTINUE: &str = "Decisions about the tool calls that were waiting for approval are available. Issue these calls again, unchanged.";

/// Continues a parked conversation, and returns the outcome of its turn, which may be
/// [parked](TurnOutcome::is_parked) again. Returns `None` if there is nothing to continue: the CLI has no deferred
/// call, and no decision is unused. The CLI runs for this turn only.
///
/// The options are those of the first run, with [`Conversation::resume`](crate::Conversation::resume).
///
/// The CLI replays the call that it deferred. If it deferred none, because all requests were made by subagents, a
/// prompt asks the model to issue the calls again.
///
/// ```no_run
/// use claude_agent_kit::approval::{self, ApprovalPolicy, Approvals};
/// use claude_agent_kit::store::MemoryStore;
/// use claude_agent_kit::{Conversation, Options};
///
/// # async fn example(session_id: &str) -> claude_agent_kit::Result<()> {
/// let approvals = Approvals::new("tenant-1", MemoryStore::new());
/// let options = Options::new()
///     .approvals(ApprovalPolicy::new(approvals).tools(["Bash"]))
///     .conversation(Conversation::resume(session_id));
/// if let Some(outcome) = approval::resume(options).await? {
///     println!("{}", outcome.into_result()?.text);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Those of [`Session::start`] and [`Turn::finish`](crate::Turn::finish).
///
/// # Cancel safety
/// Dropping the future ends the CLI. A call that was started may have an unknown outcome then.
pub async fn resume(options: impl Into<Options>) -> Result<Option<TurnOutcome>> {
    resume_boxed(options.into()).await
}

/// Boxed as a trait object, so that a host application does not compile the whole sequence again.
fn resume_boxed(options: Options) -> BoxFuture<'static, Result<Option<TurnOutcome>>> {
    Box::pin(async move {
        let session = Session::start(options).await?;
        let turn = match session.replayed_turn().await? {
            Some(turn) => Some(turn),
            None if session.shared.handles.has_unused_decision().await? => {
                Some(session.send(CONTINUE).await?)
            }
            None => None,
        };
        let outcome = match turn {
            Some(turn) => Some(turn.finish().await?),
            None => None,
        };
        // The turn has its outcome, whatever the end of the process is.
        if let Err(error) = session.stop().await {
            tracing::warn!("the session ended with an error: {error}");
        }
        Ok(outcome)
    })
}
