//! Every rule on every line that the real CLI was seen to write.

use std::collections::BTreeSet;

use claude_wire::control::{
    CliControlRequest, CliRequest, ContextUsage, ControlOutcome, InitializeResponse,
    InterruptResponse, McpStatusResponse,
};
use claude_wire::hook_input::HookInput;
use claude_wire::{Body, Envelope, Framer, FromCli, FromHost, Message};
use serde::Serialize;
use serde_json::Value;

use crate::recording::{RecordedLine, corpus};

/// Lines that a scenario sends or provokes in order to see what happens.
const BROKEN_ON_PURPOSE: &[&str] =
    &["flat_user_frame", "garbage_on_stdin", "unknown_frame_on_stdin"];

fn lines_of_the_cli() -> impl Iterator<Item = RecordedLine> {
    corpus().into_iter().flat_map(|recorded| recorded.from_cli)
}

#[test]
fn every_recording_names_version_date_and_scenario() {
    for recorded in corpus() {
        let header: Value = serde_json::from_str(&recorded.header).unwrap();
        assert_eq!(header["scenario"], recorded.name.as_str());
        for field in ["cli_version", "date", "about"] {
            assert!(
                header[field].as_str().is_some_and(|text| !text.is_empty()),
                "{}: {field}",
                recorded.name
            );
        }
    }
}

#[test]
fn every_line_decodes_and_keeps_its_bytes() {
    for line in lines_of_the_cli() {
        match FromCli::decode(line.bytes.clone()) {
            Ok(FromCli::Message(message)) => {
                assert!(
                    message.undecodable().is_none(),
                    "{}: {:?}",
                    line.place,
                    message.undecodable()
                );
                assert_eq!(message.raw(), &line.bytes, "{}", line.place);
                assert!(!format!("{:?}", message.body).contains("Undecodable"), "{}", line.place);
            }
            Ok(FromCli::Request(request)) => assert_decoded(&request, &line),
            Ok(_) => {}
            Err(malformed) => panic!("{}: {malformed}", line.place),
        }
    }
}

fn assert_decoded(request: &CliControlRequest, line: &RecordedLine) {
    let debug = format!("{:?}", request.request);
    assert!(!debug.contains("Undecodable"), "{}: {debug}", line.place);
}

#[test]
fn encoding_a_body_keeps_everything_but_nulls() {
    for line in lines_of_the_cli() {
        match FromCli::decode(line.bytes.clone()).unwrap() {
            FromCli::Message(message) => {
                if message.repaired() {
                    continue;
                }
                assert_same_json(&message.body, &line);
                // The message itself writes its line to the letter.
                assert_eq!(serde_json::to_vec(&message).unwrap(), line.bytes, "{}", line.place);
            }
            FromCli::Request(frame) => assert_same_json(&frame, &line),
            FromCli::Response(frame) => assert_same_json(&frame, &line),
            FromCli::Cancel(frame) => assert_same_json(&frame, &line),
            FromCli::KeepAlive(frame) => assert_same_json(&frame, &line),
            FromCli::TranscriptMirror(frame) => assert_same_json(&frame, &line),
            other => panic!("{}: {other:?}", line.place),
        }
    }
}

#[test]
fn every_line_of_the_host_round_trips() {
    for recorded in corpus() {
        if BROKEN_ON_PURPOSE.contains(&recorded.name.as_str()) {
            continue;
        }
        for line in recorded.from_host {
            let frame = FromHost::decode(line.bytes.clone())
                .unwrap_or_else(|malformed| panic!("{}: {malformed}", line.place));
            assert_same_json(&frame, &line);
            let encoded = frame.encode().unwrap();
            let again = FromHost::decode(encoded.slice(..encoded.len() - 1)).unwrap();
            assert_eq!(again, frame, "{}", line.place);
        }
    }
}

fn assert_same_json(written: &impl Serialize, line: &RecordedLine) {
    let text = serde_json::to_string(written).unwrap();
    let mut written: Value = serde_json::from_str(&text).unwrap();
    let mut original: Value = serde_json::from_slice(&line.bytes).unwrap();
    without_nulls(&mut written);
    without_nulls(&mut original);
    assert_eq!(written, original, "{}", line.place);
}

/// Absent and null may be exchanged, nothing else.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(entries) => entries.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[test]
fn the_envelope_agrees_with_the_decoded_message() {
    for line in lines_of_the_cli() {
        let original: Value = match serde_json::from_slice(&line.bytes) {
            Ok(original) => original,
            Err(_) => continue,
        };
        let kind = original["type"].as_str().unwrap();
        assert_eq!(Envelope::read(&line.bytes).unwrap().kind, kind, "{}", line.place);
        let envelope = Envelope::read_fields(&line.bytes).unwrap();
        assert_eq!(envelope.kind, kind, "{}", line.place);
        assert_eq!(envelope.uuid.as_deref(), original["uuid"].as_str(), "{}", line.place);
        assert_eq!(envelope.is_error, original["is_error"] == true, "{}", line.place);
        let id = original["response"]["request_id"].as_str().or(original["request_id"].as_str());
        assert_eq!(envelope.request_id.as_deref(), id, "{}", line.place);
        let uuids: Vec<_> = match original["user_message_uuids"].as_array() {
            Some(uuids) => uuids.iter().filter_map(Value::as_str).collect(),
            None => original["user_message_uuid"].as_str().into_iter().collect(),
        };
        assert_eq!(envelope.user_messages, uuids, "{}", line.place);
    }
}

