//! Operations: ids, limits, answers, time limits.

use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{Event, Plan, RunMode, Waiter};
use claude_wire::Json;
use claude_wire::control::{HostRequest, RewindFiles};

use crate::session_harness::{
    Harness, INIT, cancel, failure, interrupt, message, oversized, result_for, success,
};

#[test]
fn responses_are_matched_by_id_in_any_order() {
    let mut harness = Harness::session();
    assert_eq!(harness.interrupt(1), ["request req_2_00000000 interrupt"]);
    assert_eq!(harness.interrupt(2), ["request req_3_00000000 interrupt"]);
    assert_eq!(harness.interrupt(3), ["request req_4_00000000 interrupt"]);
    assert_eq!(harness.line(&success("req_4_00000000", "{}")), ["3: Response(Some({}))"]);
    assert_eq!(
        harness.line(&success("req_2_00000000", r#"{"a":[1]}"#)),
        [r#"1: Response(Some({"a":[1]}))"#]
    );
    // Nobody waits for these.
    assert!(harness.line(&success("req_4_00000000", "{}")).is_empty());
    assert!(harness.line(&success("req_9_00000000", "{}")).is_empty());
    let rejected = harness.line(&failure("req_3_00000000", "no such mode"));
    assert_eq!(rejected.len(), 1);
    assert!(rejected[0].starts_with("2: rejected ByCli(ControlFailure"), "{rejected:?}");
    assert!(rejected[0].contains("no such mode"), "{rejected:?}");
}

#[test]
fn acknowledgement_needs_only_success() {
    for (line, completed) in [
        (
            r#"{"type":"control_response","response":{"subtype":"success","request_id":"req_2_00000000"}}"#,
            "1: Response(None)",
        ),
        (
            r#"{"type":"control_response","request_id":"req_2_00000000","response":{"subtype":"success"}}"#,
            "1: Response(None)",
        ),
        (
            r#"{"response":{"response":null,"request_id":"req_2_00000000","subtype":"success"},"type":"control_response"}"#,
            "1: Response(None)",
        ),
    ] {
        let mut harness = Harness::session();
        harness.interrupt(1);
        assert_eq!(harness.line(line), [completed], "{line}");
    }
}

#[test]
fn undecodable_response_completes_its_operation() {
    for line in [
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"req_2_00000000"}}"#,
        r#"{"type":"control_response","response":{"subtype":"new","request_id":"req_2_00000000"}}"#,
        r#"{"type":"control_response","response":{"request_id":"req_2_00000000"}}"#,
        r#"{"type":"control_response","request_id":"req_2_00000000","response":7}"#,
        r#"{"type":"control_response","request_id":"req_2_00000000"}"#,
    ] {
        let mut harness = Harness::session();
        harness.interrupt(1);
        let effects = harness.line(line);
        assert_eq!(effects.len(), 1, "{line}");
        assert!(effects[0].starts_with("1: rejected UndecodableResponse"), "{line} {effects:?}");
    }
}

#[test]
fn control_frame_without_an_id_warns_and_completes_nothing() {
    for line in [
        r#"{"type":"control_response","response":{"subtype":"success"}}"#,
        r#"{"type":"control_request","request":{"subtype":"can_use_tool"}}"#,
        r#"{"type":"control_cancel_request"}"#,
    ] {
        let mut harness = Harness::session();
        harness.interrupt(1);
        let effects = harness.line(line);
        assert_eq!(effects.len(), 1, "{line}");
        assert!(effects[0].starts_with("warn Malformed"), "{effects:?}");
    }
}

#[test]
fn oversized_response_completes_its_operation() {
    let mut harness = Harness::session();
    harness.interrupt(1);
    let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(200_000));
    let line = success("req_2_00000000", &long);
    let size = line.len();
    assert_eq!(
        harness.handle(oversized(&line)),
        [
            format!(r#"warn OversizedLine {{ size: {size}, kind: Some("control_response") }}"#),
            format!("1: rejected ResponseTooLarge({size})"),
        ]
    );
    // The handshake is confirmed even so.
    let mut harness = Harness::new(Plan::new(RunMode::Session));
    harness.effects();
    assert!(harness.handle(oversized(&success(INIT, &long))).contains(&"state Running".to_owned()));
}

#[test]
fn operation_timeout_starts_with_the_write_and_late_responses_are_discarded() {
    let mut harness = Harness::new(Plan::new(RunMode::Session));
    harness.effects();
    harness.interrupt(1);
    harness.advance(40_000);
    assert_eq!(harness.machine.wake_at(), Some(Duration::from_secs(60)));
    harness.line(&success(INIT, "{}"));
    assert_eq!(harness.machine.wake_at(), Some(Duration::from_secs(70)));
    assert!(harness.advance(29_999).is_empty());
    assert_eq!(
        harness.advance(1),
        [r#"1: rejected TimedOut { request_id: "req_2_00000000", timeout: 30s }"#]
    );
    assert_eq!(harness.machine.wake_at(), None);
    assert!(harness.line(&success("req_2_00000000", "{}")).is_empty());
}

#[test]
fn sixteen_operations_wait_for_the_handshake() {
    let mut harness = Harness::new(Plan::new(RunMode::Session));
    harness.effects();
    for waiter in 0..16 {
        assert!(harness.interrupt(waiter).is_empty());
    }
    assert_eq!(harness.interrupt(16), ["16: rejected HandshakeQueueFull"]);
    // A dropped call frees its place, and messages have no such limit.
    harness.forget(3);
    assert!(harness.interrupt(17).is_empty());
    assert!(harness.send(18, "m").is_empty());
    let effects = harness.line(&success(INIT, "{}"));
    assert_eq!(effects.iter().filter(|effect| effect.starts_with("request ")).count(), 16);
}

#[test]
fn sixty_four_operations_can_be_pending() {
    let mut harness = Harness::session();
    for waiter in 0..64 {
        assert_eq!(harness.interrupt(waiter).len(), 1);
    }
    assert_eq!(harness.interrupt(64), ["64: rejected TooManyPending"]);
    harness.line(&success("req_5_00000000", "{}"));
    assert_eq!(harness.interrupt(65), ["request req_66_00000000 interrupt"]);
    // A dropped call frees its place, and its answer is discarded.
    assert!(harness.forget(10).is_empty());
    assert_eq!(harness.interrupt(66).len(), 1);
    assert_eq!(harness.interrupt(67), ["67: rejected TooManyPending"]);
    assert!(harness.line(&success("req_12_00000000", "{}")).is_empty());
}

#[test]
fn mcp_messages_do_not_count_as_pending_operations() {
    let message = || {
        let request = r#"{"subtype":"mcp_message","server_name":"calc","message":{"method":"p"}}"#;
        Json::from_text(request).unwrap().deserialize::<HostRequest>().unwrap()
    };
    let mut plan = Plan::new(RunMode::Session);
    plan.limits.running_mcp = 50;
    let mut harness = Harness::ready(plan);
    for waiter in 0..100 {
        assert_eq!(
            harness.send_request(waiter, message()).len(),
            1,
            "each call may tell of its progress"
        );
    }
    assert_eq!(harness.send_request(100, message()), ["100: rejected TooManyPending"]);
    for waiter in 200..264 {
        assert_eq!(harness.interrupt(waiter).len(), 1, "an interrupt is never rejected for them");
    }
    assert_eq!(harness.interrupt(264), ["264: rejected TooManyPending"]);
}

#[test]
fn rewind_is_rejected_without_checkpointing() {
    let rewind = || {
        let request = r#"{"subtype":"rewind_files","user_message_id":"m"}"#;
        let request: HostRequest = Json::from_text(request).unwrap().deserialize().unwrap();
        assert!(matches!(request, HostRequest::RewindFiles(RewindFiles { .. })));
        request
    };
    let mut harness = Harness::session();
    assert_eq!(harness.send_request(1, rewind()), ["1: rejected CheckpointingNotEnabled"]);
    let mut plan = Plan::new(RunMode::Session);
    plan.file_checkpointing = true;
    let mut harness = Harness::ready(plan);
    assert_eq!(harness.send_request(1, rewind()), ["request req_2_00000000 rewind_files"]);
}

/// A session that takes 100 bytes before it wants them to be written.
fn narrow() -> Harness {
    let mut plan = Plan::new(RunMode::Session);
    plan.limits.unwritten_bytes = 100;
    let mut harness = Harness::ready(plan);
    harness.handle(Event::Written(1_000));
    harness
}

#[test]
fn messages_wait_for_room_in_order_and_operations_are_rejected() {
    let mut harness = narrow();
    let length = message("a").line.len();
    for (waiter, id) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(harness.send(waiter, id), [format!("send {id}"), format!("{waiter}: Sent")]);
    }
    assert!(harness.send(4, "d").is_empty());
    assert!(harness.send(5, "e").is_empty());
    assert!(harness.machine.has_waiters());
    assert_eq!(harness.interrupt(6), ["6: rejected TooManyPending"]);
    // An answer always has room.
    let unknown = r#"{"type":"control_request","request_id":"r","request":{"subtype":"new"}}"#;
    assert!(harness.line(unknown)[0].starts_with("respond r error"));
    assert!(harness.handle(Event::Written(1)).is_empty());
    harness.handle(Event::Written(10_000));
    let mut harness = narrow();
    for (waiter, id) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        harness.send(waiter, id);
    }
    assert_eq!(harness.handle(Event::Written(length)), ["send d", "4: Sent"]);
    assert_eq!(harness.handle(Event::Written(length)), ["send e", "5: Sent"]);
}

