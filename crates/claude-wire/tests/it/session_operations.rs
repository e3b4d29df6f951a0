//! Operations: ids, limits, answers, time limits.

use std::time::Duration;

use bytes::Bytes;
use claude_wire::Json;
use claude_wire::control::{HostRequest, RewindFiles};
use claude_wire::session::{Event, Plan, Run, Waiter};

use crate::session_play::{
    INIT, Play, cancel, failure, interrupt, message, oversized, result_for, success,
};

#[test]
fn answers_are_matched_by_id_in_any_order() {
    let mut play = Play::session();
    assert_eq!(play.ask(1), ["ask req_2_00000000 interrupt"]);
    assert_eq!(play.ask(2), ["ask req_3_00000000 interrupt"]);
    assert_eq!(play.ask(3), ["ask req_4_00000000 interrupt"]);
    assert_eq!(play.line(&success("req_4_00000000", "{}")), ["3: Answered(Some({}))"]);
    assert_eq!(
        play.line(&success("req_2_00000000", r#"{"a":[1]}"#)),
        [r#"1: Answered(Some({"a":[1]}))"#]
    );
    // Nobody waits for these.
    assert!(play.line(&success("req_4_00000000", "{}")).is_empty());
    assert!(play.line(&success("req_9_00000000", "{}")).is_empty());
    let refused = play.line(&failure("req_3_00000000", "no such mode"));
    assert_eq!(refused.len(), 1);
    assert!(refused[0].starts_with("2: refused Rejected(ControlFailure"), "{refused:?}");
    assert!(refused[0].contains("no such mode"), "{refused:?}");
}

#[test]
fn an_acknowledgement_needs_nothing_but_success() {
    for (line, settled) in [
        (
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_2_00000000"}}"#,
            "1: Answered(None)",
        ),
        (
            r#"{"type":"control_response","request_id":"req_2_00000000","response":{"subtype":"success"}}"#,
            "1: Answered(None)",
        ),
        (
            r#"{"response":{"response":null,"request_id":"req_2_00000000","subtype":"success"},"type":"control_response"}"#,
            "1: Answered(None)",
        ),
    ] {
        let mut play = Play::session();
        play.ask(1);
        assert_eq!(play.line(line), [settled], "{line}");
    }
}

#[test]
fn an_answer_that_cannot_be_made_out_still_settles_its_waiter() {
    for line in [
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"req_2_00000000"}}"#,
        r#"{"type":"control_response","response":{"subtype":"new","request_id":"req_2_00000000"}}"#,
        r#"{"type":"control_response","response":{"request_id":"req_2_00000000"}}"#,
        r#"{"type":"control_response","request_id":"req_2_00000000","response":7}"#,
        r#"{"type":"control_response","request_id":"req_2_00000000"}"#,
    ] {
        let mut play = Play::session();
        play.ask(1);
        let effects = play.line(line);
        assert_eq!(effects.len(), 1, "{line}");
        assert!(effects[0].starts_with("1: refused UndecodableResponse"), "{line} {effects:?}");
    }
}

#[test]
fn a_control_frame_without_an_id_is_a_warning_and_settles_nobody() {
    for line in [
        r#"{"type":"control_response","response":{"subtype":"success"}}"#,
        r#"{"type":"control_request","request":{"subtype":"can_use_tool"}}"#,
        r#"{"type":"control_cancel_request"}"#,
    ] {
        let mut play = Play::session();
        play.ask(1);
        let effects = play.line(line);
        assert_eq!(effects.len(), 1, "{line}");
        assert!(effects[0].starts_with("warn Malformed"), "{effects:?}");
    }
}

#[test]
fn an_answer_that_is_too_long_settles_its_waiter() {
    let mut play = Play::session();
    play.ask(1);
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(200_000));
    let line = success("req_2_00000000", &long);
    let size = line.len();
    assert_eq!(
        play.happens(oversized(&line)),
        [
            format!(r#"warn OversizedLine {{ size: {size}, kind: Some("control_response") }}"#),
            format!("1: refused ResponseTooLarge({size})"),
        ]
    );
    // The handshake is confirmed even so.
    let mut play = Play::of(Plan::new(Run::Session));
    play.effects();
    assert!(play.happens(oversized(&success(INIT, &long))).contains(&"state Running".to_owned()));
}

#[test]
fn the_time_limit_runs_from_the_write_and_late_answers_are_dropped() {
    let mut play = Play::of(Plan::new(Run::Session));
    play.effects();
    play.ask(1);
    play.pass(40_000);
    assert_eq!(play.machine.wake_at(), Some(Duration::from_secs(60)));
    play.line(&success(INIT, "{}"));
    assert_eq!(play.machine.wake_at(), Some(Duration::from_secs(70)));
    assert!(play.pass(29_999).is_empty());
    assert_eq!(
        play.pass(1),
        [r#"1: refused TimedOut { request_id: "req_2_00000000", limit: 30s }"#]
    );
    assert_eq!(play.machine.wake_at(), None);
    assert!(play.line(&success("req_2_00000000", "{}")).is_empty());
}

#[test]
fn sixteen_operations_wait_for_the_handshake() {
    let mut play = Play::of(Plan::new(Run::Session));
    play.effects();
    for waiter in 0..16 {
        assert!(play.ask(waiter).is_empty());
    }
    assert_eq!(play.ask(16), ["16: refused InitQueueFull"]);
    // A dropped call frees its place, and messages have no such limit.
    play.forget(3);
    assert!(play.ask(17).is_empty());
    assert!(play.send(18, "m").is_empty());
    let effects = play.line(&success(INIT, "{}"));
    assert_eq!(effects.iter().filter(|effect| effect.starts_with("ask ")).count(), 16);
}

#[test]
fn sixty_four_operations_wait_for_their_answers() {
    let mut play = Play::session();
    for waiter in 0..64 {
        assert_eq!(play.ask(waiter).len(), 1);
    }
    assert_eq!(play.ask(64), ["64: refused TooManyPending"]);
    play.line(&success("req_5_00000000", "{}"));
    assert_eq!(play.ask(65), ["ask req_66_00000000 interrupt"]);
    // A dropped call frees its place, and its answer is discarded.
    assert!(play.forget(10).is_empty());
    assert_eq!(play.ask(66).len(), 1);
    assert_eq!(play.ask(67), ["67: refused TooManyPending"]);
    assert!(play.line(&success("req_12_00000000", "{}")).is_empty());
}

#[test]
fn messages_of_servers_take_no_place_of_the_hosts_operations() {
    let message = || {
        let request = r#"{"subtype":"mcp_message","server_name":"calc","message":{"method":"p"}}"#;
        Json::from_text(request).unwrap().deserialize::<HostRequest>().unwrap()
    };
    let mut plan = Plan::new(Run::Session);
    plan.limits.running_mcp = 50;
    let mut play = Play::ready(plan);
    for waiter in 0..100 {
        assert_eq!(play.ask_for(waiter, message()).len(), 1, "each call may tell of its progress");
    }
    assert_eq!(play.ask_for(100, message()), ["100: refused TooManyPending"]);
    for waiter in 200..264 {
        assert_eq!(play.ask(waiter).len(), 1, "an interrupt is never refused for them");
    }
    assert_eq!(play.ask(264), ["264: refused TooManyPending"]);
}

#[test]
fn files_are_not_put_back_without_checkpoints() {
    let rewind = || {
        let request = r#"{"subtype":"rewind_files","user_message_id":"m"}"#;
        let request: HostRequest = Json::from_text(request).unwrap().deserialize().unwrap();
        assert!(matches!(request, HostRequest::RewindFiles(RewindFiles { .. })));
        request
    };
    let mut play = Play::session();
    assert_eq!(play.ask_for(1, rewind()), ["1: refused CheckpointingNotEnabled"]);
    let mut plan = Plan::new(Run::Session);
    plan.file_checkpointing = true;
    let mut play = Play::ready(plan);
    assert_eq!(play.ask_for(1, rewind()), ["ask req_2_00000000 rewind_files"]);
}

/// A session that takes 100 bytes before it wants them to be written.
fn narrow() -> Play {
    let mut plan = Plan::new(Run::Session);
    plan.limits.unwritten_bytes = 100;
    let mut play = Play::ready(plan);
    play.happens(Event::Written(1_000));
    play
}

#[test]
fn messages_wait_for_room_in_order_and_operations_are_refused() {
    let mut play = narrow();
    let length = message("a").line.len();
    for (waiter, id) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(play.send(waiter, id), [format!("say {id}"), format!("{waiter}: Sent")]);
    }
    assert!(play.send(4, "d").is_empty());
    assert!(play.send(5, "e").is_empty());
    assert!(play.machine.has_waiters());
    assert_eq!(play.ask(6), ["6: refused TooManyPending"]);
    // An answer always has room.
    let unknown = r#"{"type":"control_request","request_id":"r","request":{"subtype":"new"}}"#;
    assert!(play.line(unknown)[0].starts_with("answer r error"));
    assert!(play.happens(Event::Written(1)).is_empty());
    play.happens(Event::Written(10_000));
    let mut play = narrow();
    for (waiter, id) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        play.send(waiter, id);
    }
    assert_eq!(play.happens(Event::Written(length)), ["say d", "4: Sent"]);
    assert_eq!(play.happens(Event::Written(length)), ["say e", "5: Sent"]);
}

