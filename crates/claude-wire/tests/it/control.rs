//! Control frames: what the host sends, and what it makes of broken frames of the CLI.

use claude_wire::control::{
    CanUseTool, CliRequest, ControlCancel, ControlOutcome, ControlResponse, HookMatcher,
    HookOutput, HookPermission, HostControlRequest, HostRequest, Initialize, McpResponse,
    PermissionAllow, PermissionDeny, PermissionResponse, PreToolUseOutput, SetModel,
};
use claude_wire::id::{MessageId, RequestId, SessionId};
use claude_wire::message::{Priority, UserMessage};
use claude_wire::{FromCli, FromHost, Json};
use expect_test::{Expect, expect};
use serde_json::json;

fn check(frame: &FromHost, expected: &Expect) {
    let line = frame.encode().unwrap();
    let text = std::str::from_utf8(&line).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "one line: {text}");
    expected.assert_eq(text);
    assert_eq!(&FromHost::decode(text.trim_end().to_owned()).unwrap(), frame);
}

#[test]
fn prompt_is_encoded_as_the_cli_expects() {
    let mut prompt = UserMessage::prompt("two\nlines");
    prompt.session_id = Some(SessionId::from(""));
    prompt.uuid = Some(MessageId::from("u-1"));
    prompt.priority = Some(Priority::Next);
    check(
        &FromHost::User(Box::new(prompt)),
        &expect![[r#"
            {"type":"user","message":{"role":"user","content":"two\nlines"},"parent_tool_use_id":null,"session_id":"","uuid":"u-1","priority":"next"}
        "#]],
    );
}

#[test]
fn handshake_contains_matchers_and_callback_ids() {
    let mut initialize = Initialize::default();
    let hooks = [(
        "PreToolUse".to_owned(),
        vec![
            HookMatcher::new(Some("Bash".to_owned()), ["hook_0"]),
            HookMatcher::new(None, ["hook_1", "hook_2"]),
        ],
    )];
    initialize.hooks = Some(hooks.into());
    let request = HostRequest::Initialize(Box::new(initialize));
    check(
        &FromHost::Request(Box::new(HostControlRequest::new("req_1_00000000", request))),
        &expect![[r#"
            {"type":"control_request","request_id":"req_1_00000000","request":{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0"]},{"matcher":null,"hookCallbackIds":["hook_1","hook_2"]}]}}}
        "#]],
    );
}

#[test]
fn a_handshake_without_hooks_has_no_hooks_field() {
    let request = HostRequest::Initialize(Box::default());
    check(
        &FromHost::Request(Box::new(HostControlRequest::new("r", request))),
        &expect![[r#"
            {"type":"control_request","request_id":"r","request":{"subtype":"initialize"}}
        "#]],
    );
}

#[test]
fn resetting_the_model_writes_null() {
    let request = HostRequest::SetModel(SetModel::default());
    check(
        &FromHost::Request(Box::new(HostControlRequest::new("r", request))),
        &expect![[r#"
            {"type":"control_request","request_id":"r","request":{"subtype":"set_model","model":null}}
        "#]],
    );
}

#[test]
fn responses_of_hooks_permissions_and_servers_use_the_wire_names() {
    let mut specific = PreToolUseOutput::default();
    specific.permission_decision = Some(HookPermission::Deny);
    specific.permission_decision_reason = Some("not here".to_owned());
    let mut output = HookOutput::default();
    output.continue_ = Some(false);
    output.stop_reason = Some("enough".to_owned());
    output.specific = Some(specific.into());
    let answers = [
        Json::from_serialize(&output).unwrap(),
        Json::from_serialize(&PermissionResponse::from(PermissionAllow::with_input(
            json!({"a": 1}),
        )))
        .unwrap(),
        Json::from_serialize(&PermissionResponse::from(PermissionDeny::because("no"))).unwrap(),
        Json::from_serialize(&McpResponse::new(json!({"jsonrpc": "2.0", "id": 0, "result": {}})))
            .unwrap(),
    ];
    let lines: String = answers
        .into_iter()
        .map(|answer| FromHost::Response(Box::new(ControlResponse::success("r", answer))))
        .map(|frame| String::from_utf8(frame.encode().unwrap().to_vec()).unwrap())
        .collect();
    expect![[r#"
        {"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"continue":false,"stopReason":"enough","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"not here"}}}}
        {"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedInput":{"a":1}}}}
        {"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"deny","message":"no"}}}
        {"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"mcp_response":{"id":0,"jsonrpc":"2.0","result":{}}}}}
    "#]]
    .assert_eq(&lines);
}

#[test]
fn error_responses_and_cancellations_name_their_request() {
    check(
        &FromHost::Response(Box::new(ControlResponse::error("r-1", "no such \"thing\""))),
        &expect![[r#"
            {"type":"control_response","response":{"subtype":"error","request_id":"r-1","error":"no such \"thing\""}}
        "#]],
    );
    check(
        &FromHost::Cancel(ControlCancel::new("r-2")),
        &expect![[r#"
            {"type":"control_cancel_request","request_id":"r-2"}
        "#]],
    );
}

#[test]
fn a_payload_with_line_breaks_stays_one_line() {
    let pretty = Json::from_text("{\r\n  \"a\": \"x\\ny\"\n}").unwrap();
    let frame = FromHost::Response(Box::new(ControlResponse::success("r", pretty)));
    let line = frame.encode().unwrap();
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(!line.contains(&b'\r'));
    let FromHost::Response(answer) = FromHost::decode(line.slice(..line.len() - 1)).unwrap() else {
        panic!()
    };
    let ControlOutcome::Success(success) = answer.response else { panic!() };
    let value: serde_json::Value = success.response.unwrap().deserialize().unwrap();
    assert_eq!(value, json!({"a": "x\ny"}));
}

#[test]
fn the_id_of_a_response_is_found_inside_or_outside() {
    let id = |line: &str| match FromCli::decode(line.to_owned()).unwrap() {
        FromCli::Response(response) => response.request_id().map(RequestId::to_string).unwrap(),
        other => panic!("{other:?}"),
    };
    let inside = r#"{"type":"control_response","response":{"subtype":"success","request_id":"in"},"request_id":"out"}"#;
    let outside =
        r#"{"type":"control_response","response":{"subtype":"success"},"request_id":"out"}"#;
    let odd = r#"{"type":"control_response","request_id":"out","response":{"subtype":"perhaps"}}"#;
    assert_eq!(id(inside), "in");
    assert_eq!(id(outside), "out");
    assert_eq!(id(odd), "out");
}

fn request(body: &str) -> CliRequest {
    let line = format!(r#"{{"type":"control_request","request_id":"r-9","request":{body}}}"#);
    match FromCli::decode(line).unwrap() {
        FromCli::Request(frame) => {
            assert_eq!(frame.request_id, "r-9");
            frame.request
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_that_lacks_a_field_keeps_its_id_and_names_the_field() {
    for (body, field) in [
        (r#"{"subtype":"can_use_tool","input":{}}"#, "tool_name"),
        (r#"{"subtype":"hook_callback","input":{"hook_event_name":"Stop"}}"#, "callback_id"),
        (r#"{"subtype":"mcp_message","server_name":"s"}"#, "message"),
    ] {
        match request(body) {
            CliRequest::Undecodable(undecodable) => {
                assert!(undecodable.reason.contains(field), "{body}: {}", undecodable.reason);
            }
            other => panic!("{body}: {other:?}"),
        }
    }
}

#[test]
fn a_request_without_a_body_that_can_be_read_keeps_its_id() {
    for body in ["{}", "[]", "null", "5", r#"{"subtype":7}"#] {
        assert!(matches!(request(body), CliRequest::Undecodable(_)), "{body}");
    }
}

#[test]
fn a_request_of_an_unknown_subtype_keeps_its_fields() {
    let CliRequest::Unknown(unknown) = request(r#"{"subtype":"make_coffee","sugar":2}"#) else {
        panic!()
    };
    assert_eq!(unknown.kind, "make_coffee");
    assert_eq!(unknown.fields.get("sugar").unwrap().text(), "2");
}

#[test]
fn a_permission_request_is_typed() {
    let body = r#"{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"permission_suggestions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}],"tool_use_id":"t"}"#;
    let CliRequest::CanUseTool(request) = request(body) else { panic!() };
    let CanUseTool { tool_name, permission_suggestions, .. } = *request;
    assert_eq!(tool_name, "Bash");
    assert_eq!(permission_suggestions[0].kind(), Some("setMode"));
}

#[test]
fn lone_surrogates_in_a_control_frame_are_repaired() {
    let body = r#"{"subtype":"can_use_tool","tool_name":"T \ud83d","input":{"x":"\ud83d"}}"#;
    let CliRequest::CanUseTool(request) = request(body) else { panic!() };
    assert_eq!(request.tool_name, "T \u{fffd}");
}
