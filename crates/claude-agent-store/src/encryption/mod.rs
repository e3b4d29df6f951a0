//! Encryption of the entries and approvals of another store.

mod approvals;
mod cipher;
pub(crate) mod errors;
mod keyring;

use std::sync::Arc;

use claude_agent_kit::store::{
    Append, Appended, EntryPage, Epoch, List, Load, NewEntry, ProjectKey, SessionKey, SessionList,
    SessionStore, StoreFuture, Subpath,
};

use self::cipher::SessionCipher;
pub use self::keyring::{EncryptionKey, Keyring};

/// Encrypts entries, summaries and [approvals](claude_agent_kit::approval) before another store gets them.
///
/// The texts are encrypted with XChaCha20-Poly1305 and stored as JSON objects. A store cannot read them, change
/// them, or move them to another place: each is bound to its scope, project, session, subpath and ID. Every
/// scope has its own key, which is derived with HKDF-SHA256. Random nonces of 24 bytes need no counter that
/// several hosts would have to share.
///
/// These stay readable for the store: keys, subpaths, the `uuid` of entries, sizes, times, epochs and sequence
/// numbers. The digest in an ID is replaced by an authentication code, because it would reveal whether an entry
/// has a guessed text. A store can still withhold entries, or return an earlier summary.
///
/// Of approvals, these stay readable: scope, session, ID, time of the request, state and version. Tools, inputs,
/// decisions and approvers do not. A store cannot make a decision, but it can return an earlier version of an approval:
/// that a decision is used once depends on the store.
///
/// Entries and approvals that cannot be decrypted fail with [`Corrupt`](claude_agent_kit::store::StoreErrorKind::Corrupt),
/// or with [`Rejected`](claude_agent_kit::store::StoreErrorKind::Rejected) if their key is not in the keyring.
/// This includes those that were stored without encryption. A summary that cannot be decrypted is omitted,
/// so that one session cannot make a list fail.
///
/// ```
/// use claude_agent_kit::store::{MemoryStore, StoreError};
/// use claude_agent_store::{Encrypted, EncryptionKey, Keyring};
///
/// # fn example(identity: [u8; 32], old: [u8; 32], new: [u8; 32]) -> Result<(), StoreError> {
/// let keyring = Keyring::new(&identity, EncryptionKey::new("2026-11", &new)?)
///     .previous(EncryptionKey::new("2026-05", &old)?)?;
/// let store = Encrypted::new(MemoryStore::new(), keyring);
/// # Ok(())
/// # }
/// # example([0; 32], [1; 32], [2; 32]).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Encrypted<S> {
    inner: S,
    keys: Arc<Keyring>,
}

impl<S> Encrypted<S> {
    /// Encrypts the entries of `inner` with these keys.
    pub fn new(inner: S, keys: Keyring) -> Self {
        Self { inner, keys: Arc::new(keys) }
    }

    /// Returns the store that keeps the encrypted entries.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn cipher<'a>(&'a self, key: &'a SessionKey) -> SessionCipher<'a> {
        SessionCipher::new(&self.keys, key)
    }
}

/// The additional bytes of text to load, for envelopes of short entries.
const ENVELOPES: usize = 64 << 10;

impl<S: SessionStore> SessionStore for Encrypted<S> {
    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        self.inner.claim(key)
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let cipher = self.cipher(key);
            let entries = append.entries.iter().map(|entry| cipher.encrypt(entry));
            let entries: Vec<NewEntry> = entries.collect::<Result<_, _>>()?;
            let summary = append
                .summary
                .map(|update| Ok((update.after, cipher.encrypt_summary(update.data)?)));
            let summary = summary.transpose()?;
            drop(cipher);
            let mut encrypted = Append::new(&entries);
            encrypted.epoch = append.epoch;
            if let Some((after, data)) = &summary {
                encrypted = encrypted.summary(*after, data);
            }
            self.inner.append(key, encrypted).await
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(async move {
            let cipher = self.cipher(key);
            let mut page = EntryPage::default();
            let (mut bytes, mut after) = (0_usize, load.after);
            loop {
                // Envelopes are longer than their texts, so the inner limits are estimates.
                let max_bytes = load.max_bytes.saturating_add(load.max_bytes / 3);
                let inner = load.after(after).max_bytes(max_bytes.saturating_add(ENVELOPES));
                let stored = self.inner.load(key, inner).await?;
                for entry in stored.entries {
                    after = entry.sequence;
                    let is_full = page.entries.len() >= load.limit;
                    if is_full && !page.entries.is_empty() {
                        page.more = true;
                        return Ok(page);
                    }
                    let entry = cipher.decrypt(entry)?;
                    bytes = bytes.saturating_add(entry.text.len());
                    if bytes > load.max_bytes && !page.entries.is_empty() {
                        page.more = true;
                        return Ok(page);
                    }
                    page.entries.push(entry);
                }
                let is_full = page.entries.len() >= load.limit || bytes >= load.max_bytes;
                if !stored.more || (is_full && !page.entries.is_empty()) {
                    page.more = stored.more;
                    return Ok(page);
                }
            }
        })
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        Box::pin(async move {
            let mut page = self.inner.list(project, list).await?;
            for row in &mut page.sessions {
                let Some(summary) = row.summary.take() else { continue };
                let key = project.session(row.session.clone())?;
                if let Ok(data) = self.cipher(&key).decrypt_summary(&summary.data) {
                    row.summary =
                        Some(claude_agent_kit::store::Summary::new(data, summary.through));
                }
            }
            Ok(page)
        })
    }

    fn subpaths<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Vec<Subpath>> {
        self.inner.subpaths(key)
    }

    fn delete<'a>(
        &'a self,
        key: &'a SessionKey,
        subpath: Option<&'a Subpath>,
    ) -> StoreFuture<'a, ()> {
        self.inner.delete(key, subpath)
    }
}
