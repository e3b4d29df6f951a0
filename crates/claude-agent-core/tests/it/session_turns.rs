//! Which result ends which turn.

use std::collections::BTreeSet;
use std::sync::Arc;

use claude_agent_core::session::{Effect, Event, TurnEnd};
use claude_wire::Exit;

use crate::session_harness::oversized;
use crate::session_harness::{ANSWER, Harness, RESULT, lifecycle, result_for};

fn sent(ids: &[&str]) -> Harness {
    let mut harness = Harness::session();
    for (waiter, id) in (1..).zip(ids) {
        harness.send(waiter, id);
    }
    harness
}

/// The effects without the lines that are passed on.
fn turns(effects: Vec<String>) -> Vec<String> {
    effects.into_iter().filter(|effect| effect.starts_with("turn")).collect()
}

#[test]
fn turn_lasts_from_started_to_the_result_that_names_it() {
    let mut harness = sent(&["a", "b"]);
    let queued = lifecycle("a", "queued");
    assert_eq!(harness.line(&queued), [format!("deliver {queued}")]);
    let started = lifecycle("a", "started");
    assert_eq!(harness.line(&started), ["turn a started".to_owned(), format!("deliver {started}")]);
    assert_eq!(harness.line(ANSWER), [format!("deliver {ANSWER}")]);
    let result = result_for(&["a"]);
    assert_eq!(
        harness.line(&result),
        [format!("deliver {result}"), "turn a ended with []".to_owned()]
    );
    // A turn of which nothing was said begins with its result.
    let shared = result_for(&["c"]);
    harness.send(3, "c");
    assert_eq!(
        harness.line(&shared),
        [
            "turn c started".to_owned(),
            format!("deliver {shared}"),
            "turn c ended with []".to_owned(),
        ]
    );
    // What comes later about it means nothing.
    assert!(turns(harness.line(&lifecycle("a", "completed"))).is_empty());
    assert!(turns(harness.line(&lifecycle("a", "cancelled"))).is_empty());
    assert!(turns(harness.line(&lifecycle("a", "started"))).is_empty());
    assert!(turns(harness.line(&result)).is_empty());
    assert_eq!(turns(harness.line(&lifecycle("b", "started"))), ["turn b started"]);
}

