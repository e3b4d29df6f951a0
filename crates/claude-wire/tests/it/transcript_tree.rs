//! The choice of the conversation, as the TypeScript SDK chooses it.

use claude_wire::transcript::{IssueKind, MessageFilter, MessageRole};
use serde_json::json;

use super::transcript_lines::*;

#[test]
fn a_linear_conversation_is_read_in_order() {
    let lines = [user("u1", None), assistant("a1", "u1", "m1"), user("u2", Some("a1"))];
    assert_eq!(conversation(&lines), "u1 a1 u2");
}

#[test]
fn the_newest_leaf_of_the_file_wins() {
    let lines = [
        user("u1", None),
        assistant("a1", "u1", "m1"),
        user("old", Some("a1")),
        assistant("old2", "old", "m2"),
        user("new", Some("a1")),
    ];
    assert_eq!(conversation(&lines), "u1 a1 new");
}

#[test]
fn the_leaf_is_the_nearest_message_above_a_terminal_entry() {
    let lines = [
        user("u1", None),
        assistant("a1", "u1", "m1"),
        entry("attachment", "x", Some("a1"), json!({"attachment": {"type": "date"}})),
        entry("system", "y", Some("x"), json!({"subtype": "note"})),
    ];
    assert_eq!(conversation(&lines), "u1 a1");
}

#[test]
fn sidechains_teams_progress_and_briefings_are_not_leaves() {
    for (kind, more) in [
        ("user", json!({"isSidechain": true})),
        ("user", json!({"teamName": "t"})),
        ("progress", json!({})),
        ("attachment", json!({"attachment": {"type": "fork_briefing"}})),
    ] {
        let lines = [
            user("u1", None),
            assistant("a1", "u1", "m1"),
            entry(kind, "x", Some("u1"), more.clone()),
        ];
        assert_eq!(conversation(&lines), "u1 a1", "{more}");
    }
}

#[test]
fn a_transcript_of_a_subagent_alone_still_has_a_conversation() {
    let lines = [
        entry("user", "u1", None, json!({"isSidechain": true})),
        entry("assistant", "a1", Some("u1"), json!({"isSidechain": true})),
    ];
    assert_eq!(conversation(&lines), "u1 a1");
    assert_eq!(messages(&lines), "");
    let transcript = transcript(&lines);
    assert_eq!(index(&transcript).tree().subagent_messages().len(), 2);
}

#[test]
fn among_leaves_of_last_resort_one_that_is_not_meta_wins() {
    let lines = [
        user("u1", Some("u1")),
        entry("user", "t1", None, json!({"teamName": "t"})),
        entry("progress", "p", Some("t1"), json!({})),
        entry("user", "s1", None, json!({"isSidechain": true})),
    ];
    // `u1` is its own parent, so it is no terminal.
    assert_eq!(conversation(&lines), "s1");
}

#[test]
fn a_chain_through_progress_entries_is_followed() {
    let lines = [
        user("u1", None),
        entry("progress", "p1", Some("u1"), json!({})),
        assistant("a1", "p1", "m1"),
    ];
    assert_eq!(conversation(&lines), "u1 p1 a1");
    assert_eq!(messages(&lines), "u1 a1");
}

#[test]
fn a_cycle_ends_the_chain() {
    let lines = [user("u1", Some("a2")), assistant("a1", "u1", "m"), user("a2", Some("a1"))];
    // Every entry has a child, so there is no leaf at all.
    assert_eq!(conversation(&lines), "");
    let with_leaf = [&lines[..], &[user("u3", Some("a2"))]].concat();
    assert_eq!(conversation(&with_leaf), "u1 a1 a2 u3");
}

#[test]
fn of_repeated_entries_the_last_value_counts() {
    let lines =
        [user("u1", None), user("u2", Some("u1")), assistant("a1", "u2", "m1"), user("u2", None)];
    assert_eq!(conversation(&lines), "u2 a1");
    let transcript = transcript(&lines);
    let index = index(&transcript);
    let issues = index.tree().issues();
    let repeated: Vec<_> =
        issues.iter().filter(|issue| issue.kind == IssueKind::Repeated).collect();
    assert_eq!(repeated.len(), 1);
    assert_eq!(repeated[0].offset, index.get(1).unwrap().offset());
}

#[test]
fn a_missing_parent_cuts_the_conversation_and_is_reported() {
    let lines = [user("u1", None), assistant("a1", "lost", "m1"), user("u2", Some("a1"))];
    assert_eq!(conversation(&lines), "a1 u2");
    let transcript = transcript(&lines);
    let kinds: Vec<_> = index(&transcript).tree().issues().iter().map(|issue| issue.kind).collect();
    assert_eq!(kinds, [IssueKind::OtherBranch, IssueKind::MissingParent]);
}

