//! Approvals of tool calls as values, with the transitions between their states, and the trait of their stores.

mod decision;
mod fields;
#[cfg(feature = "memory")]
pub(crate) mod memory;
mod record;
mod request;
mod store;

pub use decision::{Decision, Verdict};
pub use record::{Approval, ApprovalStatus, ApprovalUse, Refusal};
pub use request::{ApprovalId, ApprovalRequest};
pub use store::{
    ApprovalFilter, ApprovalList, ApprovalPage, ApprovalPosition, ApprovalSelection, ApprovalStore,
    ApprovalWrite, Change, UnreadableApproval,
};
