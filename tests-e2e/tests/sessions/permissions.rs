//! The permission callback, and the questions of the model.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::PermissionUpdate;
use claude_agent_kit::{Answers, Background, BoxError, Limits, Permission, Timeouts, WarningCode};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tokio::sync::Barrier;

use crate::helpers::{
    Notes, bash, calls, command_of, has_file, model_received, on_both, one_turn, panic_silently,
    start, touch_script, turn,
};
use crate::support::{LIMIT, in_time, on_all, record_warnings, until};

#[test]
fn permission_callback_can_allow_deny_or_change_the_input() {
    on_all(
        || bash(&["touch allowed", "touch denied", "touch changed"]),
        async |harness| {
            let called = Notes::new();
            let notes = called.clone();
            let options = harness.options().can_use_tool(move |request, context| {
                let command = command_of(Some(&request.input));
                notes.add((request, context));
                async move {
                    match command.as_str() {
                        "touch allowed" => Permission::allow(),
                        "touch changed" => {
                            Permission::allow().with_input(json!({"command": "touch other"}))
                        }
                        _ => Permission::deny("not on a Friday"),
                    }
                }
            });
            let outcome = one_turn(options).await;
            assert_eq!(outcome.text, "Done.");
            assert!(has_file(&harness, "allowed") && has_file(&harness, "other"));
            assert!(!has_file(&harness, "denied") && !has_file(&harness, "changed"));
            assert!(model_received(&harness, "not on a Friday"));
            assert_eq!(outcome.result.permission_denials.as_slice().len(), 1);
            let called = called.all();
            assert_eq!(called.len(), 3);
            for (request, context) in called {
                assert_eq!(request.tool_name, "Bash");
                assert_eq!(request.description.as_deref(), Some("Run it"));
                assert!(request.tool_use_id.is_some() && request.session_id.is_some());
                assert_eq!(context.tool_use_id, request.tool_use_id);
                assert!(!request.suggestions.is_empty());
                assert!(request.raw.starts_with(b"{"));
            }
        },
    );
}

#[test]
fn updated_permissions_apply_to_the_next_call() {
    on_both(
        || bash(&["touch one", "touch two"]),
        async |harness| {
            let called = Notes::new();
            let notes = called.clone();
            let options = harness.options().can_use_tool(move |_, _| {
                notes.add(());
                let update = PermissionUpdate::allow("Bash", "touch:*");
                async { Permission::allow().with_permissions([update]) }
            });
            one_turn(options).await;
            assert!(has_file(&harness, "one") && has_file(&harness, "two"));
            assert_eq!(called.len(), 1);
        },
    );
}

