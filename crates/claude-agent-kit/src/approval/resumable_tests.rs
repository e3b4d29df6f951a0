//! Tests of the conversations that can continue.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::id::SessionId;
use crate::store::{
    Epoch, MemoryStore, OwnerKey, RecordFilter, RecordKind, RecordList, RecordPage,
    RecordSelection, RecordStore, RecordWrite, StoreError, StoreErrorKind, StoreFuture,
};
use claude_session_store::approval::ApprovalUse;

/// Returns a session and an approval of it. Each number has its own.
fn session(number: u32) -> SessionId {
    SessionId::from(&*format!("{number:08x}-0000-4000-8000-000000000000"))
}

fn pending(number: u32, of: u32, is_parked: bool, expires_at_ms: Option<u64>) -> Approval {
    let mut value = json!({
        "request": {
            "id": format!("{number:08x}-0000-4000-8000-000000000001"),
            "scope": "t",
            "session_id": session(of),
            "project": "app",
            "tool_use_id": format!("toolu_{number}"),
            "tool_name": "Bash",
            "input": { "command": "make" },
            "requested_at_ms": number,
        },
        "status": "pending",
        "is_parked": is_parked,
        "version": 1,
    });
    if let Some(expiry) = expires_at_ms {
        value["request"]["expires_at_ms"] = json!(expiry);
    }
    serde_json::from_value(value).unwrap()
}

struct Fixture {
    store: MemoryStore,
    approvals: Approvals,
}

impl Fixture {
    fn new() -> Self {
        let store = MemoryStore::new();
        Self { approvals: Approvals::new("t", store.clone()), store }
    }

    async fn insert(&self, approval: &Approval) {
        assert!(self.approvals.write(approval, None).await.unwrap());
    }

    async fn update(&self, approval: &Approval) {
        assert!(self.approvals.write(approval, None).await.unwrap());
    }

    async fn allow(&self, approval: &Approval) -> Approval {
        self.approvals.decide(&approval.request.id, Decision::allow("ana")).await.unwrap()
    }

    /// Returns the sessions that can continue, with the approvals that a resume uses.
    async fn listed(&self) -> Vec<(SessionId, usize, usize)> {
        let found = self.approvals.resumable().await.unwrap();
        found.into_iter().map(|it| (it.session_id, it.approvals.len(), it.pending.len())).collect()
    }
}

const FAR: u64 = u64::MAX >> 1;

#[tokio::test]
async fn parked_conversations_with_a_decision_or_an_expiry_are_listed() {
    let fixture = Fixture::new();
    let waiting = [pending(1, 1, true, None), pending(2, 1, true, Some(FAR))];
    let alive = pending(3, 2, false, None);
    let (expired, other) = (pending(4, 3, true, Some(5)), pending(5, 4, true, None));
    for approval in waiting.iter().chain([&alive, &expired, &other]) {
        fixture.insert(approval).await;
    }
    // Only the request that expired, whose call is denied.
    assert_eq!(fixture.listed().await, [(session(3), 1, 0)]);
    for approval in [&waiting[1], &alive] {
        fixture.allow(approval).await;
    }
    // A run still waits for the decision about the other one.
    assert_eq!(fixture.listed().await, [(session(1), 1, 1), (session(3), 1, 0)]);
    let found = fixture.approvals.resumable().await.unwrap().remove(0);
    assert_eq!(found.project.as_deref(), Some("app"));
    assert_eq!(found.approvals[0].request.id, waiting[1].request.id);
    assert_eq!(found.pending[0].request.id, waiting[0].request.id);
    // Its host was killed.
    assert_eq!(fixture.approvals.park(&session(2)).await.unwrap(), 1);
    assert_eq!(fixture.approvals.park(&session(2)).await.unwrap(), 0);
    assert_eq!(fixture.listed().await.len(), 3);
    // Other scopes have their own.
    assert!(Approvals::new("u", fixture.store.clone()).resumable().await.unwrap().is_empty());
}

