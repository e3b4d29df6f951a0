//! Lines that no CLI should write: each has its outcome, none panics, none is lost.

use std::collections::BTreeMap;

use bytes::Bytes;
use claude_wire::launch::Problems;
use claude_wire::message::SystemMessage;
use claude_wire::transcript::{TranscriptError, title_line};
use claude_wire::{Body, Envelope, FromCli, Json, Malformed, Message};

/// What becomes of a line.
#[derive(Debug, PartialEq)]
enum Outcome {
    Typed,
    Repaired,
    Unknown,
    Undecodable,
    Malformed(String),
}

fn outcome(line: &[u8]) -> Outcome {
    match Message::decode(line.to_vec()) {
        Err(malformed) => {
            assert_eq!(malformed.line, line, "the bytes are kept");
            Outcome::Malformed(malformed.reason)
        }
        Ok(message) => {
            assert_eq!(message.raw(), line, "the bytes are kept");
            match &message.body {
                Body::Unknown(_) | Body::System(SystemMessage::Unknown(_)) => Outcome::Unknown,
                Body::Undecodable(_) => Outcome::Undecodable,
                _ if message.repaired() => Outcome::Repaired,
                _ => Outcome::Typed,
            }
        }
    }
}

fn malformed(line: &[u8], reason: &str) {
    match outcome(line) {
        Outcome::Malformed(told) => {
            assert!(told.contains(reason), "{}: {told}", line.escape_ascii());
        }
        other => panic!("{}: {other:?}", line.escape_ascii()),
    }
}

#[test]
fn a_line_that_is_not_json_is_malformed() {
    malformed(b"hello", "expected value");
    malformed(b"{\"type\":\"assistant\"", "EOF");
    malformed(b"{\"type\":\"assistant\"} trailing", "trailing characters");
    malformed(b"{'type':'assistant'}", "key must be a string");
    malformed(b"{\"type\":\"result\",\"n\":01}", "");
    malformed(b"\x00", "");
    malformed(b"", "");
}

#[test]
fn line_without_a_string_type_is_malformed() {
    malformed(b"[]", "object");
    malformed(b"42", "object");
    malformed(b"\"assistant\"", "object");
    malformed(b"null", "object");
    malformed(b"{}", "an object without `type`");
    malformed(b"{\"Type\":\"assistant\"}", "without `type`");
    malformed(b"{\"type\":null}", "");
    malformed(b"{\"type\":5,\"subtype\":\"init\"}", "");
    malformed(b"{\"x\":1,\"type\":{}}", "is not a string");
}

#[test]
fn bytes_that_are_not_utf8_are_repaired_and_told() {
    let line = b"{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"a\xff\xfeb\"}]}}";
    let message = Message::decode(line.to_vec()).unwrap();
    assert!(message.repaired());
    assert_eq!(message.raw_str(), None);
    assert_eq!(message.raw(), &line[..]);
    let Body::Assistant(assistant) = &message.body else { panic!("{message:?}") };
    assert_eq!(assistant.text(), "a\u{fffd}\u{fffd}b");
    malformed(b"\xff\xfe", "");
}

