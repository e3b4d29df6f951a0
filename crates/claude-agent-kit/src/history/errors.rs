//! Errors of the history.

use std::path::Path;

use claude_wire::transcript::TranscriptError;

use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
pub(crate) use crate::session_files::errors::{io, not_a_session_id};
use crate::store::write_session::failed_store;
use crate::store::{SessionKey, StoreError};

pub(crate) fn not_in_store(key: &SessionKey) -> Error {
    let (id, project, scope) = (key.session(), key.project(), key.scope());
    let message =
        format!("session {id} not found in the project {project:?} of the scope {scope:?}");
    Error::new(ErrorKind::ConversationNotFound, message)
        .with_help("check the ID, the scope, and the directory or the project of the history")
        .with(|facts| facts.session_id = Some(id.clone()))
}

pub(crate) fn not_on_disk(call: &str) -> Error {
    let message = format!("`{call}` is not possible in a session store");
    Error::new(ErrorKind::Unsupported, message).with_help("use a history on disk")
}

pub(crate) fn no_project_folder(name: &str) -> Error {
    let message = format!("the project {name:?} is not the name of a folder");
    Error::new(ErrorKind::InvalidHistoryChange, message)
        .with_help("set the directory of the copy with `History::for_directory`")
}

pub(crate) fn invalid_key(error: StoreError) -> Error {
    Error::new(ErrorKind::InvalidOptions, error.to_string()).caused_by(error)
}

pub(crate) fn list_failed(error: StoreError) -> Error {
    failed_store("cannot list sessions", error)
}

pub(crate) fn subagent_not_found(id: &SessionId, agent: &str) -> Error {
    let message = format!("session {id} has no subagent \"{agent}\"");
    Error::new(ErrorKind::ConversationNotFound, message)
        .with_help("see `History::subagents` for the IDs")
        .with(|facts| facts.session_id = Some(id.clone()))
}

pub(crate) fn changed(path: &Path) -> Error {
    let message = format!("the transcript \"{}\" was rewritten while it was read", path.display());
    Error::new(ErrorKind::HistoryIo, message).with_help("read it again")
}

pub(crate) fn overwritten(path: &Path) -> Error {
    let message = format!("the CLI overwrote the change to \"{}\" repeatedly", path.display());
    Error::new(ErrorKind::HistoryIo, message).with_help("try again when the session is idle")
}

pub(crate) fn live(id: &SessionId, pid: u32) -> Error {
    let message = format!("session {id} is in use by the CLI (process {pid})");
    Error::new(ErrorKind::SessionLive, message)
        .with_help("stop the session first, or use `History::force_delete`")
        .with(|facts| facts.session_id = Some(id.clone()))
}

pub(crate) fn invalid_change(id: &SessionId, error: TranscriptError) -> Error {
    Error::new(ErrorKind::InvalidHistoryChange, format!("cannot change session {id}: {error}"))
        .with(|facts| facts.session_id = Some(id.clone()))
        .caused_by(error)
}
