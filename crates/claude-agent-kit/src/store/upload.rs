//! Sends the lines of local transcripts that the store does not have.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;

use super::options::StoreOptions;
use super::pages::Pages;
use super::position::{Found, Positions};
use super::session_claim::SessionClaim;
use super::store_name::StoreName;
use super::summary::SessionSummary;
use crate::driver::require_timers;
use crate::error::Error;
use crate::session_files::own_files::OwnFiles;
use crate::session_files::private_folder::PrivateFolder;
use crate::tasks::{self, Boxed, Unboxing};
use claude_session_store::{
    Appended, EntryId, Epoch, Load, NewEntry, Occurrences, SessionKey, SessionStore, StoreError,
    StoreErrorKind, StoreFuture, Subpath,
};

/// The time after which a request that the store does not answer counts as failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The store of a run, and where its sessions are stored.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) options: StoreOptions,
    /// The project of all sessions. Default: the name of the project folder.
    pub(crate) project: Option<Arc<str>>,
    /// The project folder, if it is that of this run only.
    pub(crate) folder: Option<PrivateFolder>,
    /// The transcripts that may be read.
    pub(crate) files: OwnFiles,
}

/// A transcript on the local disk.
#[derive(Clone, Debug)]
pub(crate) struct LocalFile {
    pub(crate) key: SessionKey,
    pub(crate) subpath: Option<Subpath>,
    pub(crate) path: PathBuf,
    /// Whether the file exists: the metadata of a subagent comes first.
    pub(crate) has_lines: bool,
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

    pub(super) fn contains(&self, key: &SessionKey) -> bool {
        self.position(key).is_some()
    }

    fn position(&self, key: &SessionKey) -> Option<usize> {
        self.0.iter().position(|(owned, _)| owned == key)
    }

    pub(crate) fn claims(&self, store: &Arc<dyn SessionStore>) -> Vec<SessionClaim> {
        let claim = |(key, session): &(SessionKey, OwnedSession)| {
            SessionClaim::new(store.clone(), key.clone(), session.epoch)
        };
        self.0.iter().map(claim).collect()
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
    pub(super) positions: Positions,
    /// The last entry of all transcripts with a UUID, or of those without if there is none.
    pub(super) last: Option<EntryId>,
}

impl Stored {
    /// Reads what the store has. A resumed CLI reports only new entries, and an append that failed may have
    /// been stored.
    fn load<'a>(store: &'a dyn SessionStore, key: &'a SessionKey) -> StoreFuture<'a, Self> {
        Box::pin(async move {
            let mut stored = Self::default();
            let mut pages = Pages::new();
            while let Some(page) = pages.next(store, key, Load::all()).await? {
                for entry in page.entries {
                    stored.occurrences.count(&entry);
                    stored.summary.add(&entry);
                    stored.positions.of(entry.subpath.as_ref()).add(&entry);
                    let is_known = stored.last.as_ref().is_some_and(EntryId::has_uuid);
                    if entry.id.has_uuid() || !is_known {
                        stored.last = Some(entry.id);
                    }
                }
            }
            Ok(stored)
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
            if let Some(folder) = &self.folder {
                let created = folder.creates(key.session());
                created.map_err(|error| unnoted(&folder.note_path(), error))?;
            }
            let epoch = limited(&*self.options.store, self.options.store.claim(key)).await?;
            if let Some(folder) = &self.folder {
                let noted = folder.claimed(key, epoch);
                noted.map_err(|error| unnoted(&folder.note_path(), error))?;
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
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let store = &*self.options.store;
            let LocalFile { key, subpath, path, has_lines, metadata } = file;
            let session = self.owned(sessions, key).await?;
            let epoch = session.epoch;
            let stored = session.stored(store, key).await?;
            if *has_lines {
                self.locate(stored, file).await?;
            }
            let Stored { occurrences, summary, positions, .. } = stored;
            let position = positions.of(subpath.as_ref());
            let mut count = 0;
            loop {
                let (files, read, from) = (self.files.clone(), path.clone(), position.clone());
                let (lines, next) = match has_lines {
                    true => read_files(path, move || from.read_lines(&files, &read)).await?,
                    false => (Vec::new(), from),
                };
                let is_end = lines.is_empty();
                let metadata = metadata.clone().filter(|_| is_end);
                let metadata = metadata.filter(|new| position.metadata.as_ref() != Some(new));
                let mut entries = Vec::with_capacity(lines.len());
                let mut add = |text: Arc<str>| match occurrences.entry(subpath.clone(), text) {
                    Ok(entry) => entries.push(entry),
                    // A line that a crash damaged is not an entry; the store could not return it.
                    Err(error) => tracing::warn!("{:?}: {error}", file.path),
                };
                for line in lines {
                    add(line.into());
                }
                if let Some(metadata) = &metadata {
                    add(metadata.clone());
                }
                if !entries.is_empty() {
                    let appended = summary.append(store, key, epoch, &entries).await?;
                    self.acknowledge(key, &entries, &appended);
                    count += (entries.len() as u64).saturating_sub(appended.skipped);
                }
                let metadata = metadata.or(position.metadata.take());
                *position = next;
                position.metadata = metadata;
                if is_end {
                    return Ok(count);
                }
            }
        })
    }

    /// Finds out which stored entries a file has, unless that is known.
    pub(super) fn locate<'a>(
        &'a self,
        stored: &'a mut Stored,
        file: &'a LocalFile,
    ) -> StoreFuture<'a, Found> {
        Box::pin(async move {
            let Stored { occurrences, positions, .. } = stored;
            let position = positions.of(file.subpath.as_ref());
            if position.found == Found::Unknown {
                let counts = position.needs_counts().then(|| occurrences.of(file.subpath.as_ref()));
                let (from, counts) = (position.clone(), counts.unwrap_or_default());
                let (files, path) = (self.files.clone(), file.path.clone());
                let located = read_files(&file.path, move || from.locate(&files, &path, counts));
                *position = located.await?;
            }
            Ok(position.found)
        })
    }

