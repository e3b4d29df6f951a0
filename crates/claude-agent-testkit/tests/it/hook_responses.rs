//! The effects of hook responses.

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::Sim;
use serde_json::{Value, json};

use crate::client::Client;

/// Runs a turn with one hook for `event` that always responds with `answer`.
async fn turn(script: Script, event: &str, answer: Value) -> (Client, Value) {
    let sim = Sim::new().script(script).args(["--allowedTools", "Bash"]);
    let mut client = Client::start(sim);
    let registration = json!([{"hookCallbackIds": ["hook_0"]}]);
    client.initialize(json!({"hooks": {event: registration}})).await;
    client.prompt("go", "a").await;
    let result = result(&mut client, &answer).await;
    (client, result)
}

/// Reads until the next result; every hook responds with `answer`.
async fn result(client: &mut Client, answer: &Value) -> Value {
    loop {
        let line = client.next().await.expect("there is a result");
        if line["request"]["subtype"] == "hook_callback" {
            client.respond(&line, answer.clone()).await;
        }
        if line["type"] == "result" {
            return line;
        }
    }
}

fn bash(command: &str) -> Script {
    let call = Reply::tool("Bash", json!({"command": command}));
    Script::new().otherwise([call, Reply::text("Done.")])
}

fn stop() -> Value {
    json!({"continue": false, "stopReason": "enough"})
}

#[tokio::test]
async fn continue_false_after_a_tool_ends_the_turn() {
    for event in ["PostToolUse", "PostToolBatch"] {
        let (_, result) = turn(bash("true"), event, stop()).await;
        assert_eq!(
            (&result["terminal_reason"], &result["result"]),
            (&json!("hook_stopped"), &json!(""))
        );
    }
}

#[tokio::test]
async fn continue_false_after_a_failed_tool_has_no_effect() {
    let (_, result) = turn(bash("false"), "PostToolUseFailure", stop()).await;
    assert_eq!(
        (&result["terminal_reason"], &result["result"]),
        (&json!("completed"), &json!("Done."))
    );
}

#[tokio::test]
async fn continue_false_of_a_stop_hook_ends_the_turn_even_if_it_also_blocks() {
    let both = json!({"continue": false, "decision": "block", "reason": "go on"});
    for answer in [stop(), both] {
        let script = Script::new().otherwise([Reply::text("One.")]);
        let (_, result) = turn(script, "Stop", answer).await;
        assert_eq!(result["terminal_reason"], "stop_hook_prevented");
    }
}

#[tokio::test]
async fn continue_false_of_a_subagent_stop_hook_leaves_the_parent_running() {
    let agent = json!({"description": "Look", "prompt": "Look around.",
        "subagent_type": "general-purpose"});
    let script = Script::new()
        .when("Look around.", [Reply::text("Nothing here.")])
        .otherwise([Reply::tool("Agent", agent), Reply::text("Done.")]);
    let (_, result) = turn(script, "SubagentStop", stop()).await;
    assert_eq!(
        (&result["terminal_reason"], &result["result"]),
        (&json!("completed"), &json!("Done."))
    );
}

#[tokio::test]
async fn a_block_or_denial_prevents_a_model_switch_but_continue_false_does_not() {
    let denial = json!({"hookEventName": "PreModelSwitch", "permissionDecision": "deny"});
    for (answer, response) in [
        (stop(), "success"),
        (json!({"decision": "block", "reason": "no"}), "error"),
        (json!({"hookSpecificOutput": denial}), "error"),
    ] {
        let mut client = Client::scripted([Reply::text("Hello.")], &[]);
        let hooks = json!({"PreModelSwitch": [{"hookCallbackIds": ["hook_0"]}]});
        client.initialize(json!({"hooks": hooks})).await;
        client.request("switch", json!({"subtype": "set_model", "model": "haiku"})).await;
        let asked = client.next_request("hook_callback").await;
        client.respond(&asked, answer.clone()).await;
        assert_eq!(client.response_to("switch").await["subtype"], response, "{answer}");
    }
}

#[tokio::test]
async fn display_content_replaces_or_hides_a_text() {
    for (content, lines) in [("Other.", 1), ("", 0)] {
        let specific = json!({"hookEventName": "MessageDisplay", "displayContent": content});
        let answer = json!({"hookSpecificOutput": specific});
        let script = Script::new().otherwise([Reply::text("Hello.")]);
        let (client, result) = turn(script, "MessageDisplay", answer).await;
        assert_eq!(result["result"], content);
        let is_shown = |line: &&Value| line["type"] == "assistant";
        let shown: Vec<&Value> = client.seen.iter().filter(is_shown).collect();
        assert_eq!(shown.len(), lines);
        for line in shown {
            assert_eq!(line["message"]["content"][0]["text"], content);
        }
    }
}

#[tokio::test]
async fn a_block_prevents_compaction_but_continue_false_does_not() {
    for (answer, outcome) in
        [(json!({"decision": "block", "reason": "no"}), "failed"), (stop(), "success")]
    {
        let script = Script::new().otherwise([Reply::text("Hello.")]);
        let (mut client, _) = turn(script, "PreCompact", answer.clone()).await;
        client.prompt("/compact", "b").await;
        result(&mut client, &answer).await;
        let is_compacted = |line: &Value| line["subtype"] == "compact_boundary";
        assert_eq!(client.seen.iter().any(is_compacted), outcome == "success", "{answer}");
        assert!(client.seen.iter().any(|line| line["compact_result"] == outcome), "{answer}");
    }
}