#[tokio::test]
async fn conversations_with_a_running_call_are_not_listed() {
    let fixture = Fixture::new();
    let approvals = [pending(1, 1, true, None), pending(2, 1, true, None)];
    let mut decided = Vec::new();
    for approval in &approvals {
        fixture.insert(approval).await;
        decided.push(fixture.allow(approval).await);
    }
    assert_eq!(fixture.listed().await, [(session(1), 2, 0)]);
    // Another host has resumed it, and runs the first call: a second resume would end that.
    let ApprovalUse::Decision(_, started) = decided[0].consume(&"toolu_1".into(), Epoch::new(1), 9)
    else {
        panic!()
    };
    fixture.update(&started).await;
    assert_eq!(fixture.listed().await, []);
    fixture.update(&started.finish(Epoch::new(1)).unwrap()).await;
    assert_eq!(fixture.listed().await, [(session(1), 1, 0)]);
}

#[tokio::test(start_paused = true)]
async fn a_watcher_returns_each_conversation_once_until_it_changes() {
    let fixture = Fixture::new();
    let mut watcher = fixture.approvals.watch_resumable();
    let approvals = [1, 2, 3].map(|number| pending(number, number, true, None));
    for approval in &approvals {
        fixture.insert(approval).await;
    }
    fixture.allow(&approvals[0]).await;
    fixture.allow(&approvals[1]).await;
    for number in [1, 2] {
        assert_eq!(watcher.next().await.unwrap().session_id, session(number));
    }
    let quiet = Duration::from_secs(3600);
    assert!(tokio::time::timeout(quiet, watcher.next()).await.is_err());
    // A decision while the watcher waits, and one while it does not.
    let decide = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        fixture.allow(&approvals[2]).await;
    };
    let (found, ()) = tokio::join!(watcher.next(), decide);
    assert_eq!(found.unwrap().session_id, session(3));
    let again = pending(9, 1, true, None);
    fixture.insert(&again).await;
    fixture.allow(&again).await;
    let found = watcher.next().await.unwrap();
    assert_eq!((found.session_id, found.approvals.len()), (session(1), 2));
    // The resume of this one has failed.
    watcher.forget(&session(2));
    fixture.approvals.park(&session(2)).await.unwrap();
    assert_eq!(watcher.next().await.unwrap().session_id, session(2));
    assert!(tokio::time::timeout(quiet, watcher.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_watcher_returns_what_can_still_continue_when_it_is_asked() {
    let fixture = Fixture::new();
    let mut watcher = fixture.approvals.watch_resumable();
    let approvals = [1, 2].map(|number| pending(number, number, true, None));
    let mut decided = Vec::new();
    for approval in &approvals {
        fixture.insert(approval).await;
        decided.push(fixture.allow(approval).await);
    }
    assert_eq!(watcher.next().await.unwrap().session_id, session(1));
    // Another process has resumed the second one since the list was made.
    let ApprovalUse::Decision(_, started) = decided[1].consume(&"toolu_2".into(), Epoch::new(1), 9)
    else {
        panic!()
    };
    fixture.update(&started).await;
    assert!(tokio::time::timeout(Duration::from_secs(60), watcher.next()).await.is_err());
}

/// A store in which the approvals of one session cannot be read.
struct Damaged(MemoryStore);

impl RecordStore for Damaged {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        self.0.claim_records(owner)
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        self.0.write_records(write)
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move {
            let one = OwnerKey::session("t", &session(1))?;
            if list.filter == RecordFilter::OpenOf(&one) {
                return Err(StoreError::new(StoreErrorKind::Corrupt, "damaged"));
            }
            self.0.list_records(list).await
        })
    }

    fn delete_records<'a>(
        &'a self,
        selection: RecordSelection<'a>,
        kind: Option<RecordKind>,
        limit: usize,
    ) -> StoreFuture<'a, u64> {
        self.0.delete_records(selection, kind, limit)
    }
}