#[test]
fn lone_surrogates_are_repaired_and_reported() {
    for (text, expected) in [
        (r"\ud83d", "\u{fffd}"),
        (r"\ude00\ud83d", "\u{fffd}\u{fffd}"),
        (r"ok \ud83d\ude00 \ud83d.", "ok \u{1f600} \u{fffd}."),
    ] {
        let line = format!(r#"{{"type":"result","result":"{text}","is_error":true}}"#);
        let message = Message::decode(line).unwrap();
        assert!(message.repaired(), "{text}");
        let Body::Result(result) = &message.body else { panic!("{message:?}") };
        assert_eq!(result.result.as_deref(), Some(expected));
        assert!(result.is_error());
    }
    // A pair is no fault.
    assert_eq!(outcome(br#"{"type":"result","result":"\ud83d\ude00"}"#), Outcome::Typed);
}

#[test]
fn repair_and_isolation_work_together() {
    let line = br#"{"type":"assistant","message":{"content":[{"type":"text","text":"\ud83d"},{"type":"text"}]}}"#;
    let message = Message::decode(line.to_vec()).unwrap();
    assert!(message.repaired());
    let Body::Assistant(assistant) = &message.body else { panic!("{message:?}") };
    assert_eq!(assistant.text(), "\u{fffd}");
    assert_eq!(assistant.content().len(), 2);
}

#[test]
fn depth_is_irrelevant_in_opaque_values() {
    for depth in [200, 100_000] {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let payload = format!(
            r#"{{"type":"assistant","message":{{"content":[{{"type":"tool_use","id":"t","name":"N","input":{deep}}}]}}}}"#
        );
        assert_eq!(outcome(payload.as_bytes()), Outcome::Typed);
        let extra = format!(r#"{{"type":"result","new":{deep}}}"#);
        assert_eq!(outcome(extra.as_bytes()), Outcome::Typed);
        let unknown = format!(r#"{{"deep":{deep},"type":"new"}}"#);
        assert_eq!(outcome(unknown.as_bytes()), Outcome::Unknown);
        // Where a type is expected, depth is only one more thing that does not fit.
        let known = format!(r#"{{"type":"result","num_turns":{deep}}}"#);
        assert_eq!(outcome(known.as_bytes()), Outcome::Undecodable);
    }
}

#[test]
fn deep_tool_results_do_not_overflow_the_stack() {
    let mut content = String::from("\"end\"");
    for _ in 0..5_000 {
        content = format!(r#"[{{"type":"tool_result","tool_use_id":"t","content":{content}}}]"#);
    }
    let line = format!(r#"{{"type":"user","message":{{"content":{content}}}}}"#);
    let result = outcome(line.as_bytes());
    assert!(matches!(result, Outcome::Typed | Outcome::Undecodable), "{result:?}");
}

#[test]
fn number_of_any_size_is_accepted() {
    assert_eq!(outcome(br#"{"type":"result","new":1e400}"#), Outcome::Typed);
    assert_eq!(outcome(br#"{"type":"result","num_turns":1e400}"#), Outcome::Typed);
}

#[test]
fn a_known_type_with_wrong_fields_is_undecodable() {
    for line in [
        r#"{"type":"assistant","uuid":5}"#,
        r#"{"type":"result","is_error":"no"}"#,
        r#"{"type":"system","subtype":"init","tools":"Bash"}"#,
        r#"{"type":"stream_event","event":"x","uuid":{}}"#,
    ] {
        assert_eq!(outcome(line.as_bytes()), Outcome::Undecodable, "{line}");
        assert!(Envelope::read(line.as_bytes()).is_ok(), "{line}");
    }
    // Of a message only its type is required, also of a system message.
    assert_eq!(outcome(br#"{"type":"system"}"#), Outcome::Unknown);
    assert_eq!(outcome(br#"{"type":"system","subtype":5}"#), Outcome::Undecodable);
}

#[test]
fn control_frames_without_a_request_id_are_malformed() {
    for line in [
        r#"{"type":"control_request","request":{"subtype":"can_use_tool"}}"#,
        r#"{"type":"control_response","response":{"subtype":"success"}}"#,
        r#"{"type":"control_response"}"#,
        r#"{"type":"control_cancel_request"}"#,
    ] {
        let malformed = FromCli::decode(line).unwrap_err();
        assert_eq!(malformed.line, line.as_bytes());
        assert!(!malformed.reason.is_empty());
    }
}

/// The form in which `fn main() -> Result<…>` prints errors.
#[test]
fn debug_of_errors_is_their_text() {
    let decode = Json::from_text("{").unwrap_err();
    assert_eq!(format!("{decode:?}"), decode.to_string());
    let title = title_line("s", " ").unwrap_err();
    assert_eq!(format!("{title:?}"), title.to_string());
    let problems = Problems::one(&["model", "agent"], "the values contradict each other");
    assert_eq!(format!("{problems:?}"), "model and agent: the values contradict each other");
}

#[test]
fn invisible_characters_in_errors_are_escaped() {
    let hidden = "a\u{202e}\u{3164}\u{1b}[2K";
    let variant = BTreeMap::from([(hidden, 1)]);
    let texts = [
        Problems::one(&["cwd"], hidden).to_string(),
        Malformed::new(Bytes::new(), hidden).to_string(),
        TranscriptError::MessageNotFound(hidden.to_owned()).to_string(),
        Json::from_serialize(&variant)
            .unwrap()
            .deserialize::<Result<u8, u8>>()
            .unwrap_err()
            .to_string(),
    ];
    for text in texts {
        assert!(text.contains("a\\u{202e}\\u{3164}\\u{1b}[2K") && text.is_ascii(), "{text:?}");
    }
}