    /// Records the last entry with a UUID that the store has. [`recover`](super::recover()) needs it if the CLI
    /// retracts that entry.
    pub(crate) fn acknowledge(&self, key: &SessionKey, entries: &[NewEntry], appended: &Appended) {
        let is_last = appended.sequences.last() == Some(&appended.last);
        let last = entries.iter().rfind(|entry| entry.id().has_uuid());
        if let (Some(folder), Some(entry)) = (&self.folder, last)
            && is_last
            && let Err(error) = folder.acknowledged(key, entry.id())
        {
            tracing::debug!("{}", unnoted(&folder.note_path(), error));
        }
    }
}

/// Limits the time of one request to a session store.
pub(crate) fn limited<'a, T: 'static>(
    store: &'a dyn SessionStore,
    request: StoreFuture<'a, T>,
) -> StoreFuture<'a, T> {
    limited_in(StoreName::Sessions(store), request)
}

/// Limits the time of one request to a store.
pub(crate) fn limited_in<'a, T: 'static>(
    store: StoreName<'a>,
    request: StoreFuture<'a, T>,
) -> StoreFuture<'a, T> {
    Box::pin(async move {
        require_timers().map_err(no_runtime)?;
        let done = tokio::time::timeout(REQUEST_TIMEOUT, request).await;
        done.unwrap_or_else(|_| Err(timed_out(store)))
    })
}

/// Creates the error of a request on a runtime that cannot make it.
pub(crate) fn no_runtime(error: Error) -> StoreError {
    let store = StoreError::new(StoreErrorKind::Rejected, error.message());
    let store = match error.help() {
        Some(help) => store.with_help(help),
        None => store,
    };
    store.caused_by(error)
}

pub(crate) fn timed_out(store: StoreName<'_>) -> StoreError {
    let message = format!("the {store} did not respond within {REQUEST_TIMEOUT:?}");
    StoreError::new(StoreErrorKind::Unavailable, message)
        .with_help("check that the store is running and can be reached, then try again")
}

/// Creates the error of a store that panicked. The message of the panic may contain entries, so it is not repeated.
pub(crate) fn panicked(store: StoreName<'_>, during: &str) -> StoreError {
    let message = format!("the {store} panicked while it {during}");
    StoreError::new(StoreErrorKind::Rejected, message)
        .with_help("fix the store: the panic message is in the stderr of this process")
}

/// Creates the error of a note that cannot be written.
pub(crate) fn unnoted(note: &Path, error: io::Error) -> StoreError {
    let message = format!("cannot write \"{}\": {error}", note.display());
    StoreError::new(StoreErrorKind::Unavailable, message)
        .with_help("check the free space and the permissions below CLAUDE_CONFIG_DIR")
        .caused_by(error)
}

/// Reads a local transcript, or the folder with several, on a blocking thread.
pub(super) fn read_files<T: Send + 'static>(
    path: &Path,
    read: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Unboxing<StoreFuture<'static, Boxed>, T> {
    let read = Box::new(move || read().map(|value| Box::new(value) as Boxed));
    Unboxing::new(read_boxed(path.to_owned(), read))
}

fn read_boxed(
    path: PathBuf,
    read: Box<dyn FnOnce() -> io::Result<Boxed> + Send>,
) -> StoreFuture<'static, Boxed> {
    Box::pin(async move {
        let read = tasks::spawn_blocking(&Handle::current(), read).await;
        let read = read.map_err(io::Error::other).and_then(|read| read);
        read.map_err(|error| unreadable(&path, error))
    })
}

/// Creates the error of a local transcript that cannot be read.
pub(crate) fn unreadable(path: &Path, error: io::Error) -> StoreError {
    // With a custom transport the file may be on another machine.
    let kind = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::InvalidData => StoreErrorKind::Rejected,
        _ => StoreErrorKind::Unavailable,
    };
    let message = format!("cannot read the transcript \"{}\": {error}", path.display());
    StoreError::new(kind, message)
        .with_help("check that the file exists on this machine, and that this user may read it")
        .caused_by(error)
}