#[test]
fn a_message_that_is_longer_than_the_room_is_written_when_there_is_nothing_else() {
    let mut play = narrow();
    let id = "x".repeat(500);
    assert_eq!(play.send(1, &id).len(), 2);
    assert!(play.send(2, &id.replace('x', "y")).is_empty());
    assert_eq!(play.happens(Event::Written(100_000)).len(), 2);
}

#[test]
fn a_message_whose_id_was_used_before_is_refused() {
    let mut play = Play::session();
    play.send(1, "a");
    assert_eq!(play.send(2, "a"), ["2: refused DuplicateMessage"]);
    play.line(&result_for(&["a"]));
    assert_eq!(play.send(3, "a"), ["3: refused DuplicateMessage"]);
    // A message that was never written did not use its id.
    let mut play = narrow();
    play.send(1, &"x".repeat(500));
    play.send(2, "a");
    play.happens(Event::Forget(Waiter(2)));
    assert!(play.send(3, "a").is_empty());
}

#[test]
fn an_answer_that_nobody_waits_for_is_told_apart_from_a_late_one() {
    for (id, late) in [("req_1_00c0ffee", true), ("req_9_00c0ffee", false), ("other", false)] {
        let mut plan = Plan::new(Run::Session);
        plan.id_suffix = 0x00c0_ffee;
        let mut machine = claude_wire::session::Machine::new(plan);
        let text = |id: &str| {
            format!(
                r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"{id}"}}}}"#
            )
        };
        // The handshake is the first request; its second answer is late.
        for id in ["req_1_00c0ffee", id] {
            machine.handle(Event::Line(text(id).into()), Duration::ZERO);
        }
        let effects: Vec<_> = std::iter::from_fn(|| machine.next_effect()).collect();
        let found = effects.iter().find_map(|effect| match effect {
            claude_wire::session::Effect::Unclaimed { late, .. } => Some(*late),
            _ => None,
        });
        assert_eq!(found, Some(late), "{id}");
    }
}

