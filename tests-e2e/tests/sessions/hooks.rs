//! What hooks receive, and the effect of their responses.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::hook::{
    HookRegistration, HookResponse, PostToolUse, PostToolUseFailure, PreToolUse, RawHookResponse,
    Stop, SubagentStart, SubagentStop, UserPromptSubmit,
};
use claude_agent_kit::query;
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tokio::sync::Barrier;

use crate::helpers::{
    Notes, bash, calls, command_of, has_file, model_received, on_both, one_turn, start,
    touch_script, turn,
};
use crate::support::{on_all, until};

#[test]
fn hook_can_allow_a_tool() {
    on_both(
        || bash(&["touch allowed", "touch undecided"]),
        async |harness| {
            let options = harness.options().on(PreToolUse, |call, _| async move {
                if command_of(call.input.as_ref()).contains("allowed") {
                    HookResponse::allow().reason("it is fine")
                } else {
                    HookResponse::new()
                }
            });
            one_turn(options).await;
            assert!(has_file(&harness, "allowed"));
            assert!(!has_file(&harness, "undecided"));
        },
    );
}

#[test]
fn blocked_tool_does_not_run_in_any_response_format() {
    on_all(
        || bash(&["touch deny", "touch block", "touch raw", "touch fine"]),
        async |harness| {
            let options = harness
                .options()
                .allowed_tools(["Bash"])
                .on(PreToolUse, |call, _| async move {
                    match command_of(call.input.as_ref()).as_str() {
                        "touch deny" => HookResponse::deny("not here"),
                        "touch block" => HookResponse::deny("nor this"),
                        _ => HookResponse::new(),
                    }
                })
                .on(HookRegistration::named("PreToolUse"), |input, _| async move {
                    if input.json.text().contains("touch raw") {
                        RawHookResponse::new().block("nor this one")
                    } else {
                        RawHookResponse::new()
                    }
                });
            let outcome = one_turn(options).await;
            assert_eq!(outcome.text, "Done.");
            for name in ["deny", "block", "raw"] {
                assert!(!has_file(&harness, name), "{name}");
            }
            assert!(has_file(&harness, "fine"));
            for reason in ["not here", "nor this", "nor this one"] {
                assert!(model_received(&harness, reason), "{reason}");
            }
        },
    );
}

#[test]
fn hook_that_stops_the_turn_prevents_the_tool() {
    on_both(touch_script, async |harness| {
        let options = harness
            .options()
            .allowed_tools(["Bash"])
            .on(PreToolUse, |_, _| async { HookResponse::new().stop("enough") });
        let outcome = one_turn(options).await;
        let reason = outcome.result.terminal_reason.as_ref().unwrap();
        assert_eq!(reason.as_str(), "hook_stopped");
        assert!(!has_file(&harness, "made"));
    });
}

#[test]
fn hook_can_change_the_tool_input() {
    on_both(touch_script, async |harness| {
        let options = harness.options().allowed_tools(["Bash"]).on(PreToolUse, |_, _| async {
            HookResponse::new().updated_input(json!({"command": "touch other"}))
        });
        one_turn(options).await;
        assert!(has_file(&harness, "other"));
        assert!(!has_file(&harness, "made"));
    });
}

#[test]
fn asynchronous_hook_response_does_not_block() {
    on_both(touch_script, async |harness| {
        let limit = Duration::from_secs(1);
        let options = harness
            .options()
            .allowed_tools(["Bash"])
            .on(PreToolUse, move |_, _| async move { HookResponse::run_async(limit) })
            .on(PostToolUse, move |_, _| async move { HookResponse::run_async(limit) });
        assert_eq!(one_turn(options).await.text, "Done.");
        assert!(has_file(&harness, "made"));
    });
}

#[test]
fn hook_is_called_for_matching_tools_only() {
    on_all(touch_script, async |harness| {
        let called = Notes::new();
        let mut options = harness.options().allowed_tools(["Bash"]);
        for pattern in ["Bash", "Write|Edit", "Write|Bash"] {
            let called = called.clone();
            options = options.on(PreToolUse.matching(pattern), move |_, _| {
                called.add(pattern);
                async {}
            });
        }
        let contexts = Notes::new();
        let (notes, calls_seen) = (called.clone(), contexts.clone());
        options = options.on(PreToolUse, move |call, context| {
            notes.add("none");
            calls_seen.add((call.tool_name, context));
            async {}
        });
        one_turn(options).await;
        let mut called = called.all();
        called.sort_unstable();
        assert_eq!(called, ["Bash", "Write|Bash", "none"]);
        let [(tool, context)] = contexts.all().try_into().unwrap();
        assert_eq!(tool.as_deref(), Some("Bash"));
        assert_eq!(context.callback_id.as_ref().unwrap(), "hook_3");
        assert!(context.session_id.is_some() && context.tool_use_id.is_some());
        assert!(!context.request_id.as_str().is_empty() && !context.cancel.is_cancelled());
        assert!(has_file(&harness, "made"));
    });
}

#[test]
fn post_tool_use_output_reaches_the_model() {
    on_both(
        || bash(&["echo out", "exit 3"]),
        async |harness| {
            let failed = Notes::new();
            let notes = failed.clone();
            let options = harness
                .options()
                .allowed_tools(["Bash"])
                .on(PostToolUse.matching("Bash"), |call, _| async move {
                    let gave = call.tool_response.map(|json| json.to_string()).unwrap_or_default();
                    assert!(gave.contains("out"), "{gave}");
                    HookResponse::block("That was wrong.").additional_context("It is noon.")
                })
                .on(PostToolUseFailure, move |call, _| {
                    notes.add(call.error.unwrap_or_default());
                    async {}
                });
            one_turn(options).await;
            assert!(model_received(&harness, "It is noon."));
            assert!(model_received(&harness, "That was wrong."));
            assert_eq!(failed.len(), 1, "{:?}", failed.all());
        },
    );
}

