//! Errors of session stores.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::key::{Epoch, SessionKey};
use crate::approval::ApprovalId;
use crate::record::OwnerKey;
use claude_wire::visible::visible_message;

/// The kinds of [`StoreError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// Another host has claimed the session since.
    Superseded,
    /// The store cannot be reached or is busy. The effect of the request is unknown.
    Unavailable,
    /// The store has no space left.
    Full,
    /// The store can never accept this request.
    Rejected,
    /// Stored data is damaged, or has been changed by another program.
    Corrupt,
}

impl StoreErrorKind {
    /// Returns the name of the kind in snake case, such as `superseded`. The name does not change.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Superseded => "superseded",
            Self::Unavailable => "unavailable",
            Self::Full => "full",
            Self::Rejected => "rejected",
            Self::Corrupt => "corrupt",
        }
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for StoreErrorKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// An error of a session store.
#[derive(Clone)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: Arc<str>,
    help: Option<Arc<str>>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl StoreError {
    /// Creates an error with a text: lower case, no full stop, the cause after a colon. The text must not contain
    /// credentials or entries.
    pub fn new(kind: StoreErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self { kind, message: message.into(), help: None, source: None }
    }

    /// Says what to do about the error. Replaces an earlier help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<Arc<str>>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Creates the error of an append whose epoch is not the current one.
    pub fn superseded(key: &SessionKey, epoch: Epoch, current: Epoch) -> Self {
        let message = format!(
            "session {} was claimed by another host: the epoch of this host is {epoch}, the current \
             one is {current}",
            key.session()
        );
        Self::new(StoreErrorKind::Superseded, message)
            .with_help("open the session again to continue it here")
    }

    /// Creates the error of a write of records with an epoch of an owner that is not the current one.
    pub fn records_superseded(owner: &OwnerKey, epoch: Epoch, current: Epoch) -> Self {
        let message = format!(
            "the records of {:?} were claimed by another host: the epoch of this host is {epoch}, the current one is \
             {current}",
            owner.owner()
        );
        Self::new(StoreErrorKind::Superseded, message)
            .with_help("resume the session to continue it here")
    }

    /// Creates the error of a store that returned another approval than the requested ones.
    pub fn unrequested_approval(id: &ApprovalId) -> Self {
        let message = format!(
            "the store returned approval {id}, which was not requested: its scope, session, ID, state or position \
             is another one"
        );
        Self::new(StoreErrorKind::Corrupt, message)
            .with_help("check who can write to the store, and restore it from a backup")
    }

    /// Creates the error of a store that returned an approval as it was before this run used it.
    pub fn outdated_approval(id: &ApprovalId) -> Self {
        let message =
            format!("the store returned an earlier version of approval {id}, which was used since");
        Self::new(StoreErrorKind::Corrupt, message).with_help(
            "check who can write to the store, and whether it was restored from a backup",
        )
    }

    /// Creates the error of a store that refuses every change of an approval because of an earlier one.
    pub fn never_written(id: &ApprovalId) -> Self {
        let message = format!(
            "approval {id} could not be changed because other changes preceded it again and again"
        );
        Self::new(StoreErrorKind::Rejected, message)
            .with_help("check that the store compares versions, and try again")
    }

    /// Creates the error of a cursor that is not one of the store.
    pub fn invalid_cursor(cursor: &str) -> Self {
        let shown: String = cursor.chars().take(64).collect();
        let message = format!("invalid cursor: {shown:?}");
        Self::new(StoreErrorKind::Rejected, message)
            .with_help("pass `SessionList::next` of the same store")
    }

    /// Creates the error of a store that does not implement an optional method.
    pub fn deletion_unsupported(method: &str) -> Self {
        let message = "this store does not support retention";
        Self::new(StoreErrorKind::Rejected, message).with_help(format!("implement `{method}`"))
    }

    /// Creates the error of a value that no store accepts.
    pub fn rejected(message: String) -> Self {
        Self::new(StoreErrorKind::Rejected, message)
    }

    /// Returns the kind.
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }

    /// Returns the text without the help.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns what to do about the error.
    pub fn help(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Returns whether the same request may succeed later: [`Unavailable`](StoreErrorKind::Unavailable) and
    /// [`Full`](StoreErrorKind::Full).
    pub fn is_retryable(&self) -> bool {
        matches!(self.kind, StoreErrorKind::Unavailable | StoreErrorKind::Full)
    }
}

/// The message, with the help after `; help: `, and with invisible characters escaped.
impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        visible_message(&self.message).fmt(f)?;
        match &self.help {
            Some(help) => write!(f, "; help: {}", visible_message(help)),
            None => Ok(()),
        }
    }
}

/// The text, as `fn main() -> Result<…>` prints it.
impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unavailable_and_full_stores_are_worth_a_retry() {
        let is_retryable = |kind| StoreError::new(kind, "").is_retryable();
        assert!(is_retryable(StoreErrorKind::Unavailable) && is_retryable(StoreErrorKind::Full));
        for kind in [StoreErrorKind::Superseded, StoreErrorKind::Rejected, StoreErrorKind::Corrupt]
        {
            assert!(!is_retryable(kind), "{kind}");
        }
    }

    #[test]
    fn an_error_has_its_text_and_its_cause() {
        use std::error::Error as _;

        let error = StoreError::new(StoreErrorKind::Full, "the disk is full");
        assert!(error.source().is_none());
        let error = error.caused_by(std::io::Error::from(std::io::ErrorKind::StorageFull));
        assert_eq!(error.to_string(), "the disk is full");
        assert!(error.clone().source().unwrap().is::<std::io::Error>());
        assert_eq!(format!("{error:?}"), "the disk is full");
        let error = error.with_help("free space");
        assert_eq!((error.message(), error.help()), ("the disk is full", Some("free space")));
        assert_eq!(error.to_string(), "the disk is full; help: free space");
        let error = StoreError::new(StoreErrorKind::Corrupt, "the server said \u{202e}\n");
        assert_eq!(error.to_string(), "the server said \\u{202e}\n");
    }

    #[test]
    fn a_long_cursor_is_shortened_in_the_message() {
        assert!(StoreError::invalid_cursor(&"é".repeat(9_999)).to_string().len() < 300);
    }
}
