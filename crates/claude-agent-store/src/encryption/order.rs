//! Checks of the order of loaded entries; `chain` says what is true for them.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use claude_session_store::{Load, LoadScope, Sequence, SessionKey, StoredEntry, Subpath};

use super::chain::{Chain, Place, Segment, Tag, lock};

/// The number of pages after which a load can continue with all that is known of the earlier ones.
const MAX_PAGES: usize = 64;

/// The number of entries that are remembered for all these pages together, and for one.
const MAX_ENTRIES: usize = 1 << 17;

/// What is known of the entries of a load so far.
#[derive(Clone, Default)]
pub(super) struct Order {
    /// Whether all entries since the start of the transcripts are known.
    is_whole: bool,
    count: usize,
    transcripts: HashMap<Option<Subpath>, Transcript>,
}

#[derive(Clone, Default)]
struct Transcript {
    /// The epochs of the entries; `None` for those without a place.
    entries: HashMap<Tag, Option<u64>>,
    /// The epoch of the last entry that has a place.
    epoch: Option<u64>,
    /// The last index of each segment of this epoch.
    segments: Vec<(Segment, u64)>,
    /// The last entry that has a place.
    last: Option<(Sequence, Tag)>,
    /// The entry to which the first one is linked, with the epoch and the segment of the first one.
    deleted: Option<(Tag, u64, Segment)>,
}

impl Order {
    /// Adds the next entry as it is stored, and returns whether its place is right.
    pub(super) fn add(&mut self, entry: &StoredEntry, place: Option<&Place>) -> bool {
        let tag = Tag::of(&entry.id);
        let is_whole = self.is_whole;
        let transcript = self.transcripts.entry(entry.subpath.clone()).or_default();
        if !transcript.add(tag, place, is_whole) {
            return false;
        }
        if place.is_some() {
            transcript.last = Some((entry.sequence, tag));
        }
        self.count += 1;
        if self.count > MAX_ENTRIES {
            // From here on, only what needs no knowledge of earlier entries is checked.
            self.forget();
        }
        true
    }

    fn forget(&mut self) {
        (self.is_whole, self.count) = (false, 0);
        for transcript in self.transcripts.values_mut() {
            transcript.entries.clear();
        }
    }

    /// Tells the chain of the session which entries the store has.
    pub(super) fn tell(&self, chain: &Chain) {
        for (subpath, transcript) in &self.transcripts {
            if let Some((sequence, tag)) = transcript.last {
                chain.loaded(subpath.as_ref(), sequence, tag);
            }
        }
    }
}

impl Transcript {
    fn add(&mut self, tag: Tag, place: Option<&Place>, is_whole: bool) -> bool {
        let link = place.and_then(|place| place.link);
        let linked = link.and_then(|link| self.entries.get(&link).copied());
        if self.entries.insert(tag, place.map(|place| place.epoch)).is_some() {
            return false;
        }
        let Some(place) = place else { return true };
        // Without an earlier entry, the linked one was deleted with its transcript.
        let is_missing = link.is_some() && linked.is_none() && self.epoch.is_some();
        if is_missing && is_whole {
            return false;
        }
        if self.epoch.is_none() {
            self.deleted = link.map(|link| (link, place.epoch, place.segment));
        } else if let Some((deleted, epoch, segment)) = self.deleted
            && (deleted, epoch) == (tag, place.epoch)
            && segment != place.segment
        {
            // It was not deleted: another handle had appended it before, in the same epoch.
            return false;
        }
        match self.epoch {
            Some(epoch) if epoch == place.epoch => {}
            // The epochs of a copy start again; the link is a proof that this entry is the later one.
            Some(epoch) if place.epoch < epoch && linked != Some(Some(epoch)) => return false,
            _ => self.segments.clear(),
        }
        self.epoch = Some(place.epoch);
        match self.segments.iter_mut().find(|(segment, _)| *segment == place.segment) {
            Some((_, last)) if *last >= place.index => return false,
            Some((_, last)) => *last = place.index,
            None => self.segments.push((place.segment, place.index)),
        }
        true
    }
}

/// What was loaded, and up to which entry.
#[derive(Clone, PartialEq, Eq)]
struct End {
    key: SessionKey,
    /// Whether all transcripts were loaded, and else the subpath.
    scope: (bool, Option<Subpath>),
    last: Sequence,
}

impl End {
    fn new(key: &SessionKey, load: &Load<'_>, last: Sequence) -> Self {
        let scope = match load.subpath {
            LoadScope::All => (true, None),
            LoadScope::Main => (false, None),
            LoadScope::Subpath(subpath) => (false, Some(subpath.clone())),
        };
        Self { key: key.clone(), scope, last }
    }
}

/// The ends of the pages that were loaded last, because a transcript may have several pages.
#[derive(Default)]
pub(super) struct Pages(Mutex<VecDeque<(End, Order)>>);

impl Pages {
    /// Returns what is known before the first entry of a load.
    pub(super) fn before(&self, key: &SessionKey, load: &Load<'_>) -> Order {
        if load.after == Sequence::new(0) {
            return Order { is_whole: true, ..Order::default() };
        }
        let end = End::new(key, load, load.after);
        let pages = lock(&self.0);
        // A page in the middle of a transcript is checked from its first entry on.
        let known = pages.iter().rev().find(|(known, _)| *known == end);
        known.map(|(_, order)| order.clone()).unwrap_or_default()
    }

    /// Forgets a session of which transcripts were deleted.
    pub(super) fn forget(&self, key: &SessionKey) {
        lock(&self.0).retain(|(end, _)| end.key != *key);
    }

    /// Remembers what is known after the last entry of a page.
    pub(super) fn add(&self, key: &SessionKey, load: &Load<'_>, last: Sequence, order: Order) {
        let end = End::new(key, load, last);
        let mut pages = lock(&self.0);
        pages.retain(|(known, _)| *known != end);
        pages.push_back((end, order));
        let mut count: usize = pages.iter().map(|(_, order)| order.count).sum();
        while pages.len() > MAX_PAGES || (count > MAX_ENTRIES && pages.len() > 1) {
            let Some((_, order)) = pages.pop_front() else { break };
            count -= order.count;
        }
    }
}
