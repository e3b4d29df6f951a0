//! Appends the entries of a session in batches, with the summary of the session.

use claude_agent_core::session::MirrorLimits;
use claude_wire::transcript::SummaryData;

use super::upload::limited;
use super::write_session::load_page;
use claude_session_store::{
    Append, Appended, Load, NewEntry, Sequence, SessionKey, SessionStore, StoreError,
};

/// Appends entries in the order of their transcripts, in batches as small as those of the mirror.
///
/// Entries that the session has are skipped by the store, so that all entries can be sent again after an
/// interruption.
pub(crate) struct BatchWriter<'a> {
    store: &'a dyn SessionStore,
    key: &'a SessionKey,
    batch: Vec<NewEntry>,
    bytes: usize,
    progress: Progress,
    summary: SummaryData,
    /// The number of entries that the store did not have.
    pub(crate) appended: u64,
    /// The number of entries that it had.
    pub(crate) present: u64,
}

/// Which entries of a session were sent, to know when the session has no others: only then is a summary of
/// the sent ones a summary of the session.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// The position before the first entry of the session.
    base: Sequence,
    /// The position of the last sent entry.
    reached: Sequence,
    /// The number of entries of the session that were sent.
    sent: u64,
    /// The last position of the session; `None` if it is not known.
    last: Option<Sequence>,
}

impl Progress {
    fn add(&mut self, appended: &Appended) {
        for sequence in &appended.sequences {
            if *sequence > self.reached {
                (self.reached, self.sent) = (*sequence, self.sent + 1);
            }
        }
        self.last = Some(appended.last);
    }

    /// Returns the last position of the session if all its entries were sent.
    fn is_complete(&self) -> Option<Sequence> {
        let is_complete = self.reached.get() == self.base.get() + self.sent;
        self.last.filter(|last| is_complete && *last == self.reached)
    }
}

impl<'a> BatchWriter<'a> {
    pub(crate) async fn new(
        store: &'a dyn SessionStore,
        key: &'a SessionKey,
    ) -> Result<Self, StoreError> {
        let first = load_page(store, key, Load::all().limit(1)).await?;
        let (base, last) = if let Some(entry) = first.entries.first() {
            (Sequence::new(entry.sequence.get().saturating_sub(1)), None)
        } else {
            // Sequence numbers do not start again after a deletion.
            let last = limited(store, store.append(key, Append::new(&[]))).await?.last;
            (last, Some(last))
        };
        Ok(Self {
            store,
            key,
            batch: Vec::new(),
            bytes: 0,
            progress: Progress { base, reached: base, sent: 0, last },
            summary: SummaryData::default(),
            appended: 0,
            present: 0,
        })
    }

    /// Adds an entry, after the batch was sent if the entry does not fit into it.
    pub(crate) async fn push(&mut self, entry: NewEntry) -> Result<(), StoreError> {
        let limits = MirrorLimits::default();
        let bytes = self.bytes + entry.text().len();
        let is_full = self.batch.len() >= limits.batch_entries || bytes > limits.batch_bytes;
        if is_full && !self.batch.is_empty() {
            self.flush().await?;
        }
        self.bytes += entry.text().len();
        self.batch.push(entry);
        Ok(())
    }

    /// Sends the batch.
    pub(crate) async fn flush(&mut self) -> Result<(), StoreError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        add_to_summary(&mut self.summary, &self.batch);
        let summary = self.progress.is_complete().map(|last| (last, self.summary.to_json()));
        let mut append = Append::new(&self.batch);
        if let Some((last, data)) = &summary {
            append = append.summary(*last, data.text());
        }
        let appended = limited(self.store, self.store.append(self.key, append)).await?;
        self.progress.add(&appended);
        self.present += appended.skipped;
        self.appended += (self.batch.len() as u64).saturating_sub(appended.skipped);
        self.batch.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// Adds the entries of the main transcript to a summary.
pub(crate) fn add_to_summary(summary: &mut SummaryData, entries: &[NewEntry]) {
    for entry in entries.iter().filter(|entry| entry.subpath().is_none()) {
        summary.add(entry.text().as_bytes());
    }
}
