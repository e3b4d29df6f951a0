//! What the model and the host read about approvals.

use crate::store::StoreError;
use crate::warning::{Warning, WarningCode};

// The model reads these texts.
pub(super) const HELD: &str = "not run: waiting for approval; issue it again unchanged";
pub(super) const UNKNOWN: &str = "not run again: the call was approved and started earlier, and its outcome is unknown; check \
                       whether it took effect before you issue it again";
pub(super) const EXPIRED: &str = "not run: the request for approval expired";
pub(super) const UNAVAILABLE: &str =
    "not run: the approval cannot be requested now; try again later";
pub(super) const SUPERSEDED: &str = "not run: another host continues this conversation";
pub(super) const UNIDENTIFIED: &str =
    "not run: the call cannot be identified, so it cannot be approved";

pub(super) const POLICY_FAILED: &str = "not run: the approval policy failed";
pub(super) const INTERRUPTED: &str = "not run: interrupted";
pub(super) const CHANGES_RULES: &str = "the approval changes permission rules";

/// The texts, for the list of messages.
#[cfg(test)]
pub(crate) const MODEL_TEXTS: [&str; 9] = [
    HELD,
    UNKNOWN,
    EXPIRED,
    UNAVAILABLE,
    SUPERSEDED,
    UNIDENTIFIED,
    POLICY_FAILED,
    INTERRUPTED,
    CHANGES_RULES,
];

pub(crate) fn policy_failed(tool: &str, error: &str) -> Warning {
    let message = format!(
        "the approval policy failed for a call of {tool:?}, so the call was denied: {error}; help: correct the \
         callback"
    );
    Warning::new(WarningCode::ApprovalFailed, message)
}

pub(crate) fn store_failed(tool: &str, error: &StoreError) -> Warning {
    let message = format!(
        "cannot request approval for a {tool:?} call, so the call was denied: {error}; help: check the approval store"
    );
    Warning::new(WarningCode::ApprovalFailed, message)
}

pub(crate) fn settling_failed(error: &StoreError) -> Warning {
    let message = format!(
        "the approvals of the turn could not be read, so its outcome lists none: {error}; help: check the approval \
         store"
    );
    Warning::new(WarningCode::ApprovalFailed, message)
}