#[test]
fn message_beyond_the_capacity_is_written_into_an_empty_buffer() {
    let mut harness = narrow();
    let id = "x".repeat(500);
    assert_eq!(harness.send(1, &id).len(), 2);
    assert!(harness.send(2, &id.replace('x', "y")).is_empty());
    assert_eq!(harness.handle(Event::Written(100_000)).len(), 2);
}

#[test]
fn message_with_a_used_id_is_rejected() {
    let mut harness = Harness::session();
    harness.send(1, "a");
    assert_eq!(harness.send(2, "a"), ["2: rejected DuplicateMessage"]);
    harness.line(&result_for(&["a"]));
    assert_eq!(harness.send(3, "a"), ["3: rejected DuplicateMessage"]);
    // A message that was never written did not use its id.
    let mut harness = narrow();
    harness.send(1, &"x".repeat(500));
    harness.send(2, "a");
    harness.handle(Event::Forget(Waiter(2)));
    assert!(harness.send(3, "a").is_empty());
}

#[test]
fn unmatched_response_is_distinguished_from_a_late_one() {
    for (id, late) in [("req_1_00c0ffee", true), ("req_9_00c0ffee", false), ("other", false)] {
        let mut plan = Plan::new(RunMode::Session);
        plan.id_suffix = 0x00c0_ffee;
        let mut machine = claude_agent_core::session::Machine::new(plan);
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
            claude_agent_core::session::Effect::UnmatchedResponse { late, .. } => Some(*late),
            _ => None,
        });
        assert_eq!(found, Some(late), "{id}");
    }
}

