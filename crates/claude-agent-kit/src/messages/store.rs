//! Errors of session stores.

use std::io;
use std::path::Path;

use serde_json::json;

use super::Messages;
use crate::approval::{
    Approval, ApprovalId, DecideError, Decision, Refusal, RefusedDecision, records, texts,
};
use crate::driver::{mirror, start};
use crate::history::errors;
use crate::session_files;
use crate::store::{
    EntryId, Epoch, MemoryStore, NewEntry, OwnerKey, ProjectKey, Record, RecordChange, RecordKey,
    RecordKind, RecordWrite, Sequence, SessionKey, StoreError, StoreErrorKind, StoreName, Subpath,
    faulty::FaultyStore, pages, recover, restore, upload, write_session,
};

pub(super) fn add(messages: &mut Messages) {
    messages.section("Session stores");
    let id = "00000000-0000-4000-8000-000000000001";
    let key = SessionKey::new("tenant", "project", id).unwrap();
    messages.store_error(&StoreError::superseded(&key, Epoch::new(3), Epoch::new(4)));
    messages.store_error(&StoreError::invalid_cursor("x"));
    add_records(messages, &key);
    messages.store_error(&StoreError::unrequested_approval(&ApprovalId::parse(id).unwrap()));
    messages.store_error(&StoreError::deletion_unsupported("SessionStore::projects"));
    let store = FaultyStore::at("SQLite \"/srv/sessions.db\"");
    let store = StoreName::Sessions(&store);
    messages.store_error(&upload::panicked(store, &format!("deleted session {id}")));
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
    messages.store_error(&upload::timed_out(store));
    messages.store_error(&upload::timed_out(StoreName::Sessions(&MemoryStore::new())));
    messages.store_error(&mirror::panicked(store, Some(id)));
    let (session, folder) = (key.session(), Path::new("/home/me/.claude/projects/-work"));
    let (missing, full) = (io::Error::from_raw_os_error(2), io::Error::from_raw_os_error(28));
    messages.store_error(&upload::unreadable(&folder.join("x.jsonl"), missing));
    messages.store_error(&upload::unnoted(&folder.join("session-store.json"), full));
    let down = || StoreError::new(StoreErrorKind::Unavailable, "the database is locked");
    messages.error(&write_session::store_failed("resume", &key, down()));
    messages.error(&session_files::errors::exists(session, &folder.join("x.jsonl")));
    messages.store_error(&write_session::out_of_order(
        store,
        &key,
        Sequence::new(17),
        Sequence::new(19),
    ));
    messages.store_error(&write_session::empty_page(store, &key));
    messages.store_error(&StoreError::outdated_approval(&ApprovalId::parse(id).unwrap()));
    messages.store_error(&StoreError::never_written(&ApprovalId::parse(id).unwrap()));
    for of in ["session", "list"] {
        for limit in ["2048 MiB", "100,000 pages", "it returned within 10 minutes"] {
            messages.store_error(&pages::too_large(of, limit));
        }
    }
    messages.error(&restore::latest_failed(down()));
    messages.error(&restore::not_found(session, folder));
    messages.error(&restore::without_messages(session));
    messages.error(&restore::in_use(session));
    messages.error(&recover::no_store());
    let failed = io::ErrorKind::PermissionDenied.into();
    messages.error(&errors::io("create a folder in", folder, failed));
    messages.warning(&restore::not_restored());
    messages.warning(&restore::orphaned(session, &folder.join("x.jsonl")));
    add_approvals(messages, id);
}

fn add_records(messages: &mut Messages, key: &SessionKey) {
    let id = key.session().as_str();
    let owner = OwnerKey::session("tenant", key.session()).unwrap();
    messages.store_error(&StoreError::records_superseded(&owner, Epoch::new(3), Epoch::new(4)));
    let change = RecordChange::insert(
        RecordKey::new("tenant", RecordKind::Message, "m").unwrap(),
        &owner,
        "{}",
    );
    let twice = vec![change.unwrap(); 2];
    messages.store_error(&RecordWrite::new(&twice).check().unwrap_err());
    let many: Vec<RecordChange> = vec![twice[0].clone(); 1_001];
    messages.store_error(&RecordWrite::new(&many).check().unwrap_err());
    let foreign = OwnerKey::new("other", "x").unwrap();
    messages.store_error(&RecordChange::insert(twice[0].key.clone(), &foreign, "").unwrap_err());
    let damaged = Record::new(
        Approval::record_key("tenant", &ApprovalId::parse(id).unwrap()).unwrap(),
        "x",
        1,
        0,
        Sequence::new(1),
        "",
    );
    messages.store_error(&Approval::from_record(&damaged).unwrap_err());
    messages.store_error(&records::invalid_id(ApprovalId::parse("x").unwrap_err()));
}

fn add_approvals(messages: &mut Messages, id: &str) {
    messages.section("Approvals");
    let down = || StoreError::new(StoreErrorKind::Unavailable, "the database is locked");
    let id = ApprovalId::parse(id).unwrap();
    let refusals = [
        Refusal::AlreadyDecided(Decision::allow("ana@example.com")),
        Refusal::Expired,
        Refusal::Withdrawn,
    ];
    let request = json!({
        "id": id.to_string(), "scope": "tenant", "session_id": id.to_string(), "tool_use_id": "toolu_1",
        "tool_name": "Bash", "input": {}, "requested_at_ms": 1_794_880_800_000_u64,
        "expires_at_ms": 1_794_967_200_000_u64,
    });
    let approval =
        json!({"request": request, "status": "pending", "is_parked": true, "version": 1});
    let approval: Approval = serde_json::from_value(approval).unwrap();
    messages.line("`DecideError`", &DecideError::NotFound(id).to_string());
    for refusal in refusals {
        let refused = RefusedDecision::new(&approval, refusal);
        messages.line("`DecideError`", &DecideError::Refused(refused).to_string());
    }
    for text in texts::MODEL_TEXTS {
        messages.line("to the model", text);
    }
    messages.error(&start::approvals_failed(down()));
    messages.store_error(&upload::timed_out(StoreName::Approvals(&MemoryStore::new())));
    messages.warning(&texts::policy_failed("Bash", "no rules"));
    messages.warning(&texts::store_failed("Bash", &down()));
    messages.warning(&texts::settling_failed(&down()));
}
