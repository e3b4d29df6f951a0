//! Approvals as records.

use super::record::{Approval, ApprovalStatus};
use super::request::ApprovalId;
use crate::record::{OwnerKey, Record, RecordChange, RecordKey, RecordKind};
use crate::{StoreError, StoreErrorKind};

impl Approval {
    /// Returns the key of the record of an approval.
    ///
    /// # Errors
    /// Fails if the scope is too long or contains a NUL character.
    pub fn record_key(scope: &str, id: &ApprovalId) -> Result<RecordKey, StoreError> {
        RecordKey::new(scope, RecordKind::Approval, id.as_str())
    }

    /// Returns the change that stores this approval: as a new record, or as the next version of one. The owner is the
    /// session.
    ///
    /// # Errors
    /// Fails if the approval cannot be serialized, for example because its directory is not in UTF-8.
    pub fn to_change(&self) -> Result<RecordChange, StoreError> {
        let request = &self.request;
        let key = Self::record_key(&request.scope, &request.id)?;
        let owner = OwnerKey::session(&request.scope, &request.session_id)?;
        let mut change = RecordChange::insert(key, &owner, self.to_text()?)?;
        change.replaces = self.version.checked_sub(1).filter(|replaced| *replaced > 0);
        change.is_open = self.status.is_open();
        change.due_at_ms = match self.status {
            ApprovalStatus::Pending | ApprovalStatus::Decided => {
                // A time that no store accepts is never reached.
                request.expires_at_ms.filter(|due| i64::try_from(*due).is_ok())
            }
            ApprovalStatus::Started
            | ApprovalStatus::Finished
            | ApprovalStatus::OutcomeUnknown
            | ApprovalStatus::Expired
            | ApprovalStatus::Withdrawn => None,
        };
        Ok(change)
    }

    fn to_text(&self) -> Result<String, StoreError> {
        serde_json::to_string(self).map_err(|error| {
            let message = format!("the approval cannot be serialized: {error}");
            StoreError::new(StoreErrorKind::Rejected, message)
                .with_help("use a path in UTF-8")
                .caused_by(error)
        })
    }

    /// Reads an approval from its record.
    ///
    /// # Errors
    /// Fails with [`Corrupt`](StoreErrorKind::Corrupt) if the text is not an approval, or is the one of another record: a
    /// store may be faulty or hostile, and an approval is valid for its own request only.
    pub fn from_record(record: &Record) -> Result<Self, StoreError> {
        let approval: Self =
            serde_json::from_str(&record.body).map_err(|_| damaged(record.key.id()))?;
        let request = &approval.request;
        let key = &record.key;
        let is_own = key.kind() == RecordKind::Approval
            && key.scope() == request.scope
            && key.id() == request.id.as_str()
            && *record.owner == *request.session_id.as_str()
            && record.version == approval.version
            && record.is_open == approval.status.is_open();
        if is_own { Ok(approval) } else { Err(StoreError::unrequested_approval(&request.id)) }
    }
}

fn damaged(id: &str) -> StoreError {
    let shown: String = id.chars().take(64).collect();
    let message = format!("the record of approval {shown} in the store is damaged");
    StoreError::new(StoreErrorKind::Corrupt, message).with_help(
        "check whether another program has changed the store, and restore it from a backup",
    )
}
