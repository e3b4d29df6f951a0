//! Messages and their turns.

use claude_agent_kit::hook::{PreToolUse, PreToolUseAnswer};
use claude_agent_kit::{Permission, Session};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

use crate::support::on_all;

#[test]
fn three_turns_in_one_session() {
    let script = || {
        Script::new()
            .when("one", [Reply::text("1").usage(100, 7)])
            .when("two", [Reply::text("2").usage(200, 11)])
            .when("three", [Reply::text("3")])
    };
    on_all(script, async |stage| {
        let session = Session::start(stage.options()).await.unwrap();
        assert!(session.server_info().unwrap().models.as_slice().len() > 1);
        for (prompt, answer) in [("one", "1"), ("two", "2"), ("three", "3")] {
            let turn = session.send(prompt).await.unwrap();
            let outcome = turn.finish().await.unwrap();
            assert_eq!(outcome.text, answer);
            assert!(outcome.named && outcome.shared_with.is_empty());
            assert!(outcome.cost_usd > 0.0 && outcome.cost_usd < 0.0012, "{}", outcome.cost_usd);
        }
        assert_eq!(session.stop().await.unwrap(), Some(claude_agent_kit::transport::Exit::Code(0)));
    });
}

#[test]
fn a_hook_denies_and_a_permission_allows() {
    let script = || {
        Script::new().when(
            "files",
            [
                Reply::tool("Bash", json!({"command": "touch denied"}))
                    .and_tool("Bash", json!({"command": "touch allowed"})),
                Reply::text("done"),
            ],
        )
    };
    on_all(script, async |stage| {
        let options = stage
            .options()
            .on(PreToolUse::matching("Bash"), |call, _| async move {
                let command = call.tool_input.map(|input| input.to_string()).unwrap_or_default();
                if command.contains("denied") {
                    PreToolUseAnswer::deny("no")
                } else {
                    PreToolUseAnswer::new()
                }
            })
            .can_use_tool(|_, _| async move { Permission::allow() });
        let session = Session::start(options).await.unwrap();
        let outcome = session.send("files").await.unwrap().finish().await.unwrap();
        assert_eq!(outcome.text, "done");
        assert!(!stage.project().join("denied").exists());
        assert!(stage.project().join("allowed").exists());
        session.stop().await.unwrap();
    });
}

#[test]
fn an_interrupt_ends_the_turn_and_not_the_session() {
    let script = || {
        Script::new()
            .when("story", [Reply::text("Once upon a time").hold()])
            .when("again", [Reply::text("yes")])
    };
    on_all(script, async |stage| {
        let session = Session::start(stage.options().include_partial_messages(true)).await.unwrap();
        let turn = session.send("story").await.unwrap();
        stage
            .api()
            .wait_for_request(|request| {
                request.last_prompt().is_some_and(|prompt| prompt.contains("story"))
            })
            .await;
        session.interrupt().await.unwrap();
        let outcome = turn.finish().await.unwrap();
        assert!(outcome.result.is_error());
        let outcome = session.send("again").await.unwrap().finish().await.unwrap();
        assert_eq!(outcome.text, "yes");
        session.stop().await.unwrap();
    });
}
