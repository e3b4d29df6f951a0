//! Errors of files of sessions.

use std::io;
use std::path::Path;

use claude_wire::transcript::is_uuid;

use crate::error::{Error, ErrorKind};
use crate::id::SessionId;

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
    if !is_uuid(id.as_str()) {
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

pub(crate) fn exists(id: &SessionId, path: &Path) -> Error {
    let message =
        format!("cannot write session {id}: \"{}\" exists and has other contents", path.display());
    Error::new(ErrorKind::InvalidHistoryChange, message)
        .with_help("use another config directory, or move the file away")
        .with(|facts| facts.session_id = Some(id.clone()))
}
