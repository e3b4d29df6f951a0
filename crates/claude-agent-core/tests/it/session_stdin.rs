//! A CLI that does not read the responses to its own requests.

use claude_agent_core::session::{Event, Plan};

use crate::session_harness::{Harness, permission, with_callbacks};

/// A limit that a few responses reach.
const LIMIT: usize = 10_000;

fn plan() -> Plan {
    let mut plan = with_callbacks();
    plan.limits.unwritten_response_bytes = LIMIT;
    plan
}

/// A machine whose handshake was written.
fn ready() -> Harness {
    let mut harness = Harness::ready(plan());
    harness.handle(Event::Written(100_000));
    harness
}

/// The CLI asks, and the host responds with so many bytes and a few more.
fn respond(harness: &mut Harness, key: u64, bytes: usize) -> Vec<String> {
    assert_eq!(harness.line(&permission(&format!("r{key}"))), [format!("run {key} for r{key}")]);
    harness.respond(key, &format!("\"{}\"", "x".repeat(bytes)))
}

fn failed(effects: &[String]) -> bool {
    effects.iter().any(|effect| effect.starts_with("state Failed(StdinNotRead("))
}

#[test]
fn unread_responses_fail_the_run() {
    let mut harness = ready();
    harness.interrupt(7);
    assert!(!failed(&respond(&mut harness, 1, LIMIT / 2)));
    assert!(harness.advance(20_000).is_empty(), "that may wait for as long as it likes");
    assert!(!failed(&respond(&mut harness, 2, LIMIT)));
    assert!(harness.advance(4_999).is_empty());
    let effects = harness.advance(1);
    assert!(failed(&effects), "{effects:?}");
    assert!(effects.iter().any(|effect| effect.starts_with("7: rejected Closed")), "{effects:?}");
    assert_eq!(effects[effects.len() - 2..], ["close stdin", "terminate"]);
    assert_eq!(harness.advance(5_000), ["kill"]);
    let effects = harness.end_process(137);
    assert!(effects.last().unwrap().starts_with("end Failed(StdinNotRead("), "{effects:?}");
}

#[test]
fn slowly_reading_cli_is_not_stopped() {
    let mut harness = ready();
    respond(&mut harness, 1, LIMIT);
    respond(&mut harness, 2, LIMIT);
    for _ in 0..10 {
        assert!(harness.advance(4_000).is_empty());
        harness.handle(Event::Written(1));
    }
    harness.handle(Event::Written(LIMIT));
    harness.handle(Event::Written(LIMIT));
    assert!(harness.advance(60_000).is_empty());
}

#[test]
fn four_times_the_limit_fails_the_run_at_once() {
    let mut harness = ready();
    let key = (1..100).find(|key| failed(&respond(&mut harness, *key, LIMIT / 2))).unwrap();
    assert!((8..=10).contains(&key), "{key}");
}

#[test]
fn single_response_may_have_any_length() {
    let mut harness = ready();
    assert!(!failed(&respond(&mut harness, 1, 10 * LIMIT)));
    harness.handle(Event::Written(10 * LIMIT));
    assert!(harness.advance(60_000).is_empty());
}

#[test]
fn messages_of_the_host_do_not_count_as_responses() {
    let mut harness = ready();
    respond(&mut harness, 1, LIMIT / 2);
    for waiter in 1..1_000 {
        harness.send(waiter, &format!("m{waiter}"));
    }
    assert!(harness.advance(60_000).is_empty());
    // The responses before and between the messages are told apart from them.
    respond(&mut harness, 2, LIMIT / 4);
    harness.handle(Event::Written(LIMIT / 2 + 200));
    respond(&mut harness, 3, LIMIT / 2);
    assert!(harness.advance(60_000).is_empty());
}
