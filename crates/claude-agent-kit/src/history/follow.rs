//! Follows a transcript while the CLI writes it.

use std::collections::VecDeque;
use std::fmt;
use std::fs::{File, Metadata};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use claude_wire::transcript::{DEFAULT_MAX_LINE_BYTES, Entry, Index, Issue};
use tokio::time::sleep;

use super::{History, errors};
use crate::error::Result;
use crate::id::SessionId;
use crate::session_files::open;
use crate::{id_map, sort};

/// How often the file is looked at by default.
const DEFAULT_INTERVAL: Duration = Duration::from_millis(200);
/// The shortest interval, so that a loop does not occupy a thread.
const MIN_INTERVAL: Duration = Duration::from_millis(10);
/// How many bytes are read at a time.
const CHUNK_BYTES: usize = 1024 * 1024;
/// How many bytes before the position are compared to notice that the file was rewritten.
const CHECK_BYTES: usize = 256;
/// How many entries are remembered to find the position again in a file that was rewritten.
const MAX_REMEMBERED: usize = 4096;

/// What happens to a transcript that is followed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum FollowEvent {
    /// An entry was written.
    Entry(Box<Entry>),
    /// Something was written that is not one whole entry, see [`Issue`]. An entry that could be
    /// salvaged from it follows.
    Issue(Issue),
    /// The file was cut or rewritten, as the CLI does to retract messages. Following continues after
    /// the last entry that is still there; if none is, with the first entry of the file.
    Rewritten,
    /// The file was deleted. Following continues if it is created again.
    Removed,
}

/// Follows the transcript of a session, see [`History::follow`].
pub struct Follow {
    history: History,
    tail: Tail,
    ready: VecDeque<FollowEvent>,
    interval: Duration,
}

impl History {
    /// Follows a session: returns the entries that are written from now on.
    ///
    /// The file is polled, by default every 200 ms; the CLI itself writes with a delay of 100 ms.
    /// Memory is bounded: 1 MiB of entries, or one larger entry.
    ///
    /// # Errors
    /// [`ConversationNotFound`](crate::ErrorKind::ConversationNotFound), and
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when the transcript cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn follow(&self, session_id: &SessionId) -> Result<Follow> {
        self.require_disk("follow")?;
        let id = session_id.clone();
        let tail = self.run(move |projects, _| {
            let path = projects.require(&id)?.path;
            Tail::at_end(&path).map_err(|error| errors::io("read", &path, error))
        });
        Ok(Follow {
            tail: tail.await?,
            history: self.clone(),
            ready: VecDeque::new(),
            interval: DEFAULT_INTERVAL,
        })
    }
}

impl Follow {
    /// Starts with the first entry of the file instead of the next one.
    #[must_use]
    pub fn from_start(mut self) -> Self {
        self.tail = Tail::at_start(self.tail.path);
        self.ready.clear();
        self
    }

