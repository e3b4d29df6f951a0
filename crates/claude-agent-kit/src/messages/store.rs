//! Errors of session stores.

use std::path::Path;

use super::Messages;
use crate::approval::{ApprovalId, DecideError, Decision, Refusal, texts};
use crate::driver::{mirror, start};
use crate::history::errors;
use crate::store::{
    EntryId, Epoch, NewEntry, ProjectKey, SessionKey, StoreError, StoreErrorKind, Subpath, recover,
    restore, upload, write_session,
};

pub(super) fn add(messages: &mut Messages) {
    messages.section("Session stores");
    let id = "00000000-0000-4000-8000-000000000001";
    let key = SessionKey::new("tenant", "project", id).unwrap();
    messages.store_error(&StoreError::superseded(&key, Epoch::new(3), Epoch::new(4)));
    messages.store_error(&StoreError::invalid_cursor("x"));
    messages.store_error(&StoreError::approvals_superseded(
        key.session(),
        Epoch::new(3),
        Epoch::new(4),
    ));
    messages.store_error(&ApprovalId::parse("x").unwrap_err());
    for scope in ["", "\0", &"x".repeat(513)] {
        messages.store_error(&ProjectKey::new(scope, "project").unwrap_err());
    }
    messages.store_error(&ProjectKey::new("tenant", "").unwrap_err());
    messages.store_error(&SessionKey::new("tenant", "project", "x").unwrap_err());
    messages.store_error(&Subpath::new("../x").unwrap_err());
    messages.store_error(&Subpath::new(&"x".repeat(513)).unwrap_err());
    messages.store_error(&EntryId::new("").unwrap_err());
    messages.store_error(&NewEntry::new(None, "{", 0).unwrap_err());
    messages.store_error(&upload::timed_out());
    messages.store_error(&mirror::panicked());
    messages.store_error(&upload::unreadable(std::io::ErrorKind::NotFound.into()));
    messages.store_error(&upload::unnoted(std::io::ErrorKind::StorageFull.into()));
    let (session, folder) = (key.session(), Path::new("/home/me/.claude/projects/-work"));
    let down = || StoreError::new(StoreErrorKind::Unavailable, "the database is locked");
    messages.error(&write_session::store_failed("resume", &key, down()));
    messages.error(&write_session::exists(session, &folder.join("x.jsonl")));
    messages.store_error(&write_session::out_of_order());
    messages.error(&restore::latest_failed(down()));
    messages.error(&restore::not_found(session, folder));
    messages.error(&restore::in_use(session));
    messages.error(&recover::no_store());
    let failed = std::io::ErrorKind::PermissionDenied.into();
    messages.error(&errors::io("create a folder in", folder, failed));
    messages.warning(&restore::not_restored());
    messages.warning(&restore::orphaned(session, &folder.join("x.jsonl")));
    messages.section("Approvals");
    let id = ApprovalId::parse(id).unwrap();
    let refusals = [
        Refusal::AlreadyDecided(Decision::allow("ana@example.com")),
        Refusal::Expired,
        Refusal::Withdrawn,
    ];
    messages.line("`DecideError`", &DecideError::NotFound(id).to_string());
    for refusal in refusals {
        messages.line("`DecideError`", &DecideError::Refused(refusal).to_string());
    }
    for text in texts::MODEL_TEXTS {
        messages.line("to the model", text);
    }
    messages.error(&start::approvals_failed(down()));
    messages.warning(&texts::policy_failed("Bash", "no rules"));
    messages.warning(&texts::store_failed("Bash", &down()));
    messages.warning(&texts::settling_failed(&down()));
}
