//! Stores the lines of local transcripts that the store does not have, after a failure of the store.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use claude_wire::frame::DEFAULT_MAX_LINE_BYTES;
use claude_wire::session::{CatchUp, MirrorFile, MirrorLimits};
use serde_json::Value;

use super::mirror::{MirrorState, OwnedSession, Shared, limited};
use super::mirror_summary::MirrorSummary;
use crate::store::{
    EntryId, Load, NewEntry, Occurrences, Sequence, SessionKey, SessionStore, StoreError,
    StoreErrorKind, Subpath,
};

/// The time for which no line may be added before the transcripts count as complete.
const QUIET: Duration = Duration::from_secs(2);

/// The start of the entries that the CLI reports without writing them to the transcript.
const METADATA: &str = r#"{"type":"agent_metadata""#;

/// What the store has of a session.
#[derive(Default)]
pub(super) struct Stored {
    pub(super) occurrences: Occurrences,
    pub(super) summary: MirrorSummary,
    positions: HashMap<Option<Subpath>, Position>,
}

/// The position in a transcript: after the last entry that the store has.
#[derive(Clone, Debug, Default)]
struct Position {
    offset: u64,
    /// The last stored entry with a UUID, until it is found.
    last: Option<EntryId>,
    /// The number of lines after it that are stored.
    skipped: usize,
    /// The last stored metadata.
    metadata: Option<Arc<str>>,
}

impl Stored {
    /// Reads what the store has. A resumed CLI reports only new entries, and an append that failed may have
    /// been stored.
    pub(super) async fn load(
        store: &dyn SessionStore,
        key: &SessionKey,
    ) -> Result<Self, StoreError> {
        let mut stored = Self::default();
        let mut after = Sequence::new(0);
        loop {
            let page = limited(store.load(key, Load::all().after(after))).await?;
            for entry in &page.entries {
                stored.occurrences.count(entry);
                stored.summary.add(entry);
                let position = stored.positions.entry(entry.subpath.clone()).or_default();
                if entry.text.starts_with(METADATA) {
                    position.metadata = Some(entry.text.clone());
                } else if entry.id.has_uuid() {
                    (position.last, position.skipped) = (Some(entry.id.clone()), 0);
                } else if entry.id.occurrence().is_some() {
                    position.skipped += 1;
                }
            }
            match page.entries.last() {
                Some(last) if page.more && last.sequence > after => after = last.sequence,
                _ => return Ok(stored),
            }
        }
    }
}

impl Shared {
    /// Stores the missing lines of all files, until no file has new ones for a while.
    pub(super) async fn catch_up(
        &self,
        state: &mut MirrorState,
        request: &CatchUp,
    ) -> Result<(), StoreError> {
        state.begin_catch_up();
        let caught_up = self.read_files(state, request).await;
        if caught_up.is_err() {
            state.forget_stored();
        }
        caught_up
    }

    async fn read_files(
        &self,
        state: &mut MirrorState,
        request: &CatchUp,
    ) -> Result<(), StoreError> {
        let mut is_first = true;
        loop {
            let mut is_unchanged = true;
            for file in &request.files {
                is_unchanged &= self.read_file(state, file).await? == 0;
            }
            if request.is_final || (is_unchanged && !is_first) {
                return Ok(());
            }
            is_first = false;
            tokio::time::sleep(QUIET).await;
        }
    }

