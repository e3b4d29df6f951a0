//! Tests of approvals: states, matching, and the gate on a store in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claude_wire::Json;
use claude_wire::id::{RequestId, SessionId, ToolUseId};
use claude_wire::message::ResultMessage;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::callback::{CallbackContext, CancelToken};
use crate::hook::HookResponse;
use crate::hook::input::PreToolUseInput;
use crate::session::SessionLink;
use crate::store::{
    Epoch, MemoryStore, OwnedSessions, OwnerKey, Record, RecordKind, RecordList, RecordPage,
    RecordSelection, RecordStore, RecordWrite, Sequence, SessionKey, SessionStore, StoreError,
    StoreErrorKind, StoreFuture,
};
use claude_session_store::approval::ApprovalUse;

pub(super) const SESSION: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

type Response = HookResponse<PreToolUseInput>;

fn input(command: &str) -> Json {
    json!({"command": command}).into()
}

fn request(call: &str, command: &str) -> ApprovalRequest {
    let (session, call) = (SessionId::from(SESSION), ToolUseId::from(call));
    let input = input(command);
    let id = ApprovalId::derive(&session, &call, "Bash", &input, None);
    let mut request = ApprovalRequest::new(id, "t", session, call, "Bash", input, 1);
    request.expires_at_ms = Some(100);
    request
}

#[test]
fn debug_of_a_failed_decision_is_its_text() {
    let pending = Approval::new(request("c", "ls"));
    let id = pending.request.id.clone();
    let refused = RefusedDecision::new(&pending, Refusal::Expired);
    for error in [
        DecideError::NotFound(id.clone()),
        DecideError::Refused(refused),
        DecideError::Store(unavailable()),
    ] {
        let text = error.to_string();
        assert_eq!(format!("{error:?}"), text);
        let names_it = !matches!(error, DecideError::Store(_));
        assert_eq!(text.contains(&id.to_string()), names_it, "{text}");
    }
}

/// A model chooses the tool's name, and an approver can have any name.
#[test]
fn invisible_characters_in_a_failed_decision_are_escaped() {
    const HIDDEN: &str = "x\u{202e}\u{3164}\u{1b}[2K";
    let mut pending = Approval::new(request("c", "ls"));
    pending.request.tool_name = HIDDEN.to_owned();
    let decided = Refusal::AlreadyDecided(Decision::allow(HIDDEN));
    let refused = RefusedDecision::new(&pending, decided.clone());
    let texts = [
        decided.to_string(),
        refused.to_string(),
        DecideError::Refused(refused).to_string(),
        DecideError::Store(StoreError::new(StoreErrorKind::Corrupt, HIDDEN)).to_string(),
    ];
    for text in texts {
        assert!(text.contains("x\\u{202e}\\u{3164}\\u{1b}[2K"), "{text:?}");
        assert!(text.is_ascii(), "{text:?}");
    }
}

#[test]
fn values_survive_serialization() {
    let mut pending = Approval::new(request("c", "ls"));
    pending.request.project = Some("p".to_owned());
    pending.request.cwd = Some("/srv".into());
    pending.request.agent_id = Some("a".into());
    pending.request.repeats = Some(pending.request.id.clone());
    pending.request.moved_from = Some(pending.request.id.clone());
    let rule = crate::PermissionUpdate::allow("Bash", "ls");
    let allow = Decision::allow("ana").with_input(input("pwd")).with_permissions([rule]);
    let decided = pending.decide(allow, 5).unwrap();
    let ApprovalUse::Decision(_, started) = decided.consume(&"c".into(), Epoch::new(3), 6) else {
        panic!()
    };
    let denied = pending.decide(Decision::deny("bob", "no"), 5).unwrap();
    for approval in [pending, decided, started, denied] {
        let text = serde_json::to_string(&approval).unwrap();
        assert_eq!(serde_json::from_str::<Approval>(&text).unwrap(), approval, "{text}");
    }
}