#[tokio::test(start_paused = true)]
async fn a_damaged_record_does_not_hide_other_conversations() {
    let fixture = Fixture::new();
    for number in [1, 2] {
        let approval = pending(number, number, true, None);
        fixture.insert(&approval).await;
        fixture.allow(&approval).await;
    }
    // This store has no notifications.
    let mut watcher = Approvals::new("t", Damaged(fixture.store.clone())).watch_resumable();
    assert_eq!(watcher.next().await.unwrap().session_id, session(2));
    assert!(tokio::time::timeout(Duration::from_secs(60), watcher.next()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn an_expiry_ends_the_wait() {
    let fixture = Fixture::new();
    let mut watcher = fixture.approvals.watch_resumable();
    // The store has the clock of the system, which is not paused.
    let expiry = claude_session_store::now_ms() + 20;
    fixture.insert(&pending(1, 1, true, Some(expiry))).await;
    let found = watcher.next().await.unwrap();
    assert_eq!(found.session_id, session(1));
    assert!(found.approvals[0].is_expired(expiry) && found.pending.is_empty());
}

const DAY: u64 = 24 * 3600 * 1000;

#[test]
fn a_decision_that_is_not_used_ends_after_30_days() {
    let decided = pending(1, 1, true, None).decide(Decision::allow("ana"), 10 * DAY).unwrap();
    let last = 40 * DAY - 1;
    assert!(!decided.is_expired(last) && decided.is_resumable(last));
    assert!(matches!(decided.consume(&"c".into(), Epoch::new(1), last), ApprovalUse::Decision(..)));
    assert!(decided.is_expired(40 * DAY) && !decided.is_resumable(40 * DAY));
    let ApprovalUse::Expired(expired) = decided.consume(&"c".into(), Epoch::new(1), 40 * DAY)
    else {
        panic!()
    };
    assert_eq!(expired.status, ApprovalStatus::Expired);
    // A call that has started is not affected, and neither is a request without a decision.
    let ApprovalUse::Decision(_, started) = decided.consume(&"c".into(), Epoch::new(1), last)
    else {
        panic!()
    };
    assert!(!started.is_expired(99 * DAY) && !pending(1, 1, true, None).is_expired(99 * DAY));
    // The expiry of the request takes precedence, whether it is earlier or later.
    for expiry in [11 * DAY, 99 * DAY] {
        let decided = pending(1, 1, true, Some(expiry)).decide(Decision::allow("ana"), 10 * DAY);
        let decided = decided.unwrap();
        assert!(!decided.is_expired(expiry - 1) && decided.is_expired(expiry));
        // Its conversation continues with a denial.
        assert!(decided.is_resumable(expiry));
    }
}

#[tokio::test]
async fn approvals_of_a_session_are_deleted_and_its_epoch_stays() {
    let fixture = Fixture::new();
    let epoch = fixture.approvals.claim(&session(1)).await.unwrap();
    for number in 1..=4 {
        fixture.insert(&pending(number, 1 + number % 2, true, None)).await;
    }
    assert_eq!(fixture.approvals.delete_session(&session(1)).await.unwrap(), 2);
    assert_eq!(fixture.approvals.delete_session(&session(1)).await.unwrap(), 0);
    assert_eq!(fixture.approvals.pending().await.unwrap().len(), 2);
    assert!(fixture.approvals.claim(&session(1)).await.unwrap() > epoch);
}

#[test]
fn a_watcher_on_a_runtime_without_timers_is_an_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let approvals = Approvals::new("t", MemoryStore::new());
    let error = runtime.block_on(approvals.watch_resumable().next()).unwrap_err();
    assert!(!error.is_retryable(), "{error}");
    assert!(error.to_string().contains("has no timers; help: call `enable_all`"), "{error}");
}

#[tokio::test]
async fn approvals_need_a_scope() {
    let approvals = Approvals::new("", MemoryStore::new());
    let session = session(1);
    for error in [
        approvals.pending().await.unwrap_err(),
        approvals.delete_session(&session).await.unwrap_err(),
        approvals.delete_closed(u64::MAX).await.unwrap_err(),
        approvals.park(&session).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    }
}

#[tokio::test]
async fn an_expiry_that_no_store_can_keep_is_never_reached() {
    let fixture = Fixture::new();
    let forever = pending(1, 1, true, Some(u64::MAX));
    fixture.insert(&forever).await;
    assert_eq!(fixture.approvals.pending().await.unwrap(), [forever]);
}
