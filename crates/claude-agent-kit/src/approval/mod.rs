//! Approvals that outlive the process: a tool call becomes a value that any process can decide about, later.
//!
//! [`Options::approvals`](crate::Options::approvals) sets an [`ApprovalPolicy`]. A call that needs approval is
//! stored as an [`Approval`] in a [`RecordStore`](crate::store::RecordStore), and the run waits for the decision. After
//! [`park_after`](ApprovalPolicy::park_after) the conversation is parked: the turn ends with
//! [pending approvals](crate::TurnOutcome::approvals), and no process is needed until the decision is made with
//! [`Approvals::decide`]. [`Approvals::resumable`] lists the conversations that can continue, and [`resume`] continues the conversation, on any machine that can reach the transcript.
//!
//! The guide has a [chapter](crate::guide::approvals) with the guarantees.

#[cfg(test)]
mod call_tests;
mod calls;
mod gate;
mod inbox;
mod matching;
mod policy;
pub(crate) mod records;
mod resumable;
#[cfg(test)]
mod resumable_tests;
mod resume;
pub(crate) mod settle;
mod store_access;
#[cfg(test)]
mod tests;
pub(crate) mod texts;

pub use claude_session_store::approval::{
    Approval, ApprovalId, ApprovalRequest, ApprovalStatus, Decision, Refusal, Verdict,
};
pub use inbox::{Approvals, DecideError, PendingApprovals, RefusedDecision};
pub use policy::{ApprovalPolicy, ApprovalRule};
pub use records::{ApprovalWatch, UnreadableApproval};
pub use resumable::{Resumable, ResumableConversations, ResumableWatcher};
pub use resume::resume;

use std::sync::Arc;

use claude_wire::id::ToolUseId;
use claude_wire::message::{PermissionDenial, ResultMessage};

pub(crate) use gate::Gate;

/// Returns whether approvals are pending.
pub(crate) fn is_parked(approvals: &[Approval]) -> bool {
    approvals.iter().any(|approval| approval.status == ApprovalStatus::Pending)
}

/// Removes calls that wait for their approval from the denials of a result: they are not denied.
pub(crate) fn without_held(
    mut result: Arc<ResultMessage>,
    held: &[ToolUseId],
) -> Arc<ResultMessage> {
    let is_held = |denial: &PermissionDenial| {
        denial.tool_use_id.as_ref().is_some_and(|call| held.contains(call))
    };
    if result.permission_denials.iter().any(is_held) {
        let mut kept = result.permission_denials.to_vec();
        kept.retain(|denial| !is_held(denial));
        Arc::make_mut(&mut result).permission_denials = kept.into();
    }
    result
}