#[test]
fn several_turns_may_end_with_one_result() {
    let mut harness = sent(&["a", "b", "c"]);
    harness.line(&lifecycle("b", "started"));
    assert_eq!(
        turns(harness.line(&result_for(&["b", "c", "x"]))),
        ["turn c started", r#"turn b ended with ["c"]"#, r#"turn c ended with ["b"]"#,]
    );
    assert_eq!(
        turns(harness.line(&result_for(&["a"]))),
        ["turn a started", "turn a ended with []"]
    );
}

#[test]
fn completed_turn_without_a_start_ends_with_the_result_of_the_running_turn() {
    let mut harness = sent(&["a", "b"]);
    harness.line(&lifecycle("b", "queued"));
    harness.line(r#"{"type":"system","subtype":"init"}"#);
    assert!(turns(harness.line(&lifecycle("a", "completed"))).is_empty());
    assert_eq!(
        harness.line(RESULT),
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
    let mut harness = sent(&["a", "b"]);
    let mut names = vec!["a", "a", "b"];
    names.resize(100_000, "x");
    harness.machine.handle(Event::Line(result_for(&names).into()), harness.now);
    let ends: Vec<_> = std::iter::from_fn(|| harness.machine.next_effect())
        .filter_map(|effect| match effect {
            Effect::TurnEnded(_, TurnEnd::Result { messages, .. }) => Some(messages),
            _ => None,
        })
        .collect();
    assert_eq!(format!("{:?}", ends[0]), r#"["a", "b"]"#);
    assert!(ends.len() == 2 && Arc::ptr_eq(&ends[0], &ends[1]));
}

#[test]
fn message_that_the_cli_cancels_is_cancelled() {
    let mut harness = sent(&["a", "b"]);
    harness.line(&lifecycle("a", "queued"));
    assert_eq!(turns(harness.line(&lifecycle("a", "cancelled"))), ["turn a cancelled"]);
    // After an interrupt the result comes first, and wins.
    harness.line(&lifecycle("b", "started"));
    assert_eq!(turns(harness.line(&result_for(&["b"]))), ["turn b ended with []"]);
    assert!(turns(harness.line(&lifecycle("b", "cancelled"))).is_empty());
}

#[test]
fn cli_without_message_ids_ends_turns_in_order() {
    let mut harness = sent(&["a", "b"]);
    let init = r#"{"type":"system","subtype":"init"}"#;
    assert_eq!(harness.line(init), ["turn a started".to_owned(), format!("deliver {init}")]);
    assert!(turns(harness.line(init)).is_empty());
    assert_eq!(turns(harness.line(RESULT)), ["turn a ended with [], not named"]);
    assert_eq!(turns(harness.line(RESULT)), ["turn b started", "turn b ended with [], not named"]);
    assert!(turns(harness.line(RESULT)).is_empty());
}

#[test]
fn turn_started_by_the_cli_ends_no_turn_of_the_host() {
    let own = r#"{"type":"result","origin":{"kind":"task-notification"}}"#;
    let mut harness = sent(&["a"]);
    harness.line(&lifecycle("a", "queued"));
    assert!(turns(harness.line(r#"{"type":"system","subtype":"init"}"#)).is_empty());
    assert!(turns(harness.line(own)).is_empty());
    harness.line(&lifecycle("a", "started"));
    assert!(turns(harness.line(own)).is_empty());
    assert_eq!(turns(harness.line(&result_for(&["a"]))), ["turn a ended with []"]);
    // It is known for good.
    harness.send(9, "b");
    assert!(turns(harness.line(own)).is_empty());
    // Another's message is none of ours either.
    assert!(turns(harness.line(&result_for(&["z"]))).is_empty());
    assert_eq!(turns(harness.line(&result_for(&["b"]))).len(), 2);
}

#[test]
fn message_that_joins_a_turn_of_the_cli_ends_with_its_unnamed_result() {
    let own = r#"{"type":"result","origin":{"kind":"task-notification"}}"#;
    let mut harness = sent(&["a", "b"]);
    harness.line(&lifecycle("a", "started"));
    assert!(turns(harness.line(&lifecycle("a", "completed"))).is_empty());
    assert_eq!(turns(harness.line(own)), ["turn a ended with [], not named"]);
    // One that is named has its name.
    harness.line(r#"{"type":"system","subtype":"init"}"#);
    harness.line(&lifecycle("b", "completed"));
    assert_eq!(
        turns(harness.line(&result_for(&["b"]))),
        ["turn b started", "turn b ended with []"]
    );
    assert!(turns(harness.line(own)).is_empty());
}

#[test]
fn oversized_result_still_ends_its_turn() {
    let long = "x".repeat(200_000);
    let named = format!(r#"{{"result":"{long}","type":"result","user_message_uuids":["b"]}}"#);
    let mut harness = sent(&["a", "b"]);
    assert_eq!(
        turns(harness.handle(oversized(&named))),
        ["turn b started", "turn b ended with [], oversized"]
    );
    // The names are lost: the oldest that began.
    let lost =
        format!(r#"{{"type":"result","result":"{long}","user_message_uuids":["x","{long}"]}}"#);
    let mut harness = sent(&["a", "b"]);
    harness.line(&lifecycle("b", "started"));
    assert_eq!(
        turns(harness.handle(oversized(&lost))),
        ["turn b ended with [], not named, oversized"]
    );
    let mut harness = sent(&["a", "b"]);
    assert_eq!(
        turns(harness.handle(oversized(&lost))),
        ["turn a started", "turn a ended with [], not named, oversized"]
    );
}

#[test]
fn a_result_whose_body_does_not_decode_still_ends_its_turn() {
    let mut harness = sent(&["a"]);
    let odd =
        r#"{"type":"result","result":7,"usage":"none","errors":{},"user_message_uuids":["a"]}"#;
    assert_eq!(turns(harness.line(odd)).len(), 2);
}

#[test]
fn unwritten_message_has_no_turn_to_end() {
    let mut plan =
        claude_agent_core::session::Plan::new(claude_agent_core::session::RunMode::Session);
    plan.limits.unwritten_bytes = 1;
    let mut harness = Harness::ready(plan);
    harness.handle(Event::Written(1_000));
    harness.send(1, "a");
    harness.send(2, "b");
    assert_eq!(turns(harness.line(RESULT)).len(), 2);
    assert!(turns(harness.line(RESULT)).is_empty(), "b waits for room");
    harness.handle(Event::Written(1_000));
    assert_eq!(turns(harness.line(RESULT)), ["turn b started", "turn b ended with [], not named"]);
}

#[test]
fn other_oversized_lines_warn_and_the_session_continues() {
    let mut harness = sent(&["a"]);
    let line = format!(r#"{{"type":"assistant","text":"{}"}}"#, "x".repeat(200_000));
    let size = line.len();
    assert_eq!(
        harness.handle(oversized(&line)),
        [format!(r#"warn OversizedLine {{ size: {size}, kind: Some("assistant") }}"#)]
    );
    assert_eq!(harness.line(ANSWER), [format!("deliver {ANSWER}")]);
}

/// Plays the tokens of a flow (`q1 s1 r[1] c1`, see `tests/flows.txt`), in which these messages were
/// sent before; returns what became of turns, and when.
fn flow(tokens: &str) -> Vec<String> {
    let numbers: BTreeSet<char> = tokens.chars().filter(char::is_ascii_digit).collect();
    let ids: Vec<String> = numbers.into_iter().map(String::from).collect();
    let mut harness = sent(&ids.iter().map(String::as_str).collect::<Vec<_>>());
    let mut seen = Vec::new();
    for token in tokens.split(' ') {
        for effect in turns(harness.line(&line_of(token))) {
            seen.push(format!("{token}: {effect}"));
        }
    }
    seen
}

fn line_of(token: &str) -> String {
    let names: Vec<&str> = token.split(['[', ']', '(', ')', ',']).skip(1).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let origin = if token.contains('*') { r#","origin":{"kind":"task-notification"}"# } else { "" };
    match token.split_at(1) {
        ("r" | "e", rest) if rest.contains('(') => {
            format!(r#"{{"type":"result","user_message_uuid":"{}"}}"#, names[0])
        }
        ("r" | "e", _) if names.is_empty() => format!(r#"{{"type":"result"{origin}}}"#),
        ("r" | "e", _) => result_for(&names),
        ("q", id) => lifecycle(id, "queued"),
        ("s", id) => lifecycle(id, "started"),
        ("c", id) => lifecycle(id, "completed"),
        ("x", id) => lifecycle(id, "cancelled"),
        _ => r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#.to_owned(),
    }
}

/// A turn never outlives the line that says that the CLI is done with its message, unless the
/// result is still to come.
#[test]
fn turn_ends_with_its_message_although_the_result_does_not_name_it() {
    for (tokens, ends) in [
        // 2.1.206 to 2.1.215 name nobody; later versions name nobody after local commands.
        ("q1 s1 r[] c1", vec!["c1: turn 1 ended with [], not named"]),
        (
            "q1 s1 r[] c1 q2 s2 r[2] c2",
            vec!["c1: turn 1 ended with [], not named", "r[2]: turn 2 ended with []"],
        ),
        // 2.1.258 names one of those that share a result.
        (
            "s1 s2 s3 r(3) c1 c2 c3",
            vec![
                "r(3): turn 3 ended with []",
                "c1: turn 1 ended with [], not named",
                "c2: turn 2 ended with [], not named",
            ],
        ),
        // Completed before the result: it joined the turn.
        (
            "s1 s2 c2 r[] c1",
            vec!["r[]: turn 2 ended with [], not named", "c1: turn 1 ended with [], not named"],
        ),
        ("q1 s1 c1 r*[]", vec!["r*[]: turn 1 ended with [], not named"]),
        // An interrupted turn whose result names nobody.
        ("q1 s1 e[] x1", vec!["x1: turn 1 ended with [], not named"]),
        ("q1 q2 s1 x2 r[1] c1", vec!["x2: turn 2 cancelled", "r[1]: turn 1 ended with []"]),
        // What the CLI completes without working on it has no result.
        ("q1 s1 c1 idle", vec!["idle: turn 1 without result"]),
        ("c1 r[]", vec!["c1: turn 1 without result"]),
        // A result of another turn, before the message has started, is not its own.
        ("q1 r*[] s1 c1 idle", vec!["idle: turn 1 without result"]),
    ] {
        let seen = flow(tokens);
        let seen: Vec<&String> = seen.iter().filter(|seen| !seen.contains("started")).collect();
        assert_eq!(seen, ends, "{tokens}");
    }
}

#[test]
fn a_turn_ends_with_the_cost_of_its_own_result() {
    let result = |id: &str, usd: f64| {
        let usage = format!(r#"{{"opus":{{"inputTokens":7,"costUSD":{usd}}}}}"#);
        let names = format!(r#""user_message_uuids":["{id}"]"#);
        format!(r#"{{"type":"result",{names},"model_usage_since_last_result":{usage}}}"#)
    };
    // The cost of the run, and of the turn that ended.
    let costs = |harness: &mut Harness, event: Event| {
        harness.machine.handle(event, harness.now);
        let (mut run, mut turn) = (None, None);
        while let Some(effect) = harness.machine.next_effect() {
            match effect {
                Effect::Cost(cost) => run = Some(cost),
                Effect::Deliver(_) => assert!(run.is_some(), "it is known before the result"),
                Effect::TurnEnded(_, TurnEnd::Result { cost, .. }) => turn = Some(cost),
                _ => {}
            }
        }
        (run.unwrap(), turn)
    };
    let mut harness = Harness::session();
    let (run, turn) = costs(&mut harness, Event::Line(result("none of ours", 0.5).into()));
    assert_eq!((run.sum.usd, run.results, turn), (0.5, 1, None));
    harness.send(1, "m");
    let (run, turn) = costs(&mut harness, Event::Line(result("m", 0.25).into()));
    let cost = turn.flatten().unwrap();
    assert_eq!((cost.usd, cost.tokens.input, cost.is_complete), (0.25, 7, true));
    assert_eq!((run.sum.usd, run.sum.is_complete, run.results), (0.75, true, 2));
    // One that is lost.
    harness.send(2, "n");
    let long = "x".repeat(2_000);
    let line = format!(r#"{{"type":"result","user_message_uuids":["n"],"result":"{long}"}}"#);
    let (run, turn) = costs(&mut harness, oversized(&line));
    assert_eq!((turn, run.sum.is_complete), (Some(None), false));
}

#[test]
fn cost_of_an_interrupted_turn_is_incomplete() {
    let cost_at_the_end = |line: &str| {
        let mut harness = Harness::session();
        harness.send(1, "m");
        harness.line(line);
        let mut last = None;
        for event in [Event::StdoutEnded(None), Event::Exited(Exit::Signal(9))] {
            harness.machine.handle(event, harness.now);
            while let Some(effect) = harness.machine.next_effect() {
                if let Effect::Cost(cost) = effect {
                    last = Some(cost.sum.is_complete);
                }
            }
        }
        last
    };
    assert_eq!(cost_at_the_end(&lifecycle("m", "started")), Some(false));
    assert_eq!(cost_at_the_end(&lifecycle("m", "queued")), None);
}
