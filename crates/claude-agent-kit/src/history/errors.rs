//! Errors of the history.

use std::io;
use std::path::Path;

use claude_wire::transcript::TranscriptError;

use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::session_files::project::valid_id;
use crate::store::write_session::failed_store;
use crate::store::{SessionKey, StoreError};

pub(crate) fn io(action: &str, path: &Path, error: io::Error) -> Error {
    let message = format!("cannot {action} \"{}\": {error}", path.display());
    Error::new(ErrorKind::HistoryIo, message).caused_by_io(error)
}

pub(crate) fn no_config_dir(home: &str) -> Error {
    let message =
        format!("the config directory is unknown: neither CLAUDE_CONFIG_DIR nor {home} is set");
    Error::new(ErrorKind::InvalidOptions, message).with_help("use `History::at`")
}

pub(crate) fn not_a_session_id(id: &SessionId) -> Error {
    let message = format!("\"{id}\" is not a session ID");
    Error::new(ErrorKind::ConversationNotFound, message).with_help("pass a UUID")
}

pub(crate) fn not_found(id: &SessionId, projects: &Path, directory: Option<&Path>) -> Error {
    if valid_id(id).is_none() {
        return not_a_session_id(id);
    }
    let place = match directory {
        Some(directory) => format!("for the directory \"{}\"", directory.display()),
        None => format!("below \"{}\"", projects.display()),
    };
    Error::new(ErrorKind::ConversationNotFound, format!("session {id} not found {place}"))
        .with_help("check the ID, the config directory and the working directory")
        .with(|facts| facts.session_id = Some(id.clone()))
}

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

pub(crate) fn runtime_gone() -> Error {
    let message = "the Tokio runtime was shut down while the history was being read";
    Error::new(ErrorKind::RuntimeGone, message).with_help("keep the runtime until the call returns")
}
