//! Loading entries.

use std::sync::Arc;

use claude_session_store::{
    EntryPage, Load, LoadScope, SessionKey, StoreError, StoredEntry, Subpath,
};

use super::block::Record;
use super::head::{Head, Part};
use super::objects::Read;
use super::session::Session;
use super::{Shared, errors};

/// A part that is not longer is read with one request.
const WHOLE: u64 = 256 << 10;

/// Texts of other transcripts that are read rather than to send another request.
const MAX_GAP: usize = 128 << 10;

/// How often a page is tried, while other hosts replace its parts.
const ATTEMPTS: u32 = 8;

pub(super) async fn load(
    shared: &Shared,
    key: &SessionKey,
    load: Load<'_>,
) -> Result<EntryPage, StoreError> {
    let session = shared.sessions.get(key);
    for _ in 0..ATTEMPTS {
        let head = shared.fresh_head(&session, key).await?.head;
        if let Some(page) = page(shared, &session, key, &head, load).await? {
            shared.sessions.shrink(key, &session);
            return Ok(page);
        }
    }
    Err(errors::missing_part())
}

/// Counts what fits into a page.
struct Room<'a> {
    load: Load<'a>,
    entries: usize,
    bytes: usize,
    is_full: bool,
}

impl Room<'_> {
    fn is_wanted(&self, subpath: Option<&Subpath>, sequence: u64) -> bool {
        let is_of_transcript = match self.load.subpath {
            LoadScope::All => true,
            LoadScope::Main => subpath.is_none(),
            LoadScope::Subpath(wanted) => subpath == Some(wanted),
        };
        is_of_transcript && sequence > self.load.after.get()
    }

    /// Takes the next entry, unless the page is full.
    fn take(&mut self, bytes: usize) -> bool {
        self.bytes = self.bytes.saturating_add(bytes);
        let exceeds = self.entries >= self.load.limit || self.bytes > self.load.max_bytes;
        self.is_full |= exceeds && self.entries > 0;
        self.entries += usize::from(!self.is_full);
        !self.is_full
    }
}

/// Returns a page, or `None` if a part of it does not exist any more.
async fn page(
    shared: &Shared,
    session: &Session,
    key: &SessionKey,
    head: &Head,
    load: Load<'_>,
) -> Result<Option<EntryPage>, StoreError> {
    let mut room = Room { load, entries: 0, bytes: 0, is_full: false };
    let mut entries = Vec::new();
    for part in head.parts.iter().filter(|part| part.last > load.after.get()) {
        if room.is_full {
            break;
        }
        let Some(mut of_part) = read_part(shared, session, key, part, &mut room).await? else {
            return Ok(None);
        };
        entries.append(&mut of_part);
    }
    for entry in &head.tail {
        if room.is_full {
            break;
        }
        if room.is_wanted(entry.subpath.as_ref(), entry.sequence.get())
            && room.take(entry.text.len())
        {
            entries.push(entry.clone());
        }
    }
    Ok(Some(EntryPage::new(entries, room.is_full)))
}

/// Returns the wanted entries of a part, or `None` if it does not exist.
async fn read_part(
    shared: &Shared,
    session: &Session,
    key: &SessionKey,
    part: &Part,
    room: &mut Room<'_>,
) -> Result<Option<Vec<StoredEntry>>, StoreError> {
    if part.bytes <= WHOLE {
        let Some(mut entries) = shared.read_entries(key, part).await? else { return Ok(None) };
        entries.retain(|entry| {
            !room.is_full
                && room.is_wanted(entry.subpath.as_ref(), entry.sequence.get())
                && room.take(entry.text.len())
        });
        return Ok(Some(entries));
    }
    let index = if let Some(index) = session.index(&part.id) {
        index
    } else {
        let Some(index) = shared.read_index(key, part).await? else { return Ok(None) };
        let index = Arc::new(index);
        session.set_index(&part.id, &index);
        index
    };
    let mut wanted: Vec<&Record> = Vec::new();
    for record in &index.records {
        if room.is_wanted(record.subpath.as_ref(), record.sequence) {
            if !room.take(record.end - record.start) {
                break;
            }
            wanted.push(record);
        }
    }
    let mut entries = Vec::with_capacity(wanted.len());
    for run in wanted.chunk_by(|one, next| next.start - one.end <= MAX_GAP) {
        let Some(mut of_run) = read_run(shared, key, part, run).await? else { return Ok(None) };
        entries.append(&mut of_run);
    }
    Ok(Some(entries))
}

/// Reads entries that are close to each other with one request.
async fn read_run(
    shared: &Shared,
    key: &SessionKey,
    part: &Part,
    run: &[&Record],
) -> Result<Option<Vec<StoredEntry>>, StoreError> {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return Ok(Some(Vec::new())) };
    let at = |position: usize| part.index_bytes.saturating_add(position as u64);
    let path = shared.objects.parts(key).join(&*part.id);
    // With the line break, so that the range is never empty.
    let range = at(first.start)..at(last.end).saturating_add(1);
    match shared.objects.read_range(&path, range).await? {
        Read::Object { bytes, .. } => {
            let entries = run.iter().map(|record| record.entry(&bytes, first.start));
            entries.collect::<Result<_, _>>().map(Some)
        }
        Read::Missing | Read::Unchanged => Ok(None),
    }
}
