//! Options that take effect only after some turns, on the real CLI.

use std::time::Duration;

use claude_agent_kit::hook::{ConfigChange, HookResponse, PreToolUse};
use claude_agent_kit::{Body, Include, Item, Messages};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::message::ResultSubtype;
use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use crate::helpers::{
    Notes, bash, find, has_file, model_received, repeat_until, start, touch_script, turn,
};
use crate::support::{LIMIT, in_time, on_all, real, run};

#[test]
fn max_turns_limits_a_turn() {
    // The model never stops calling tools.
    let endless = || Script::new().otherwise([Reply::tool("Bash", json!({"command": "echo on"}))]);
    for most in [1, 2, 5] {
        on_all(endless, async |harness| {
            let session = start(harness.options().allowed_tools(["Bash"]).max_turns(most)).await;
            let outcome = turn(&session, "go on").await;
            assert_eq!(outcome.result.subtype, Some(ResultSubtype::ErrorMaxTurns));
            let rounds = harness.api().requests().iter().filter(|request| request.stream()).count();
            assert_eq!(rounds, most as usize);
            session.stop().await.unwrap();
        });
    }
}

#[test]
fn fallback_model_is_used_on_overload() {
    run(async {
        let script = Script::respond_with(|request| {
            if request.model().contains("haiku") {
                Reply::text("From the other.")
            } else {
                Reply::error(529, "overloaded_error", "Overloaded")
            }
        });
        let harness = Harness::real(script, real()).await.unwrap();
        let options = harness.options().model("claude-opus-4-6").fallback_model("claude-haiku-4-5");
        let session = start(options).await;
        let mut messages = session.messages();
        let sent = session.send("hello").await.unwrap();
        let message = next_containing(&mut messages, "model_fallback").await;
        assert_eq!(message["fallback_model"], "claude-haiku-4-5", "{message}");
        assert_eq!(in_time(sent.finish()).await.unwrap().text, "From the other.");
        session.stop().await.unwrap();
    });
}

/// Returns the next message that contains `needle`.
async fn next_containing(messages: &mut Messages, needle: &str) -> Value {
    let holds = |item: &Item| {
        let raw = item.message().and_then(|message| message.raw_str());
        raw.is_some_and(|raw| raw.contains(needle))
    };
    let item = find(messages, holds).await;
    serde_json::from_str(item.message().unwrap().raw_str().unwrap()).unwrap()
}

#[test]
fn prompt_suggestion_follows_a_turn() {
    run(async {
        let script = Script::new()
            .when("[SUGGESTION MODE", [Reply::text("run the tests")])
            .otherwise([Reply::text("Hello.")]);
        let harness = Harness::real(script, real()).await.unwrap();
        let session = start(harness.options().include(Include::PROMPT_SUGGESTIONS)).await;
        let mut messages = session.messages();
        // The CLI suggests nothing after the first turn.
        turn(&session, "hello").await;
        turn(&session, "hello again").await;
        let is_suggestion = |item: &Item| {
            item.message().is_some_and(|message| matches!(message.body, Body::PromptSuggestion(_)))
        };
        let item = find(&mut messages, is_suggestion).await;
        let Body::PromptSuggestion(suggested) = &item.message().unwrap().body else { panic!() };
        assert_eq!(suggested.suggestion.as_deref(), Some("run the tests"));
        session.stop().await.unwrap();
    });
}

/// Returns a model that delegates to an agent that runs for longer than half a minute, after which
/// the CLI requests a summary.
fn delegate_script() -> Script {
    let task = json!({
        "subagent_type": "general-purpose",
        "description": "Look",
        "prompt": "look at it",
        "run_in_background": false,
    });
    let look = Reply::tool("Bash", json!({"command": "echo on", "description": "Look"}))
        .pause_before(Duration::from_secs(4));
    Script::new()
        .when("Describe your most recent action", [Reply::text("Looking at it")])
        .when("look at it", vec![look; 20])
        .otherwise([Reply::tool("Agent", task), Reply::text("Done.")])
}

#[test]
fn long_running_agent_is_summarized() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let play = async {
        let harness = Harness::real(delegate_script(), real()).await.unwrap();
        let options = harness.options().allowed_tools(["Agent", "Bash"]);
        let session = start(options.include(Include::AGENT_PROGRESS_SUMMARIES)).await;
        let mut messages = session.messages();
        let sent = session.send("delegate").await.unwrap();
        let first = next_containing(&mut messages, "task_progress").await;
        assert!(first.get("summary").is_none(), "{first}");
        let message = next_containing(&mut messages, "\"summary\":\"Looking at it\"").await;
        assert_eq!(message["subtype"], "task_progress", "{message}");
        session.interrupt().await.unwrap();
        in_time(sent.finish()).await.unwrap();
        session.stop().await.unwrap();
    };
    let in_time = async { tokio::time::timeout(3 * LIMIT, play).await };
    runtime.block_on(in_time).expect("it takes too long");
}

#[test]
fn settings_change_blocked_by_a_hook_has_no_effect() {
    run(async {
        for blocks in [false, true] {
            let harness = Harness::real(touch_script(), real()).await.unwrap();
            let settings = harness.project().join(".claude/settings.json");
            std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
            std::fs::write(&settings, "{}").unwrap();
            let notes = Notes::new();
            let calls = notes.clone();
            let options = harness.options().allowed_tools(["Bash"]);
            let options =
                options.on(ConfigChange, move |_, _| {
                    calls.add(());
                    async move {
                        if blocks { HookResponse::block("not now") } else { HookResponse::new() }
                    }
                });
            let session = start(options).await;
            turn(&session, "hello").await;
            let change = |round: usize| {
                let text = json!({"permissions": {"deny": ["Bash(touch:*)"]}}).to_string();
                std::fs::write(&settings, text + &"\n".repeat(round)).unwrap();
            };
            repeat_until("the hook is called", change, || notes.len() > 0).await;
            let denied = async || {
                turn(&session, "hello again").await;
                model_received(&harness, "has been denied")
            };
            if blocks {
                // When the CLI responds to the second operation it has processed the response of
                // the hook.
                in_time(session.mcp().status()).await.unwrap();
                assert!(!denied().await && !denied().await);
            } else {
                while !denied().await {}
            }
            session.stop().await.unwrap();
        }
    });
}

#[test]
fn guard_still_denies_after_a_second_handshake() {
    run(async {
        let harness = Harness::real(bash(&["touch made"]), real()).await.unwrap();
        let notes = Notes::new();
        let calls = notes.clone();
        let options = harness.options().allowed_tools(["Bash"]);
        let options = options.on(PreToolUse.fail_closed(), move |_, _| {
            calls.add(());
            async { HookResponse::deny("never") }
        });
        let session = start(options).await;
        turn(&session, "run it").await;
        assert_eq!(notes.len(), 1);
        let answer = in_time(session.reinitialize()).await.unwrap();
        assert_ne!(answer.hooks_applied, Some(false));
        turn(&session, "run it again").await;
        assert_eq!(notes.len(), 2, "the hook is called again");
        assert!(!has_file(&harness, "made"));
        session.stop().await.unwrap();
    });
}
