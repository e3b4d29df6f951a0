//! Tests of the gate: approvals belong to one call, in one directory, of one agent.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::Poll;

use claude_wire::id::SessionId;
use serde_json::json;
use tokio::time::Instant;

use super::tests::{
    Flaky, SESSION, allowed, ask, call, context, end_turn, gate, held, observe, only_pending,
    page_of, record_of,
};
use super::*;
use crate::hook::HookResponse;
use crate::hook::input::PreToolUseInput;
use crate::store::{
    Epoch, MemoryStore, OwnerKey, RecordFilter, RecordKey, RecordKind, RecordList, RecordPage,
    RecordSelection, RecordStore, RecordWrite, StoreFuture,
};

/// A store that returns the approval of another call, whatever is asked for.
#[derive(Clone)]
struct Foreign {
    inner: MemoryStore,
    returned: Option<Approval>,
}

impl RecordStore for Foreign {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        self.inner.claim_records(owner)
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        let Some(_) = &self.returned else { return self.inner.write_records(write) };
        Box::pin(async { Ok(true) })
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        let Some(returned) = &self.returned else { return self.inner.list_records(list) };
        let mut record = record_of(returned);
        if let RecordFilter::Id { scope, id } = list.filter {
            record.key = RecordKey::new(scope, list.kind, id).unwrap();
        }
        Box::pin(async { Ok(page_of(record)) })
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

/// Returns the input of the hook for a call in a directory.
fn call_in(id: &str, command: &str, directory: &str) -> PreToolUseInput {
    let mut call = call(id, command);
    call.cwd = Some(directory.to_owned());
    call
}

/// Returns the input of the hook for a call of an agent.
fn call_of(agent: &str, id: &str, command: &str) -> PreToolUseInput {
    let mut call = call(id, command);
    call.agent_id = Some(agent.into());
    call
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_another_call_allows_nothing() {
    let store = Foreign { inner: MemoryStore::new(), returned: None };
    let (honest, approvals) = gate(&store);
    assert_eq!(ask(&honest, call("c", "true")).await, HookResponse::defer());
    let pending = only_pending(&approvals).await;
    let decision = Decision::allow("ana");
    let decided = approvals.decide(&pending.request.id, decision).await.unwrap();
    let changed = |change: &dyn Fn(&mut ApprovalRequest)| {
        let mut other = decided.clone();
        change(&mut other.request);
        other
    };
    for (other, asked) in [
        (decided.clone(), call("d", "echo EVIL")),
        (decided.clone(), call("c", "echo EVIL")),
        (decided.clone(), call_in("c", "true", "/elsewhere")),
        (changed(&|request| request.scope = "another".to_owned()), call("c", "true")),
        (changed(&|request| request.tool_name = "Write".to_owned()), call("c", "true")),
        (changed(&|request| request.session_id = SessionId::from("another")), call("c", "true")),
    ] {
        let hostile = Foreign { inner: MemoryStore::new(), returned: Some(other) };
        let (gate, _) = gate(&hostile);
        let response = format!("{:?}", ask(&gate, asked).await);
        assert!(response.contains("the approval cannot be requested now"), "{response}");
        let warnings = gate.settle(None, None, false).await.warnings;
        assert!(warnings[0].to_string().contains("which was not requested"), "{warnings:?}");
    }
    // The control: the same store with the right record.
    let right = Foreign { inner: MemoryStore::new(), returned: Some(decided) };
    assert_eq!(ask(&gate(&right).0, call("c", "true")).await, allowed("true"));
}

/// A store that returns an approval as it was when the decision was made, and claims to store all changes.
#[derive(Clone)]
struct Rewound {
    decided: Approval,
    writes: bool,
}

impl RecordStore for Rewound {
    fn claim_records<'a>(&'a self, _: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async { Ok(Epoch::new(1)) })
    }

    fn write_records<'a>(&'a self, _: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async { Ok(self.writes) })
    }

    fn list_records<'a>(&'a self, _: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(async { Ok(page_of(record_of(&self.decided))) })
    }

    fn delete_records<'a>(
        &'a self,
        _: RecordSelection<'a>,
        _: Option<RecordKind>,
        _: usize,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async { Ok(0) })
    }
}