#[test]
fn denial_can_end_the_turn() {
    let script = || {
        Script::new()
            .when("run it", [calls(&["touch made"]), Reply::text("Done.")])
            .when("again", [Reply::text("yes")])
    };
    on_both(script, async |harness| {
        let options = harness
            .options()
            .can_use_tool(|_, _| async { Permission::deny("stop it").and_interrupt() });
        let session = start(options).await;
        assert_ne!(turn(&session, "run it").await.text, "Done.");
        assert!(!has_file(&harness, "made"));
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn permission_callbacks_run_concurrently() {
    let script = || {
        let fetch = |reply: Reply, name| {
            reply.and_tool(
                "WebFetch",
                json!({"url": format!("http://127.0.0.1:1/{name}"), "prompt": "x"}),
            )
        };
        let fetches = ["one", "two", "three"].into_iter().fold(Reply::new(), fetch);
        Script::new().otherwise([fetches, Reply::text("Done.")])
    };
    on_both(script, async |harness| {
        // No callback returns before all three are running.
        let meeting = Arc::new(Barrier::new(3));
        let options = harness.options().can_use_tool(move |_, _| {
            let meeting = meeting.clone();
            async move {
                meeting.wait().await;
                Permission::deny("all were here")
            }
        });
        let outcome = one_turn(options).await;
        assert_eq!(outcome.text, "Done.");
        assert_eq!(outcome.result.permission_denials.as_slice().len(), 3);
    });
}

#[test]
fn failing_permission_callback_denies() {
    let commands = ["touch error", "touch panic", "touch never", "touch fine"];
    on_both(
        || bash(&commands),
        async |harness| {
            let options = harness
                .options()
                .timeouts(Timeouts::new().permission(Duration::from_secs(2)))
                .can_use_tool(|request, _| async move {
                    match command_of(Some(&request.input)).as_str() {
                        "touch error" => Err::<_, BoxError>("the database is gone".into()),
                        "touch panic" => panic_silently(),
                        "touch never" => std::future::pending().await,
                        _ => Ok(Permission::allow()),
                    }
                });
            let (options, warnings) = record_warnings(options);
            assert_eq!(one_turn(options).await.text, "Done.");
            for command in &commands[..3] {
                assert!(!has_file(&harness, &command[6..]), "{command}");
            }
            assert!(has_file(&harness, "fine"));
            let expected = [
                WarningCode::CallbackFailed,
                WarningCode::CallbackFailed,
                WarningCode::CallbackTimedOut,
            ];
            assert_eq!(*warnings.lock().unwrap(), expected);
        },
    );
}

#[test]
fn tool_that_needs_permission_does_not_run_without_a_callback() {
    on_both(touch_script, async |harness| {
        assert_eq!(one_turn(harness.options()).await.text, "Done.");
        assert!(!has_file(&harness, "made"));
        // The CLI requests permissions although no callback is registered: they are denied and do
        // not stay pending.
        let options = harness.options().permission_prompt_tool("stdio");
        let (options, warnings) = record_warnings(options);
        let session = start(options).await;
        turn(&session, "run it").await;
        assert!(!has_file(&harness, "made"));
        assert_eq!(*warnings.lock().unwrap(), [WarningCode::CallbackFailed]);
        session.stop().await.unwrap();
    });
}

#[test]
fn interrupt_cancels_a_pending_permission_callback() {
    let script = || {
        Script::new()
            .when("run it", [calls(&["touch made"]), Reply::text("Done.")])
            .when("again", [Reply::text("yes")])
    };
    on_all(script, async |harness| {
        let (called, cancelled) = (Notes::new(), Notes::new());
        let (entered, fired) = (called.clone(), cancelled.clone());
        let options = harness.options().timeouts(Timeouts::new().cancel_grace(LIMIT)).can_use_tool(
            move |_, context| {
                entered.add(());
                let fired = fired.clone();
                async move {
                    context.cancel.cancelled().await;
                    fired.add(());
                    Permission::allow()
                }
            },
        );
        let (options, warnings) = record_warnings(options);
        let session = start(options).await;
        let running = session.send("run it").await.unwrap();
        until("the callback is called", || called.len() == 1).await;
        session.interrupt().await.unwrap();
        assert!(in_time(running.finish()).await.unwrap().result.is_error());
        until("the token has fired", || cancelled.len() == 1).await;
        assert_eq!(turn(&session, "again").await.text, "yes");
        assert!(!has_file(&harness, "made"));
        // A withdrawn request is not a failure.
        assert!(warnings.lock().unwrap().is_empty());
        session.stop().await.unwrap();
    });
}

#[test]
fn blocking_permission_callback_may_block() {
    on_both(touch_script, async |harness| {
        let options = harness.options().can_use_tool_blocking(|_, _| {
            std::thread::sleep(Duration::from_millis(1_100));
            Permission::allow()
        });
        let (options, warnings) = record_warnings(options);
        one_turn(options).await;
        assert!(has_file(&harness, "made"));
        assert!(warnings.lock().unwrap().is_empty());
    });
}

fn question_script() -> Script {
    let input = json!({"questions": [{
        "question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "Red", "description": "Warm"},
                    {"label": "Blue", "description": "Cold"}],
    }]});
    Script::new().otherwise([Reply::tool("AskUserQuestion", input), Reply::text("Done.")])
}

#[test]
fn answers_of_the_user_reach_the_model() {
    on_both(question_script, async |harness| {
        let options = harness.options().ask_user(|questions, _| async move {
            questions.iter().fold(Answers::new(), |answers, question| {
                answers.choose(question, &question.options[1].label)
            })
        });
        assert_eq!(one_turn(options).await.text, "Done.");
        let last = harness.api().requests().into_iter().last().unwrap();
        let results = serde_json::to_string(&last.tool_results()).unwrap();
        assert!(results.contains("Blue") && !results.contains("Red"), "{results}");
    });
}

#[test]
fn blocking_question_callback_may_block() {
    on_both(question_script, async |harness| {
        let options = harness
            .options()
            .ask_user_blocking(|questions, _| {
                questions.iter().fold(Answers::new(), |answers, question| {
                    answers.choose(question, &question.options[0].label)
                })
            })
            .wait_for_background(Background::All)
            .die_with_parent(true)
            .limits(Limits::new().waiting_operations(4).pending_operations(4))
            .timeouts(Timeouts::new().operation(Duration::from_secs(60)));
        assert_eq!(one_turn(options).await.text, "Done.");
        assert!(model_received(&harness, "Red"));
    });
}

#[test]
fn question_tool_is_not_offered_without_a_callback() {
    on_both(question_script, async |harness| {
        let offers = || {
            let last = harness.api().requests().into_iter().last().unwrap();
            last.tool_names().contains(&"AskUserQuestion".to_owned())
        };
        let options = harness.options().can_use_tool(|_, _| async { Permission::allow() });
        one_turn(options.clone()).await;
        assert!(!offers());
        one_turn(options.ask_user(|_, _| async { Answers::decline("no user is present") })).await;
        assert!(offers());
        assert!(model_received(&harness, "no user is present"));
    });
}
