//! Stores that return other records than those they were asked for.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::{Arc, Mutex};

use claude_agent_kit::approval::{Approval, Approvals, DecideError, Decision};
use claude_agent_kit::store::{
    Epoch, MemoryStore, OwnerKey, Record, RecordFilter, RecordKey, RecordKind, RecordList,
    RecordPage, RecordSelection, RecordStore, RecordWrite, StoreErrorKind, StoreFuture,
};
use claude_agent_store::{Encrypted, EncryptionKey, Keyring};
use support::{key, kind, list, write};

/// Returns the chosen records in place of the requested ones.
#[derive(Clone, Default)]
struct Hostile {
    inner: MemoryStore,
    returned: Arc<Mutex<Option<Vec<Record>>>>,
}

impl Hostile {
    fn returns(&self, records: &[Record]) {
        *self.returned.lock().unwrap() = Some(records.to_vec());
    }

    fn is_honest_again(&self) {
        *self.returned.lock().unwrap() = None;
    }
}

impl RecordStore for Hostile {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        self.inner.claim_records(owner)
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        self.inner.write_records(write)
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move {
            let mut page = self.inner.list_records(list).await?;
            if let Some(returned) = &*self.returned.lock().unwrap() {
                page.records.clone_from(returned);
            }
            Ok(page)
        })
    }

    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        self.inner.delete_records(selection, kind, limit)
    }
}

fn encrypted(inner: &Hostile) -> Encrypted<Hostile> {
    let current = EncryptionKey::new("key-1", &[1; 32]).unwrap();
    Encrypted::new(inner.clone(), Keyring::new(&[7; 32], current))
}

/// Returns a pending approval.
fn approval(scope: &str, number: u32, session: u32) -> Approval {
    let text = format!(
        r#"{{"request":{{"id":"{number:08x}-0000-4000-8000-000000000000","scope":"{scope}",
             "session_id":"{}","tool_use_id":"toolu_1","tool_name":"Bash",
             "input":{{"command":"true"}},"requested_at_ms":{number}}},
             "status":"pending","is_parked":false,"version":1}}"#,
        key(session).session()
    );
    serde_json::from_str(&text).unwrap()
}

/// Stores approvals and returns what the store has of them.
async fn stored(store: &dyn RecordStore, inner: &Hostile, all: &[&Approval]) -> Vec<Record> {
    let mut stored = Vec::new();
    for approval in all {
        assert!(write(store, approval, None).await.unwrap());
        stored.extend(list(&inner.inner, by_id(approval)).await.unwrap().records);
    }
    stored
}

fn by_id(approval: &Approval) -> RecordFilter<'_> {
    RecordFilter::Id { scope: &approval.request.scope, id: approval.request.id.as_str() }
}

fn owner(approval: &Approval) -> OwnerKey {
    OwnerKey::session(&approval.request.scope, &approval.request.session_id).unwrap()
}

#[tokio::test]
async fn approval_of_another_tenant_is_never_used() {
    let inner = Hostile::default();
    let store = encrypted(&inner);
    let (own, foreign) = (approval("tenant-a", 1, 1), approval("tenant-b", 2, 2));
    stored(&store, &inner, &[&own, &foreign]).await;
    let others = Approvals::new("tenant-b", store.clone());
    others.decide(&foreign.request.id, Decision::allow("eve@example.com")).await.unwrap();
    let approved = list(&inner.inner, by_id(&foreign)).await.unwrap().records;

    inner.returns(&approved);
    let owner = owner(&own);
    let filters = [by_id(&own), RecordFilter::OpenOf(&owner), RecordFilter::OpenIn("tenant-a")];
    for filter in filters {
        assert_eq!(kind(list(&store, filter).await), StoreErrorKind::Corrupt, "{filter:?}");
    }
    // The record is bound to its place, even if the store changes what it can read of it.
    let mut renamed = approved[0].clone();
    let id = own.request.id.as_str();
    renamed.key = RecordKey::new("tenant-a", RecordKind::Approval, id).unwrap();
    renamed.owner = own.request.session_id.as_str().into();
    inner.returns(&[renamed]);
    for filter in &filters[..2] {
        assert_eq!(kind(list(&store, *filter).await), StoreErrorKind::Corrupt, "{filter:?}");
    }
    assert_eq!(list(&store, filters[2]).await.unwrap().unreadable.len(), 1);
}

