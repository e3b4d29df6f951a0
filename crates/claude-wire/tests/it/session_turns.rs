//! Which result ends which turn.

use std::sync::Arc;

use claude_wire::session::{Effect, Event, TurnEnd};

use crate::session_play::oversized;
use crate::session_play::{ANSWER, Play, RESULT, lifecycle, result_for};

fn sent(ids: &[&str]) -> Play {
    let mut play = Play::session();
    for (waiter, id) in (1..).zip(ids) {
        play.send(waiter, id);
    }
    play
}

/// The effects without the lines that are passed on.
fn turns(effects: Vec<String>) -> Vec<String> {
    effects.into_iter().filter(|effect| effect.starts_with("turn")).collect()
}

#[test]
fn a_turn_goes_from_started_to_the_result_that_names_it() {
    let mut play = sent(&["a", "b"]);
    let queued = lifecycle("a", "queued");
    assert_eq!(play.line(&queued), [format!("deliver {queued}")]);
    let started = lifecycle("a", "started");
    assert_eq!(play.line(&started), ["turn a started".to_owned(), format!("deliver {started}")]);
    assert_eq!(play.line(ANSWER), [format!("deliver {ANSWER}")]);
    let result = result_for(&["a"]);
    assert_eq!(
        play.line(&result),
        [format!("deliver {result}"), "turn a ended with []".to_owned()]
    );
    // A turn of which nothing was said begins with its result.
    let shared = result_for(&["c"]);
    play.send(3, "c");
    assert_eq!(
        play.line(&shared),
        [
            "turn c started".to_owned(),
            format!("deliver {shared}"),
            "turn c ended with []".to_owned(),
        ]
    );
    // What comes later about it means nothing.
    assert!(turns(play.line(&lifecycle("a", "completed"))).is_empty());
    assert!(turns(play.line(&lifecycle("a", "cancelled"))).is_empty());
    assert!(turns(play.line(&lifecycle("a", "started"))).is_empty());
    assert!(turns(play.line(&result)).is_empty());
    assert_eq!(turns(play.line(&lifecycle("b", "started"))), ["turn b started"]);
}