#[test]
fn a_message_that_is_no_longer_waited_for_is_not_written() {
    let mut play = narrow();
    for (waiter, id) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        play.send(waiter, id);
    }
    assert!(play.forget(4).is_empty());
    assert_eq!(play.happens(Event::Written(10_000)), ["say e", "5: Sent"]);
}

#[test]
fn what_cannot_be_asked_any_more_is_refused_by_its_reason() {
    let mut play = Play::session();
    play.end_input(1);
    assert_eq!(play.ask(2), ["2: refused InputEnded"]);
    assert_eq!(play.send(3, "m"), ["3: refused InputEnded"]);
    let mut play = Play::session();
    play.stop();
    assert_eq!(play.ask(2), ["2: refused Stopped"]);
    assert_eq!(play.send(3, "m"), ["3: refused Stopped"]);
    assert_eq!(play.end_input(4), ["4: refused Stopped"]);
    let mut play = Play::session();
    let gone = r#"refused Closed("the process ended with exit code 1")"#;
    play.die(1);
    assert_eq!(play.ask(2), [format!("2: {gone}")]);
    assert_eq!(play.send(3, "m"), [format!("3: {gone}")]);
    assert_eq!(play.end_input(4), [format!("4: {gone}")]);
    assert!(play.stop().is_empty());
    let mut play = Play::session();
    play.happens(Event::WriteFailed("broken pipe".to_owned()));
    assert_eq!(play.ask(2), [r#"2: refused Closed("broken pipe")"#]);
}

#[test]
fn an_answer_that_is_still_in_the_pipe_of_an_exited_cli_counts() {
    let mut play = Play::session();
    play.ask(1);
    assert!(play.exit(1).is_empty(), "its answer may still be in the pipe");
    assert_eq!(play.line(&success("req_2_00000000", "{}")), ["1: Answered(Some({}))"]);
}

#[test]
fn calls_of_a_cli_that_is_about_to_exit_are_refused_when_it_has_or_two_seconds_later() {
    let closed = |waiter: u64| format!(r#"{waiter}: refused Closed("the CLI closed its output")"#);
    let failed = "end Failed(Process { exit: Code(1), stopped: false, silent: false })";
    let mut play = Play::session();
    play.ask(1);
    assert!(play.eof().is_empty() && play.ask(2).is_empty() && play.ask(3).is_empty());
    assert!(play.machine.has_waiters());
    play.forget(2);
    assert_eq!(play.exit(1), [failed, &closed(1), &closed(3)]);
    // One that lives on.
    let mut play = Play::session();
    play.ask(1);
    play.eof();
    assert!(play.pass(1_000).is_empty() && play.ask(2).is_empty() && play.pass(999).is_empty());
    assert_eq!(play.pass(1), [closed(1), closed(2)]);
    assert_eq!(play.ask(3), [closed(3)], "the exit has had its time");
    // Not more of them than operations can be pending.
    let mut plan = Plan::new(Run::Session);
    plan.limits.pending_operations = 2;
    let mut play = Play::ready(plan);
    play.eof();
    assert!(play.ask(1).is_empty() && play.ask(2).is_empty());
    assert_eq!(play.ask(3), [closed(3)]);
    // What was refused for another reason does not wait.
    assert_eq!(play.stop(), ["state Stopping", "close input"]);
    assert_eq!(play.ask(4), ["4: refused Stopped"]);
}

#[test]
fn an_operation_that_a_cli_without_stdin_does_not_answer_in_time_is_told_that() {
    let mut play = Play::session();
    let (waiter, limit) = (Waiter(1), Duration::from_secs(1));
    play.happens(Event::Ask { waiter, request: interrupt(), limit });
    assert!(play.happens(Event::WriteFailed("broken pipe".to_owned())).is_empty());
    assert!(play.pass(999).is_empty(), "its answer may still come");
    assert_eq!(play.pass(1), [r#"1: refused Closed("broken pipe")"#]);
}

#[test]
fn control_frames_are_never_delivered() {
    let mut play = Play::session();
    play.ask(1);
    for line in [
        &success("req_2_00000000", "{}")[..],
        &cancel("x"),
        r#"{"type":"keep_alive"}"#,
        r#"{"type":"transcript_mirror","filePath":"x","entries":[]}"#,
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"new"}}"#,
        r#"{"type":"system","subtype":"session_state_changed","state":"idle","sdk_host_only":true}"#,
    ] {
        let effects = play.line(line);
        assert!(!effects.iter().any(|effect| effect.starts_with("deliver")), "{line}");
    }
    for line in [r#"{"type":"new"}"#, r#"{"type":"user"}"#] {
        assert_eq!(play.line(line), [format!("deliver {line}")]);
    }
    for line in ["not JSON", "7", "{}"] {
        let effects = play.line(line);
        assert!(effects.len() == 1 && effects[0].starts_with("warn Malformed"), "{effects:?}");
    }
}

#[test]
fn a_line_with_broken_characters_is_acted_on_and_delivered_as_it_came() {
    let mut play = Play::session();
    play.send(1, "m");
    let line = Bytes::from_static(
        b"{\"type\":\"result\",\"x\xff\":\"\\ud83d\",\"user_message_uuids\":[\"m\"]}",
    );
    let effects = play.happens(Event::Line(line));
    assert_eq!(effects.len(), 3, "{effects:?}");
    assert!(effects[1].starts_with("deliver"), "{effects:?}");
    assert_eq!(effects[2], "turn m ended with []");
}

#[test]
fn an_operation_that_nobody_waits_for_is_not_written_after_the_handshake() {
    let mut play = Play::of(Plan::new(Run::Session));
    play.effects();
    play.ask(1);
    play.send(2, "m");
    play.happens(Event::Forget(Waiter(1)));
    play.happens(Event::Forget(Waiter(2)));
    assert_eq!(play.line(&success(INIT, "{}")), ["state Running"]);
}
