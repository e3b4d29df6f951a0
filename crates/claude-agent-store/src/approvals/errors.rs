//! Errors of all stores of approvals.

use claude_session_store::{StoreError, StoreErrorKind};

/// Returns the error of an approval that has no text.
pub(crate) fn invalid(error: serde_json::Error) -> StoreError {
    let message = format!("the approval cannot be serialized: {error}");
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help("use a path in UTF-8")
        .caused_by(error)
}
