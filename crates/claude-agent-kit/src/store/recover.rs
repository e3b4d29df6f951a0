//! Sends what ended runs left on this machine to the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::local::{self, Difference, Lines};
use super::options::StoreOptions;
use super::place::Place;
use super::position::Found;
use super::upload::{LocalFile, OwnedSessions, Target, read_files, unnoted};
use super::write_session::{blocking, store_failed};
use crate::error::{Error, ErrorKind, Result};
use crate::id::SessionId;
use crate::options::Options;
use crate::session_files::note::{Note, NoteState, OwnerState};
use crate::session_files::own_files::OwnFiles;
use crate::session_files::private_folder::{self, PrivateFolder};
use crate::tasks::BoxFuture;
use claude_session_store::{Epoch, SessionKey, StoreError, StoreErrorKind, StoreFuture};

/// A conversation that an ended run left on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// The session that the run had resumed.
    pub session: SessionId,
    /// What became of it.
    pub outcome: RecoveryOutcome,
}

/// What became of the entries that an ended run left on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoveryOutcome {
    /// The store has all of them; this number was missing.
    Stored(u64),
    /// Another host had continued the session, or nothing shows that the session was one of the run, so entries
    /// were not sent. They stay in this folder.
    Orphaned(PathBuf),
}

/// Sends the entries that runs on this machine could not store, because the store failed until their end, or
/// because their host was killed.
///
/// A recovery never takes a session from another host: it sends what a run left of the sessions that it had
/// claimed or created, if no other host has claimed them since, and if the folder of the run has the last entry
/// that the store has. Everything else stays on the disk and is reported. Only folders whose notes belong to the
/// user of this process are read.
///
/// A run that resumes a conversation does this for its own session. A service should call this function when
/// it starts, with the [store](Options::store), the scope and the config directory of its runs, so that the
/// last entries of all sessions reach the store.
///
/// Searches the config directory of these options (`CLAUDE_CONFIG_DIR`) for conversations of the scope of their
/// store. Call it for each config directory and scope that runs of this machine use.
///
/// Only conversations that were resumed from a store are recovered; other transcripts stay in the config
/// directory of the CLI, and are sent when the conversation is resumed there. Each outcome is reported once.
///
/// # Errors
/// [`InvalidOptions`](ErrorKind::InvalidOptions) without a store, or if the config directory is unknown;
/// [`StoreFailed`](ErrorKind::StoreFailed) if the store fails. What was not sent is kept.
///
/// # Cancel safety
/// Dropping the future loses nothing: call the function again.
pub async fn recover(options: &Options) -> Result<Vec<Recovered>> {
    let Some(store) = &options.host.store else {
        return Err(no_store());
    };
    let place = Place::of(options)?;
    let files = place.files(options).await?;
    leftovers(&place, &files, store, &|note| note.scope == *store.scope).await
}

pub(crate) fn no_store() -> Error {
    let message = "there is no store to recover conversations to";
    Error::new(ErrorKind::InvalidOptions, message).with_help("set `Options::store`")
}

/// Recovers the selected folders of ended runs.
pub(super) fn leftovers<'a>(
    place: &'a Place,
    files: &'a OwnFiles,
    store: &'a StoreOptions,
    selects: &'a (dyn Fn(&Note) -> bool + Sync),
) -> BoxFuture<'a, Result<Vec<Recovered>>> {
    Box::pin(async move {
        let projects = place.config.projects();
        let folders = blocking(move || Ok(private_folder::all(&projects))).await?;
        let mut recovered = Vec::new();
        for (path, note) in folders {
            let is_settled = note.state == NoteState::Orphaned;
            if is_settled || note.owner() == OwnerState::Alive || !selects(&note) {
                continue;
            }
            recovered.extend(recover_folder(store, files, &path, note).await?);
        }
        Ok(recovered)
    })
}

