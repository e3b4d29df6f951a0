//! A CLI that does not read the responses to its own requests.

use claude_wire::session::{Event, Plan};

use crate::session_play::{Play, permission, with_callbacks};

/// A limit that a few responses reach.
const LIMIT: usize = 10_000;

fn plan() -> Plan {
    let mut plan = with_callbacks();
    plan.limits.unwritten_response_bytes = LIMIT;
    plan
}

/// A machine whose handshake was written.
fn ready() -> Play {
    let mut play = Play::ready(plan());
    play.happens(Event::Written(100_000));
    play
}

/// The CLI asks, and the host responds with so many bytes and a few more.
fn respond(play: &mut Play, key: u64, bytes: usize) -> Vec<String> {
    assert_eq!(play.line(&permission(&format!("r{key}"))), [format!("run {key} for r{key}")]);
    play.answers(key, &format!("\"{}\"", "x".repeat(bytes)))
}

fn failed(effects: &[String]) -> bool {
    effects.iter().any(|effect| effect.starts_with("state Failed(StdinNotRead("))
}

#[test]
fn responses_that_are_not_read_end_the_run() {
    let mut play = ready();
    play.ask(7);
    assert!(!failed(&respond(&mut play, 1, LIMIT / 2)));
    assert!(play.pass(20_000).is_empty(), "that may wait for as long as it likes");
    assert!(!failed(&respond(&mut play, 2, LIMIT)));
    assert!(play.pass(4_999).is_empty());
    let effects = play.pass(1);
    assert!(failed(&effects), "{effects:?}");
    assert!(effects.iter().any(|effect| effect.starts_with("7: refused Closed")), "{effects:?}");
    assert_eq!(effects[effects.len() - 2..], ["close input", "terminate"]);
    assert_eq!(play.pass(5_000), ["kill"]);
    let effects = play.die(137);
    assert!(effects.last().unwrap().starts_with("end Failed(StdinNotRead("), "{effects:?}");
}

#[test]
fn a_cli_that_reads_slowly_is_not_ended() {
    let mut play = ready();
    respond(&mut play, 1, LIMIT);
    respond(&mut play, 2, LIMIT);
    for _ in 0..10 {
        assert!(play.pass(4_000).is_empty());
        play.happens(Event::Written(1));
    }
    play.happens(Event::Written(LIMIT));
    play.happens(Event::Written(LIMIT));
    assert!(play.pass(60_000).is_empty());
}

#[test]
fn four_times_the_limit_ends_the_run_at_once() {
    let mut play = ready();
    let key = (1..100).find(|key| failed(&respond(&mut play, *key, LIMIT / 2))).unwrap();
    assert!((8..=10).contains(&key), "{key}");
}

#[test]
fn one_response_may_be_of_any_length() {
    let mut play = ready();
    assert!(!failed(&respond(&mut play, 1, 10 * LIMIT)));
    play.happens(Event::Written(10 * LIMIT));
    assert!(play.pass(60_000).is_empty());
}

#[test]
fn messages_of_the_host_do_not_count_as_responses() {
    let mut play = ready();
    respond(&mut play, 1, LIMIT / 2);
    for waiter in 1..1_000 {
        play.send(waiter, &format!("m{waiter}"));
    }
    assert!(play.pass(60_000).is_empty());
    // The responses before and between the messages are told apart from them.
    respond(&mut play, 2, LIMIT / 4);
    play.happens(Event::Written(LIMIT / 2 + 200));
    respond(&mut play, 3, LIMIT / 2);
    assert!(play.pass(60_000).is_empty());
}
