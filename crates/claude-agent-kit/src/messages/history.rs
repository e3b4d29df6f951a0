//! Errors of the history.

use std::io;
use std::path::Path;

use claude_wire::transcript::TranscriptError;

use super::Messages;
use crate::history::{both_on_disk, errors};
use crate::id::SessionId;
use crate::options::conversation::other_project;
use crate::session_files::errors as files;
use crate::store::upload::timed_out;
use crate::store::write_session::{out_of_order, store_failed};
use crate::store::{
    Sequence, SessionKey, StoreError, StoreErrorKind, StoreName, Subpath, faulty::FaultyStore,
};
use crate::tasks;

pub(super) fn add(messages: &mut Messages) {
    messages.section("History");
    let id = SessionId::from("00000000-0000-4000-8000-000000000001");
    let path = Path::new("/home/me/.claude/projects/-srv/1.jsonl");
    let projects = Path::new("/home/me/.claude/projects");
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    messages.error(&errors::io("read", path, denied()));
    messages.error(&files::no_config_dir("HOME"));
    messages.error(&files::not_found(&SessionId::from("x"), projects, None));
    messages.error(&files::not_found(&id, projects, None));
    messages.error(&files::not_found(&id, projects, Some(Path::new("/srv"))));
    messages.error(&errors::subagent_not_found(&id, "a1"));
    messages.error(&errors::changed(path));
    messages.error(&errors::overwritten(path));
    messages.error(&errors::live(&id, 4711));
    messages.error(&errors::invalid_change(&id, TranscriptError::EmptyTitle));
    messages.error(&tasks::runtime_gone());
    add_stored(messages, &id, path);
    messages.error(&other_project(&id, Some("/srv".to_owned()), path));
    messages.error(&other_project(&id, None, path));
}

/// Errors of the history in a store, and of copies.
fn add_stored(messages: &mut Messages, id: &SessionId, path: &Path) {
    let key = SessionKey::new("tenant", "-srv", id.clone()).unwrap();
    messages.error(&errors::not_in_store(&key));
    messages.error(&errors::not_on_disk("archive"));
    messages.error(&errors::no_project_folder("a/b"));
    messages.error(&errors::invalid_key(SessionKey::new("", "-srv", id.clone()).unwrap_err()));
    let down = StoreError::new(StoreErrorKind::Unavailable, "connection refused");
    messages.error(&errors::list_failed(down));
    let store = FaultyStore::at("SQLite \"/srv/sessions.db\"");
    let store = StoreName::Sessions(&store);
    for action in ["load", "copy", "change", "delete", "find"] {
        messages.error(&store_failed(action, &key, timed_out(store)));
    }
    messages.error(&store_failed(
        "load",
        &key,
        out_of_order(store, &key, Sequence::new(17), Sequence::new(19)),
    ));
    messages.error(&store_failed("load", &key, Subpath::new("..").unwrap_err()));
    messages.error(&files::exists(id, path));
    messages.error(&both_on_disk(id));
}
