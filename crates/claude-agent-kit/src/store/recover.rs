//! Sends what ended runs left on this machine to the store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::StoreFuture;
use super::error::{StoreError, StoreErrorKind};
use super::key::{Epoch, SessionKey};
use super::local;
use super::options::StoreOptions;
use super::owner::{Note, NoteState, OwnerState};
use super::place::Place;
use super::private_folder::{self, PrivateFolder};
use super::upload::{OwnedSessions, Target, read_files, unreadable};
use super::write_session::{blocking, store_failed};
use crate::error::{Error, ErrorKind, Result};
use crate::id::SessionId;
use crate::options::Options;
use crate::tasks::BoxFuture;

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
    /// Another host had continued the session, so the entries were not sent. They stay in this folder.
    Orphaned(PathBuf),
}

/// Sends the entries that runs on this machine could not store, because the store failed until their end, or
/// because their host was killed.
///
/// A run that resumes a conversation does this for its own session. A service should call this function when
/// it starts, with the [store](Options::store), the scope and the config directory of its runs, so that the
/// last entries of all sessions reach the store.
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
    leftovers(&place, store, &|note| note.scope == *store.scope).await
}

pub(crate) fn no_store() -> Error {
    let message = "there is no store to recover conversations to";
    Error::new(ErrorKind::InvalidOptions, message).with_help("set `Options::store`")
}

/// Recovers the selected folders of ended runs.
pub(super) fn leftovers<'a>(
    place: &'a Place,
    store: &'a StoreOptions,
    selects: &'a (dyn Fn(&Note) -> bool + Sync),
) -> BoxFuture<'a, Result<Vec<Recovered>>> {
    Box::pin(async move {
        let projects = place.projects();
        let folders = blocking(move || Ok(private_folder::all(&projects))).await?;
        let mut recovered = Vec::new();
        for (path, note) in folders {
            let is_settled = note.state == NoteState::Orphaned;
            if is_settled || note.owner() == OwnerState::Alive || !selects(&note) {
                continue;
            }
            recovered.extend(recover_folder(store, &path, note).await?);
        }
        Ok(recovered)
    })
}

/// Sends the entries of one folder. Returns `None` if there was nothing to send.
async fn recover_folder(
    store: &StoreOptions,
    path: &Path,
    note: Note,
) -> Result<Option<Recovered>> {
    let session = note.session.clone();
    let key = SessionKey::new(&note.scope, &note.project, session.as_str());
    let key = key.map_err(|error| Error::new(ErrorKind::StoreFailed, error.to_string()))?;
    let sent = send_folder(store, path, &note).await;
    let (folder, is_gone) = (path.to_owned(), note.owner() == OwnerState::Gone);
    match sent {
        Ok(count) => {
            // A run that may be in progress needs its files, and will remove them.
            if is_gone {
                let remove = move || {
                    private_folder::remove(&folder);
                    Ok(())
                };
                blocking(remove).await?;
            }
            let outcome = RecoveryOutcome::Stored(count);
            Ok((count > 0).then_some(Recovered { session, outcome }))
        }
        Err(error) if error.kind() == StoreErrorKind::Superseded => {
            if is_gone {
                let mut note = note;
                note.state = NoteState::Orphaned;
                let written = blocking(move || Ok(note.write(&folder))).await?;
                written.map_err(|error| store_failed("recover", &key, unreadable(error)))?;
            }
            let outcome = RecoveryOutcome::Orphaned(path.to_owned());
            Ok(Some(Recovered { session, outcome }))
        }
        Err(error) => Err(store_failed("recover", &key, error)),
    }
}

/// Stores the missing entries of all transcripts in a folder, and returns their number.
async fn send_folder(
    store: &StoreOptions,
    path: &Path,
    note: &Note,
) -> std::result::Result<u64, StoreError> {
    let project: Arc<str> = note.project.as_str().into();
    let target = Target { options: store.clone(), project: Some(project), folder: None };
    let mut sessions = OwnedSessions::default();
    for (id, epoch) in &note.epochs {
        let key = SessionKey::new(&note.scope, &note.project, id)?;
        sessions.add(key, Epoch::new(*epoch));
    }
    target.send_all(&mut sessions, path, &note.project, None).await
}

impl Target {
    /// Stores the missing entries of all sessions in the private folder of a run.
    pub(crate) async fn send_folder(
        &self,
        sessions: &mut OwnedSessions,
        folder: &PrivateFolder,
    ) -> std::result::Result<(), StoreError> {
        let project = self.project.as_deref().unwrap_or(folder.name());
        self.send_all(sessions, folder.path(), project, None).await.map(drop)
    }

    /// Stores the missing entries of one session or of all sessions in a folder, and returns their number.
    pub(super) fn send_all<'a>(
        &'a self,
        sessions: &'a mut OwnedSessions,
        folder: &'a Path,
        project: &'a str,
        session: Option<&'a SessionId>,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let (folder, project) = (folder.to_owned(), project.to_owned());
            let (scope, session) = (self.options.scope.clone(), session.cloned());
            let files = read_files(move || {
                let session = session.as_ref().map(SessionId::as_str);
                local::transcripts(&folder, &scope, &project, session)
            });
            let files = files.await?;
            let mut count = 0;
            for file in &files {
                count += self.send_file(sessions, file).await? as u64;
            }
            Ok(count)
        })
    }
}
