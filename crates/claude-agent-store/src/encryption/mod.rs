//! Encryption of the entries and records of another store.

mod chain;
mod cipher;
pub(crate) mod errors;
mod keyring;
mod order;
mod records;

use std::fmt;
use std::sync::Arc;

use claude_session_store::{
    Append, Appended, EntryId, EntryPage, Epoch, List, Load, LoadScope, NewEntry, ProjectKey,
    Sequence, SessionKey, SessionList, SessionRow, SessionStore, StoreError, StoreFuture,
    StoredEntry, Subpath, Summary,
};

use self::chain::{Chain, Chains, Place};
use self::cipher::SessionCipher;
pub use self::keyring::{EncryptionKey, Keyring};
use self::order::{Order, Pages};

/// Encrypts entries, summaries and [records](claude_session_store::record) before another store gets them.
///
/// The texts are encrypted with XChaCha20-Poly1305 and stored as JSON objects. A store cannot read them, change
/// them, or move them to another place: each is bound to its scope, project, session, subpath and ID. Every
/// scope has its own key, which is derived with HKDF-SHA256. Random nonces of 24 bytes need no counter that
/// several hosts would have to share.
///
/// These stay readable for the store: keys, subpaths, the `uuid` of entries, sizes, times, epochs and sequence
/// numbers. The digest in an ID is replaced by an authentication code, because it would reveal whether an entry
/// has a guessed text.
///
/// # Order of entries
/// Entries that are appended with an epoch, as those of a run are, contain their place in the transcript. If a store
/// swaps, repeats or reorders them, or withholds one in the middle, the load fails with
/// [`Corrupt`](claude_session_store::StoreErrorKind::Corrupt) and names the session and the position. A page that
/// continues an earlier load of the same handle or of a clone is checked together with it (of the last 64 pages);
/// any other page in the middle of a transcript is checked from its first entry on.
///
/// These are outside of the chain, and a store could move them: entries without an epoch, such as titles, tags and
/// imported conversations, and those that earlier versions of this crate have stored. Not detectable are also: the last entries
/// are withheld, or an earlier state or summary is returned, to a host that has not seen the newer one; the first
/// entries are withheld, as after a deletion; entries before the last 131,072 of one load are withheld; within one epoch, entries of different hosts that had not loaded the
/// session are exchanged.
///
/// Use one handle (and its clones) per process: appends of one session wait for each other there, and what was loaded
/// and appended is linked without an additional request.
///
/// # Records
/// Of records, such as approvals, these stay readable: scope, kind, ID, owner, version, size, time of creation, whether
/// they are open and when they are due. All of it but the size and the time is bound to the text, so that a store cannot
/// make a decision, nor return the record of another scope, owner or call than the requested one. It can return an earlier
/// version of a record: that a decision is used once depends on the store. Its clock and the order of records are its own:
/// it can make an expired request usable again, or list a record as due too early. Approvals that version 2 of a database has
/// stored are read in their first format, and written in this one.
///
/// # Unreadable texts
/// Entries and records that cannot be decrypted fail with [`Corrupt`](claude_session_store::StoreErrorKind::Corrupt),
/// or with [`Rejected`](claude_session_store::StoreErrorKind::Rejected) if their key is not in the keyring.
/// This includes those that were stored without encryption. A summary that cannot be decrypted is omitted,
/// so that one session cannot make a list fail; a record in the list of a scope is
/// [reported](claude_session_store::record::RecordPage::unreadable).
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
    memory: Arc<Memory>,
}

/// What a handle knows of the order of entries. It is shared by all clones.
#[derive(Default)]
struct Memory {
    chains: Chains,
    pages: Pages,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl<S> Encrypted<S> {
    /// Encrypts the entries of `inner` with these keys.
    pub fn new(inner: S, keys: Keyring) -> Self {
        Self { inner, keys: Arc::new(keys), memory: Arc::default() }
    }

    /// Returns the store that keeps the encrypted entries.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn cipher<'a>(&'a self, key: &'a SessionKey) -> SessionCipher<'a> {
        SessionCipher::new(&self.keys, key)
    }

    /// Decrypts the summary in a row. One that cannot be decrypted is left out: it is read from the entries then.
    fn decrypt_summary(&self, key: &SessionKey, row: &mut SessionRow) {
        let Some(summary) = row.summary.take() else { return };
        if let Ok(data) = self.cipher(key).decrypt_summary(&summary.data) {
            row.summary = Some(Summary::new(data, summary.through));
        }
    }

    /// Encrypts entries; with a chain, each contains its place.
    fn encrypt(
        &self,
        key: &SessionKey,
        entries: &[NewEntry],
        chain: Option<(&Chain, Epoch)>,
    ) -> Result<Vec<NewEntry>, StoreError> {
        let cipher = self.cipher(key);
        let ids = entries.iter().map(|entry| cipher.stored_id(entry));
        let ids: Vec<EntryId> = ids.collect::<Result<_, _>>()?;
        let places: Vec<Place> = match chain {
            Some((chain, epoch)) => chain.places(epoch, entries, &ids)?,
            None => Vec::new(),
        };
        let numbered = entries.iter().zip(ids).enumerate();
        numbered.map(|(at, (entry, id))| cipher.encrypt(entry, id, places.get(at))).collect()
    }
}

/// A page that is being decrypted and checked.
struct Reading<'a> {
    key: &'a SessionKey,
    load: Load<'a>,
    cipher: SessionCipher<'a>,
    order: Order,
    page: EntryPage,
    bytes: usize,
    /// The last entry that the store has returned.
    after: Sequence,
}