#[test]
fn unknown_states_and_verdicts_are_not_read_as_others() {
    let text = serde_json::to_string(&Approval::new(request("c", "ls"))).unwrap();
    let other = text.replace("\"pending\"", "\"forgotten\"");
    assert!(serde_json::from_str::<Approval>(&other).is_err());
    assert!(serde_json::from_str::<Approval>("[]").is_err());
    assert!(serde_json::from_value::<Decision>(json!({"by": "a", "verdict": "maybe"})).is_err());
    assert!(serde_json::from_value::<Decision>(json!({"verdict": "allow"})).is_err());
}

#[test]
fn ids_depend_on_the_call_and_not_on_the_order_of_keys() {
    let (session, call) = (SessionId::from(SESSION), ToolUseId::from("c"));
    let id = |tool: &str, text: &str| {
        ApprovalId::derive(&session, &call, tool, &Json::from_text(text).unwrap(), None)
    };
    let same = id("Bash", r#"{"a":1,"b":{"c":2,"d":3}}"#);
    assert_eq!(id("Bash", r#"{ "b": {"d":3, "c":2}, "a":1 }"#), same);
    for other in
        [id("Bash", r#"{"a":1,"b":{"c":2,"d":4}}"#), id("Read", r#"{"a":1,"b":{"c":2,"d":3}}"#)]
    {
        assert_ne!(other, same);
    }
    assert_eq!(ApprovalId::parse(same.as_str()).unwrap(), same);
    assert!(ApprovalId::parse("x' or 1=1").is_err());
}

#[test]
fn only_the_first_decision_before_the_expiry_is_accepted() {
    let pending = Approval::new(request("c", "ls"));
    assert_eq!(pending.decide(Decision::allow("ana"), 100), Err(Refusal::Expired));
    let decided = pending.decide(Decision::allow("ana"), 99).unwrap();
    let refusal = decided.decide(Decision::deny("bob", "no"), 99).unwrap_err();
    assert_eq!(refusal.to_string(), "the tool call was already allowed by \"ana\"");
    let withdrawn = pending.withdraw().unwrap();
    assert_eq!(withdrawn.decide(Decision::allow("ana"), 5), Err(Refusal::Withdrawn));
}

/// An event in the life of an approval.
#[derive(Clone, Copy, Debug)]
enum Change {
    Allow,
    Deny,
    Consume(u64),
    Finish(u64),
    Lose(u64),
    Withdraw,
    Renew,
    Park,
    Later,
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let one = prop_oneof![
        Just(Change::Allow),
        Just(Change::Deny),
        (1_u64..4).prop_map(Change::Consume),
        (1_u64..4).prop_map(Change::Finish),
        (1_u64..4).prop_map(Change::Lose),
        Just(Change::Withdraw),
        Just(Change::Renew),
        Just(Change::Park),
        Just(Change::Later),
    ];
    prop::collection::vec(one, 0..24)
}

proptest! {
    /// In any order of events, a call starts at most once, and never after a denial or an expiry.
    #[test]
    fn a_call_starts_at_most_once(changes in changes()) {
        let mut approval = Approval::new(request("c", "ls"));
        let (mut now, mut started, mut denied) = (1, 0, false);
        for change in changes {
            let before = approval.version();
            let next = match change {
                Change::Allow => approval.decide(Decision::allow("ana"), now).ok(),
                Change::Deny => {
                    let next = approval.decide(Decision::deny("bob", "no"), now).ok();
                    denied |= next.is_some();
                    next
                }
                Change::Consume(epoch) => match approval.consume(&"c".into(), Epoch::new(epoch), now) {
                    ApprovalUse::Decision(decision, next) => {
                        if decision.is_allowed() {
                            started += 1;
                            prop_assert!(!denied && now < 100);
                        }
                        (next.version() != before).then_some(next)
                    }
                    ApprovalUse::Expired(next) => (next.version() != before).then_some(next),
                    ApprovalUse::Pending | ApprovalUse::Used => None,
                },
                Change::Finish(epoch) => approval.finish(Epoch::new(epoch)),
                Change::Lose(epoch) => approval.lose(Epoch::new(epoch)),
                Change::Withdraw => approval.withdraw(),
                Change::Renew => approval.renew(request("c", "ls")),
                Change::Park => approval.park(),
                Change::Later => {
                    now += 30;
                    None
                }
            };
            if let Some(next) = next {
                prop_assert_eq!(next.version(), before + 1);
                approval = next;
            }
            prop_assert!(started <= 1);
            if approval.status == ApprovalStatus::OutcomeUnknown {
                prop_assert_eq!(started, 1);
            }
        }
    }
}

/// A store that fails on request.
#[derive(Clone, Default)]
pub(super) struct Flaky {
    inner: MemoryStore,
    /// Whether writes are stored and then reported as failed, once.
    loses_responses: Arc<AtomicBool>,
    pub(super) is_down: Arc<AtomicBool>,
    /// Whether requests never return.
    hangs: Arc<AtomicBool>,
}

impl Flaky {
    async fn respond(&self) -> Result<(), StoreError> {
        if self.hangs.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        if self.is_down.load(Ordering::SeqCst) { Err(unavailable()) } else { Ok(()) }
    }
}

fn unavailable() -> StoreError {
    StoreError::new(StoreErrorKind::Unavailable, "down")
}

impl RecordStore for Flaky {
    fn claim_records<'a>(&'a self, owner: &'a OwnerKey) -> StoreFuture<'a, Epoch> {
        Box::pin(async move {
            if self.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            self.inner.claim_records(owner).await
        })
    }

    fn write_records<'a>(&'a self, write: RecordWrite<'a>) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            self.respond().await?;
            let written = self.inner.write_records(write).await?;
            if self.loses_responses.swap(false, Ordering::SeqCst) {
                return Err(unavailable());
            }
            Ok(written)
        })
    }

    fn list_records<'a>(&'a self, list: RecordList<'a>) -> StoreFuture<'a, RecordPage> {
        Box::pin(async move {
            self.respond().await?;
            self.inner.list_records(list).await
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

/// Returns the record of an approval, as a store would return it.
pub(super) fn record_of(approval: &Approval) -> Record {
    let change = approval.to_change().unwrap();
    let (key, owner, body) = (change.key, change.owner, change.body);
    let mut record = Record::new(key, owner, approval.version(), 1, Sequence::new(1), body);
    record.is_open = change.is_open;
    record
}

pub(super) fn page_of(record: Record) -> RecordPage {
    let mut page = RecordPage::new(5);
    page.records.push(record);
    page
}

pub(super) fn call(id: &str, command: &str) -> PreToolUseInput {
    let call = json!({
        "hook_event_name": "PreToolUse", "session_id": SESSION, "tool_use_id": id, "tool_name": "Bash",
        "tool_input": {"command": command}, "cwd": "/srv", "prompt_id": "p",
        "transcript_path": "/home/u/.claude/projects/-srv/x.jsonl",
    });
    serde_json::from_value(call).unwrap()
}

pub(super) fn context() -> (CallbackContext, CancelToken) {
    let cancel = CancelToken::new();
    let context =
        CallbackContext::new(RequestId::from("r"), cancel.clone(), SessionLink::default());
    (context, cancel)
}

pub(super) fn gate(store: &(impl RecordStore + Clone)) -> (Gate, Approvals) {
    let approvals = Approvals::new("t", store.clone());
    let policy = ApprovalPolicy::new(approvals.clone()).park_after(Duration::ZERO);
    (Gate::new(policy, None, Vec::new(), false), approvals)
}

pub(super) async fn ask(gate: &Gate, call: PreToolUseInput) -> Response {
    gate.respond(call, context().0).await
}

/// Ends a turn: its result arrives, and its approvals are settled.
pub(super) async fn end_turn(
    gate: &Gate,
    result: Option<&ResultMessage>,
    is_stopping: bool,
) -> settle::Settled {
    observe(gate, &json!({"type": "result", "subtype": "success"}));
    gate.settle(Some(&SESSION.into()), result, is_stopping).await
}

pub(super) fn observe(gate: &Gate, message: &serde_json::Value) -> Option<SessionId> {
    gate.observe(&message.to_string().into())
}

pub(super) async fn only_pending(approvals: &Approvals) -> Approval {
    let pending = approvals.pending().await.unwrap();
    assert_eq!(pending.len(), 1, "{pending:?}");
    pending.into_iter().next().unwrap()
}

const HELD: &str = "not run: waiting for approval; issue it again unchanged";

/// Returns the response for an approved call: with its input, which another hook may have changed.
pub(super) fn allowed(command: &str) -> Response {
    Response::allow().updated_input(input(command))
}

pub(super) fn held() -> Response {
    Response::deny(HELD)
}

#[tokio::test(start_paused = true)]
async fn a_decided_call_is_allowed_once_and_then_its_outcome_is_unknown() {
    let store = MemoryStore::new();
    let (first, approvals) = gate(&store);
    assert_eq!(ask(&first, call("c", "ls")).await, Response::defer());
    let pending = only_pending(&approvals).await;
    assert_eq!(pending.request.project.as_deref(), Some("-srv"));
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    let (second, _) = gate(&store);
    assert_eq!(ask(&second, call("c", "ls")).await, allowed("ls"));
    // The host is lost; the CLI replays the call in a third run, and again.
    let (third, _) = gate(&store);
    for _ in 0..2 {
        let response = format!("{:?}", ask(&third, call("c", "ls")).await);
        assert!(response.contains("its outcome is unknown"), "{response}");
    }
    let approval = approvals.get(&pending.request.id).await.unwrap().unwrap();
    assert_eq!(approval.status, ApprovalStatus::OutcomeUnknown);
    // The model issues the call again: the new request names the earlier one.
    assert_eq!(ask(&third, call("d", "ls")).await, Response::defer());
    assert_eq!(only_pending(&approvals).await.request.repeats, Some(pending.request.id));
    let settled = end_turn(&third, None, false).await;
    let unknown = settled.approvals.iter().filter(|it| it.status == ApprovalStatus::OutcomeUnknown);
    assert_eq!(unknown.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_takes_no_approvals_from_the_host_that_resumed_its_session() {
    for is_claimed in [true, false] {
        let store = MemoryStore::new();
        let (asking, approvals) = gate(&store);
        assert_eq!(ask(&asking, call("c", "ls")).await, Response::defer());
        let pending = only_pending(&approvals).await;
        approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
        // The run was resumed, and its model called no tool.
        let policy = ApprovalPolicy::new(approvals.clone()).park_after(Duration::ZERO);
        let idle = Gate::new(policy, None, Vec::new(), true);
        if is_claimed {
            idle.claim(Some(&SESSION.into())).await;
        }
        let (owner, _) = gate(&store);
        assert_eq!(ask(&owner, call("c", "ls")).await, allowed("ls"));
        // A run that does not know yet that it was superseded, or that ends because of it.
        end_turn(&idle, None, !is_claimed).await;
        let approval = approvals.get(&pending.request.id).await.unwrap().unwrap();
        assert_eq!(approval.status, ApprovalStatus::Started);
        end_turn(&owner, None, false).await;
        let approval = approvals.get(&pending.request.id).await.unwrap().unwrap();
        assert_eq!(approval.status, ApprovalStatus::Finished);
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_hosts_one_uses_the_decision() {
    let store = MemoryStore::new();
    let (first, approvals) = gate(&store);
    let (second, _) = gate(&store);
    assert_eq!(ask(&first, call("c", "ls")).await, Response::defer());
    let pending = only_pending(&approvals).await;
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    // The second host claims the session; the first one is fenced.
    let responses = [ask(&second, call("c", "ls")).await, ask(&first, call("c", "ls")).await];
    assert_eq!(responses.iter().filter(|response| **response == allowed("ls")).count(), 1);
    // The end of the turn of the other host says nothing about the call.
    end_turn(&first, None, false).await;
    let approval = approvals.get(&pending.request.id).await.unwrap().unwrap();
    assert_eq!(approval.status, ApprovalStatus::Started);
    end_turn(&second, None, false).await;
    let approval = approvals.get(&pending.request.id).await.unwrap().unwrap();
    assert_eq!(approval.status, ApprovalStatus::Finished);
}

/// Creates the gate of a host that has claimed a session, and not yet its approvals.
async fn host_of_session(store: &MemoryStore) -> Gate {
    let key = SessionKey::new("t", "p", SESSION).unwrap();
    let epoch = store.claim(&key).await.unwrap();
    let mut sessions = OwnedSessions::default();
    sessions.add(key, epoch);
    let policy = ApprovalPolicy::new(Approvals::new("t", store.clone())).park_after(Duration::ZERO);
    Gate::new(policy, None, sessions.claims(&(Arc::new(store.clone()) as Arc<_>)), true)
}

#[tokio::test(start_paused = true)]
async fn of_two_hosts_that_resume_at_once_the_owner_of_the_session_continues() {
    let store = MemoryStore::new();
    let (asking, approvals) = gate(&store);
    for id in ["c", "d"] {
        let mut call = call(id, id);
        call.agent_id = Some("agent".into());
        assert_eq!(ask(&asking, call).await, held());
    }
    for pending in approvals.pending().await.unwrap() {
        approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    }
    let (first, owner) = (host_of_session(&store).await, host_of_session(&store).await);
    owner.claim(Some(&SESSION.into())).await;
    assert_eq!(ask(&owner, call("c2", "c")).await, allowed("c"));
    // The host that has lost the session claims the approvals last.
    first.claim(Some(&SESSION.into())).await;
    let calls = tokio::join!(ask(&owner, call("d2", "d")), ask(&owner, call("e", "e")));
    assert_eq!(calls, (allowed("d"), Response::defer()));
    let superseded = ask(&first, call("c3", "c")).await;
    assert!(superseded.is_stop(), "{superseded:?}");
    // The calls of both epochs have their results.
    let settled = end_turn(&owner, None, false).await;
    assert!(settled.approvals.is_empty(), "{settled:?}");
    assert!(approvals.open().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn later_calls_and_calls_of_subagents_are_held_and_their_decisions_are_used_once() {
    let store = MemoryStore::new();
    let (first, approvals) = gate(&store);
    let mut of_subagent = call("s", "sub");
    of_subagent.agent_id = Some("agent".into());
    assert_eq!(ask(&first, of_subagent).await, held());
    assert_eq!(ask(&first, call("a", "one")).await, Response::defer());
    assert_eq!(ask(&first, call("b", "two")).await, held());
    assert_eq!(
        ask(&first, call("b2", "one")).await,
        held(),
        "an identical call is a request of its own"
    );
    let pending = approvals.pending().await.unwrap();
    assert_eq!(pending.len(), 4);
    for approval in &pending {
        let decision = match approval.request.tool_use_id.as_str() {
            "b" => Decision::deny("ana", "not two"),
            _ => Decision::allow("ana"),
        };
        approvals.decide(&approval.request.id, decision).await.unwrap();
    }
    let (second, _) = gate(&store);
    assert_eq!(ask(&second, call("a", "one")).await, allowed("one"));
    assert_eq!(ask(&second, call("e", "two")).await, Response::deny("not two"));
    assert_eq!(ask(&second, call("f", "one")).await, allowed("one"));
    assert_eq!(ask(&second, call("g", "sub")).await, allowed("sub"));
    // Every decision is used.
    assert_eq!(ask(&second, call("h", "sub")).await, Response::defer());
}

#[tokio::test(start_paused = true)]
async fn a_changed_call_is_a_request_of_its_own() {
    let store = MemoryStore::new();
    let (first, approvals) = gate(&store);
    assert_eq!(ask(&first, call("c", "ls")).await, Response::defer());
    let pending = only_pending(&approvals).await;
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    let (second, _) = gate(&store);
    assert_eq!(ask(&second, call("c", "rm -rf /")).await, Response::defer());
    assert_eq!(only_pending(&approvals).await.request.input, input("rm -rf /"));
    let settled = end_turn(&second, None, false).await;
    let unused = settled.approvals.iter().filter(|it| it.status == ApprovalStatus::Decided);
    assert_eq!(unused.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_decision_that_may_have_been_consumed_is_used_if_the_record_names_the_call() {
    let store = Flaky::default();
    let (first, approvals) = gate(&store);
    assert_eq!(ask(&first, call("c", "ls")).await, Response::defer());
    let pending = only_pending(&approvals).await;
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    let (second, _) = gate(&store);
    store.loses_responses.store(true, Ordering::SeqCst);
    assert_eq!(ask(&second, call("c", "ls")).await, allowed("ls"));
    let response = format!("{:?}", ask(&second, call("c", "ls")).await);
    assert!(response.contains("its outcome is unknown"), "{response}");
}

#[tokio::test(start_paused = true)]
async fn a_call_is_denied_while_the_store_is_down() {
    let store = Flaky::default();
    let (gate, approvals) = gate(&store);
    store.is_down.store(true, Ordering::SeqCst);
    let response = format!("{:?}", ask(&gate, call("c", "ls")).await);
    assert!(response.contains("the approval cannot be requested now"), "{response}");
    store.is_down.store(false, Ordering::SeqCst);
    let settled = end_turn(&gate, None, false).await;
    assert_eq!(settled.warnings[0].code(), crate::WarningCode::ApprovalFailed);
    assert!(approvals.pending().await.unwrap().is_empty());
}

/// No request of a call or of the end of a turn waits for a store that never responds.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_holds_up_neither_a_call_nor_the_end_of_a_turn() {
    let limit = Duration::from_secs(300);
    for is_claimed in [false, true] {
        let store = Flaky::default();
        let (gate, _) = gate(&store);
        if is_claimed {
            assert_eq!(ask(&gate, call("c", "ls")).await, Response::defer());
        }
        store.hangs.store(true, Ordering::SeqCst);
        let asked = tokio::time::timeout(limit, ask(&gate, call("d", "rm"))).await;
        let response = format!("{:?}", asked.expect("the call is held up"));
        assert!(response.contains("the approval cannot be requested now"), "{response}");
        let ended = tokio::time::timeout(limit, end_turn(&gate, None, false)).await;
        let settled = ended.expect("the end of the turn is held up");
        assert!(!settled.warnings.is_empty());
        for warning in &settled.warnings {
            assert_eq!(warning.code(), crate::WarningCode::ApprovalFailed);
            let text = warning.to_string();
            assert!(text.contains("the approval store did not respond within 15s"), "{text}");
        }
        store.hangs.store(false, Ordering::SeqCst);
        assert!(end_turn(&gate, None, false).await.warnings.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_decision_during_the_wait_is_used_at_once() {
    let store = MemoryStore::new();
    let approvals = Approvals::new("t", store.clone());
    let policy = ApprovalPolicy::new(approvals.clone()).park_after(Duration::from_secs(60));
    let gate = Arc::new(Gate::new(policy, None, Vec::new(), false));
    let asking = tokio::spawn({
        let gate = gate.clone();
        async move { ask(&gate, call("c", "ls")).await }
    });
    let pending = loop {
        tokio::time::sleep(Duration::from_millis(10)).await;
        if let Some(pending) = approvals.pending().await.unwrap().pop() {
            break pending;
        }
    };
    let decided = approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    assert!(!decided.is_parked);
    assert_eq!(asking.await.unwrap(), allowed("ls"));
    let stopped = end_turn(&gate, None, true).await;
    assert!(stopped.approvals.is_empty());
    let started = approvals.get(&pending.request.id).await.unwrap().unwrap();
    assert_eq!(started.status, ApprovalStatus::Started, "the tool may not have run");
    let settled = end_turn(&gate, None, false).await;
    assert!(settled.approvals.is_empty());
    let finished = approvals.changed(&decided).await.unwrap().unwrap();
    assert_eq!(finished.status, ApprovalStatus::Finished);
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_wait_withdraws_the_request_unless_the_run_stops() {
    for is_stopping in [true, false] {
        let approvals = Approvals::new("t", MemoryStore::new());
        let gate = Gate::new(ApprovalPolicy::new(approvals.clone()), None, Vec::new(), false);
        let (context, cancel) = context();
        cancel.cancel();
        let response = format!("{:?}", gate.respond(call("c", "ls"), context).await);
        assert!(response.contains("interrupted"), "{response}");
        let settled = end_turn(&gate, None, is_stopping).await;
        assert_eq!(is_parked(&settled.approvals), is_stopping);
        assert_eq!(approvals.pending().await.unwrap().len(), usize::from(is_stopping));
        // If the CLI replays the call nevertheless, it is requested again.
        let policy = ApprovalPolicy::new(approvals.clone()).park_after(Duration::ZERO);
        assert_eq!(
            ask(&Gate::new(policy, None, Vec::new(), false), call("c", "ls")).await,
            Response::defer()
        );
        only_pending(&approvals).await;
    }
}

#[tokio::test(start_paused = true)]
async fn expired_requests_are_denied_also_after_a_decision_in_time() {
    for is_decided in [false, true] {
        let approvals = Approvals::new("t", MemoryStore::new());
        let policy = ApprovalPolicy::new(approvals.clone())
            .park_after(Duration::ZERO)
            .expires_after(Duration::from_millis(50));
        let first = Gate::new(policy.clone(), None, Vec::new(), false);
        assert_eq!(ask(&first, call("c", "ls")).await, Response::defer());
        let pending = only_pending(&approvals).await;
        if is_decided {
            approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
        }
        // The clock of the store is the real one.
        while !pending.is_expired(claude_session_store::now_ms()) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(approvals.pending().await.unwrap().is_empty());
        let second = Gate::new(policy, None, Vec::new(), true);
        let response = format!("{:?}", ask(&second, call("c", "ls")).await);
        assert!(response.contains("the request for approval expired"), "{response}");
        let late = approvals.decide(&pending.request.id, Decision::allow("ana")).await;
        assert!(matches!(late, Err(DecideError::Refused(_))), "{late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_fails_denies_the_call() {
    let approvals = Approvals::new("t", MemoryStore::new());
    let policy = ApprovalPolicy::new(approvals.clone())
        .decide_with(|_| async { Err::<ApprovalRule, crate::BoxError>("no rules".into()) });
    let gate = Gate::new(policy, None, Vec::new(), false);
    assert_eq!(
        ask(&gate, call("c", "ls")).await,
        Response::deny("not run: the approval policy failed")
    );
    assert!(gate.settle(None, None, false).await.warnings[0].to_string().contains("no rules"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_identified_is_denied() {
    let (gate, _) = gate(&MemoryStore::new());
    for field in ["session_id", "tool_use_id", "tool_name", "tool_input"] {
        let mut json = serde_json::to_value(call("c", "ls")).unwrap();
        json.as_object_mut().unwrap().remove(field);
        let response = format!("{:?}", ask(&gate, serde_json::from_value(json).unwrap()).await);
        assert!(response.contains("cannot be identified"), "{field}: {response}");
    }
}

#[tokio::test(start_paused = true)]
async fn policies_select_tools_by_name_or_prefix() {
    let approvals = Approvals::new("t", MemoryStore::new());
    let policy = ApprovalPolicy::new(approvals).tools(["Bash", "mcp__db__*"]);
    for (tool, expected) in [
        ("Bash", ApprovalRule::Require),
        ("BashOutput", ApprovalRule::Continue),
        ("mcp__db__drop", ApprovalRule::Require),
        ("mcp__web__get", ApprovalRule::Continue),
    ] {
        let mut call = call("c", "ls");
        call.tool_name = Some(tool.to_owned());
        assert_eq!(policy.rule(&call).await.unwrap(), expected, "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_changes_rules_is_granted_with_the_permission_request() {
    let store = MemoryStore::new();
    let (gate, approvals) = gate(&store);
    assert_eq!(ask(&gate, call("c", "ls")).await, Response::defer());
    let pending = only_pending(&approvals).await;
    let rule = crate::PermissionUpdate::allow("Bash", "ls");
    let decision = Decision::allow("ana").with_permissions([rule]);
    approvals.decide(&pending.request.id, decision).await.unwrap();
    let (second, _) = self::gate(&store);
    assert_eq!(
        ask(&second, call("c", "ls")).await,
        Response::ask("the approval changes permission rules")
    );
    assert!(second.take_grant(&"d".into()).is_none());
    assert!(second.take_grant(&"c".into()).is_some());
    assert!(second.take_grant(&"c".into()).is_none());
}

/// Requests the approval of a call in one run, and decides.
async fn decided(store: &MemoryStore) -> (Approval, Approvals) {
    let (first, approvals) = gate(store);
    assert_eq!(ask(&first, call("c", "ls")).await, Response::defer());
    let pending = only_pending(&approvals).await;
    let decided = approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    (decided, approvals)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_does_not_use_the_decision() {
    let store = MemoryStore::new();
    let (decided, approvals) = decided(&store).await;
    let (second, _) = gate(&store);
    let (context, cancel) = context();
    cancel.cancel();
    let response = format!("{:?}", second.respond(call("c", "ls"), context).await);
    assert!(response.contains("interrupted"), "{response}");
    let approval = approvals.get(&decided.request.id).await.unwrap().unwrap();
    assert_eq!(approval.status, ApprovalStatus::Decided);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_another_hook_defers_gives_its_decision_back() {
    let store = MemoryStore::new();
    let (decided, approvals) = decided(&store).await;
    let (second, _) = gate(&store);
    assert_eq!(ask(&second, call("c", "ls")).await, allowed("ls"));
    let result: ResultMessage = serde_json::from_value(json!({
        "type": "result", "subtype": "success",
        "deferred_tool_use": {"id": "c", "name": "Bash", "input": {"command": "ls"}},
    }))
    .unwrap();
    let settled = end_turn(&second, Some(&result), false).await;
    assert_eq!(settled.approvals.len(), 1);
    let (third, _) = gate(&store);
    assert_eq!(ask(&third, call("c", "ls")).await, allowed("ls"));
    end_turn(&third, None, false).await;
    let approval = approvals.get(&decided.request.id).await.unwrap().unwrap();
    assert_eq!(approval.status, ApprovalStatus::Finished);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_deferred_if_the_store_fails_while_the_run_waits() {
    let store = Flaky::default();
    let approvals = Approvals::new("t", store.clone());
    let gate = Arc::new(Gate::new(ApprovalPolicy::new(approvals.clone()), None, Vec::new(), false));
    let asking = tokio::spawn({
        let gate = gate.clone();
        async move { ask(&gate, call("c", "ls")).await }
    });
    while approvals.pending().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    store.is_down.store(true, Ordering::SeqCst);
    assert_eq!(asking.await.unwrap(), Response::defer());
    store.is_down.store(false, Ordering::SeqCst);
    only_pending(&approvals).await;
}

#[tokio::test(start_paused = true)]
async fn a_parked_request_is_not_parked_while_a_run_waits_for_it() {
    let store = MemoryStore::new();
    let (first, approvals) = gate(&store);
    assert_eq!(ask(&first, call("c", "ls")).await, Response::defer());
    end_turn(&first, None, true).await;
    assert!(only_pending(&approvals).await.is_parked);
    let second =
        Arc::new(Gate::new(ApprovalPolicy::new(approvals.clone()), None, Vec::new(), true));
    let asking = tokio::spawn(async move { ask(&second, call("c", "ls")).await });
    let mut pending = only_pending(&approvals).await;
    while pending.is_parked {
        pending = approvals.changed(&pending).await.unwrap().unwrap();
    }
    approvals.decide(&pending.request.id, Decision::allow("ana")).await.unwrap();
    assert_eq!(asking.await.unwrap(), allowed("ls"));
}
