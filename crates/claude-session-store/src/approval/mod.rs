//! Approvals of tool calls as values, with the transitions between their states. They are stored as [records](crate::record).

mod codec;
mod decision;
mod fields;
mod record;
mod request;

pub use decision::{Decision, Verdict};
pub use record::{Approval, ApprovalStatus, ApprovalUse, Refusal};
pub use request::{ApprovalId, ApprovalRequest};
