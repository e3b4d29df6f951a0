//! The chain of the entries of a transcript, with which a store that swaps, repeats or reorders entries is detected.
//!
//! # What an entry says
//! An entry that is appended with an epoch has a [`Place`] in its encrypted text:
//!
//! - the **epoch**;
//! - the **segment**: a random ID that one handle uses in one epoch, until a request fails, and the **index** of the
//!   entry in it;
//! - the **link**: the entry before it in the same request, or else the last entry of the transcript that the store
//!   had acknowledged or returned to this handle before.
//!
//! Entries without an epoch (titles, tags, imported conversations) and those of the first format have no place.
//!
//! # What is checked on a load
//! Of a store that appends, skips known entries and deletes as it should, the following is always true for a
//! transcript, so everything else is reported as corrupt ([`Order`](super::order::Order)):
//!
//! - No entry is listed twice.
//! - Epochs do not decrease: a store refuses appends with an earlier epoch. (They may start again in a copy of the
//!   stored texts; then a link says that the smaller epoch is the later one.)
//! - The indices of a segment increase.
//! - The entry that a link names comes before, unless the transcript has no earlier entry with a place: then it was
//!   deleted since, and does not follow in another segment of the same epoch.
//!
//! # Why nothing has to be read before an append
//! - **A new process or a resumed session** starts a new segment. Its first entry is linked to what the handle has
//!   loaded, which a resume has always done.
//! - **A lost acknowledgement.** A request that failed or was abandoned may be executed later, between others, so
//!   the retried entries are in another segment. If the store has them, it skips them, and their indices are missing,
//!   which is no error. If not, it stores them. Links never name an entry that the store has not acknowledged, except
//!   within one request, which is stored as a whole.
//! - **Skipped duplicates** are in the transcript, before the entry that is linked to them.
//! - **Recovery** of an ended run uses its epoch in another process, and so another segment; both may even write at
//!   the same time, because the order of two segments of one epoch follows from their links only.
//! - **Concurrent appends** of one handle to one session wait for each other.
//! - **Deletion** removes a whole transcript, so the next entry is the first one.
//! - **Memory** is limited: a session that was not used for long is forgotten, and gets another segment.
//!
//! # What a store can still do
//! Withhold the last entries of a transcript or return an earlier state to a host that has not seen the newer one;
//! withhold the first entries, as after a deletion; move entries without a place; and, within one epoch, exchange
//! segments that are not linked because their hosts had not loaded the session, or whose linked entry it withholds.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chacha20poly1305::XNonce;
use chacha20poly1305::aead::Generate as _;
use claude_session_store::{
    Appended, EntryId, Epoch, NewEntry, Sequence, SessionKey, StoreError, Subpath,
};
use sha2::{Digest as _, Sha256};

use super::errors;

/// The number of sessions whose chains are remembered.
const MAX_SESSIONS: usize = 1_024;

/// The number of transcripts of a session after which its chain starts again.
const MAX_TRANSCRIPTS: usize = 512;

/// Identifies an entry of a transcript in links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tag([u8; 16]);

impl Tag {
    /// Returns the tag of the entry with this stored ID.
    pub(super) fn of(id: &EntryId) -> Self {
        let digest = Sha256::digest(id.as_str().as_bytes());
        let mut tag = [0; 16];
        tag.copy_from_slice(&digest[..16]);
        Self(tag)
    }
}

/// A random ID of the entries that one handle appends in one epoch.
pub(super) type Segment = [u8; 16];

/// The place of an entry in its transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) epoch: u64,
    pub(super) segment: Segment,
    pub(super) index: u64,
    pub(super) link: Option<Tag>,
}

impl Place {
    /// Appends the place to a text that is going to be encrypted. No link is written as zeros.
    pub(super) fn write(&self, plain: &mut Vec<u8>) {
        plain.extend_from_slice(&self.epoch.to_be_bytes());
        plain.extend_from_slice(&self.segment);
        plain.extend_from_slice(&self.index.to_be_bytes());
        plain.extend_from_slice(&self.link.map_or([0; 16], |Tag(tag)| tag));
    }

    /// Reads a place, and returns it with the rest.
    pub(super) fn read(plain: &[u8]) -> Option<(Self, &[u8])> {
        let (epoch, rest) = plain.split_first_chunk::<8>()?;
        let (segment, rest) = rest.split_first_chunk::<16>()?;
        let (index, rest) = rest.split_first_chunk::<8>()?;
        let (link, rest) = rest.split_first_chunk::<16>()?;
        let link = (*link != [0; 16]).then_some(Tag(*link));
        let (epoch, index) = (u64::from_be_bytes(*epoch), u64::from_be_bytes(*index));
        Some((Self { epoch, segment: *segment, index, link }, rest))
    }
}

