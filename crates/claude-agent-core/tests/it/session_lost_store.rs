//! Runs that lose their session to another host, or whose store fails under the policy to stop.

use claude_agent_core::session::{
    AppendFailure, BatchNumber, DeliveredPermissions, Event, Plan, QueryLimits, RunMode,
    StorePolicy,
};
use claude_wire::Exit;

use crate::session_harness::{
    ANSWER, Harness, RESULT, hook, lifecycle, permission, result_for, session_state, success,
    with_callbacks,
};

const FRAME: &str = r#"{"type":"transcript_mirror","filePath":"/c/projects/-w/0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11.jsonl","entries":[1]}"#;
const SUPERSEDED: (StorePolicy, AppendFailure) = (StorePolicy::Continue, AppendFailure::Superseded);
const STORE_FAILED: (StorePolicy, AppendFailure) = (StorePolicy::Stop, AppendFailure::Permanent);
const BOTH: [(StorePolicy, AppendFailure); 2] = [SUPERSEDED, STORE_FAILED];

fn mirrored(policy: StorePolicy, mode: RunMode) -> Harness {
    let mut plan: Plan = with_callbacks();
    plan.mirror = Some(policy);
    plan.run = mode;
    let mut harness = Harness::ready(plan);
    harness.effects();
    harness
}

fn session(policy: StorePolicy) -> Harness {
    mirrored(policy, RunMode::Session)
}

fn query(policy: StorePolicy) -> Harness {
    mirrored(policy, RunMode::Query { prompt: None, limits: QueryLimits::default() })
}

fn fail(harness: &mut Harness, failure: AppendFailure) -> Vec<String> {
    let batch = BatchNumber(1);
    harness.handle(Event::AppendFailed { batch, failure, reason: "down".to_owned() })
}

fn failed(failure: AppendFailure) -> String {
    let name = if failure == AppendFailure::Superseded { "Superseded" } else { "StoreFailed" };
    format!("Failed({name}(\"down\"))")
}

fn position(effects: &[String], effect: &str) -> usize {
    let found = effects.iter().position(|it| it == effect);
    found.unwrap_or_else(|| panic!("no {effect:?} in {effects:?}"))
}

fn has_prefix(effects: &[String], prefix: &str) -> bool {
    effects.iter().any(|effect| effect.starts_with(prefix))
}

#[test]
fn a_run_without_its_store_is_terminated_at_once_and_killed_a_second_later() {
    for (policy, failure) in BOTH {
        let mut harness = session(policy);
        harness.send(1, "m");
        harness.line(&lifecycle("m", "started"));
        harness.line(FRAME);
        let effects = fail(&mut harness, failure);
        let state = position(&effects, &format!("state {}", failed(failure)));
        assert!(position(&effects, "terminate at once") > state, "{effects:?}");
        assert!(harness.advance(999).is_empty());
        assert_eq!(harness.advance(1), ["kill"]);
        assert_eq!(harness.end_process(0), [format!("end {}", failed(failure))]);
    }
}

#[test]
fn a_stop_in_progress_is_shortened() {
    for (policy, failure) in BOTH {
        // The milliseconds after the stop: during the interrupt, after stdin was closed, after SIGTERM.
        for after in [0, 1_500, 6_500] {
            let mut harness = session(policy);
            harness.line(&session_state("running"));
            harness.line(FRAME);
            harness.stop();
            let steps = harness.advance(after);
            let is_terminated = steps.contains(&"terminate".to_owned());
            assert_eq!(is_terminated, after == 6_500, "{steps:?}");
            let effects = fail(&mut harness, failure);
            position(&effects, "terminate at once");
            assert!(harness.advance(999).is_empty());
            assert_eq!(harness.advance(1), ["kill"], "{after}");
            assert_eq!(harness.end_process(0), [format!("end {}", failed(failure))]);
        }
    }
    // A process that is killed in less than a second is not kept longer.
    let mut harness = session(StorePolicy::Continue);
    harness.line(FRAME);
    harness.stop();
    harness.advance(9_500);
    fail(&mut harness, AppendFailure::Superseded);
    assert_eq!(harness.advance(500), ["kill"]);
    // The machine has no earlier step than SIGKILL left.
    let mut harness = session(StorePolicy::Continue);
    harness.line(FRAME);
    harness.stop();
    harness.advance(10_000);
    let effects = fail(&mut harness, AppendFailure::Superseded);
    assert!(!has_prefix(&effects, "terminate"), "{effects:?}");
}

#[test]
fn a_held_result_is_discarded_and_its_turn_does_not_end_with_it() {
    for (policy, failure) in BOTH {
        let mut harness = session(policy);
        harness.send(1, "m");
        harness.line(&lifecycle("m", "started"));
        harness.line(FRAME);
        assert!(harness.line(&result_for(&["m"])).is_empty());
        assert!(harness.line(ANSWER).is_empty());
        let effects = fail(&mut harness, failure);
        for prefix in ["deliver", "turn", "stored"] {
            assert!(!has_prefix(&effects, prefix), "{effects:?}");
        }
        assert_eq!(harness.end_process(0), [format!("end {}", failed(failure))]);
    }
}

#[test]
fn a_result_after_the_failure_ends_no_turn() {
    for (policy, failure) in BOTH {
        let mut harness = session(policy);
        harness.send(1, "m");
        harness.line(&lifecycle("m", "started"));
        harness.line(FRAME);
        fail(&mut harness, failure);
        for line in [ANSWER, &result_for(&["m"]), &lifecycle("m", "completed")] {
            assert!(harness.line(line).is_empty(), "{line}");
        }
        assert_eq!(harness.end_process(0), [format!("end {}", failed(failure))]);
    }
}

