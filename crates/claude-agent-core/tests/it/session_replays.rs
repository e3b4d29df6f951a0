//! Turns in which the CLI replays a deferred tool call.

use claude_agent_core::session::{Effect, Event, Plan, RunMode};
use claude_wire::Exit;

use crate::session_harness::{
    ANSWER, Harness, INIT, RESULT, lifecycle, oversized, result_for, success,
};

const IDLE: &str = r#"{"type":"system","subtype":"session_state_changed","state":"idle"}"#;

fn resumed() -> Harness {
    let mut plan = Plan::new(RunMode::Session);
    plan.resumes = true;
    let mut harness = Harness::new(plan);
    harness.effects();
    harness
}

fn confirm(harness: &mut Harness) -> Vec<String> {
    harness.line(&success(INIT, "{}"))
}

/// The effects without the lines that are passed on.
fn turns(effects: Vec<String>) -> Vec<String> {
    let is_turn = |effect: &String| effect.starts_with("turn") || effect.starts_with("replay");
    effects.into_iter().filter(is_turn).collect()
}

/// Plays the lines of a session that is resumed, and returns what became of turns. `init` is the response
/// to the handshake, `send` sends the message `m`.
fn play(lines: &str) -> Vec<String> {
    let mut harness = resumed();
    let mut seen = Vec::new();
    for line in lines.split(' ') {
        let effects = match line.split_once(':') {
            None if line == "init" => confirm(&mut harness),
            None if line == "running" => {
                harness.line(&success(INIT, r#"{"session_state":"running"}"#))
            }
            None if line == "idle" => harness.line(IDLE),
            None if line == "send" => harness.send(1, "m"),
            None if line == "result" => harness.line(RESULT),
            None if line == "long" => harness.handle(oversized(
                &RESULT.replace('}', &format!(r#","x":"{}"}}"#, "x".repeat(9_000))),
            )),
            None if line == "exit" => harness.end_process(1),
            Some(("result", id)) => harness.line(&result_for(&[id])),
            Some((state, id)) => harness.line(&lifecycle(id, state)),
            None => panic!("{line}"),
        };
        seen.extend(turns(effects));
    }
    seen
}

#[test]
fn replay_lasts_from_its_start_to_the_next_result() {
    let (started, ended) = ("replay r started", "turn r ended with [], not named");
    let none = "replay ruled out";
    for (lines, seen) in [
        ("started:r init result completed:r", vec![started, ended]),
        // The call was deferred again, or the turn was interrupted.
        ("started:r init result cancelled:r", vec![started, ended]),
        ("started:r init cancelled:r", vec![started, "turn r cancelled"]),
        // A message that is sent meanwhile has its own turn, or joins.
        (
            "started:r init send queued:m result completed:r started:m result:m completed:m",
            vec![started, ended, "turn m started", "turn m ended with []"],
        ),
        (
            "started:r init send queued:m started:m result:m completed:r completed:m",
            vec![started, "turn m started", ended, "turn m ended with []"],
        ),
        // The result of the replay is not that of the message.
        ("send started:r init queued:m result started:m", vec![started, ended, "turn m started"]),
        (
            "started:r init long completed:r",
            vec![started, "turn r ended with [], not named, oversized"],
        ),
        ("started:r init exit", vec![started]),
        // Only the first turn.
        ("started:r started:s init result result", vec![started, ended]),
        // With in-process servers, it starts after the handshake, which announces it.
        ("running started:r result completed:r", vec![started, ended]),
        (
            "running send queued:m started:r result completed:r started:m result:m completed:m",
            vec![started, ended, "turn m started", "turn m ended with []"],
        ),
        ("running started:r exit", vec![started]),
        // An announced replay that does not start.
        ("running idle started:r", vec![none]),
        ("running result started:r", vec![none]),
        (
            "running send started:m result:m completed:m idle",
            vec!["turn m started", "turn m ended with []", none],
        ),
        ("running exit", vec![]),
        // Without an announcement, there is none after the handshake.
        ("init started:r result completed:r", vec![none]),
        ("queued:r completed:r init result", vec![none]),
        ("started: init result", vec![none]),
    ] {
        assert_eq!(play(lines), seen, "{lines}");
    }
}

#[test]
fn messages_of_a_replay_follow_its_start() {
    let mut harness = resumed();
    let started = lifecycle("r", "started");
    assert_eq!(
        harness.line(&started),
        ["replay r started".to_owned(), format!("deliver {started}")]
    );
    confirm(&mut harness);
    assert_eq!(harness.line(ANSWER), [format!("deliver {ANSWER}")]);
    assert_eq!(
        harness.line(RESULT),
        [format!("deliver {RESULT}"), "turn r ended with [], not named".to_owned()]
    );
}

#[test]
fn only_a_resumed_session_has_a_replay() {
    let mut new = Harness::new(Plan::new(RunMode::Session));
    assert!(turns(new.line(&lifecycle("r", "started"))).is_empty());
    let limits = claude_agent_core::session::QueryLimits::default();
    let mut plan = Plan::new(RunMode::Query { prompt: None, limits });
    plan.resumes = true;
    assert!(turns(Harness::new(plan).line(&lifecycle("r", "started"))).is_empty());
}

#[test]
fn stop_interrupts_a_replay() {
    let mut harness = resumed();
    harness.line(&lifecycle("r", "started"));
    confirm(&mut harness);
    assert!(!harness.stop().contains(&"close stdin".to_owned()));
    assert!(harness.line(RESULT).contains(&"close stdin".to_owned()));
}

#[test]
fn cost_of_a_replay_without_a_result_is_incomplete() {
    let mut harness = resumed();
    harness.line(&lifecycle("r", "started"));
    confirm(&mut harness);
    let mut is_complete = None;
    for event in [Event::StdoutEnded(None), Event::Exited(Exit::Signal(9))] {
        harness.machine.handle(event, harness.now);
        while let Some(effect) = harness.machine.next_effect() {
            if let Effect::Cost(cost) = effect {
                is_complete = Some(cost.sum.is_complete);
            }
        }
    }
    assert_eq!(is_complete, Some(false));
}