    /// Sets how often the file is looked at. Default: every 200 ms; at least 10 ms.
    #[must_use]
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(MIN_INTERVAL);
        self
    }

    /// Waits for the next event. Following does not end by itself.
    ///
    /// # Errors
    /// [`HistoryIo`](crate::ErrorKind::HistoryIo) when the transcript cannot be read. The next call
    /// tries again.
    ///
    /// # Cancel safety
    /// Cancel safe: no event is lost.
    pub async fn next(&mut self) -> Result<FollowEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(event);
            }
            if !self.poll_file().await? {
                sleep(self.interval).await;
            }
        }
    }

    /// Looks at the file, and returns whether there was something to read.
    async fn poll_file(&mut self) -> Result<bool> {
        // A copy, because a future that is dropped must not lose the position.
        let mut tail = self.tail.clone();
        let poll = self.history.run(move |_, _| {
            let polled = tail.poll();
            let polled = polled.map_err(|error| errors::io("read", &tail.path, error));
            polled.map(|(events, has_read)| (tail, events, has_read))
        });
        let (tail, events, has_read) = poll.await?;
        self.tail = tail;
        self.ready.extend(events);
        Ok(has_read)
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("path", &self.tail.path)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

/// Where a file is read, and what identifies that place.
#[derive(Clone, Debug, Default)]
struct Tail {
    path: PathBuf,
    identity: Option<(u64, u64)>,
    /// Behind the last line break that was read.
    position: u64,
    /// The bytes before the position.
    before: Vec<u8>,
    /// The length and modification time at the last look, to skip files that did not change.
    seen: Option<(u64, Option<SystemTime>)>,
    is_removed: bool,
    remembered: VecDeque<u64>,
}

impl Tail {
    fn at_start(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }

    fn at_end(path: &Path) -> io::Result<Self> {
        let (file, metadata) = open::open(path)?;
        let mut tail = Self::at_start(path.to_owned());
        tail.identity = Some(identity(&metadata));
        // Entries at the end are remembered, in case that the file is rewritten.
        let mut size = CHUNK_BYTES;
        let (from, chunk, complete) = loop {
            let from = metadata.len().saturating_sub(size as u64);
            let mut chunk = vec![0; size.min(to_usize(metadata.len()))];
            let read = open::read_at(&file, &mut chunk, from)?;
            match memchr_last(&chunk[..read]) {
                Some(at) => break (from, chunk, at + 1),
                None if from == 0 => break (from, chunk, 0),
                // A line that is longer and not complete yet starts further up.
                None => size = size.saturating_mul(4),
            }
        };
        for (entry, _) in entries(&chunk[..complete]).0 {
            tail.remember(&entry);
        }
        tail.advance(from, &chunk[..complete]);
        Ok(tail)
    }

    /// Reads what was written since the last look.
    fn poll(&mut self) -> io::Result<(Vec<FollowEvent>, bool)> {
        let (file, metadata) = match open::open(&self.path) {
            Ok(opened) => opened,
            Err(error) if open::is_absent(&error) => {
                let is_new = !std::mem::replace(&mut self.is_removed, true);
                self.identity = None;
                self.seen = None;
                let events = if is_new { vec![FollowEvent::Removed] } else { Vec::new() };
                return Ok((events, is_new));
            }
            Err(error) => return Err(error),
        };
        let mut events = Vec::new();
        let seen = (metadata.len(), metadata.modified().ok());
        let is_same_file = Some(identity(&metadata)) == self.identity;
        if is_same_file && self.seen == Some(seen) && !self.is_removed {
            return Ok((events, false));
        }
        if self.is_rewritten(&file, &metadata)? {
            events.push(FollowEvent::Rewritten);
            self.find_position(&file, metadata.len())?;
        }
        self.is_removed = false;
        self.identity = Some(identity(&metadata));
        let has_read = self.read(&file, metadata.len(), &mut events)?;
        // Another look is needed for what did not fit.
        self.seen = (!has_read).then_some(seen);
        let has_read = has_read || !events.is_empty();
        Ok((events, has_read))
    }

    fn is_rewritten(&self, file: &File, metadata: &Metadata) -> io::Result<bool> {
        if self.position == 0 && self.remembered.is_empty() {
            return Ok(false);
        }
        if metadata.len() < self.position || Some(identity(metadata)) != self.identity {
            return Ok(true);
        }
        let mut before = vec![0; self.before.len()];
        let start = self.position - self.before.len() as u64;
        Ok(open::read_at(file, &mut before, start)? < before.len() || before != self.before)
    }

    /// Goes behind the last entry that was returned before and is still in the file.
    fn find_position(&mut self, file: &File, length: u64) -> io::Result<()> {
        let mut known: Vec<u64> = self.remembered.iter().copied().collect();
        sort::sort_by_key(&mut known, |key| *key);
        let (mut position, mut before) = (0, Vec::new());
        let mut scan = Self::at_start(self.path.clone());
        while let Some((start, bytes)) = scan.next_lines(file, length)? {
            let is_known =
                |entry: &Entry| key(entry).is_some_and(|key| id_map::find(&known, key).is_ok());
            let known_entries = entries(&bytes).0.into_iter().filter(|(entry, _)| is_known(entry));
            // One line may have many of them, so its end is looked for once.
            if let Some(end) = known_entries.last().map(|(_, at)| line_end(&bytes, at)) {
                let mut found = Self::default();
                found.advance(start, &bytes[..end]);
                (position, before) = (found.position, found.before);
            }
            scan.advance(start, &bytes);
        }
        (self.position, self.before) = (position, before);
        if position == 0 {
            self.remembered.clear();
        }
        Ok(())
    }

    /// Reads up to a chunk of whole lines, and returns whether there were any.
    fn read(
        &mut self,
        file: &File,
        length: u64,
        events: &mut Vec<FollowEvent>,
    ) -> io::Result<bool> {
        let Some((start, bytes)) = self.next_lines(file, length)? else { return Ok(false) };
        let (entries, mut issues) = entries(&bytes);
        issues.reverse();
        for (entry, at) in entries {
            while let Some(issue) = issues.pop_if(|issue| issue.offset <= at as u64) {
                events.push(shifted(issue, start));
            }
            self.remember(&entry);
            events.push(FollowEvent::Entry(Box::new(entry)));
        }
        while let Some(issue) = issues.pop() {
            events.push(shifted(issue, start));
        }
        self.advance(start, &bytes);
        Ok(true)
    }

    /// Returns whole lines behind the position with their offset: a chunk of them, or one line that
    /// is longer.
    fn next_lines(&self, file: &File, length: u64) -> io::Result<Option<(u64, Vec<u8>)>> {
        let mut size = CHUNK_BYTES;
        loop {
            let mut bytes = vec![0; size.min(to_usize(length.saturating_sub(self.position)))];
            let read = open::read_at(file, &mut bytes, self.position)?;
            bytes.truncate(read);
            if let Some(end) = memchr_last(&bytes) {
                bytes.truncate(end + 1);
                return Ok(Some((self.position, bytes)));
            }
            // A line above the limit is given to the index in part, which reports it.
            if size > DEFAULT_MAX_LINE_BYTES && read == size {
                return Ok(Some((self.position, bytes)));
            }
            if read < size {
                return Ok(None);
            }
            size *= 4;
        }
    }

    /// Moves behind bytes that were read.
    fn advance(&mut self, start: u64, bytes: &[u8]) {
        self.position = start + bytes.len() as u64;
        self.before = bytes[bytes.len().saturating_sub(CHECK_BYTES)..].to_vec();
    }

    fn remember(&mut self, entry: &Entry) {
        if let Some(key) = key(entry) {
            if self.remembered.len() == MAX_REMEMBERED {
                self.remembered.pop_front();
            }
            self.remembered.push_back(key);
        }
    }
}

/// Decodes the entries in whole lines, each with its offset.
fn entries(bytes: &[u8]) -> (Vec<(Entry, usize)>, Vec<Issue>) {
    let mut index = Index::new();
    index.feed(bytes);
    index.finish();
    let mut entries = Vec::new();
    for entry in index.entries() {
        let at = to_usize(entry.offset());
        // The index has read it, so it is an entry.
        if let Some(bytes) = bytes.get(at..at + entry.len())
            && let Ok(entry) = Entry::decode(Bytes::copy_from_slice(bytes))
        {
            entries.push((entry, at));
        }
    }
    (entries, index.issues())
}

fn shifted(mut issue: Issue, by: u64) -> FollowEvent {
    issue.offset += by;
    FollowEvent::Issue(issue)
}

/// Identifies an entry. State entries have no ID and are written again and again.
fn key(entry: &Entry) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    entry.uuid()?.hash(&mut hasher);
    Some(hasher.finish())
}

fn memchr_last(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|byte| *byte == b'\n')
}

/// The end of the line at an offset, behind its line break.
fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length + 1)
}

fn to_usize(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}
