//! A project folder for one run, which is removed when the store has everything in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::note::{Note, NoteState};
use super::private_file;
use super::write::SessionContents;
use crate::id::SessionId;
use crate::lock::lock;
use claude_session_store::{EntryId, Epoch, SessionKey};

/// The start of the names of private folders.
const PREFIX: &str = "claude-agent-kit-";

/// A project folder of one run.
#[derive(Debug)]
pub(crate) struct PrivateFolder {
    path: PathBuf,
    name: String,
    state: Mutex<FolderState>,
}

#[derive(Debug)]
struct FolderState {
    note: Note,
    /// Whether a CLI may have written to the folder.
    is_used: bool,
    is_removed: bool,
}

impl PrivateFolder {
    /// Creates an empty folder for the resume of a session, or for a fork with this ID.
    pub(crate) fn create(
        projects: &Path,
        key: &SessionKey,
        fork: Option<SessionId>,
    ) -> io::Result<Self> {
        let name = format!("{PREFIX}{}", crate::random::uuid());
        let path = projects.join(&name);
        private_file::create_dir_all(projects)?;
        private_file::create_dir(&path)?;
        let mut note = Note::new(key);
        note.created.extend(fork);
        let state = Mutex::new(FolderState { note, is_used: false, is_removed: false });
        let folder = Self { path, name, state };
        lock(&folder.state).note.write(&folder.path)?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of the note.
    pub(crate) fn note_path(&self) -> PathBuf {
        Note::path(&self.path)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Records the claim of a session, before entries of it are stored.
    pub(crate) fn claimed(&self, key: &SessionKey, epoch: Epoch) -> io::Result<()> {
        self.change_note(|note| note.claim(key, epoch))
    }

    fn change_note(&self, change: impl FnOnce(&mut Note)) -> io::Result<()> {
        let mut state = lock(&self.state);
        change(&mut state.note);
        state.note.write(&self.path)
    }

    /// Returns the session that was resumed or forked.
    pub(crate) fn origin(&self) -> SessionId {
        lock(&self.state).note.session.clone()
    }

    /// Records that the CLI has created a session, before it is claimed: without a claim, nothing else shows that
    /// it is one of this run.
    pub(crate) fn creates(&self, session: &SessionId) -> io::Result<()> {
        let mut state = lock(&self.state);
        if state.note.session == *session || state.note.created.contains(session) {
            return Ok(());
        }
        state.note.created.push(session.clone());
        state.note.write(&self.path)
    }

    /// Records that the folder has everything that the store has, up to this entry.
    pub(crate) fn restored(&self, key: &SessionKey, written: &SessionContents) -> io::Result<()> {
        self.change_note(|note| {
            note.restored = written.last.get();
            if let Some(id) = &written.last_id {
                note.acknowledged.insert(key.session().to_string(), id.to_string());
            }
        })
    }

    /// Records the last entry that the store has.
    pub(crate) fn acknowledged(&self, key: &SessionKey, entry: &EntryId) -> io::Result<()> {
        self.change_note(|note| {
            note.acknowledged.insert(key.session().to_string(), entry.to_string());
        })
    }

    /// From now on the folder is kept, unless [`remove`](Self::remove) is called.
    pub(crate) fn set_used(&self) {
        lock(&self.state).is_used = true;
    }

    /// Removes the folder: the store has everything.
    pub(crate) fn remove(&self) {
        lock(&self.state).is_removed = true;
        remove(&self.path);
    }

    /// Keeps the folder for a recovery: the run has ended.
    pub(crate) fn keep(&self) {
        let mut state = lock(&self.state);
        if state.is_removed || state.note.state != NoteState::Running {
            return;
        }
        state.note.state = NoteState::Ended;
        if let Err(error) = state.note.write(&self.path) {
            tracing::debug!("cannot write the note in \"{}\": {error}", self.path.display());
        }
    }
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let is_used = lock(&self.state).is_used;
        if is_used {
            self.keep();
        } else {
            remove(&self.path);
        }
    }
}

/// Removes a private folder. What cannot be removed is removed with the next recovery.
pub(crate) fn remove(path: &Path) {
    if let Err(error) = fs::remove_dir_all(path) {
        tracing::debug!("cannot remove \"{}\": {error}", path.display());
    }
}

/// Returns the private folders with a note.
pub(crate) fn all(projects: &Path) -> Vec<(PathBuf, Note)> {
    let mut noted = Vec::new();
    for entry in fs::read_dir(projects).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder
            && entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && let Some(note) = Note::read(&entry.path())
        {
            noted.push((entry.path(), note));
        }
    }
    noted
}
