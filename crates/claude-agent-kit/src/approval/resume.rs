//! Continues parked conversations.

use super::settle::Settled;
use crate::error::Result;
use crate::options::Options;
use crate::session::Session;
use crate::tasks::BoxFuture;
use crate::turn::TurnOutcome;
use claude_session_store::approval::ApprovalStatus;

/// Continues a parked conversation, and returns the outcome of its turn, which may be
/// [parked](TurnOutcome::is_parked) again. Returns `None` if there is nothing to continue: the CLI has no deferred
/// call, and no decision is unused. The CLI runs for this turn only, and until its agents in the background have
/// ended, as after a query.
///
/// The options are those of the first run, with [`Conversation::resume`](crate::Conversation::resume).
///
/// [`Session::continue_parked`] returns the turn instead, to stream its messages.
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
        let mut outcome = match session.continue_parked().await? {
            Some(turn) => Some(turn.finish().await?),
            None => None,
        };
        if let Some(outcome) = &mut outcome {
            wait_for_agents(&session, outcome).await;
        }
        // The turn has its outcome, whatever the end of the process is.
        if let Err(error) = session.stop().await {
            tracing::warn!("the session ended with an error: {error}");
        }
        Ok(outcome)
    })
}

/// Waits for agents in the background, as a query does: they may have started the approved calls.
async fn wait_for_agents(session: &Session, outcome: &mut TurnOutcome) {
    let handles = &session.shared.handles;
    match handles.background_ceiling {
        // The calls of an agent that takes longer have an unknown outcome.
        Some(ceiling) => drop(tokio::time::timeout(ceiling, handles.idle()).await),
        None => handles.idle().await,
    }
    if handles.is_unsettled() {
        let Settled { approvals, warnings, .. } = handles.settle(Some(&outcome.result)).await;
        // An unknown outcome is reported once.
        outcome.approvals.retain(|approval| approval.status == ApprovalStatus::OutcomeUnknown);
        outcome.approvals.extend(approvals);
        outcome.warnings.extend(warnings);
    }
}