#[test]
fn hook_can_extend_or_block_a_prompt() {
    let script = || Script::new().otherwise([Reply::text("Hello.")]);
    on_both(script, async |harness| {
        let options = harness.options().on(UserPromptSubmit, |prompt, _| async move {
            match prompt.prompt.as_deref() {
                Some("secret") => HookResponse::block("not today"),
                _ => HookResponse::new().additional_context("It is noon."),
            }
        });
        let session = start(options).await;
        turn(&session, "secret").await;
        assert!(!model_received(&harness, "secret"));
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        assert!(model_received(&harness, "It is noon."));
        session.stop().await.unwrap();
    });
}

#[test]
fn stop_hook_can_continue_the_turn() {
    let script = || Script::new().otherwise([Reply::text("Hello.")]);
    on_both(script, async |harness| {
        let options = harness.options().on(Stop, |stop, _| async move {
            if stop.stop_hook_active == Some(true) {
                HookResponse::new()
            } else {
                HookResponse::block("say it again")
            }
        });
        let outcome = one_turn(options).await;
        assert_eq!(outcome.result.num_turns.as_ref().unwrap().as_u64(), Some(2));
        assert!(model_received(&harness, "say it again"));
    });
}

#[test]
fn subagent_start_and_stop_hooks_are_called() {
    let script = || {
        let input = json!({"description": "Greet", "prompt": "greet the world",
                           "subagent_type": "general-purpose", "run_in_background": false});
        Script::new()
            .when("greet the world", [Reply::text("Greeted.")])
            .otherwise([Reply::tool("Agent", input), Reply::text("Done.")])
    };
    on_both(script, async |harness| {
        let events = Notes::new();
        let (starts, stops) = (events.clone(), events.clone());
        let options = harness
            .options()
            .on(SubagentStart, move |_, _| {
                starts.add("start");
                async {}
            })
            .on(SubagentStop, move |_, _| {
                stops.add("stop");
                async {}
            });
        one_turn(options).await;
        assert_eq!(events.all(), ["start", "stop"]);
    });
}

#[test]
fn hooks_run_concurrently_and_delay_no_operation() {
    on_both(touch_script, async |harness| {
        let (meeting, entered) = (Arc::new(Barrier::new(3)), Notes::new());
        let mut options = harness.options().allowed_tools(["Bash"]);
        for name in ["first", "second"] {
            let (meeting, entered) = (meeting.clone(), entered.clone());
            options = options.on(PreToolUse, move |_, _| {
                let meeting = meeting.clone();
                entered.add(name);
                async move {
                    meeting.wait().await;
                }
            });
        }
        let session = start(options).await;
        let running = session.send("run it").await.unwrap();
        until("both hooks are called", || entered.len() == 2).await;
        session.mcp().status().await.unwrap();
        assert!(!has_file(&harness, "made"));
        meeting.wait().await;
        assert_eq!(running.finish().await.unwrap().text, "Done.");
        assert!(has_file(&harness, "made"));
        session.stop().await.unwrap();
    });
}

#[test]
fn forty_calls_in_one_answer_call_forty_hooks() {
    let script = || {
        let read = |reply: Reply, number| {
            reply.and_tool("Read", json!({"file_path": format!("notes{number}.txt")}))
        };
        let reads = (0..40).fold(Reply::new(), read);
        Script::new().otherwise([reads, Reply::text("Done.")])
    };
    on_both(script, async |harness| {
        let called = Notes::new();
        let notes = called.clone();
        let options = harness.options().on(PreToolUse.matching("Read"), move |call, _| {
            notes.add(call.tool_use_id.map(|id| id.to_string()));
            async { HookResponse::deny("no") }
        });
        assert_eq!(one_turn(options).await.text, "Done.");
        let mut called = called.all();
        called.sort();
        called.dedup();
        assert_eq!(called.len(), 40);
        let last = harness.api().requests().into_iter().last().unwrap();
        assert_eq!(last.tool_results().len(), 40);
    });
}

#[test]
fn query_supports_hooks() {
    on_both(
        || bash(&["touch denied", "touch fine"]),
        async |harness| {
            let options =
                harness.options().allowed_tools(["Bash"]).on(PreToolUse, |call, _| async move {
                    if command_of(call.input.as_ref()).contains("denied") {
                        HookResponse::deny("no")
                    } else {
                        HookResponse::new()
                    }
                });
            let collected = query("run it", options).await.unwrap().collect().await;
            assert!(collected.error.is_none(), "{:?}", collected.error);
            assert!(!has_file(&harness, "denied"));
            assert!(has_file(&harness, "fine"));
        },
    );
}

#[test]
fn raw_hook_receives_unmodified_input_and_sends_any_field() {
    on_both(
        || Script::new().otherwise([calls(&["echo hi"]), Reply::text("Done.")]),
        async |harness| {
            let batches = Notes::new();
            let notes = batches.clone();
            let options = harness.options().allowed_tools(["Bash"]).on(
                HookRegistration::named("PostToolBatch"),
                move |input, _| {
                    notes.add(input);
                    async { RawHookResponse::from(json!({"suppressOutput": true})) }
                },
            );
            assert_eq!(one_turn(options).await.text, "Done.");
            let batches = batches.all();
            assert_eq!(batches.len(), 1);
            assert_eq!(batches[0].event, "PostToolBatch");
            assert!(batches[0].json.text().contains("\"hook_event_name\":\"PostToolBatch\""));
        },
    );
}