#[test]
fn typed_responses_name_every_recorded_field() {
    for recorded in corpus() {
        let mut asked = std::collections::HashMap::new();
        for line in &recorded.from_host {
            if let Ok(FromHost::Request(frame)) = FromHost::decode(line.bytes.clone()) {
                asked.insert(frame.request_id.clone(), frame.request.kind().unwrap().to_owned());
            }
        }
        for line in &recorded.from_cli {
            let Ok(FromCli::Response(frame)) = FromCli::decode(line.bytes.clone()) else {
                continue;
            };
            let ControlOutcome::Success(success) = &frame.response else { continue };
            let Some(answer) = &success.response else { continue };
            let kind = frame.request_id().and_then(|id| asked.get(id)).map(String::as_str);
            match kind {
                Some("initialize") => {
                    let answer: InitializeResponse = answer.deserialize().unwrap();
                    assert!(!answer.commands.is_empty(), "{}", line.place);
                    assert!(!answer.models.is_empty(), "{}", line.place);
                }
                Some("interrupt") => {
                    let answer: InterruptResponse = answer.deserialize().unwrap();
                    assert!(!answer.still_queued.is_absent(), "{}", line.place);
                }
                Some("mcp_status") => {
                    let answer: McpStatusResponse = answer.deserialize().unwrap();
                    assert!(!answer.mcp_servers.is_absent(), "{}", line.place);
                }
                Some("get_context_usage") => {
                    let answer: ContextUsage = answer.deserialize().unwrap();
                    assert!(answer.total_tokens.is_some(), "{}", line.place);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn the_corpus_shows_what_the_types_are_for() {
    let mut seen = BTreeSet::new();
    for line in lines_of_the_cli() {
        match FromCli::decode(line.bytes).unwrap() {
            FromCli::Message(message) => {
                seen.insert(message.body.kind().unwrap().to_owned());
                if let Body::System(system) = &message.body {
                    seen.insert(format!("system/{}", system.kind().unwrap()));
                }
            }
            FromCli::Request(frame) => {
                seen.insert(format!("request/{}", frame.request.kind().unwrap()));
                if let CliRequest::HookCallback(callback) = &frame.request {
                    let input: HookInput = callback.input.deserialize().unwrap();
                    assert!(!matches!(input, HookInput::Undecodable(_)), "{}", line.place);
                    seen.insert(format!("hook/{}", input.kind().unwrap()));
                }
            }
            FromCli::Cancel(_) => {
                seen.insert("cancel".to_owned());
            }
            _ => {}
        }
    }
    for expected in [
        "assistant",
        "user",
        "result",
        "stream_event",
        "command_lifecycle",
        "system/init",
        "system/session_state_changed",
        "system/status",
        "system/task_started",
        "system/task_notification",
        "system/api_retry",
        "system/informational",
        "request/can_use_tool",
        "request/hook_callback",
        "request/mcp_message",
        "hook/PreToolUse",
        "hook/PostToolUse",
        "hook/PostToolUseFailure",
        "hook/UserPromptSubmit",
        "hook/Stop",
        "hook/SubagentStart",
        "hook/SubagentStop",
        "hook/PermissionRequest",
        "cancel",
    ] {
        assert!(seen.contains(expected), "no recording shows {expected}; seen: {seen:#?}");
    }
    let unknown: Vec<_> =
        HookInput::KNOWN.iter().filter(|event| !seen.contains(&format!("hook/{event}"))).collect();
    println!("typed hook events that no recording shows: {unknown:?}");
    println!("{seen:#?}");
}

#[test]
fn lone_surrogates_are_repaired_and_reported() {
    let repaired: Vec<_> = lines_of_the_cli()
        .filter_map(|line| Message::decode(line.bytes).ok())
        .filter(Message::repaired)
        .collect();
    let texts: Vec<_> = repaired
        .iter()
        .filter_map(|message| match &message.body {
            Body::Assistant(assistant) => Some(assistant.text()),
            _ => None,
        })
        .collect();
    assert!(texts.iter().any(|text| text.contains('\u{fffd}')), "{texts:?}");
}

#[test]
fn stream_split_anywhere_yields_the_same_lines() {
    let recorded = corpus().into_iter().find(|one| one.name == "partial_messages").unwrap();
    let mut stream = Vec::new();
    for line in &recorded.from_cli {
        stream.extend_from_slice(&line.bytes);
        stream.push(b'\n');
    }
    for size in [1, 7, 64, 4096, stream.len()] {
        let mut framer = Framer::default();
        let mut lines = Vec::new();
        for chunk in stream.chunks(size) {
            framer.push(chunk);
            while let Some(claude_wire::Frame::Line(line)) = framer.next_frame() {
                lines.push(line);
            }
        }
        let expected: Vec<_> = recorded.from_cli.iter().map(|line| &line.bytes[..]).collect();
        assert_eq!(lines, expected, "chunks of {size}");
    }
}
