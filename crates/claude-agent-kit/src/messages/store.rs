//! Errors of session stores.

use super::Messages;
use crate::driver::{catch_up, mirror};
use crate::store::{EntryId, Epoch, NewEntry, ProjectKey, SessionKey, StoreError, Subpath};

pub(super) fn add(messages: &mut Messages) {
    messages.section("Session stores");
    let id = "00000000-0000-4000-8000-000000000001";
    let key = SessionKey::new("tenant", "project", id).unwrap();
    messages.store_error(&StoreError::superseded(&key, Epoch::new(3), Epoch::new(4)));
    messages.store_error(&StoreError::invalid_cursor("x"));
    for scope in ["", "\0", &"x".repeat(513)] {
        messages.store_error(&ProjectKey::new(scope, "project").unwrap_err());
    }
    messages.store_error(&ProjectKey::new("tenant", "").unwrap_err());
    messages.store_error(&SessionKey::new("tenant", "project", "x").unwrap_err());
    messages.store_error(&Subpath::new("../x").unwrap_err());
    messages.store_error(&Subpath::new(&"x".repeat(513)).unwrap_err());
    messages.store_error(&EntryId::new("").unwrap_err());
    messages.store_error(&NewEntry::new(None, "{", 0).unwrap_err());
    messages.store_error(&mirror::timed_out());
    messages.store_error(&mirror::panicked());
    messages.store_error(&catch_up::unreadable(std::io::ErrorKind::NotFound.into()));
}