impl Reading<'_> {
    /// Adds entries, and returns whether the page is full.
    fn add(&mut self, stored: &EntryPage) -> Result<bool, StoreError> {
        if stored.more && stored.entries.is_empty() {
            return Err(errors::misplaced(self.key.session(), self.after));
        }
        for entry in &stored.entries {
            if !self.is_requested(entry) {
                return Err(errors::misplaced(self.key.session(), entry.sequence));
            }
            self.after = entry.sequence;
            let is_full = self.page.entries.len() >= self.load.limit;
            if is_full && !self.page.entries.is_empty() {
                self.page.more = true;
                return Ok(true);
            }
            let (original, place) = self.cipher.decrypt(entry)?;
            self.bytes = self.bytes.saturating_add(original.text.len());
            if self.bytes > self.load.max_bytes && !self.page.entries.is_empty() {
                self.page.more = true;
                return Ok(true);
            }
            if !self.order.add(entry, place.as_ref()) {
                return Err(errors::misplaced(self.key.session(), entry.sequence));
            }
            self.page.entries.push(original);
        }
        let is_full =
            self.page.entries.len() >= self.load.limit || self.bytes >= self.load.max_bytes;
        self.page.more = stored.more;
        Ok(!stored.more || (is_full && !self.page.entries.is_empty()))
    }

    fn is_requested(&self, entry: &StoredEntry) -> bool {
        let is_selected = match self.load.subpath {
            LoadScope::All => true,
            LoadScope::Main => entry.subpath.is_none(),
            LoadScope::Subpath(subpath) => entry.subpath.as_ref() == Some(subpath),
        };
        is_selected && entry.sequence > self.after
    }
}

/// The additional bytes of text to load, for envelopes of short entries.
const ENVELOPES: usize = 64 << 10;

impl<S: SessionStore> SessionStore for Encrypted<S> {
    fn location(&self) -> Option<String> {
        self.inner.location()
    }

    fn claim<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Epoch> {
        self.inner.claim(key)
    }

    fn append<'a>(&'a self, key: &'a SessionKey, append: Append<'a>) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let epoch = append.epoch.filter(|_| !append.entries.is_empty());
            let chain = epoch.map(|epoch| (self.memory.chains.of(key), epoch));
            let turn = match &chain {
                Some((chain, _)) => Some(chain.turn.lock().await),
                None => None,
            };
            let linked = chain.as_ref().map(|(chain, epoch)| (&**chain, *epoch));
            let entries = self.encrypt(key, append.entries, linked)?;
            let encrypt = |data: &str| self.cipher(key).encrypt_summary(data);
            let summary = append.summary.map(|update| Ok((update.after, encrypt(update.data)?)));
            let summary = summary.transpose()?;
            let mut encrypted = Append::new(&entries);
            encrypted.epoch = append.epoch;
            if let Some((after, data)) = &summary {
                encrypted = encrypted.summary(*after, data);
            }
            let appended = self.inner.append(key, encrypted).await?;
            if let Some((chain, _)) = &chain {
                chain.appended(&entries, &appended);
            }
            drop(turn);
            Ok(appended)
        })
    }

    fn load<'a>(&'a self, key: &'a SessionKey, load: Load<'a>) -> StoreFuture<'a, EntryPage> {
        Box::pin(async move {
            let mut reading = Reading {
                key,
                load,
                cipher: self.cipher(key),
                order: self.memory.pages.before(key, &load),
                page: EntryPage::default(),
                bytes: 0,
                after: load.after,
            };
            // Envelopes are longer than their texts, so the inner limits are estimates.
            let max_bytes = load.max_bytes.saturating_add(load.max_bytes / 3);
            let inner = load.max_bytes(max_bytes.saturating_add(ENVELOPES));
            while !reading.add(&self.inner.load(key, inner.after(reading.after)).await?)? {}
            let Reading { order, page, .. } = reading;
            if let Some(last) = page.entries.last() {
                order.tell(&self.memory.chains.of(key));
                self.memory.pages.add(key, &load, last.sequence, order);
            }
            Ok(page)
        })
    }

    fn list<'a>(&'a self, project: &'a ProjectKey, list: List<'a>) -> StoreFuture<'a, SessionList> {
        Box::pin(async move {
            let mut page = self.inner.list(project, list).await?;
            for row in &mut page.sessions {
                let key = project.session(row.session.clone())?;
                self.decrypt_summary(&key, row);
            }
            Ok(page)
        })
    }

    fn get<'a>(&'a self, key: &'a SessionKey) -> StoreFuture<'a, Option<SessionRow>> {
        Box::pin(async move {
            let mut found = self.inner.get(key).await?;
            if let Some(row) = &mut found {
                self.decrypt_summary(key, row);
            }
            Ok(found)
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
        Box::pin(async move {
            let deleted = self.inner.delete(key, subpath).await;
            // Also after an error, because the effect of the request may be unknown.
            self.memory.chains.of(key).deleted(subpath);
            self.memory.pages.forget(key);
            deleted
        })
    }

    fn projects<'a>(
        &'a self,
        scope: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<String>> {
        self.inner.projects(scope, after, limit)
    }

    fn delete_unchanged<'a>(
        &'a self,
        key: &'a SessionKey,
        modified_ms: u64,
    ) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let deleted = self.inner.delete_unchanged(key, modified_ms).await;
            // Also after an error, because the effect of the request may be unknown.
            if !matches!(deleted, Ok(false)) {
                self.memory.chains.of(key).deleted(None);
                self.memory.pages.forget(key);
            }
            deleted
        })
    }
}
