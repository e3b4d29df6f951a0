//! The summary of a mirrored session, which the store keeps for lists.

use claude_wire::transcript::SummaryData;

use super::batch::add_to_summary;
use super::upload::limited;
use claude_session_store::{
    Append, Appended, Epoch, NewEntry, Sequence, SessionKey, SessionStore, StoreFuture, StoredEntry,
};

/// The summary of all entries that a store has of a session.
#[derive(Debug, Default)]
pub(crate) struct SessionSummary {
    data: SummaryData,
    last: Sequence,
    /// Whether the store has entries that are not part of the summary, such as a title from another host.
    is_outdated: bool,
}

impl SessionSummary {
    /// Adds an entry that the store has.
    pub(crate) fn add(&mut self, entry: &StoredEntry) {
        self.last = entry.sequence;
        if entry.subpath.is_none() {
            self.data.add(entry.text.as_bytes());
        }
    }

    /// Returns whether the entries of the session have to be loaded again.
    pub(crate) fn is_outdated(&self) -> bool {
        self.is_outdated
    }

    /// Appends entries together with the summary that includes them.
    pub(crate) fn append<'a>(
        &'a mut self,
        store: &'a dyn SessionStore,
        key: &'a SessionKey,
        epoch: Epoch,
        entries: &'a [NewEntry],
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            let mut data = self.data.clone();
            add_to_summary(&mut data, entries);
            let json = data.to_json();
            let append = Append::new(entries).epoch(epoch).summary(self.last, json.text());
            let appended = limited(store, store.append(key, append)).await?;
            let new = (entries.len() as u64).saturating_sub(appended.skipped);
            self.is_outdated |= appended.last.get() != self.last.get() + new;
            (self.data, self.last) = (data, appended.last);
            Ok(appended)
        })
    }
}