/// The chains of the sessions that a handle has used last.
#[derive(Default)]
pub(super) struct Chains {
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Each with the time of its last use.
    sessions: HashMap<SessionKey, (u64, Arc<Chain>)>,
    uses: u64,
}

impl Chains {
    /// Returns the chain of a session.
    pub(super) fn of(&self, key: &SessionKey) -> Arc<Chain> {
        let mut known = lock(&self.known);
        known.uses += 1;
        let now = known.uses;
        let (last_use, chain) = known.sessions.entry(key.clone()).or_default();
        *last_use = now;
        let chain = Arc::clone(chain);
        if known.sessions.len() > MAX_SESSIONS {
            let oldest = known.sessions.iter().min_by_key(|(_, (last_use, _))| *last_use);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                known.sessions.remove(&oldest);
            }
        }
        chain
    }
}

/// The chain of one session.
#[derive(Default)]
pub(super) struct Chain {
    /// Held during an append, so that entries are stored in the order of their places.
    pub(super) turn: tokio::sync::Mutex<()>,
    heads: Mutex<Heads>,
}

#[derive(Default)]
struct Heads {
    epoch: Option<Epoch>,
    segment: Segment,
    /// Whether the effect of the last append is unknown.
    is_unsettled: bool,
    transcripts: HashMap<Option<Subpath>, Head>,
}

/// The end of a transcript, as far as the handle knows it.
#[derive(Default)]
struct Head {
    next: u64,
    /// The last entry that the store is known to have.
    last: Option<(Sequence, Tag)>,
}

impl Head {
    fn note(&mut self, sequence: Sequence, tag: Tag) {
        if self.last.is_none_or(|(last, _)| sequence > last) {
            self.last = Some((sequence, tag));
        }
    }
}

impl Chain {
    /// Returns the places of entries with these stored IDs, in an append with this epoch.
    pub(super) fn places(
        &self,
        epoch: Epoch,
        entries: &[NewEntry],
        ids: &[EntryId],
    ) -> Result<Vec<Place>, StoreError> {
        let mut heads = lock(&self.heads);
        heads.begin(epoch)?;
        heads.is_unsettled = true;
        let segment = heads.segment;
        let mut sent: HashMap<Option<&Subpath>, Tag> = HashMap::new();
        let mut places = Vec::with_capacity(entries.len());
        for (entry, id) in entries.iter().zip(ids) {
            let head = heads.transcripts.entry(entry.subpath().cloned()).or_default();
            let before = sent.insert(entry.subpath(), Tag::of(id));
            let link = before.or(head.last.map(|(_, tag)| tag));
            places.push(Place { epoch: epoch.get(), segment, index: head.next, link });
            head.next += 1;
        }
        Ok(places)
    }

    /// Notes that the store has these entries, which have stored IDs.
    pub(super) fn appended(&self, entries: &[NewEntry], appended: &Appended) {
        let mut heads = lock(&self.heads);
        heads.is_unsettled = false;
        for (entry, sequence) in entries.iter().zip(&appended.sequences) {
            let head = heads.transcripts.entry(entry.subpath().cloned()).or_default();
            head.note(*sequence, Tag::of(entry.id()));
        }
    }

    /// Notes the last entry of a transcript that was loaded.
    pub(super) fn loaded(&self, subpath: Option<&Subpath>, sequence: Sequence, tag: Tag) {
        let transcripts = &mut lock(&self.heads).transcripts;
        let subpath = subpath.cloned();
        if transcripts.len() < MAX_TRANSCRIPTS || transcripts.contains_key(&subpath) {
            transcripts.entry(subpath).or_default().note(sequence, tag);
        }
    }

    /// Forgets the entries of deleted transcripts: one of them, or all.
    pub(super) fn deleted(&self, deleted: Option<&Subpath>) {
        let mut heads = lock(&self.heads);
        for (subpath, head) in &mut heads.transcripts {
            if deleted.is_none() || deleted == subpath.as_ref() {
                head.last = None;
            }
        }
    }
}

impl Heads {
    /// Starts a segment if the epoch is another one, or the last request of this one has failed.
    fn begin(&mut self, epoch: Epoch) -> Result<(), StoreError> {
        let is_long = self.transcripts.len() > MAX_TRANSCRIPTS;
        if self.epoch == Some(epoch) && !self.is_unsettled && !is_long {
            return Ok(());
        }
        let random = XNonce::try_generate().map_err(errors::no_random_numbers)?;
        self.segment.copy_from_slice(&random[..16]);
        self.epoch = Some(epoch);
        if is_long {
            self.transcripts.clear();
        }
        for head in self.transcripts.values_mut() {
            head.next = 0;
        }
        Ok(())
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
