//! Keys of encrypted stores.

use std::collections::BTreeMap;
use std::fmt;

use claude_session_store::StoreError;
use zeroize::Zeroizing;

use super::errors;

/// The maximum length of the ID of a key.
pub(super) const MAX_ID_BYTES: usize = 64;

/// The bytes of a key, which are overwritten when they are dropped.
pub(super) type KeyBytes = Zeroizing<[u8; 32]>;

/// A key for the entries of an [`Encrypted`](super::Encrypted) store, with an ID.
///
/// The ID is stored in clear next to every entry, and names the key in error messages.
#[derive(Clone)]
pub struct EncryptionKey {
    id: String,
    bytes: KeyBytes,
}

impl EncryptionKey {
    /// Creates a key from 32 random bytes, and an ID of 1 to 64 bytes without control characters.
    ///
    /// # Errors
    /// Fails if the ID is invalid.
    pub fn new(id: &str, bytes: &[u8; 32]) -> Result<Self, StoreError> {
        if id.is_empty() || id.len() > MAX_ID_BYTES || id.contains(char::is_control) {
            return Err(errors::invalid_key_id(id));
        }
        Ok(Self { id: id.to_owned(), bytes: Zeroizing::new(*bytes) })
    }

    /// Returns the ID.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Shows the ID only.
impl fmt::Debug for EncryptionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptionKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// The keys of an [`Encrypted`](super::Encrypted) store: one that encrypts, earlier ones that only decrypt, and
/// one that hides the digests in the IDs of entries.
///
/// To rotate keys, create a keyring with a new current key, and add the earlier one with
/// [`previous`](Self::previous) for as long as entries are encrypted with it. The identity key must stay the
/// same, because the IDs of stored entries depend on it: with another one, entries that are sent again are
/// stored twice.
#[derive(Clone)]
pub struct Keyring {
    identity: KeyBytes,
    current: String,
    keys: BTreeMap<String, KeyBytes>,
}

impl Keyring {
    /// Creates a keyring with an identity key of 32 random bytes, and the key that encrypts.
    pub fn new(identity: &[u8; 32], current: EncryptionKey) -> Self {
        let EncryptionKey { id, bytes } = current;
        Self {
            identity: Zeroizing::new(*identity),
            current: id.clone(),
            keys: BTreeMap::from([(id, bytes)]),
        }
    }

    /// Adds an earlier key, which only decrypts.
    ///
    /// # Errors
    /// Fails if the keyring already has a key with this ID.
    pub fn previous(mut self, key: EncryptionKey) -> Result<Self, StoreError> {
        if self.keys.contains_key(&key.id) {
            return Err(errors::duplicate_key(&key.id));
        }
        self.keys.insert(key.id, key.bytes);
        Ok(self)
    }

    pub(super) fn identity(&self) -> &KeyBytes {
        &self.identity
    }

    /// Returns the ID of the key that encrypts.
    pub(super) fn current(&self) -> &str {
        &self.current
    }

    /// Returns all keys with their IDs.
    pub(super) fn keys(&self) -> impl Iterator<Item = (&str, &KeyBytes)> {
        self.keys.iter().map(|(id, bytes)| (id.as_str(), bytes))
    }
}

/// Shows the IDs only.
impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keyring")
            .field("current", &self.current)
            .field("ids", &self.keys.keys())
            .finish_non_exhaustive()
    }
}
