//! Sends the lines of local transcripts that the store does not have.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use claude_wire::frame::DEFAULT_MAX_LINE_BYTES;
use claude_wire::session::MirrorLimits;
use serde_json::Value;
use tokio::runtime::Handle;

use super::entry::{EntryId, NewEntry, Occurrences};
use super::error::{StoreError, StoreErrorKind};
use super::key::{Epoch, Sequence, SessionKey, Subpath};
use super::options::StoreOptions;
use super::private_folder::PrivateFolder;
use super::request::Load;
use super::summary::SessionSummary;
use super::{SessionStore, StoreFuture};
use crate::tasks::{self, Boxed, Unboxing};

/// The time after which a request that the store does not answer counts as failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The start of the entries that the CLI reports without writing them to the transcript.
const METADATA: &str = r#"{"type":"agent_metadata""#;

/// The store of a run, and where its sessions are stored.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) options: StoreOptions,
    /// The project of all sessions. Default: the name of the project folder.
    pub(crate) project: Option<Arc<str>>,
    /// The project folder, if it is that of this run only.
    pub(crate) folder: Option<PrivateFolder>,
}

/// A transcript on the local disk.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    pub(crate) key: SessionKey,
    pub(crate) subpath: Option<Subpath>,
    pub(crate) path: PathBuf,
    /// The last metadata of a subagent, which is not a line of the file.
    pub(crate) metadata: Option<Arc<str>>,
}

/// The sessions that a run has claimed.
#[derive(Debug, Default)]
pub(crate) struct OwnedSessions(Vec<(SessionKey, OwnedSession)>);

/// A session that this run has claimed.
#[derive(Debug)]
pub(crate) struct OwnedSession {
    pub(crate) epoch: Epoch,
    /// What the store has; `None` until it is loaded.
    stored: Option<Stored>,
}

impl OwnedSessions {
    pub(crate) fn add(&mut self, key: SessionKey, epoch: Epoch) {
        let session = OwnedSession { epoch, stored: None };
        match self.position(&key) {
            Some(at) => self.0[at].1 = session,
            None => self.0.push((key, session)),
        }
    }

    fn position(&self, key: &SessionKey) -> Option<usize> {
        self.0.iter().position(|(owned, _)| owned == key)
    }

    /// Discards what is known about the store, after a failure.
    pub(crate) fn forget_stored(&mut self) {
        for (_, session) in &mut self.0 {
            session.stored = None;
        }
    }
}

impl OwnedSession {
    /// Returns what the store has.
    pub(crate) fn stored<'a>(
        &'a mut self,
        store: &'a dyn SessionStore,
        key: &'a SessionKey,
    ) -> StoreFuture<'a, &'a mut Stored> {
        Box::pin(async move {
            if self.stored.as_ref().is_some_and(|stored| stored.summary.is_outdated()) {
                self.stored = None;
            }
            match &mut self.stored {
                Some(stored) => Ok(stored),
                empty => Ok(empty.insert(Stored::load(store, key).await?)),
            }
        })
    }
}

/// What the store has of a session.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    pub(crate) occurrences: Occurrences,
    pub(crate) summary: SessionSummary,
    positions: Positions,
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

/// The positions in the transcripts of a session: few, as a transcript is that of an agent.
#[derive(Debug, Default)]
struct Positions(Vec<(Option<Subpath>, Position)>);

