//! Errors of all stores of approvals.

use claude_agent_kit::store::{StoreError, StoreErrorKind};

/// Returns the error of an approval that has no text.
pub(crate) fn invalid(error: serde_json::Error) -> StoreError {
    let message = format!("the approval cannot be serialized: {error}; help: use a path in UTF-8");
    StoreError::new(StoreErrorKind::Rejected, message).caused_by(error)
}