#[test]
fn results_of_parallel_calls_are_put_behind_their_response() {
    let lines = [
        user("u1", None),
        call("t1", "u1", "m1", "tool-1", 1),
        call("t2", "t1", "m1", "tool-2", 2),
        result("r1", "t1", "tool-1", 3),
        result("r2", "t2", "tool-2", 4),
        assistant("a2", "r1", "m2"),
    ];
    assert_eq!(conversation(&lines), "u1 t1 t2 r2 r1 a2");
    let through_second = [&lines[..5], &[assistant("a2", "r2", "m2")]].concat();
    assert_eq!(conversation(&through_second), "u1 t1 t2 r1 r2 a2");
}

#[test]
fn siblings_and_results_are_sorted_by_time() {
    let lines = [
        user("u1", None),
        call("t1", "u1", "m1", "tool-1", 1),
        call("t3", "u1", "m1", "tool-3", 9),
        call("t2", "u1", "m1", "tool-2", 8),
        result("r2", "t2", "tool-2", 12),
        result("r3", "t3", "tool-3", 11),
        result("r1", "t1", "tool-1", 10),
        assistant("a2", "r1", "m2"),
    ];
    assert_eq!(conversation(&lines), "u1 t1 t2 t3 r3 r2 r1 a2");
}

#[test]
fn a_result_is_found_by_the_line_it_names_and_by_its_call() {
    let block = json!([{"type": "tool_result", "tool_use_id": "tool-2", "content": ""}]);
    for more in [
        json!({"message": {"content": block.clone()}, "sourceToolAssistantUUID": "t2"}),
        json!({"message": {"content": block.clone()}}),
    ] {
        let lines = [
            user("u1", None),
            call("t1", "u1", "m1", "tool-1", 1),
            call("t2", "t1", "m1", "tool-2", 2),
            result("r1", "t2", "tool-1", 3),
            assistant("a2", "r1", "m2"),
            entry("user", "r2", Some("u1"), more.clone()),
            user("u3", Some("a2")),
        ];
        assert_eq!(conversation(&lines), "u1 t1 t2 r2 r1 a2 u3", "{more}");
        // A subagent's result does not answer a call of the main conversation.
        let mut lines = lines;
        let mut other = more;
        other["agentId"] = json!("other");
        lines[5] = entry("user", "r2", Some("u1"), other);
        assert_eq!(conversation(&lines), "u1 t1 t2 r1 a2 u3");
    }
}

#[test]
fn a_call_id_of_two_responses_is_ambiguous() {
    let lines = [
        user("u1", None),
        call("t0", "u1", "m0", "tool-1", 1),
        result("r0", "t0", "tool-1", 2),
        call("t1", "r0", "m1", "tool-1", 3),
        user("u2", Some("t1")),
        result("late", "u1", "tool-1", 4),
        user("u3", Some("u2")),
    ];
    assert_eq!(conversation(&lines), "u1 t0 r0 t1 u2 u3");
}

#[test]
fn several_calls_on_one_line_are_known() {
    let blocks: Vec<_> =
        ["x", "y", "z"].map(|id| json!({"type": "tool_use", "id": id})).into_iter().collect();
    let message = json!({"id": "m1", "content": blocks});
    let lines = [
        user("u1", None),
        entry("assistant", "t", Some("u1"), json!({"message": message})),
        result("r1", "t", "x", 1),
        result("r2", "u1", "z", 2),
        assistant("a2", "r1", "m2"),
    ];
    assert_eq!(conversation(&lines), "u1 t r2 r1 a2");
}

fn compacted(metadata: serde_json::Value) -> Vec<String> {
    vec![
        user("u1", None),
        assistant("a1", "u1", "m1"),
        user("u2", Some("a1")),
        assistant("a2", "u2", "m2"),
        boundary("b", "a2", metadata),
        entry("user", "sum", Some("b"), json!({"isCompactSummary": true})),
        user("u3", Some("sum")),
    ]
}

#[test]
fn a_compaction_ends_the_conversation_and_its_history_is_available() {
    let lines = compacted(json!({"trigger": "manual"}));
    assert_eq!(conversation(&lines), "b sum u3");
    let transcript = transcript(&lines);
    let index = index(&transcript);
    let tree = index.tree();
    assert_eq!(ids(&transcript, &tree.full_conversation()), "u1 a1 u2 a2 b sum u3");
    let filter = MessageFilter::default().include_compacted(true).include_system(true);
    assert_eq!(tree.messages(filter).len(), 7);
    let before =
        tree.issues().iter().filter(|issue| issue.kind == IssueKind::BeforeCompaction).count();
    assert_eq!(before, 4);
}