/// Sends the entries of one folder.
async fn recover_folder(
    store: &StoreOptions,
    files: &OwnFiles,
    path: &Path,
    note: Note,
) -> Result<Vec<Recovered>> {
    let session = note.session.clone();
    let key = SessionKey::new(&note.scope, &note.project, session.as_str());
    let key = key.map_err(|error| Error::new(ErrorKind::StoreFailed, error.to_string()))?;
    let sent = send_folder(store, files, path, &note).await;
    let sent = sent.map_err(|error| store_failed("recover", &key, error))?;
    // A run that may be in progress needs its files, and will remove them.
    if note.owner() == OwnerState::Gone {
        let folder = path.to_owned();
        let settle = move || {
            if sent.is_orphaned {
                let mut note = note;
                note.state = NoteState::Orphaned;
                return Ok(note.write(&folder));
            }
            private_folder::remove(&folder);
            Ok(Ok(()))
        };
        let settled = blocking(settle).await?;
        let note = Note::path(path);
        settled.map_err(|error| store_failed("recover", &key, unnoted(&note, error)))?;
    }
    let mut recovered = Vec::new();
    if sent.count > 0 {
        let outcome = RecoveryOutcome::Stored(sent.count);
        recovered.push(Recovered { session: session.clone(), outcome });
    }
    if sent.is_orphaned {
        let outcome = RecoveryOutcome::Orphaned(path.to_owned());
        recovered.push(Recovered { session, outcome });
    }
    Ok(recovered)
}

/// What became of the transcripts in a folder.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    /// The number of entries that the store did not have.
    count: u64,
    /// Whether there are entries that may not be sent.
    pub(crate) is_orphaned: bool,
}

/// Which sessions of a folder may be sent.
struct Rules<'a> {
    /// The session that the run had resumed or forked.
    origin: SessionId,
    /// The note, if the run has ended: an agent may have written it, so that the store has to confirm it.
    note: Option<&'a Note>,
}

impl Rules<'_> {
    /// Returns whether the run created a session that it could not claim.
    fn is_created(&self, session: &SessionId) -> bool {
        match self.note {
            Some(note) => note.created.contains(session),
            None => *session != self.origin,
        }
    }
}

/// Stores the missing entries of the transcripts that an ended run left in a folder.
async fn send_folder(
    store: &StoreOptions,
    files: &OwnFiles,
    path: &Path,
    note: &Note,
) -> std::result::Result<Sent, StoreError> {
    let project: Arc<str> = note.project.as_str().into();
    let files = files.clone().or_of_host();
    let target = Target { options: store.clone(), project: Some(project), folder: None, files };
    let mut sessions = OwnedSessions::default();
    for (id, epoch) in &note.epochs {
        let key = SessionKey::new(&note.scope, &note.project, id)?;
        sessions.add(key, Epoch::new(*epoch));
    }
    let rules = Rules { origin: note.session.clone(), note: Some(note) };
    target.send_private(&mut sessions, path, &note.project, &rules).await
}

impl Target {
    /// Stores the missing entries of all sessions in the private folder of a run.
    pub(crate) async fn send_folder(
        &self,
        sessions: &mut OwnedSessions,
        folder: &PrivateFolder,
    ) -> std::result::Result<Sent, StoreError> {
        let project = self.project.as_deref().unwrap_or(folder.name());
        let rules = Rules { origin: folder.origin(), note: None };
        self.send_private(sessions, folder.path(), project, &rules).await
    }

