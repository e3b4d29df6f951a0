//! The envelope: what must be known of a line, whatever else it holds.

use claude_wire::{Envelope, Frame, Framer};

fn read(line: &str) -> Envelope<'_> {
    Envelope::read_fields(line.as_bytes()).unwrap()
}

#[test]
fn undecodable_result_still_names_its_turns() {
    let envelope = read(
        r#"{"num_turns":"many","usage":7,"result":"\ud83d","user_message_uuids":["a","b",5],"is_error":true,"type":"result","deep":[1e400],"uuid":"u"}"#,
    );
    assert_eq!(envelope.kind, "result");
    assert!(envelope.is_error);
    assert_eq!(envelope.user_messages, ["a", "b"]);
    assert_eq!(envelope.uuid.as_deref(), Some("u"));
}

#[test]
fn a_control_request_whose_body_does_not_decode_still_has_its_id() {
    for line in [
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"can_use_tool","tool_name":5}}"#,
        r#"{"request":{"x":"\ud83d","subtype":"can_use_tool"},"request_id":"r","type":"control_request"}"#,
    ] {
        let envelope = read(line);
        assert_eq!(envelope.kind, "control_request");
        assert_eq!(envelope.subtype.as_deref(), Some("can_use_tool"));
        assert_eq!(envelope.request_id.as_deref(), Some("r"));
    }
    for body in ["null", "[1]", "\"x\"", "5", "true", "1.5", "-1"] {
        let line = format!(r#"{{"type":"control_request","request_id":"r","request":{body}}}"#);
        assert_eq!(read(&line).request_id.as_deref(), Some("r"), "{body}");
    }
}

#[test]
fn the_id_of_a_control_response_is_the_inner_one_first() {
    let both = r#"{"type":"control_response","response":{"subtype":"error","request_id":"in","error":1},"request_id":"out"}"#;
    let outer =
        r#"{"type":"control_response","response":{"subtype":"success"},"request_id":"out"}"#;
    assert_eq!(read(both).request_id.as_deref(), Some("in"));
    assert_eq!(read(both).subtype.as_deref(), Some("error"));
    assert_eq!(read(outer).request_id.as_deref(), Some("out"));
}

#[test]
fn fields_of_the_wrong_type_count_as_absent() {
    let envelope = read(
        r#"{"type":"system","subtype":5,"uuid":null,"state":["idle"],"is_error":"true","user_message_uuids":"x","task_id":{}}"#,
    );
    assert_eq!(envelope, {
        let mut bare = Envelope::default();
        bare.kind = "system".into();
        bare
    });
}

#[test]
fn states_and_tasks_are_read() {
    let envelope = read(
        r#"{"type":"system","subtype":"session_state_changed","state":"idle","sdk_host_only":true}"#,
    );
    assert_eq!(envelope.state.as_deref(), Some("idle"));
    assert!(envelope.sdk_host_only);
    let envelope = read(
        r#"{"type":"system","subtype":"task_updated","task_id":"t","patch":{"status":"killed","x":{}}}"#,
    );
    assert_eq!(envelope.task_id.as_deref(), Some("t"));
    assert_eq!(envelope.status.as_deref(), Some("killed"));
    let envelope =
        read(r#"{"type":"command_lifecycle","command_uuid":"c","state":"queued","uuid":"u"}"#);
    assert_eq!(envelope.command_uuid.as_deref(), Some("c"));
}

#[test]
fn passed_on_lines_are_recognized_by_their_ends() {
    let shallow = |line: &'static str| Envelope::read(line.as_bytes()).unwrap();
    // The rest is not looked at: it is for the decoder to complain about.
    let envelope = shallow(r#"{"type":"assistant","message": not json}"#);
    assert_eq!(envelope.kind, "assistant");
    assert!(Envelope::read(br#"{"type":"assistant","message": {"#).is_err(), "it is cut off");
    assert_eq!(shallow("{\"type\":\"user\"} \r").kind, "user");
    // So are requests, which are decoded whole.
    let request = shallow(r#"{"type":"control_request","request_id":"r","request":{}}"#);
    assert_eq!((&*request.kind, request.request_id), ("control_request", None));
    // Escapes in the type take the long way.
    assert_eq!(shallow(r#"{"type":"assist\u0061nt","uuid":"u"}"#).kind, "assistant");
}

#[test]
fn a_line_without_a_type_has_no_envelope() {
    for line in ["", "[]", "5", "{}", r#"{"type":5}"#, "not json", r#"{"type":"result""#] {
        assert!(Envelope::read(line.as_bytes()).is_err(), "{line}");
    }
}

/// The envelope of a line that a framer with this limit gives up.
fn oversized(line: &str, check: impl FnOnce(&Envelope<'_>)) {
    let mut framer = Framer::new(1024);
    framer.push(line.as_bytes());
    framer.push(b"\n");
    let Some(Frame::Oversized(oversized)) = framer.next_frame() else { panic!("{line}") };
    check(&Envelope::of_oversized(&oversized));
}

#[test]
fn ends_of_an_oversized_line_identify_it() {
    let long = "x".repeat(5000);
    oversized(
        &format!(
            r#"{{"type":"control_request","request_id":"r","request":{{"subtype":"can_use_tool","input":{{"a":"{long}"}}}}}}"#
        ),
        |envelope| {
            assert_eq!(envelope.kind, "control_request");
            assert_eq!(envelope.request_id.as_deref(), Some("r"));
            assert_eq!(envelope.subtype.as_deref(), Some("can_use_tool"));
        },
    );
    oversized(
        &format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"r","response":{{"a":"{long}"}}}}}}"#
        ),
        |envelope| {
            assert_eq!(envelope.kind, "control_response");
            assert_eq!(envelope.request_id.as_deref(), Some("r"));
        },
    );
    // The type of a result comes behind its text.
    oversized(
        &format!(
            r#"{{"duration_ms":5,"result":"{long}","type":"result","user_message_uuids":["m"],"is_error":true,"usage":{{"type":"inner"}},"uuid":"u"}}"#
        ),
        |envelope| {
            assert_eq!(envelope.kind, "result");
            assert!(envelope.is_error);
            assert_eq!(envelope.user_messages, ["m"]);
            assert_eq!(envelope.uuid.as_deref(), Some("u"));
        },
    );
    oversized(&format!("[\"{long}\"]"), |envelope| assert_eq!(envelope.kind, ""));
}