#[test]
fn preserved_messages_are_linked_behind_the_summary() {
    let metadata = json!({"preservedMessages": {"anchorUuid": "sum", "uuids": ["u2", "a2"]}});
    assert_eq!(conversation(&compacted(metadata)), "b sum u2 a2 u3");
    let missing = json!({"preservedMessages": {"anchorUuid": "sum", "uuids": ["u2", "lost"]}});
    assert_eq!(conversation(&compacted(missing)), "b sum u3");
    let empty = json!({"preservedMessages": {"anchorUuid": "sum", "uuids": []}});
    assert_eq!(conversation(&compacted(empty)), "b sum u3");
}

#[test]
fn a_preserved_segment_is_linked_behind_the_summary() {
    let segment = json!({"headUuid": "u2", "anchorUuid": "sum", "tailUuid": "a2"});
    let lines = compacted(json!({"preservedSegment": segment}));
    assert_eq!(conversation(&lines), "b sum u2 a2 u3");
    let transcript = transcript(&lines);
    let index = index(&transcript);
    let full = index.tree().full_conversation();
    assert_eq!(ids(&transcript, &full), "u1 a1 b sum u2 a2 u3");
}

#[test]
fn two_compactions_in_a_row_keep_all_history() {
    let mut lines = compacted(json!({}));
    lines.extend([boundary("b2", "u3", json!({})), user("u4", Some("b2"))]);
    assert_eq!(conversation(&lines), "b2 u4");
    let transcript = transcript(&lines);
    let full = index(&transcript).tree().full_conversation();
    assert_eq!(ids(&transcript, &full), "u1 a1 u2 a2 b sum u3 b2 u4");
}

#[test]
fn a_logical_parent_that_is_missing_ends_the_history() {
    let lines = [boundary("b", "lost", json!({})), user("u1", Some("b"))];
    let transcript = transcript(&lines);
    assert_eq!(index(&transcript).tree().full_conversation().len(), 2);
}

#[test]
fn meta_entries_are_hidden_unless_their_origin_is_shown() {
    let meta = |kind: &str| {
        let more = json!({"isMeta": true, "origin": {"kind": kind}});
        messages(&[user("u1", None), entry("user", "x", Some("u1"), more), user("u2", Some("x"))])
    };
    for kind in ["channel", "observer", "observer-activity", "slack-ping", "voice-call", "peer"] {
        assert_eq!(meta(kind), "u1 x u2", "{kind}");
    }
    assert_eq!(meta("human"), "u1 u2");
}

#[test]
fn a_prompt_that_joined_a_turn_is_shown_when_a_reply_follows() {
    let lines = [
        user("u1", None),
        assistant("a1", "u1", "m1"),
        queued("q", "a1", json!({"source_uuid": "host"})),
        assistant("a2", "q", "m2"),
    ];
    assert_eq!(messages(&lines), "u1 a1 q a2");
    let transcript = transcript(&lines);
    let index = index(&transcript);
    let shown = index.tree().messages(MessageFilter::default());
    assert_eq!(shown[2].role, MessageRole::QueuedPrompt);
    let followed_by_prompt =
        [lines[0].clone(), lines[1].clone(), lines[2].clone(), user("u2", Some("q"))];
    assert_eq!(messages(&followed_by_prompt), "u1 a1 u2");
}

#[test]
fn a_prompt_that_was_absorbed_is_shown_without_a_reply() {
    let absorbed = json!({
        "type": "queue-operation", "operation": "remove", "reason": "absorbed_mid_turn",
        "deliveryId": "d1", "sessionId": "s",
    });
    let lines = |operation: &str| {
        [
            user("u1", None),
            assistant("a1", "u1", "m1"),
            queued("q", "a1", json!({"delivery_id": "d1"})),
            operation.to_owned(),
            user("u2", Some("q")),
        ]
    };
    assert_eq!(messages(&lines(&absorbed.to_string())), "u1 a1 q u2");
    assert_eq!(messages(&lines(&absorbed.to_string().replace("absorbed", "dropped"))), "u1 a1 u2");
}

#[test]
fn of_copies_of_a_prompt_only_as_many_as_were_absorbed_are_shown() {
    let absorbed = json!({
        "type": "queue-operation", "operation": "remove", "reason": "absorbed_mid_turn",
        "commandUuid": "host",
    });
    let lines = [
        user("u1", None),
        queued("q1", "u1", json!({"source_uuid": "host"})),
        queued("q2", "q1", json!({"source_uuid": "host"})),
        absorbed.to_string(),
        assistant("a1", "q2", "m1"),
    ];
    assert_eq!(messages(&lines), "u1 q2 a1");
}

#[test]
fn prompts_behind_the_leaf_are_shown() {
    let lines = [user("u1", None), assistant("a1", "u1", "m1"), queued("q", "a1", json!({}))];
    assert_eq!(messages(&lines), "u1 a1 q");
}