    /// Stores the missing lines of a file, and returns their number.
    async fn read_file(
        &self,
        state: &mut MirrorState,
        file: &MirrorFile,
    ) -> Result<usize, StoreError> {
        let key = self.key(&file.session)?;
        let subpath = file.subpath.as_deref().map(Subpath::new).transpose()?;
        let store = &*self.options.store;
        let session = self.owned(&mut state.sessions, &key).await?;
        let OwnedSession { epoch, stored } = session;
        let stored = match stored {
            Some(stored) => stored,
            empty => empty.insert(Stored::load(store, &key).await?),
        };
        let Stored { occurrences, summary, positions } = stored;
        let position = positions.entry(subpath.clone()).or_default();
        let mut count = 0;
        loop {
            let (path, from) = (PathBuf::from(&*file.path), position.clone());
            let read = tokio::task::spawn_blocking(move || read_lines(&path, from)).await;
            let (lines, next) =
                read.map_err(io::Error::other).and_then(|read| read).map_err(unreadable)?;
            let is_end = lines.is_empty();
            let metadata = file.metadata.clone().filter(|_| is_end);
            let metadata = metadata.filter(|new| position.metadata.as_ref() != Some(new));
            let texts = lines.into_iter().map(Arc::from).chain(metadata.clone());
            let entries: Vec<NewEntry> = texts
                .map(|text: Arc<str>| occurrences.entry(subpath.clone(), text))
                .collect::<Result<_, _>>()?;
            if !entries.is_empty() {
                summary.append(store, &key, *epoch, &entries).await?;
            }
            count += entries.len();
            *position = Position { metadata: metadata.or(position.metadata.take()), ..next };
            if is_end {
                return Ok(count);
            }
        }
    }
}

/// Reads the lines of one append after a position, and returns them with the next position. Returns no lines
/// at the end of the file.
fn read_lines(path: &PathBuf, from: Position) -> io::Result<(Vec<String>, Position)> {
    let limits = MirrorLimits::default();
    let mut at = from;
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at.offset))?;
    let mut reader = BufReader::with_capacity(64 * 1024, file);
    let (mut lines, mut size) = (Vec::new(), 0);
    while lines.len() < limits.batch_entries {
        let Some(line) = next_line(&mut reader)? else {
            if at.last.take().is_none() {
                break;
            }
            // The file does not have the last stored entry: IDs identify the stored ones.
            (at.offset, at.skipped) = (0, 0);
            reader.seek(SeekFrom::Start(0))?;
            continue;
        };
        let text = line.trim_end();
        let is_selected = is_mirrored(text) && !at.passes(text);
        if is_selected && size > 0 && size + text.len() > limits.batch_bytes {
            break;
        }
        at.offset += line.len() as u64;
        if is_selected {
            size += text.len();
            lines.push(text.to_owned());
        }
    }
    Ok((lines, at))
}

impl Position {
    /// Returns whether a line is one of those that are stored.
    fn passes(&mut self, text: &str) -> bool {
        if let Some(last) = &self.last {
            if NewEntry::new(None, text, 0).is_ok_and(|entry| entry.id() == last) {
                self.last = None;
            }
            return true;
        }
        let is_skipped = self.skipped > 0;
        self.skipped = self.skipped.saturating_sub(1);
        is_skipped
    }
}

/// Returns the next complete line with its line break.
fn next_line(reader: &mut BufReader<File>) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    reader.by_ref().take(DEFAULT_MAX_LINE_BYTES as u64).read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        let is_too_long = line.len() == DEFAULT_MAX_LINE_BYTES;
        return if is_too_long { Err(io::ErrorKind::InvalidData.into()) } else { Ok(None) };
    }
    String::from_utf8(line).map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Returns whether the CLI reports such a line: all except empty ones and the records of API requests.
pub(crate) fn is_mirrored(line: &str) -> bool {
    if line.is_empty() {
        return false;
    }
    if !line.contains("\"api-request") {
        return true;
    }
    let entry: Value = serde_json::from_str(line).unwrap_or_default();
    !entry["type"].as_str().is_some_and(|kind| kind.starts_with("api-request"))
}

/// Creates the error of a local transcript that cannot be read.
pub(crate) fn unreadable(error: io::Error) -> StoreError {
    // With a custom transport the file may be on another machine.
    let kind = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::InvalidData => StoreErrorKind::Rejected,
        _ => StoreErrorKind::Unavailable,
    };
    StoreError::new(kind, format!("the local transcript cannot be read: {error}")).caused_by(error)
}