#[test]
fn forgotten_message_is_not_written() {
    let mut harness = narrow();
    for (waiter, id) in [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        harness.send(waiter, id);
    }
    assert!(harness.forget(4).is_empty());
    assert_eq!(harness.handle(Event::Written(10_000)), ["send e", "5: Sent"]);
}

#[test]
fn late_commands_are_rejected_with_their_reason() {
    let mut harness = Harness::session();
    harness.end_input(1);
    assert_eq!(harness.interrupt(2), ["2: rejected InputEnded"]);
    assert_eq!(harness.send(3, "m"), ["3: rejected InputEnded"]);
    let mut harness = Harness::session();
    harness.stop();
    assert_eq!(harness.interrupt(2), ["2: rejected Stopped"]);
    assert_eq!(harness.send(3, "m"), ["3: rejected Stopped"]);
    assert_eq!(harness.end_input(4), ["4: rejected Stopped"]);
    let mut harness = Harness::session();
    let gone = r#"rejected Closed("the CLI exited with exit code 1")"#;
    harness.end_process(1);
    assert_eq!(harness.interrupt(2), [format!("2: {gone}")]);
    assert_eq!(harness.send(3, "m"), [format!("3: {gone}")]);
    assert_eq!(harness.end_input(4), [format!("4: {gone}")]);
    assert!(harness.stop().is_empty());
    let mut harness = Harness::session();
    harness.handle(Event::WriteFailed("broken pipe".to_owned()));
    assert_eq!(harness.interrupt(2), [r#"2: rejected Closed("broken pipe")"#]);
}

#[test]
fn response_read_after_the_exit_counts() {
    let mut harness = Harness::session();
    harness.interrupt(1);
    assert!(harness.exit(1).is_empty(), "its answer may still be in the pipe");
    assert_eq!(harness.line(&success("req_2_00000000", "{}")), ["1: Response(Some({}))"]);
}

#[test]
fn commands_to_an_exiting_cli_are_rejected_at_its_exit_or_after_two_seconds() {
    let closed = |waiter: u64| format!(r#"{waiter}: rejected Closed("the CLI closed stdout")"#);
    let failed = "end Failed(Process { exit: Code(1), stopped: false, silent: false })";
    let mut harness = Harness::session();
    harness.interrupt(1);
    assert!(
        harness.eof().is_empty()
            && harness.interrupt(2).is_empty()
            && harness.interrupt(3).is_empty()
    );
    assert!(harness.machine.has_waiters());
    harness.forget(2);
    assert_eq!(harness.exit(1), [failed, &closed(1), &closed(3)]);
    // One that lives on.
    let mut harness = Harness::session();
    harness.interrupt(1);
    harness.eof();
    assert!(
        harness.advance(1_000).is_empty()
            && harness.interrupt(2).is_empty()
            && harness.advance(999).is_empty()
    );
    assert_eq!(harness.advance(1), [closed(1), closed(2)]);
    assert_eq!(harness.interrupt(3), [closed(3)], "the exit has had its time");
    // Not more of them than operations can be pending.
    let mut plan = Plan::new(RunMode::Session);
    plan.limits.pending_operations = 2;
    let mut harness = Harness::ready(plan);
    harness.eof();
    assert!(harness.interrupt(1).is_empty() && harness.interrupt(2).is_empty());
    assert_eq!(harness.interrupt(3), [closed(3)]);
    // What was rejected for another reason does not wait.
    assert_eq!(harness.stop(), ["state Stopping", "close stdin"]);
    assert_eq!(harness.interrupt(4), ["4: rejected Stopped"]);
}

#[test]
fn timed_out_operation_reports_a_broken_stdin() {
    let mut harness = Harness::session();
    let (waiter, limit) = (Waiter(1), Duration::from_secs(1));
    harness.handle(Event::Request { waiter, request: interrupt(), timeout: limit });
    assert!(harness.handle(Event::WriteFailed("broken pipe".to_owned())).is_empty());
    assert!(harness.advance(999).is_empty(), "its answer may still come");
    assert_eq!(harness.advance(1), [r#"1: rejected Closed("broken pipe")"#]);
}

#[test]
fn control_frames_are_never_delivered() {
    let mut harness = Harness::session();
    harness.interrupt(1);
    for line in [
        &success("req_2_00000000", "{}")[..],
        &cancel("x"),
        r#"{"type":"keep_alive"}"#,
        r#"{"type":"transcript_mirror","filePath":"x","entries":[]}"#,
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"new"}}"#,
        r#"{"type":"system","subtype":"session_state_changed","state":"idle","sdk_host_only":true}"#,
    ] {
        let effects = harness.line(line);
        assert!(!effects.iter().any(|effect| effect.starts_with("deliver")), "{line}");
    }
    for line in [r#"{"type":"new"}"#, r#"{"type":"user"}"#] {
        assert_eq!(harness.line(line), [format!("deliver {line}")]);
    }
    for line in ["not JSON", "7", "{}"] {
        let effects = harness.line(line);
        assert!(effects.len() == 1 && effects[0].starts_with("warn Malformed"), "{effects:?}");
    }
}

#[test]
fn line_with_broken_characters_is_handled_and_delivered_unchanged() {
    let mut harness = Harness::session();
    harness.send(1, "m");
    let line = Bytes::from_static(
        b"{\"type\":\"result\",\"x\xff\":\"\\ud83d\",\"user_message_uuids\":[\"m\"]}",
    );
    let effects = harness.handle(Event::Line(line));
    assert_eq!(effects.len(), 3, "{effects:?}");
    assert!(effects[1].starts_with("deliver"), "{effects:?}");
    assert_eq!(effects[2], "turn m ended with []");
}

#[test]
fn forgotten_operation_is_not_written_after_the_handshake() {
    let mut harness = Harness::new(Plan::new(RunMode::Session));
    harness.effects();
    harness.interrupt(1);
    harness.send(2, "m");
    harness.handle(Event::Forget(Waiter(1)));
    harness.handle(Event::Forget(Waiter(2)));
    assert_eq!(harness.line(&success(INIT, "{}")), ["state Running"]);
}
