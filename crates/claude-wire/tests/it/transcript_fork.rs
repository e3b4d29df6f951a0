//! Forks: the copy of a session under new ids.

use claude_wire::transcript::{Entry, Fork, ForkIds, TranscriptError};
use serde_json::{Value, json};

use super::transcript_lines::*;

/// The lines of a fork, as JSON.
fn fork(lines: &[String], up_to: Option<&str>) -> Vec<Value> {
    let bytes = transcript(lines);
    let index = index(&bytes);
    let plan = index.tree().fork(up_to).unwrap();
    let mut next = 0_u8;
    let mut fork = Fork::new(&plan, ForkIds::new("s", "n", "now"), || {
        next += 1;
        [next; 16]
    });
    for entry in plan.state_entries() {
        fork.carry(entry, bytes_of(&bytes, entry));
    }
    let mut text = fork.header();
    for entry in plan.entries() {
        text.extend(fork.entry(entry, bytes_of(&bytes, entry)).unwrap());
    }
    text.extend(fork.trailer("Title").unwrap());
    text.split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

/// The old ids of the entries that a fork has.
fn forked(lines: &[String], up_to: &str) -> String {
    let copies = fork(lines, Some(up_to));
    let old = |copy: &Value| copy["forkedFrom"]["messageUuid"].as_str().map(str::to_owned);
    copies.iter().filter_map(old).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_fork_has_new_ids_and_says_where_it_comes_from() {
    let mut first = json!({"slug": "x", "teamName": null, "custom": [1], "timestamp": "then"});
    first["turnAttributionKey"] = json!("k");
    let lines = [
        entry("user", "u1", None, first),
        entry("progress", "p", Some("u1"), json!({})),
        assistant("a1", "p", "m1"),
        entry("user", "side", Some("a1"), json!({"isSidechain": true})),
        entry("user", "u2", Some("gone"), json!({"timestamp": "then"})),
    ];
    let copies = fork(&lines, None);
    assert_eq!(copies.len(), 4);
    let (u1, a1, u2, title) = (&copies[0], &copies[1], &copies[2], &copies[3]);
    assert_eq!(u1["custom"], json!([1]));
    assert_eq!(u1["timestamp"], "then");
    for dropped in ["slug", "teamName", "turnAttributionKey"] {
        assert!(u1.get(dropped).is_none(), "{dropped}");
    }
    assert_eq!(u1["forkedFrom"], json!({"sessionId": "s", "messageUuid": "u1"}));
    assert_eq!(a1["parentUuid"], u1["uuid"]);
    assert_eq!(u2["parentUuid"], Value::Null);
    assert_eq!(u2["timestamp"], "now");
    assert_eq!(title["customTitle"], "Title");
    assert_eq!((&title["sessionId"], &title["timestamp"]), (&json!("n"), &json!("now")));
    let text = u1.to_string();
    assert_eq!(Entry::decode(text).unwrap().kind(), "user");
}

#[test]
fn responses_keep_the_session_that_sent_their_request() {
    let earlier = json!({"requestSessionId": "first", "forkedFrom": {"sessionId": "second"}});
    let lines = [
        entry("user", "u1", None, json!({"requestSessionId": "first"})),
        assistant("a1", "u1", "m1"),
        entry("assistant", "a2", Some("a1"), json!({"forkedFrom": {"sessionId": "second"}})),
        entry("assistant", "a3", Some("a2"), earlier),
        entry("assistant", "a4", Some("a3"), json!({"requestSessionId": 1, "forkedFrom": "x"})),
    ];
    let sessions: Vec<Value> =
        fork(&lines, None).iter().map(|copy| copy["requestSessionId"].clone()).collect();
    assert_eq!(json!(sessions), json!([null, "s", "second", "first", "s", null]));
}

#[test]
fn ids_inside_of_entries_are_mapped() {
    let metadata = json!({
        "trigger": "auto", "runningTurnSends": [1],
        "preservedMessages": {"anchorUuid": "sum", "uuids": ["u1"], "allUuids": ["u1", "lost"]},
        "preservedSegment": {"headUuid": "u1", "anchorUuid": "sum", "tailUuid": "u1"},
    });
    let announced = json!({"type": "deferred_tools_record", "nameOnlyAnnouncements": ["u1", "x"]});
    let lines = [
        user("u1", None),
        boundary("b", "u1", metadata),
        user("sum", Some("b")),
        queued("q", "sum", json!({"source_uuid": "u1"})),
        entry("attachment", "d", Some("q"), json!({"attachment": announced})),
        entry("system", "f", Some("d"), json!({"subtype": "model_refusal_fallback"})),
    ];
    let copies = fork(&lines, None);
    let id = |at: usize| copies[at]["uuid"].clone();
    let boundary = &copies[1];
    assert_eq!(boundary["logicalParentUuid"], id(0));
    let metadata = &boundary["compactMetadata"];
    assert_eq!(metadata["trigger"], "auto");
    assert!(metadata.get("runningTurnSends").is_none());
    assert_eq!(metadata["preservedMessages"]["anchorUuid"], id(2));
    assert_eq!(metadata["preservedMessages"]["allUuids"], json!([id(0), "lost"]));
    assert_eq!(metadata["preservedSegment"]["tailUuid"], id(0));
    assert_eq!(copies[3]["attachment"]["source_uuid"], id(0));
    assert_eq!(copies[4]["attachment"]["nameOnlyAnnouncements"], json!([id(0)]));
    assert_eq!(copies[5]["neutralizedByFork"], true);
}

#[test]
fn a_fork_up_to_a_message_ends_there() {
    let lines = [
        user("u1", None),
        assistant("a1", "u1", "m1"),
        queued("q", "a1", json!({"source_uuid": "host"})),
        assistant("a2", "q", "m2"),
        user("u2", Some("a2")),
    ];
    assert_eq!(forked(&lines, "a1"), "u1 a1");
    assert_eq!(forked(&lines, "host"), "u1 a1 q");
    let bytes = transcript(&lines);
    let index = index(&bytes);
    let error = index.tree().fork(Some("lost")).unwrap_err();
    assert_eq!(error, TranscriptError::MessageNotFound("lost".to_owned()));
    assert_eq!(error.to_string(), "message \"lost\" is not in the session");
}

#[test]
fn branches_that_would_be_chosen_are_left_out() {
    let lines = [
        user("u1", None),
        assistant("a1", "u1", "m1"),
        user("other", Some("u1")),
        assistant("other2", "other", "m2"),
        user("u2", Some("a1")),
        assistant("later", "other2", "m3"),
    ];
    assert_eq!(forked(&lines, "u2"), "u1 a1 other other2 u2");
    // The id of an entry before the other branch in the chain, but after it in the file.
    let crossed = [
        user("u1", None),
        assistant("a1", "u1", "m1"),
        user("other", Some("a1")),
        entry("system", "end", Some("a1"), json!({"subtype": "note"})),
    ];
    assert_eq!(forked(&crossed, "end"), "u1 a1 other end");
}

#[test]
fn a_compaction_at_the_end_is_cut_off() {
    let kept = json!({"preservedMessages": {"anchorUuid": "sum", "uuids": ["a1"]}});
    let lines = [
        user("u1", None),
        assistant("a1", "u1", "m1"),
        boundary("b", "a1", kept),
        user("sum", Some("b")),
        user("u2", Some("sum")),
    ];
    assert_eq!(forked(&lines, "b"), "u1 a1");
    let copies = fork(&lines, Some("sum"));
    assert!(copies[2]["compactMetadata"].get("preservedMessages").is_none());
}

#[test]
fn state_is_carried_over() {
    let lines = [
        r#"{"type":"history-suppression","cause":"x"}"#.to_owned(),
        user("u1", None),
        r#"{"type":"content-replacement","sessionId":"s","replacements":[{"a":1},5]}"#.to_owned(),
        r#"{"type":"content-replacement","sessionId":"other","replacements":[{"b":1}]}"#.to_owned(),
        r#"{"type":"atis-latch","sessionId":"s","atis":"x"}"#.to_owned(),
        r#"{"type":"tools-used","sessionId":"s","tools":["Bash","",4]}"#.to_owned(),
        r#"{"type":"data-flow-records","v":1,"sessionId":"s","records":[{"r":1}]}"#.to_owned(),
        r#"{"type":"data-flow-incomplete","v":1,"sessionId":"s"}"#.to_owned(),
        r#"{"type":"relocated","sessionId":"s","relocatedCwd":"/new"}"#.to_owned(),
        r#"{"type":"tag","tag":"not carried","sessionId":"s"}"#.to_owned(),
    ];
    let copies = fork(&lines, None);
    let kinds: Vec<&str> = copies.iter().map(|copy| copy["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
        [
            "history-suppression",
            "user",
            "content-replacement",
            "atis-latch",
            "tools-used",
            "data-flow-incomplete",
            "data-flow-records",
            "derived-from",
            "relocated",
            "custom-title",
        ]
    );
    assert_eq!(copies[2]["replacements"], json!([{"a": 1}]));
    assert_eq!(copies[4]["tools"], json!(["Bash"]));
    assert_eq!(copies[7]["sessions"][0]["id"], "s");
    assert!(copies.iter().all(|copy| copy["sessionId"] == "n"));
}

#[test]
fn a_session_without_messages_cannot_be_forked() {
    for lines in [
        vec![],
        vec![entry("user", "u", None, json!({"isSidechain": true}))],
        vec![entry("progress", "p", None, json!({}))],
        vec![json!({"type": "tag", "tag": "x"}).to_string()],
    ] {
        let bytes = transcript(&lines);
        let index = index(&bytes);
        assert_eq!(index.tree().fork(None).unwrap_err(), TranscriptError::NoMessages);
    }
}

#[test]
fn data_flows_are_incomplete_after_a_compaction() {
    let records = |snapshot: bool| {
        json!({"type": "data-flow-records", "v": 1, "sessionId": "s", "records": [], "snapshot": snapshot})
            .to_string()
    };
    let kinds = |lines: &[String]| -> Vec<String> {
        let lines = fork(lines, None);
        lines.iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect()
    };
    let incomplete = "data-flow-incomplete".to_owned();
    let recorded = json!({"dataFlowOn": true});
    let next = entry("user", "u2", Some("b"), recorded);
    let more =
        json!({"subtype": "compact_boundary", "logicalParentUuid": "u1", "dataFlowOn": true});
    let compaction = entry("system", "b", None, more);
    let compacted = [user("u1", None), records(false), compaction, next];
    assert!(kinds(&compacted).contains(&incomplete));
    let with_snapshot = [&compacted[..], &[records(true)]].concat();
    assert!(!kinds(&with_snapshot).contains(&incomplete));
    assert!(!kinds(&compacted[..2]).contains(&incomplete));
    // While they were not recorded.
    let unrecorded = [&with_snapshot[..], &[user("u3", Some("u2"))]].concat();
    assert!(kinds(&unrecorded).contains(&incomplete));
}

#[test]
fn a_fork_names_the_sessions_that_its_entries_come_from() {
    let from = |id: &str, parent: Option<&str>, origin: &str| {
        entry("user", id, parent, json!({"forkedFrom": {"sessionId": origin}}))
    };
    let records = json!({"type": "data-flow-records", "v": 1, "sessionId": "s", "records": []});
    let lines = [
        from("u1", None, "first"),
        from("u2", Some("u1"), "first"),
        from("u3", Some("u2"), "second"),
        records.to_string(),
    ];
    let copies = fork(&lines, None);
    let derived = copies.iter().find(|copy| copy["type"] == "derived-from").unwrap();
    let sessions = derived["sessions"].as_array().unwrap();
    let ids: Vec<&str> = sessions.iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["first", "second", "s"]);
}