impl Positions {
    /// Returns the position in a transcript, at first its start.
    fn of(&mut self, subpath: Option<&Subpath>) -> &mut Position {
        let known = self.0.iter().position(|(known, _)| known.as_ref() == subpath);
        let at = known.unwrap_or_else(|| {
            self.0.push((subpath.cloned(), Position::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl Stored {
    /// Reads what the store has. A resumed CLI reports only new entries, and an append that failed may have
    /// been stored.
    fn load<'a>(store: &'a dyn SessionStore, key: &'a SessionKey) -> StoreFuture<'a, Self> {
        Box::pin(async move {
            let mut stored = Self::default();
            let mut after = Sequence::new(0);
            loop {
                let page = limited(store.load(key, Load::all().after(after))).await?;
                for entry in &page.entries {
                    stored.occurrences.count(entry);
                    stored.summary.add(entry);
                    let position = stored.positions.of(entry.subpath.as_ref());
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
        })
    }
}

impl Target {
    /// Returns the session, and claims it first if this run has not claimed it.
    pub(crate) fn owned<'a>(
        &'a self,
        sessions: &'a mut OwnedSessions,
        key: &'a SessionKey,
    ) -> StoreFuture<'a, &'a mut OwnedSession> {
        Box::pin(async move {
            if let Some(at) = sessions.position(key) {
                return Ok(&mut sessions.0[at].1);
            }
            let epoch = limited(self.options.store.claim(key)).await?;
            if let Some(folder) = &self.folder {
                folder.claimed(key, epoch).map_err(unnoted)?;
            }
            sessions.add(key.clone(), epoch);
            let at = sessions.0.len() - 1;
            Ok(&mut sessions.0[at].1)
        })
    }

    /// Stores the missing lines of a file, and returns their number.
    pub(crate) fn send_file<'a>(
        &'a self,
        sessions: &'a mut OwnedSessions,
        file: &'a LocalFile,
    ) -> StoreFuture<'a, usize> {
        Box::pin(async move {
            let store = &*self.options.store;
            let LocalFile { key, subpath, path, metadata } = file;
            let session = self.owned(sessions, key).await?;
            let epoch = session.epoch;
            let Stored { occurrences, summary, positions } = session.stored(store, key).await?;
            let position = positions.of(subpath.as_ref());
            let mut count = 0;
            loop {
                let (file, from) = (path.clone(), position.clone());
                let (lines, next) = read_files(move || read_lines(&file, from)).await?;
                let is_end = lines.is_empty();
                let metadata = metadata.clone().filter(|_| is_end);
                let metadata = metadata.filter(|new| position.metadata.as_ref() != Some(new));
                let mut entries = Vec::with_capacity(lines.len());
                let mut add = |text: Arc<str>| match occurrences.entry(subpath.clone(), text) {
                    Ok(entry) => entries.push(entry),
                    // A line that a crash damaged is not an entry; the store could not return it.
                    Err(error) => tracing::warn!("{path:?}: {error}"),
                };
                for line in lines {
                    add(line.into());
                }
                if let Some(metadata) = &metadata {
                    add(metadata.clone());
                }
                if !entries.is_empty() {
                    summary.append(store, key, epoch, &entries).await?;
                }
                count += entries.len();
                *position = Position { metadata: metadata.or(position.metadata.take()), ..next };
                if is_end {
                    return Ok(count);
                }
            }
        })
    }
}

/// Limits the time of one request.
pub(crate) fn limited<T: 'static>(request: StoreFuture<'_, T>) -> StoreFuture<'_, T> {
    Box::pin(async move {
        tokio::time::timeout(REQUEST_TIMEOUT, request).await.unwrap_or_else(|_| Err(timed_out()))
    })
}

pub(crate) fn timed_out() -> StoreError {
    let message = format!("the store did not respond within {REQUEST_TIMEOUT:?}");
    StoreError::new(StoreErrorKind::Unavailable, message)
}

pub(crate) fn unnoted(error: io::Error) -> StoreError {
    let message = format!("the note of the owner of a session cannot be written: {error}");
    StoreError::new(StoreErrorKind::Unavailable, message).caused_by(error)
}

/// Reads local transcripts on a blocking thread.
pub(super) fn read_files<T: Send + 'static>(
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Unboxing<StoreFuture<'static, Boxed>, T> {
    Unboxing::new(read_boxed(Box::new(move || read().map(|value| Box::new(value) as Boxed))))
}

fn read_boxed(read: Box<dyn FnOnce() -> io::Result<Boxed> + Send>) -> StoreFuture<'static, Boxed> {
    Box::pin(async move {
        let read = tasks::spawn_blocking(&Handle::current(), read).await;
        read.map_err(io::Error::other).and_then(|read| read).map_err(unreadable)
    })
}

/// Reads the lines of one append after a position, and returns them with the next position. Returns no lines
/// at the end of the file.
fn read_lines(path: &Path, from: Position) -> io::Result<(Vec<String>, Position)> {
    let limits = MirrorLimits::default();
    let mut at = from;
    let mut reader = LineReader::open(path, at.offset)?;
    let (mut lines, mut size) = (Vec::new(), 0);
    while lines.len() < limits.batch_entries {
        let Some(line) = reader.next_line()? else {
            if at.last.take().is_none() {
                break;
            }
            // The file does not have the last stored entry: IDs identify the stored ones.
            (at.offset, at.skipped) = (0, 0);
            reader = LineReader::open(path, 0)?;
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

/// Reads the complete lines of a transcript.
pub(super) struct LineReader(BufReader<File>);

impl LineReader {
    pub(super) fn open(path: &Path, offset: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self(BufReader::with_capacity(64 * 1024, file)))
    }

    /// Returns the next complete line with its line break.
    fn next_line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        self.0.by_ref().take(DEFAULT_MAX_LINE_BYTES as u64).read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            let is_too_long = line.len() == DEFAULT_MAX_LINE_BYTES;
            return if is_too_long { Err(io::ErrorKind::InvalidData.into()) } else { Ok(None) };
        }
        String::from_utf8(line).map(Some).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Returns the next line that the CLI also reports, without its line break.
    pub(super) fn next_mirrored(&mut self) -> io::Result<Option<String>> {
        while let Some(mut line) = self.next_line()? {
            line.truncate(line.trim_end().len());
            if is_mirrored(&line) {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
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
