//! Errors of encrypted stores.

use std::fmt;

use claude_session_store::record::RecordKey;
use claude_session_store::{Sequence, SessionId, StoreError, StoreErrorKind};

use super::cipher::CHAINED_VERSION;
use super::keyring::MAX_ID_BYTES;

/// Returns the error of an ID that cannot name a key.
pub(crate) fn invalid_key_id(id: &str) -> StoreError {
    let message = format!("invalid ID of an encryption key: {:?}", shorten(id));
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help(format!("pass 1 to {MAX_ID_BYTES} bytes without control characters"))
}

/// Returns the error of two keys with one ID.
pub(crate) fn duplicate_key(id: &str) -> StoreError {
    let message = format!("the keyring has two encryption keys with the ID {id:?}");
    StoreError::new(StoreErrorKind::Rejected, message).with_help("give every key its own ID")
}

/// Returns the error of a text whose key is not in the keyring.
pub(crate) fn unknown_key(what: &str, id: &str) -> StoreError {
    let message = format!("{what} is encrypted with the unknown key {:?}", shorten(id));
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help("add the key with `Keyring::previous`")
}

/// Returns the error of a text that a newer version of this crate has encrypted.
pub(crate) fn newer_format(what: &str, version: u64) -> StoreError {
    let message = format!(
        "{what} is encrypted in format {version}, and this version of \
         claude-agent-store supports up to format {CHAINED_VERSION}"
    );
    StoreError::new(StoreErrorKind::Rejected, message).with_help("update claude-agent-store")
}

/// Returns the error of a text that is not what was stored.
pub(crate) fn corrupt(what: &str) -> StoreError {
    let message = format!(
        "{what} cannot be decrypted: it was changed, moved, or stored without \
         encryption"
    );
    StoreError::new(StoreErrorKind::Corrupt, message)
        .with_help("check who can write to the store, and restore it from a backup")
}

/// Returns the error of an entry that is not at the place at which it was appended.
pub(crate) fn misplaced(session: &SessionId, sequence: Sequence) -> StoreError {
    let message = format!(
        "entry {sequence} of session {session} is not at its place: entries were swapped, repeated or removed"
    );
    StoreError::new(StoreErrorKind::Corrupt, message)
        .with_help("check who can write to the store, and restore it from a backup")
}

/// Returns the error of a system without random numbers.
pub(crate) fn no_random_numbers(error: impl fmt::Display) -> StoreError {
    let message = format!("cannot encrypt: no random numbers are available: {error}");
    StoreError::new(StoreErrorKind::Unavailable, message)
}

/// Returns the error of an entry that the cipher does not accept.
pub(crate) fn too_long(bytes: usize) -> StoreError {
    let message = format!("cannot encrypt a text of {bytes} bytes: the text is too long");
    StoreError::new(StoreErrorKind::Rejected, message)
}

/// Returns the error of a store that returned another record than the requested ones.
pub(crate) fn unrequested(key: &RecordKey) -> StoreError {
    let message = format!("the store returned the record of {key}, which was not requested");
    StoreError::new(StoreErrorKind::Corrupt, message)
        .with_help("check who can write to the store, and restore it from a backup")
}

/// Returns the start of an ID, which a store may have changed.
fn shorten(id: &str) -> String {
    id.chars().take(MAX_ID_BYTES).collect()
}
