//! Errors of the history.

use std::io;
use std::path::Path;

use claude_wire::transcript::TranscriptError;

use super::Messages;
use crate::history::errors;
use crate::id::SessionId;
use crate::options::conversation::other_project;

pub(super) fn add(messages: &mut Messages) {
    messages.section("History");
    let id = SessionId::from("00000000-0000-4000-8000-000000000001");
    let path = Path::new("/home/me/.claude/projects/-srv/1.jsonl");
    let projects = Path::new("/home/me/.claude/projects");
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    messages.error(&errors::io("read", path, denied()));
    messages.error(&errors::no_config_dir("HOME"));
    messages.error(&errors::not_found(&SessionId::from("x"), projects, None));
    messages.error(&errors::not_found(&id, projects, None));
    messages.error(&errors::not_found(&id, projects, Some(Path::new("/srv"))));
    messages.error(&errors::subagent_not_found(&id, "a1"));
    messages.error(&errors::changed(path));
    messages.error(&errors::overwritten(path));
    messages.error(&errors::live(&id, 4711));
    messages.error(&errors::invalid_change(&id, TranscriptError::EmptyTitle));
    messages.error(&errors::runtime_gone());
    messages.error(&other_project(&id, Some("/srv".to_owned()), path));
    messages.error(&other_project(&id, None, path));
}