    /// Stores the missing entries of a private folder, without claiming a session.
    fn send_private<'a>(
        &'a self,
        sessions: &'a mut OwnedSessions,
        folder: &'a Path,
        project: &'a str,
        rules: &'a Rules<'a>,
    ) -> StoreFuture<'a, Sent> {
        Box::pin(async move {
            let files = self.transcripts(folder, project, None).await?;
            let mut sent = Sent::default();
            for files in files.chunk_by(|one, other| one.key == other.key) {
                let key = &files[0].key;
                // Nobody has claimed a session with this epoch; if somebody has, the append is rejected.
                if !sessions.contains(key) && rules.is_created(key.session()) {
                    sessions.add(key.clone(), Epoch::new(0));
                }
                let outcome = match self.may_send(sessions, files, rules).await {
                    Ok(true) => self.send_session(sessions, files).await,
                    Ok(false) => self
                        .has_messages_of_its_own(files)
                        .await
                        .map(|is_orphaned| Sent { is_orphaned, ..Sent::default() }),
                    Err(error) => Err(error),
                };
                match outcome {
                    Ok(outcome) => {
                        sent.count += outcome.count;
                        sent.is_orphaned |= outcome.is_orphaned;
                    }
                    Err(error) if error.kind() == StoreErrorKind::Superseded => {
                        sent.is_orphaned = true;
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(sent)
        })
    }

    /// Returns whether the transcripts of a session may be sent: the run has claimed or created it, and if it has
    /// ended, the store confirms that the folder has what the run had. An agent can write any epoch into a note,
    /// but it does not know the entries of sessions that were never on its disk.
    async fn may_send(
        &self,
        sessions: &mut OwnedSessions,
        files: &[LocalFile],
        rules: &Rules<'_>,
    ) -> std::result::Result<bool, StoreError> {
        let key = &files[0].key;
        if !sessions.contains(key) {
            return Ok(false);
        }
        let session = self.owned(sessions, key).await?;
        let is_own = rules.note.is_none() && session.epoch > Epoch::new(0);
        if is_own {
            return Ok(true);
        }
        let stored = session.stored(&*self.options.store, key).await?;
        let Some(last) = &stored.last else { return Ok(true) };
        let acknowledged =
            rules.note.and_then(|note| note.acknowledged.get(key.session().as_str()));
        // The ID of an entry without UUID follows from its text, which an agent could guess.
        if last.has_uuid() && acknowledged.is_some_and(|id| id == last.as_str()) {
            return Ok(true);
        }
        match files.iter().find(|file| file.subpath.is_none()) {
            Some(main) => Ok(self.locate(stored, main).await? == Found::Last),
            None => Ok(false),
        }
    }

    async fn send_session(
        &self,
        sessions: &mut OwnedSessions,
        files: &[LocalFile],
    ) -> std::result::Result<Sent, StoreError> {
        let mut sent = Sent::default();
        for file in files {
            sent.count += self.send_file(sessions, file).await?;
        }
        Ok(sent)
    }

    /// Returns whether the main transcript has messages that the store does not have.
    async fn has_messages_of_its_own(
        &self,
        files: &[LocalFile],
    ) -> std::result::Result<bool, StoreError> {
        let Some(main) = files.iter().find(|file| file.subpath.is_none()) else { return Ok(false) };
        let (store, lines) = (&*self.options.store, Lines::Messages);
        let found = Difference::of(store, &main.key, &self.files, &main.path, lines).await?;
        Ok(found.has_local_only)
    }

    /// Stores the missing entries of one session in a project folder, and claims it if that was not done.
    pub(super) async fn send_local(
        &self,
        sessions: &mut OwnedSessions,
        folder: &Path,
        key: &SessionKey,
    ) -> std::result::Result<(), StoreError> {
        let files = self.transcripts(folder, key.project(), Some(key.session())).await?;
        self.send_session(sessions, &files).await.map(drop)
    }

    /// Returns the transcripts of one session or of all sessions in a folder.
    fn transcripts<'a>(
        &'a self,
        folder: &'a Path,
        project: &'a str,
        session: Option<&'a SessionId>,
    ) -> StoreFuture<'a, Vec<LocalFile>> {
        Box::pin(async move {
            let (files, read, project) =
                (self.files.clone(), folder.to_owned(), project.to_owned());
            let (scope, session) = (self.options.scope.clone(), session.cloned());
            let list = move || {
                let session = session.as_ref().map(SessionId::as_str);
                local::transcripts(&files, &read, &scope, &project, session)
            };
            read_files(folder, list).await
        })
    }
}