#[test]
fn a_result_that_is_held_during_a_stop_is_discarded() {
    for (policy, failure) in BOTH {
        let mut harness = session(policy);
        harness.send(1, "m");
        harness.line(&lifecycle("m", "started"));
        harness.line(FRAME);
        harness.line(&result_for(&["m"]));
        harness.stop();
        // The process exits before the store responds.
        assert!(harness.end_process(0).is_empty());
        let effects = fail(&mut harness, failure);
        assert!(!has_prefix(&effects, "deliver") && !has_prefix(&effects, "turn"), "{effects:?}");
        assert!(!has_prefix(&effects, "terminate"), "{effects:?}");
        assert_eq!(effects.last().unwrap(), &format!("end {}", failed(failure)));
    }
}

#[test]
fn a_query_without_its_store_fails_unless_its_result_is_stored() {
    for (policy, failure) in BOTH {
        let mut harness = query(policy);
        harness.line(&session_state("running"));
        harness.line(FRAME);
        assert!(harness.line(RESULT).is_empty());
        let effects = fail(&mut harness, failure);
        assert!(!has_prefix(&effects, "deliver"), "{effects:?}");
        position(&effects, "terminate at once");
        assert_eq!(harness.end_process(0), [format!("end {}", failed(failure))]);

        // After a stored result nothing becomes an error, but the CLI is ended nevertheless.
        let mut harness = query(policy);
        harness.line(&session_state("running"));
        harness.line(RESULT);
        harness.line(FRAME);
        let effects = fail(&mut harness, failure);
        position(&effects, "terminate at once");
        assert_eq!(harness.advance(1_000), ["kill"]);
        assert_eq!(harness.end_process(0), ["warn StoppedAfterResult", "end Finished"]);
    }
}

#[test]
fn a_query_fails_if_its_delivered_result_is_not_stored() {
    let mut harness = query(StorePolicy::Continue);
    harness.line(&session_state("running"));
    harness.line(FRAME);
    fail(&mut harness, AppendFailure::Retryable);
    harness.advance(30_000);
    let effects = harness.line(RESULT);
    assert_eq!(effects, ["stored false".to_owned(), format!("deliver {RESULT}")]);
    // The store is tried again, and belongs to another host by now.
    let effects = harness.advance(30_000);
    assert!(has_prefix(&effects, "catch up 2"), "{effects:?}");
    let (batch, failure) = (BatchNumber(2), AppendFailure::Superseded);
    harness.handle(Event::AppendFailed { batch, failure, reason: "down".to_owned() });
    assert_eq!(harness.end_process(0), [format!("end {}", failed(failure))]);
}

#[test]
fn a_session_that_is_lost_during_the_handshake_ends_at_once() {
    let mut plan = Plan::new(RunMode::Session);
    plan.mirror = Some(StorePolicy::Continue);
    let mut harness = Harness::new(plan);
    harness.effects();
    harness.line(FRAME);
    let effects = fail(&mut harness, AppendFailure::Superseded);
    position(&effects, "terminate at once");
    assert!(harness.line(&success("req_1_00000000", "{}")).is_empty());
    assert_eq!(harness.advance(1_000), ["kill"]);
}

#[test]
fn a_callback_that_finds_another_owner_ends_the_run_after_its_response() {
    let mut harness = Harness::ready(with_callbacks());
    harness.effects();
    harness.send(1, "m");
    harness.line(&lifecycle("m", "started"));
    harness.line(&hook("r", "hook_1"));
    harness.line(&hook("s", "hook_1"));
    assert_eq!(harness.respond(1, "{}"), ["respond r {}"]);
    let effects = harness.handle(Event::Superseded("claimed".to_owned()));
    let failed = r#"Failed(Superseded("claimed"))"#;
    let state = format!("state {failed}");
    assert_eq!(effects, [&*state, "cancel 2", "close stdin", "terminate at once"]);
    // The same loss is reported by further callbacks, and by the store.
    assert!(
        harness
            .handle(Event::Superseded("claimed".to_owned()))
            .contains(&"terminate at once".to_owned())
    );
    assert!(harness.line(&result_for(&["m"])).is_empty());
    position(&harness.advance(1_000), "kill");
    assert_eq!(harness.end_process(0).last().unwrap(), &format!("end {failed}"));
}

#[test]
fn no_result_is_delivered_before_it_is_stored_under_the_policy_to_stop() {
    for ends_run in [false, true] {
        let mut plan: Plan = with_callbacks();
        plan.mirror = Some(StorePolicy::Stop);
        plan.delivered_permissions = DeliveredPermissions::All;
        let mut harness = Harness::ready(plan);
        harness.effects();
        harness.send(1, "m");
        harness.line(&lifecycle("m", "started"));
        harness.line(FRAME);
        let result = result_for(&["m"]);
        assert!(harness.line(&result).is_empty());
        // The request of an agent in the background does not wait, and does not release the result.
        let request = permission("p");
        let delivered = format!("deliver permission {request}");
        assert_eq!(harness.line(&request), [delivered, "run 1 for p".to_owned()]);
        if ends_run {
            let effects = harness.handle(Event::Exited(Exit::Signal(9)));
            let effects = [effects, harness.handle(Event::StdoutEnded(None))].concat();
            assert!(!effects.contains(&"stored false".to_owned()), "{effects:?}");
        } else {
            let stored = ["stored true".to_owned(), format!("deliver {result}")];
            assert_eq!(harness.handle(Event::Appended(BatchNumber(1)))[..2], stored);
        }
    }
}