#[test]
fn several_turns_may_end_with_one_result() {
    let mut play = sent(&["a", "b", "c"]);
    play.line(&lifecycle("b", "started"));
    assert_eq!(
        turns(play.line(&result_for(&["b", "c", "x"]))),
        ["turn c started", r#"turn b ended with ["c"]"#, r#"turn c ended with ["b"]"#,]
    );
    assert_eq!(turns(play.line(&result_for(&["a"]))), ["turn a started", "turn a ended with []"]);
}

#[test]
fn a_turn_that_is_completed_without_having_started_ends_with_the_next_result() {
    let mut play = sent(&["a", "b"]);
    assert!(turns(play.line(&lifecycle("a", "completed"))).is_empty());
    assert_eq!(
        play.line(RESULT),
        [
            "turn a started".to_owned(),
            format!("deliver {RESULT}"),
            "turn a ended with [], not named".to_owned(),
        ]
    );
}

/// A million names cost no more than the open turns among them.
#[test]
fn a_result_names_only_open_turns_and_all_of_them_share_one_list() {
    let mut play = sent(&["a", "b"]);
    let mut names = vec!["a", "a", "b"];
    names.resize(100_000, "x");
    play.machine.handle(Event::Line(result_for(&names).into()), play.now);
    let ends: Vec<_> = std::iter::from_fn(|| play.machine.next_effect())
        .filter_map(|effect| match effect {
            Effect::TurnEnded(_, TurnEnd::Result { messages, .. }) => Some(messages),
            _ => None,
        })
        .collect();
    assert_eq!(format!("{:?}", ends[0]), r#"["a", "b"]"#);
    assert!(ends.len() == 2 && Arc::ptr_eq(&ends[0], &ends[1]));
}

#[test]
fn a_message_that_the_cli_drops_is_cancelled() {
    let mut play = sent(&["a", "b"]);
    play.line(&lifecycle("a", "queued"));
    assert_eq!(turns(play.line(&lifecycle("a", "cancelled"))), ["turn a cancelled"]);
    // After an interrupt the result comes first, and wins.
    play.line(&lifecycle("b", "started"));
    assert_eq!(turns(play.line(&result_for(&["b"]))), ["turn b ended with []"]);
    assert!(turns(play.line(&lifecycle("b", "cancelled"))).is_empty());
}

#[test]
fn a_cli_that_names_no_messages_ends_turns_in_order() {
    let mut play = sent(&["a", "b"]);
    let init = r#"{"type":"system","subtype":"init"}"#;
    assert_eq!(play.line(init), ["turn a started".to_owned(), format!("deliver {init}")]);
    assert!(turns(play.line(init)).is_empty());
    assert_eq!(turns(play.line(RESULT)), ["turn a ended with [], not named"]);
    assert_eq!(turns(play.line(RESULT)), ["turn b started", "turn b ended with [], not named"]);
    assert!(turns(play.line(RESULT)).is_empty());
}

#[test]
fn a_turn_that_the_cli_begins_by_itself_ends_none_of_the_host() {
    let own = r#"{"type":"result","origin":{"kind":"task-notification"}}"#;
    let mut play = sent(&["a"]);
    play.line(&lifecycle("a", "queued"));
    assert!(turns(play.line(r#"{"type":"system","subtype":"init"}"#)).is_empty());
    assert!(turns(play.line(own)).is_empty());
    play.line(&lifecycle("a", "started"));
    assert!(turns(play.line(own)).is_empty());
    assert_eq!(turns(play.line(&result_for(&["a"]))), ["turn a ended with []"]);
    // It is known for good.
    play.send(9, "b");
    assert!(turns(play.line(own)).is_empty());
    // Another's message is none of ours either.
    assert!(turns(play.line(&result_for(&["z"]))).is_empty());
    assert_eq!(turns(play.line(&result_for(&["b"]))).len(), 2);
}

#[test]
fn a_message_that_joins_a_turn_of_the_cli_ends_with_its_result_although_that_names_nobody() {
    let own = r#"{"type":"result","origin":{"kind":"task-notification"}}"#;
    let mut play = sent(&["a", "b"]);
    play.line(&lifecycle("a", "started"));
    assert!(turns(play.line(&lifecycle("a", "completed"))).is_empty());
    assert_eq!(turns(play.line(own)), ["turn a ended with [], not named"]);
    // One that is named has its name.
    play.line(&lifecycle("b", "completed"));
    assert_eq!(turns(play.line(&result_for(&["b"]))), ["turn b started", "turn b ended with []"]);
    assert!(turns(play.line(own)).is_empty());
}

#[test]
fn a_result_that_is_too_long_still_ends_its_turn() {
    let long = "x".repeat(200_000);
    let named = format!(r#"{{"result":"{long}","type":"result","user_message_uuids":["b"]}}"#);
    let mut play = sent(&["a", "b"]);
    assert_eq!(
        turns(play.happens(oversized(&named))),
        ["turn b started", "turn b ended with [], oversized"]
    );
    // The names are lost: the oldest that began.
    let lost =
        format!(r#"{{"type":"result","result":"{long}","user_message_uuids":["x","{long}"]}}"#);
    let mut play = sent(&["a", "b"]);
    play.line(&lifecycle("b", "started"));
    assert_eq!(
        turns(play.happens(oversized(&lost))),
        ["turn b ended with [], not named, oversized"]
    );
    let mut play = sent(&["a", "b"]);
    assert_eq!(
        turns(play.happens(oversized(&lost))),
        ["turn a started", "turn a ended with [], not named, oversized"]
    );
}

#[test]
fn a_result_whose_body_does_not_decode_still_ends_its_turn() {
    let mut play = sent(&["a"]);
    let odd =
        r#"{"type":"result","result":7,"usage":"none","errors":{},"user_message_uuids":["a"]}"#;
    assert_eq!(turns(play.line(odd)).len(), 2);
}

#[test]
fn a_message_that_is_not_written_yet_has_no_turn_that_could_end() {
    let mut plan = claude_wire::session::Plan::new(claude_wire::session::Run::Session);
    plan.limits.unwritten_bytes = 1;
    let mut play = Play::ready(plan);
    play.happens(Event::Written(1_000));
    play.send(1, "a");
    play.send(2, "b");
    assert_eq!(turns(play.line(RESULT)).len(), 2);
    assert!(turns(play.line(RESULT)).is_empty(), "b waits for room");
    play.happens(Event::Written(1_000));
    assert_eq!(turns(play.line(RESULT)), ["turn b started", "turn b ended with [], not named"]);
}

#[test]
fn other_lines_that_are_too_long_are_told_and_the_session_goes_on() {
    let mut play = sent(&["a"]);
    let line = format!(r#"{{"type":"assistant","text":"{}"}}"#, "x".repeat(200_000));
    let size = line.len();
    assert_eq!(
        play.happens(oversized(&line)),
        [format!(r#"warn OversizedLine {{ size: {size}, kind: Some("assistant") }}"#)]
    );
    assert_eq!(play.line(ANSWER), [format!("deliver {ANSWER}")]);
}
