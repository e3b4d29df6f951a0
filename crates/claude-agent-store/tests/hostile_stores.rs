//! Stores that return other records than those they were asked for.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::{Arc, Mutex};

use claude_agent_kit::SessionId;
use claude_agent_kit::approval::{
    Approval, ApprovalFilter, ApprovalList, ApprovalPage, ApprovalStatus, ApprovalStore,
    ApprovalWrite, Approvals, DecideError, Decision,
};
use claude_agent_kit::store::{Epoch, MemoryStore, StoreError, StoreErrorKind, StoreFuture};
use claude_agent_store::{Encrypted, EncryptionKey, Keyring};
use support::{key, kind};

/// Returns the chosen records in place of the requested ones.
#[derive(Clone, Default)]
struct Hostile {
    inner: MemoryStore,
    returned: Arc<Mutex<Option<Vec<Approval>>>>,
}

impl Hostile {
    fn returns(&self, approvals: &[Approval]) {
        *self.returned.lock().unwrap() = Some(approvals.to_vec());
    }
}

impl ApprovalStore for Hostile {
    fn claim_approvals<'a>(
        &'a self,
        scope: &'a str,
        session: &'a SessionId,
    ) -> StoreFuture<'a, Epoch> {
        self.inner.claim_approvals(scope, session)
    }

    fn write_approval<'a>(&'a self, write: ApprovalWrite<'a>) -> StoreFuture<'a, bool> {
        self.inner.write_approval(write)
    }

    fn list_approvals<'a>(&'a self, list: ApprovalList<'a>) -> StoreFuture<'a, ApprovalPage> {
        Box::pin(async move {
            let mut page = self.inner.list_approvals(list).await?;
            if let Some(returned) = &*self.returned.lock().unwrap() {
                page.approvals.clone_from(returned);
            }
            Ok(page)
        })
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
async fn stored(store: &dyn ApprovalStore, inner: &Hostile, all: &[&Approval]) -> Vec<Approval> {
    let mut stored = Vec::new();
    for approval in all {
        assert!(store.write_approval(ApprovalWrite::insert(approval)).await.unwrap());
        let filter = ApprovalFilter::Id(&approval.request.id);
        let list = ApprovalList::new(&approval.request.scope, filter);
        stored.extend(inner.inner.list_approvals(list).await.unwrap().approvals);
    }
    stored
}

async fn list(
    store: &dyn ApprovalStore,
    scope: &str,
    filter: ApprovalFilter<'_>,
) -> Result<Vec<Approval>, StoreError> {
    Ok(store.list_approvals(ApprovalList::new(scope, filter)).await?.approvals)
}

#[tokio::test]
async fn approval_of_another_tenant_is_never_used() {
    let inner = Hostile::default();
    let store = encrypted(&inner);
    let (own, foreign) = (approval("tenant-a", 1, 1), approval("tenant-b", 2, 2));
    stored(&store, &inner, &[&own, &foreign]).await;
    let others = Approvals::new("tenant-b", store.clone());
    others.decide(&foreign.request.id, Decision::allow("eve@example.com")).await.unwrap();
    let foreign_list = ApprovalList::new("tenant-b", ApprovalFilter::Id(&foreign.request.id));
    let approved = inner.inner.list_approvals(foreign_list).await.unwrap().approvals;
    assert_eq!(approved[0].status, ApprovalStatus::Decided);

    inner.returns(&approved);
    let filters = [
        ApprovalFilter::Id(&own.request.id),
        ApprovalFilter::OpenOf(&own.request.session_id),
        ApprovalFilter::Pending,
    ];
    for filter in filters {
        let error = list(&store, "tenant-a", filter).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{filter:?}");
    }
    // The record is bound to its place, also if the store changes what it can read of it.
    let mut renamed = serde_json::to_value(&approved[0]).unwrap();
    renamed["request"]["id"] = own.request.id.as_str().into();
    renamed["request"]["scope"] = "tenant-a".into();
    renamed["request"]["session_id"] = own.request.session_id.as_str().into();
    inner.returns(&[serde_json::from_value(renamed).unwrap()]);
    for filter in &filters[..2] {
        let error = list(&store, "tenant-a", *filter).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{filter:?}");
    }
}

#[tokio::test]
async fn encrypted_records_are_those_that_were_requested() {
    let inner = Hostile::default();
    let store = encrypted(&inner);
    let (one, two) = (approval("scope", 1, 1), approval("scope", 2, 2));
    let hidden = stored(&store, &inner, &[&one, &two]).await;

    // Another ID and another session of the same scope.
    inner.returns(&hidden[1..]);
    for filter in
        [ApprovalFilter::Id(&one.request.id), ApprovalFilter::OpenOf(&one.request.session_id)]
    {
        assert_eq!(
            kind(list(&store, "scope", filter).await),
            StoreErrorKind::Corrupt,
            "{filter:?}"
        );
    }
    // Another state.
    let approvals = Approvals::new("scope", store.clone());
    *inner.returned.lock().unwrap() = None;
    approvals.decide(&one.request.id, Decision::deny("ana@example.com", "no")).await.unwrap();
    let filter = ApprovalFilter::Id(&one.request.id);
    let decided = list(&inner, "scope", filter).await.unwrap();
    inner.returns(&decided);
    assert_eq!(kind(list(&store, "scope", ApprovalFilter::Pending).await), StoreErrorKind::Corrupt);
    // The requested ones are accepted.
    assert_eq!(list(&store, "scope", filter).await.unwrap().len(), 1);
    let open = ApprovalFilter::OpenOf(&one.request.session_id);
    assert_eq!(list(&store, "scope", open).await.unwrap().len(), 1);
}

#[tokio::test]
async fn approvers_get_the_requested_approval_or_an_error() {
    let inner = Hostile::default();
    let one = approval("scope", 1, 1);
    stored(&inner, &inner, &[&one]).await;
    let approvals = Approvals::new("scope", inner.clone());
    let (id, decision) = (&one.request.id, || Decision::allow("ana@example.com"));
    for foreign in [approval("scope", 2, 1), approval("other", 1, 1)] {
        inner.returns(&[foreign]);
        assert_eq!(kind(approvals.get(id).await), StoreErrorKind::Corrupt);
        assert_eq!(kind(approvals.changed(&one).await), StoreErrorKind::Corrupt);
        let decided = approvals.decide(id, decision()).await.unwrap_err();
        assert!(
            matches!(&decided, DecideError::Store(error) if error.kind() == StoreErrorKind::Corrupt),
            "{decided}"
        );
    }
    inner.returns(&[approval("other", 3, 1)]);
    assert_eq!(kind(approvals.pending().await), StoreErrorKind::Corrupt);
    // A decided one does not have to be decided again.
    *inner.returned.lock().unwrap() = None;
    let decided = approvals.decide(id, decision()).await.unwrap();
    inner.returns(&[decided]);
    assert_eq!(kind(approvals.pending().await), StoreErrorKind::Corrupt);
}

#[tokio::test]
async fn approvals_of_a_removed_key_do_not_hide_the_others() {
    let inner = Hostile::default();
    let old = encrypted(&inner);
    let key_2 = EncryptionKey::new("key-2", &[2; 32]).unwrap();
    let new = Encrypted::new(inner.clone(), Keyring::new(&[7; 32], key_2));
    let all: Vec<Approval> = (1..=9).map(|number| approval("scope", number, 1)).collect();
    for (number, approval) in all.iter().enumerate() {
        let store: &dyn ApprovalStore = if number == 4 { &old } else { &new };
        stored(store, &inner, &[approval]).await;
    }
    let approvals = Approvals::new("scope", new.clone());
    let listed = approvals.list_pending().await.unwrap();
    let expected: Vec<Approval> =
        all.iter().filter(|approval| **approval != all[4]).cloned().collect();
    assert_eq!(listed.approvals, expected);
    let id = &all[4].request.id;
    assert_eq!(listed.unreadable.len(), 1);
    assert_eq!(listed.unreadable[0].position.id, *id);
    assert!(listed.unreadable[0].error.to_string().contains("key-1"), "{listed:?}");
    // By its ID, and for the run that waits for it, it fails.
    assert_eq!(kind(approvals.get(id).await), StoreErrorKind::Rejected);
    let open = ApprovalFilter::OpenOf(&all[0].request.session_id);
    assert_eq!(kind(list(&new, "scope", open).await), StoreErrorKind::Rejected);
}
