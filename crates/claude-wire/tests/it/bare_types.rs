//! Of a message only its `type` is required: one line with nothing else per type.

use std::collections::BTreeSet;

use claude_wire::message::SystemMessage;
use claude_wire::{Body, FromCli};
use serde_json::Value;

fn bare_lines() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus/bare_types.ndjson");
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_message_with_nothing_but_its_type_decodes_as_that_type() {
    for line in bare_lines() {
        let original: Value = serde_json::from_str(&line).unwrap();
        assert!(
            original.as_object().unwrap().keys().all(|key| key == "type" || key == "subtype"),
            "{line}"
        );
        let message = match FromCli::decode(line.clone()) {
            Ok(FromCli::Message(message)) => message,
            Ok(FromCli::KeepAlive(_) | FromCli::TranscriptMirror(_)) => continue,
            // A control frame that names no request is of no use to anybody.
            Err(_) if line.contains("control_") => continue,
            other => panic!("{line}: {other:?}"),
        };
        assert!(
            !matches!(message.body, Body::Unknown(_) | Body::Undecodable(_)),
            "{line}: {message:?}"
        );
        if let Body::System(SystemMessage::Unknown(unknown)) = &message.body {
            assert_eq!(unknown.kind, "", "{line}");
        }
        let written: Value =
            serde_json::from_str(&serde_json::to_string(&message.body).unwrap()).unwrap();
        let written = written.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
        assert_eq!(written.count(), original.as_object().unwrap().len(), "{line}");
    }
}

#[test]
fn there_is_a_bare_line_for_every_typed_message() {
    let lines: BTreeSet<String> = bare_lines()
        .iter()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap();
            let subtype = value["subtype"].as_str().map(|subtype| format!("/{subtype}"));
            format!("{}{}", value["type"].as_str().unwrap(), subtype.unwrap_or_default())
        })
        .collect();
    for kind in Body::KNOWN.iter().filter(|kind| **kind != "system") {
        assert!(lines.contains(*kind), "no bare line for {kind}");
    }
    for subtype in SystemMessage::KNOWN {
        assert!(lines.contains(&format!("system/{subtype}")), "no bare line for {subtype}");
    }
}