async fn decided() -> Approval {
    let (honest, approvals) = gate(&MemoryStore::new());
    assert_eq!(ask(&honest, call("c", "true")).await, HookResponse::defer());
    let pending = only_pending(&approvals).await;
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_a_store_returns_again_allows_nothing() {
    let (gate, _) = gate(&Rewound { decided: decided().await, writes: true });
    assert_eq!(ask(&gate, call("c", "true")).await, allowed("true"));
    for id in ["c", "d"] {
        let response = format!("{:?}", ask(&gate, call(id, "true")).await);
        assert!(response.contains("the approval cannot be requested now"), "{response}");
    }
    let warnings = gate.settle(None, None, false).await.warnings;
    assert!(warnings[0].to_string().contains("an earlier version of approval"), "{warnings:?}");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_every_change_is_an_error() {
    let decided = decided().await;
    let mut pending = decided.clone();
    (pending.decision, pending.status) = (None, ApprovalStatus::Pending);
    let approvals = Approvals::new("t", Rewound { decided: pending, writes: false });
    let id = &decided.request.id;
    let error = approvals.decide(id, Decision::allow("ana")).await.unwrap_err();
    assert!(error.to_string().contains("other changes preceded it"), "{error}");
    let (gate, _) = gate(&Rewound { decided, writes: false });
    let response = format!("{:?}", ask(&gate, call("c", "true")).await);
    assert!(response.contains("the approval cannot be requested now"), "{response}");
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_valid_in_one_directory() {
    let store = MemoryStore::new();
    let (first, approvals) = gate(&store);
    assert_eq!(ask(&first, call_in("c", "ls", "/srv/build")).await, HookResponse::defer());
    let pending = only_pending(&approvals).await;
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    // The CLI replays the call in the directory in which it starts.
    let (second, _) = gate(&store);
    assert_eq!(ask(&second, call_in("c", "ls", "/srv")).await, HookResponse::defer());
    let moved = only_pending(&approvals).await;
    assert_eq!(moved.request.cwd.as_deref(), Some("/srv".as_ref()));
    assert_eq!(moved.request.moved_from, Some(pending.request.id.clone()));
    // The earlier decision applies where it was made.
    assert_eq!(ask(&second, call_in("d", "ls", "/srv/build")).await, allowed("ls"));
}

#[tokio::test(start_paused = true)]
async fn a_mapped_directory_is_the_same_place() {
    let store = MemoryStore::new();
    let (first, approvals) = gate(&store);
    assert_eq!(ask(&first, call_in("c", "ls", "/one/app/build")).await, HookResponse::defer());
    let pending = only_pending(&approvals).await;
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    let mapped = |here: &str| {
        let policy = ApprovalPolicy::new(approvals.clone())
            .park_after(std::time::Duration::ZERO)
            .map_directory("/one/app", here);
        Gate::new(policy, None, Vec::new(), true)
    };
    // Neither the directory above, nor one whose name begins like the mapped one.
    for (here, directory) in [("/two/app", "/two/app"), ("/two/ap", "/two/app/build")] {
        assert_eq!(ask(&mapped(here), call_in("x", "ls", directory)).await, HookResponse::defer());
    }
    let gate = mapped("/two/app");
    assert_eq!(ask(&gate, call_in("c", "ls", "/two/app/build")).await, allowed("ls"));
}

/// Polls a future once.
async fn is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    poll_fn(|context| Poll::Ready(Pin::new(&mut *future).poll(context).is_pending())).await
}

fn result_of(call: &str) -> serde_json::Value {
    let result = json!({"type": "tool_result", "tool_use_id": call, "content": "ok"});
    json!({"type": "user", "message": {"role": "user", "content": [result]}})
}

fn end_of(agent: &str) -> serde_json::Value {
    json!({"type": "system", "subtype": "task_notification", "task_id": agent, "status": "completed"})
}

#[tokio::test(start_paused = true)]
async fn a_call_of_a_background_agent_is_finished_by_its_own_result() {
    for ends in [result_of("c"), end_of("a")] {
        let store = MemoryStore::new();
        let (first, approvals) = gate(&store);
        assert_eq!(ask(&first, call_of("a", "c", "ls")).await, held());
        let pending = only_pending(&approvals).await;
        approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
        let (gate, _) = gate(&store);
        assert_eq!(ask(&gate, call_of("a", "c", "ls")).await, allowed("ls"));
        let status = async || approvals.get(&pending.request.id).await.unwrap().unwrap().status;
        // Another turn, and another call, have ended.
        assert_eq!(observe(&gate, &result_of("d")), None);
        assert_eq!(observe(&gate, &end_of("b")), None);
        end_turn(&gate, None, false).await;
        assert_eq!(status().await, ApprovalStatus::Started);
        let session = observe(&gate, &ends).unwrap();
        gate.settle_agents(&session).await;
        assert_eq!(status().await, ApprovalStatus::Finished);
        assert_eq!(observe(&gate, &ends), None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_call_is_parked_when_its_agent_has_ended() {
    let (gate, approvals) = gate(&MemoryStore::new());
    assert_eq!(ask(&gate, call_of("a", "c", "ls")).await, held());
    let settled = end_turn(&gate, None, false).await;
    assert!(settled.approvals.is_empty(), "{:?}", settled.approvals);
    assert!(!only_pending(&approvals).await.is_parked);
    let session = observe(&gate, &end_of("a")).unwrap();
    gate.settle_agents(&session).await;
    assert!(only_pending(&approvals).await.is_parked);
    assert_eq!(end_turn(&gate, None, false).await.approvals.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_of_an_agent_that_ended_while_it_waited_is_withdrawn_or_parked() {
    for is_cancelled in [true, false] {
        let approvals = Approvals::new("t", MemoryStore::new());
        let gate = Gate::new(ApprovalPolicy::new(approvals.clone()), None, Vec::new(), false);
        let (context, cancel) = context();
        let mut waiting = Box::pin(gate.respond(call_of("a", "c", "ls"), context));
        assert!(is_pending(&mut waiting).await);
        let pending = only_pending(&approvals).await;
        // The agent is killed: the CLI may cancel the hook before or after it reports the end.
        if is_cancelled {
            cancel.cancel();
            assert!(format!("{:?}", waiting.await).contains("interrupted"));
        }
        let session = observe(&gate, &end_of("a")).unwrap();
        gate.settle_agents(&session).await;
        let settled = approvals.get(&pending.request.id).await.unwrap().unwrap();
        let is_withdrawn = settled.status == ApprovalStatus::Withdrawn;
        assert_eq!((is_withdrawn, settled.is_parked), (is_cancelled, !is_cancelled));
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_down_is_waited_for_once() {
    let store = Flaky::default();
    let (gate, approvals) = gate(&store);
    store.is_down.store(true, Ordering::SeqCst);
    let start = Instant::now();
    let response = format!("{:?}", ask(&gate, call("c", "ls")).await);
    assert!(response.contains("cannot be requested now"), "{response}");
    let denied = start.elapsed();
    end_turn(&gate, None, false).await;
    // The outcome of the turn is not held up as long again.
    assert!(start.elapsed() < denied * 3 / 2, "{denied:?} {:?}", start.elapsed());
    store.is_down.store(false, Ordering::SeqCst);
    assert_eq!(ask(&gate, call("d", "ls")).await, HookResponse::defer());
    assert_eq!(approvals.pending().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_end_of_a_turn_does_not_finish_a_call_of_the_next_turn() {
    let store = MemoryStore::new();
    let (first, approvals) = gate(&store);
    assert_eq!(ask(&first, call("c", "ls")).await, HookResponse::defer());
    let pending = only_pending(&approvals).await;
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    let (gate, _) = gate(&store);
    // The result of the turn before has arrived, and the host settles it when the next call runs already.
    observe(&gate, &json!({"type": "result", "subtype": "success"}));
    assert_eq!(ask(&gate, call("c", "ls")).await, allowed("ls"));
    gate.settle(Some(&SESSION.into()), None, false).await;
    let status = async || approvals.get(&pending.request.id).await.unwrap().unwrap().status;
    assert_eq!(status().await, ApprovalStatus::Started);
    observe(&gate, &result_of("c"));
    gate.settle(Some(&SESSION.into()), None, false).await;
    assert_eq!(status().await, ApprovalStatus::Finished);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_a_background_agent_waits_for_is_not_parked() {
    let store = MemoryStore::new();
    let approvals = Approvals::new("t", store);
    let policy = ApprovalPolicy::new(approvals.clone());
    let gate = Gate::new(policy, None, Vec::new(), false);
    let mut waiting = Box::pin(gate.respond(call_of("a", "c", "ls"), context().0));
    // Polled once, so that the request is stored and the call waits.
    assert!(is_pending(&mut waiting).await);
    let pending = only_pending(&approvals).await;
    assert!(end_turn(&gate, None, false).await.approvals.is_empty());
    assert!(!only_pending(&approvals).await.is_parked);
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    assert_eq!(waiting.await, allowed("ls"));
    // A call whose turn was interrupted waits for nothing, even before its hook has noticed.
    let (context, cancel) = context();
    let mut waiting = Box::pin(gate.respond(call_of("a", "d", "pwd"), context));
    assert!(is_pending(&mut waiting).await);
    cancel.cancel();
    assert_eq!(end_turn(&gate, None, false).await.approvals.len(), 1);
    // Neither does one whose hook was aborted.
    drop(waiting);
    assert!(only_pending(&approvals).await.is_parked);
}