#[test]
fn prompts_that_must_not_be_shown_are_hidden() {
    for more in [
        json!({"forwardedIntent": {"kind": "x"}}),
        json!({"isMeta": true}),
        json!({"prompt": 5}),
        json!({"source_uuid": "u1"}),
    ] {
        let lines = [user("u1", None), queued("q", "u1", more.clone()), assistant("a1", "q", "m")];
        assert_eq!(messages(&lines), "u1 a1", "{more}");
    }
}

#[test]
fn what_was_said_in_a_voice_call_is_a_prompt() {
    let talk = json!({
        "subtype": "voice_call_talk", "content": "hello", "origin": {"kind": "voice-call"},
    });
    let lines = [entry("system", "v", None, talk), assistant("a1", "v", "m1")];
    assert_eq!(messages(&lines), "v a1");
}

#[test]
fn local_commands_are_marked() {
    let text = |uuid: &str, parent, text: &str, is_meta: bool| {
        let more = json!({"message": {"content": text}, "isMeta": is_meta});
        entry("user", uuid, parent, more)
    };
    let lines = [
        text("c", None, "<local-command-caveat>x</local-command-caveat>", true),
        text("r", Some("c"), "<command-name>/cost</command-name>", false),
        text("o", Some("r"), "<local-command-stdout>5</local-command-stdout>", false),
        user("u1", Some("o")),
    ];
    let transcript = transcript(&lines);
    let index = index(&transcript);
    let shown = index.tree().messages(MessageFilter::default());
    let local: Vec<bool> = shown.iter().map(|message| message.is_local_command).collect();
    assert_eq!(local, [true, true, false]);
}

#[test]
fn messages_of_a_subagent_have_queued_prompts_and_local_commands() {
    let text = |uuid: &str, parent, text: &str, is_meta: bool| {
        let more = json!({"message": {"content": text}, "isMeta": is_meta, "isSidechain": true});
        entry("user", uuid, parent, more)
    };
    let lines = [
        text("c", None, "<local-command-caveat>x</local-command-caveat>", true),
        text("r", Some("c"), "<command-name>/cost</command-name>", false),
        queued("q1", "r", json!({"source_uuid": "sent"})),
        assistant("a1", "q1", "m1"),
        queued("q2", "a1", json!({"source_uuid": "later"})),
    ];
    let transcript = transcript(&lines);
    let index = index(&transcript);
    let shown = index.tree().subagent_messages();
    let shown: Vec<(MessageRole, bool)> =
        shown.iter().map(|message| (message.role, message.is_local_command)).collect();
    let expected = [
        (MessageRole::User, false),
        (MessageRole::User, true),
        (MessageRole::QueuedPrompt, false),
        (MessageRole::Assistant, false),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn every_branch_can_be_read() {
    let lines = [
        user("u1", None),
        assistant("a1", "u1", "m1"),
        user("old", Some("a1")),
        user("new", Some("a1")),
        entry("user", "side", None, json!({"isSidechain": true})),
    ];
    let transcript = transcript(&lines);
    let index = index(&transcript);
    let tree = index.tree();
    let leaves = tree.branches();
    assert_eq!(ids(&transcript, &leaves), "old new side");
    assert_eq!(ids(&transcript, &tree.path(leaves[0])), "u1 a1 old");
    let issues = tree.issues();
    assert_eq!(issues.len(), 1);
    assert_eq!(issues[0].kind, IssueKind::OtherBranch);
    assert_eq!(issues[0].offset, leaves[0].offset());
}

#[test]
fn a_checkpoint_of_a_rewind_can_be_followed() {
    let checkpoint = |leaf: Option<&str>| {
        json!({"type": "last-prompt", "leafUuid": leaf, "rewound": true, "sessionId": "s"})
            .to_string()
    };
    let mut lines = vec![user("u1", None), assistant("a1", "u1", "m1"), user("u2", Some("a1"))];
    lines.push(checkpoint(Some("a1")));
    let bytes = transcript(&lines);
    let found = index(&bytes).checkpoint().unwrap();
    assert!(found.is_explicit);
    let rewound = index(&bytes).tree().conversation_at(found).unwrap();
    assert_eq!(ids(&bytes, &rewound), "u1 a1");
    lines.push(checkpoint(None));
    let cleared = index(&transcript(&lines));
    assert_eq!(cleared.tree().conversation_at(cleared.checkpoint().unwrap()), Some(Vec::new()));
    lines.push(checkpoint(Some("lost")));
    let lost = index(&transcript(&lines));
    assert_eq!(lost.tree().conversation_at(lost.checkpoint().unwrap()), None);
}