#[tokio::test]
async fn encrypted_records_are_those_that_were_requested() {
    let inner = Hostile::default();
    let store = encrypted(&inner);
    let (one, two) = (approval("scope", 1, 1), approval("scope", 2, 2));
    let hidden = stored(&store, &inner, &[&one, &two]).await;

    // Another ID and another session of the same scope.
    inner.returns(&hidden[1..]);
    let owner = owner(&one);
    for filter in [by_id(&one), RecordFilter::OpenOf(&owner)] {
        assert_eq!(kind(list(&store, filter).await), StoreErrorKind::Corrupt, "{filter:?}");
    }
    // Another state.
    let approvals = Approvals::new("scope", store.clone());
    inner.is_honest_again();
    approvals.decide(&one.request.id, Decision::deny("ana@example.com", "no")).await.unwrap();
    let mut decided = list(&inner.inner, by_id(&one)).await.unwrap().records;
    // The requested ones are accepted.
    inner.returns(&decided);
    assert_eq!(list(&store, by_id(&one)).await.unwrap().records.len(), 1);
    assert_eq!(list(&store, RecordFilter::OpenOf(&owner)).await.unwrap().records.len(), 1);
    decided[0].is_open = false;
    inner.returns(&decided);
    assert_eq!(kind(list(&store, by_id(&one)).await), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn approvers_get_the_requested_approval_or_an_error() {
    let inner = Hostile::default();
    let one = approval("scope", 1, 1);
    let own = stored(&inner, &inner, &[&one]).await.remove(0);
    let approvals = Approvals::new("scope", inner.clone());
    let (id, decision) = (&one.request.id, || Decision::allow("ana@example.com"));
    let (second, elsewhere) = (approval("scope", 2, 1), approval("other", 1, 1));
    let foreign = stored(&inner, &inner, &[&second, &elsewhere]).await;
    // Also under the key of the requested one.
    let renamed = foreign.iter().map(|foreign| {
        let mut renamed = own.clone();
        renamed.body = foreign.body.clone();
        renamed
    });
    for foreign in renamed.chain(foreign.clone()) {
        inner.returns(&[foreign]);
        assert_eq!(kind(approvals.get(id).await), StoreErrorKind::Corrupt);
        assert_eq!(kind(approvals.changed(&one).await), StoreErrorKind::Corrupt);
        let decided = approvals.decide(id, decision()).await.unwrap_err();
        assert!(
            matches!(&decided, DecideError::Store(error) if error.kind() == StoreErrorKind::Corrupt),
            "{decided}"
        );
    }
    inner.returns(&foreign[1..]);
    assert_eq!(kind(approvals.pending().await), StoreErrorKind::Corrupt);
    // A decided one does not have to be decided again.
    inner.is_honest_again();
    approvals.decide(id, decision()).await.unwrap();
    assert_eq!(approvals.pending().await.unwrap(), [second]);
}

#[tokio::test]
async fn approvals_of_a_removed_key_do_not_hide_the_others() {
    let inner = Hostile::default();
    let old = encrypted(&inner);
    let key_2 = EncryptionKey::new("key-2", &[2; 32]).unwrap();
    let new = Encrypted::new(inner.clone(), Keyring::new(&[7; 32], key_2));
    let all: Vec<Approval> = (1..=9).map(|number| approval("scope", number, 1)).collect();
    for (number, approval) in all.iter().enumerate() {
        let store: &dyn RecordStore = if number == 4 { &old } else { &new };
        stored(store, &inner, &[approval]).await;
    }
    let approvals = Approvals::new("scope", new.clone());
    let listed = approvals.list_pending().await.unwrap();
    let expected: Vec<Approval> =
        all.iter().filter(|approval| **approval != all[4]).cloned().collect();
    assert_eq!(listed.approvals, expected);
    let id = &all[4].request.id;
    assert_eq!(listed.unreadable.len(), 1);
    assert_eq!(listed.unreadable[0].id, *id);
    assert!(listed.unreadable[0].error.to_string().contains("key-1"), "{listed:?}");
    // By its ID, and for the run that waits for it, it fails.
    assert_eq!(kind(approvals.get(id).await), StoreErrorKind::Rejected);
    let owner = owner(&all[0]);
    assert_eq!(kind(list(&new, RecordFilter::OpenOf(&owner)).await), StoreErrorKind::Rejected);
}
