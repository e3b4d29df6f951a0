//! What the tests of several stores need.

#![allow(dead_code, reason = "not every test uses every function")]

use claude_agent_kit::SessionId;
use claude_agent_kit::approval::Approval;
use claude_agent_kit::store::{
    Epoch, Load, NewEntry, OwnerKey, RecordFilter, RecordKind, RecordList, RecordPage, RecordStore,
    RecordWrite, SessionKey, SessionStore, StoreError, StoreErrorKind,
};

pub(crate) fn key(number: u32) -> SessionKey {
    let id = format!("{number:08x}-0000-4000-8000-000000000000");
    SessionKey::new("scope", "project", &*id).unwrap()
}

pub(crate) fn entry(text: &str) -> NewEntry {
    NewEntry::new(None, text, 0).unwrap()
}

/// Returns the texts of a session from which nothing was deleted.
pub(crate) async fn texts(store: &dyn SessionStore, key: &SessionKey) -> Vec<String> {
    let (mut texts, mut load) = (Vec::new(), Load::all());
    loop {
        let page = store.load(key, load).await.unwrap();
        for entry in page.entries {
            assert_eq!(entry.sequence.get(), load.after.get() + 1);
            load.after = entry.sequence;
            texts.push(entry.text.to_string());
        }
        if !page.more {
            return texts;
        }
    }
}

#[track_caller]
pub(crate) fn kind<T: std::fmt::Debug>(result: Result<T, StoreError>) -> StoreErrorKind {
    result.unwrap_err().kind()
}

/// Returns the owner of the approvals of a session.
pub(crate) fn owner(session: &SessionId) -> OwnerKey {
    OwnerKey::session("scope", session).unwrap()
}

/// Writes an approval that is new, or replaces the version before it; with an epoch, as its session.
pub(crate) async fn write(
    store: &dyn RecordStore,
    approval: &Approval,
    epoch: Option<Epoch>,
) -> Result<bool, StoreError> {
    let change = [approval.to_change().unwrap()];
    let request = &approval.request;
    let owner = OwnerKey::session(&request.scope, &request.session_id).unwrap();
    let mut write = RecordWrite::new(&change);
    write.fence = epoch.map(|epoch| (&owner, epoch));
    store.write_records(write).await
}

/// Lists the records of approvals.
pub(crate) async fn list(
    store: &dyn RecordStore,
    filter: RecordFilter<'_>,
) -> Result<RecordPage, StoreError> {
    store.list_records(RecordList::new(RecordKind::Approval, filter)).await
}
