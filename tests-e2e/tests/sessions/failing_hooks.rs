//! Hooks that fail, block, never end or are cancelled.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::hook::{
    HookRegistration, HookResponse, PreToolUse, RawHookResponse, UserPromptSubmit,
    input::PreToolUseInput,
};
use claude_agent_kit::{BoxError, Limits, Options, Timeouts, Warning, WarningCode};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults, Point};
use tests_e2e::harness::Harness;
use tokio::sync::{Semaphore, SemaphorePermit as Permit};

use crate::helpers::{
    Notes, bash, calls, command_of, find, has_file, in_memory, model_received, on_both, one_turn,
    panic_silently, start, touch_script, turn,
};
use crate::support::{LIMIT, in_time, record_warnings, run, until};

/// A short timeout that is still longer than a callback that does not wait takes.
const SOON: Duration = Duration::from_secs(2);

/// The kinds of failure, each with its own command.
const FAILING: [&str; 4] = ["touch error", "touch panic", "touch never", "touch fine"];

/// Returns options with a hook that fails according to the command.
fn with_failing_hook(options: Options, registration: HookRegistration<PreToolUseInput>) -> Options {
    options.allowed_tools(["Bash"]).on(registration, |call, _| async move {
        match command_of(call.input.as_ref()).as_str() {
            "touch error" => Err::<(), BoxError>("the database is gone".into()),
            "touch panic" => panic_silently(),
            "touch never" => std::future::pending().await,
            _ => Ok(()),
        }
    })
}

#[test]
fn failing_hook_lets_the_tool_run_with_a_warning() {
    on_both(
        || bash(&FAILING),
        async |harness| {
            let (options, warnings) =
                record_warnings(with_failing_hook(harness.options(), PreToolUse.timeout(SOON)));
            assert_eq!(one_turn(options).await.text, "Done.");
            for command in FAILING {
                assert!(has_file(&harness, &command[6..]), "{command}");
            }
            let warnings = warnings.lock().unwrap();
            let count = |code| warnings.iter().filter(|other| **other == code).count();
            assert_eq!(count(WarningCode::CallbackFailed), 2);
            assert_eq!(count(WarningCode::CallbackTimedOut), 1);
        },
    );
}

#[test]
fn failing_guard_blocks_the_tool() {
    on_both(
        || bash(&FAILING),
        async |harness| {
            let guard = PreToolUse.timeout(SOON).fail_closed();
            let (options, warnings) = record_warnings(with_failing_hook(harness.options(), guard));
            assert_eq!(one_turn(options).await.text, "Done.");
            assert_only_fine_ran(&harness);
            assert_eq!(warnings.lock().unwrap().len(), 3);
        },
    );
}

#[test]
fn hooks_fail_closed_makes_every_hook_a_guard() {
    on_both(
        || bash(&FAILING),
        async |harness| {
            let options =
                harness.options().hooks_fail_closed(true).timeouts(Timeouts::new().hook(SOON));
            one_turn(with_failing_hook(options, PreToolUse)).await;
            assert_only_fine_ran(&harness);
        },
    );
}

#[test]
fn hook_rejected_by_overload_blocks_the_tool() {
    on_both(
        || bash(&["touch made"]),
        async |harness| {
            let gate = Arc::new(Semaphore::new(0));
            let (mut options, warnings) =
                record_warnings(harness.options().allowed_tools(["Bash"]));
            // One hook runs, one is queued, and the other two are rejected.
            options = options.limits(Limits::new().running_callbacks(1).waiting_callbacks(1));
            for _ in 0..4 {
                let gate = gate.clone();
                options = options.on(PreToolUse, move |_, _| {
                    let gate = gate.clone();
                    async move { gate.acquire().await.map(Permit::forget).map_err(Into::into) }
                });
            }
            let session = start(options).await;
            let running = session.send("run it").await.unwrap();
            let refused = || warnings.lock().unwrap().len();
            until("two hooks are rejected", || refused() == 2).await;
            gate.add_permits(2);
            assert_eq!(in_time(running.finish()).await.unwrap().text, "Done.");
            assert_eq!(*warnings.lock().unwrap(), [WarningCode::CallbackRefused; 2]);
            assert!(!has_file(&harness, "made"), "the tool ran without its hooks");
            session.stop().await.unwrap();
        },
    );
}

fn assert_only_fine_ran(harness: &Harness) {
    for command in &FAILING[..3] {
        assert!(!has_file(harness, &command[6..]), "{command}");
    }
    assert!(has_file(harness, "fine"));
}

#[test]
fn prompt_does_not_reach_the_model_if_its_guard_fails() {
    let script = || Script::new().otherwise([Reply::text("Hello.")]);
    on_both(script, async |harness| {
        let options = harness.options().on(UserPromptSubmit.fail_closed(), |_, _| async {
            Err::<(), BoxError>("the list of forbidden words is gone".into())
        });
        let session = start(options).await;
        turn(&session, "a secret").await;
        assert!(!model_received(&harness, "a secret"));
        session.stop().await.unwrap();
    });
}

#[test]
fn blocking_async_callback_is_a_warning() {
    in_memory(touch_script(), async |harness| {
        let options = harness.options().allowed_tools(["Bash"]).on(PreToolUse, |_, _| async {
            std::thread::sleep(Duration::from_millis(1_200));
            HookResponse::deny("after a while")
        });
        let session = start(options).await;
        let mut messages = session.messages();
        turn(&session, "run it").await;
        let is_told = |warning: &Warning| warning.code() == WarningCode::CallbackBlocked;
        find(&mut messages, |item| item.warning().is_some_and(is_told)).await;
        assert!(!has_file(&harness, "made"));
        session.stop().await.unwrap();
    });
}

#[test]
fn blocking_hook_may_block_its_thread() {
    on_both(
        || bash(&["touch slow", "touch panic", "touch fine"]),
        async |harness| {
            let options = harness.options().allowed_tools(["Bash"]).on_blocking(
                PreToolUse.fail_closed(),
                |call, _| match command_of(call.input.as_ref()).as_str() {
                    "touch slow" => {
                        std::thread::sleep(Duration::from_millis(1_200));
                        HookResponse::deny("after a while")
                    }
                    "touch panic" => panic_silently(),
                    _ => HookResponse::new(),
                },
            );
            let (options, warnings) = record_warnings(options);
            one_turn(options).await;
            assert!(!has_file(&harness, "slow") && !has_file(&harness, "panic"));
            assert!(has_file(&harness, "fine"));
            assert_eq!(*warnings.lock().unwrap(), [WarningCode::CallbackFailed]);
        },
    );
}

#[test]
fn blocking_hook_that_never_returns_delays_nothing() {
    in_memory(touch_script(), async |harness| {
        let (leave, stays) = std::sync::mpsc::channel::<()>();
        let stays = std::sync::Mutex::new(stays);
        let options = harness.options().allowed_tools(["Bash"]).on_blocking(
            PreToolUse.timeout(SOON).fail_closed(),
            move |_, _| {
                let _ = stays.lock().unwrap().recv();
                HookResponse::allow()
            },
        );
        let (options, warnings) = record_warnings(options);
        assert_eq!(one_turn(options).await.text, "Done.");
        assert_eq!(*warnings.lock().unwrap(), [WarningCode::CallbackTimedOut]);
        assert!(!has_file(&harness, "made"));
        // The session has ended; dropping this ends the remaining thread.
        drop(leave);
    });
}

#[test]
fn interrupt_cancels_a_pending_hook_immediately() {
    let script = || {
        Script::new()
            .when("run it", [calls(&["touch made"]), Reply::text("Done.")])
            .when("again", [Reply::text("yes")])
    };
    on_both(script, async |harness| {
        let (calls, cancelled) = (Notes::new(), Notes::new());
        let (entered, fired) = (calls.clone(), cancelled.clone());
        let options =
            harness.options().allowed_tools(["Bash"]).timeouts(Timeouts::new().cancel_grace(LIMIT));
        // The timeout must not end the hook in this test.
        let registration = PreToolUse.timeout(Duration::from_secs(3600));
        let options = options.on(registration, move |_, context| {
            entered.add(());
            let fired = fired.clone();
            async move {
                context.cancel.cancelled().await;
                fired.add(());
                // The response is late and must be ignored.
                HookResponse::allow()
            }
        });
        let session = start(options).await;
        let running = session.send("run it").await.unwrap();
        until("the hook is called", || calls.len() == 1).await;
        in_time(session.interrupt()).await.unwrap();
        assert!(in_time(running.finish()).await.unwrap().result.is_error());
        until("the token has fired", || cancelled.len() == 1).await;
        assert!(!has_file(&harness, "made"));
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn hook_that_ignores_cancellation_is_aborted() {
    in_memory(touch_script(), async |harness| {
        struct DropLog(Notes<&'static str>);
        impl Drop for DropLog {
            fn drop(&mut self) {
                self.0.add("gone");
            }
        }
        let notes = Notes::new();
        let log = notes.clone();
        let options = harness.options().timeouts(Timeouts::new().cancel_grace(Duration::ZERO)).on(
            PreToolUse,
            move |_, _| {
                let gone = DropLog(log.clone());
                log.add("asked");
                async move {
                    std::future::pending::<()>().await;
                    drop(gone);
                }
            },
        );
        let session = start(options).await;
        let running = session.send("run it").await.unwrap();
        until("the hook is called", || notes.len() == 1).await;
        session.interrupt().await.unwrap();
        in_time(running.finish()).await.unwrap();
        until("the hook is aborted", || notes.all() == ["asked", "gone"]).await;
        session.stop().await.unwrap();
    });
}

#[test]
fn raw_response_field_of_another_event_is_ignored_with_a_warning() {
    on_both(touch_script, async |harness| {
        let registration = HookRegistration::named("PostToolUse");
        let options = harness.options().allowed_tools(["Bash"]).on(registration, |_, _| async {
            RawHookResponse::new()
                .specific("permissionDecision", "deny")
                .specific("additionalContext", "It is noon.")
        });
        let (options, warnings) = record_warnings(options);
        assert_eq!(one_turn(options).await.text, "Done.");
        assert_eq!(*warnings.lock().unwrap(), [WarningCode::HookFieldIgnored]);
        assert!(model_received(&harness, "It is noon."));
    });
}

#[test]
fn malformed_hook_request_follows_the_fail_rule() {
    let faults = Faults::new()
        .at(Point::Before("control_request/hook_callback".to_owned(), 1), Fault::WrongShape);
    run(async {
        let harness = Harness::faulty(touch_script(), faults).await.unwrap();
        let options = harness.options().allowed_tools(["Bash"]);
        let guarded = options.on(PreToolUse.fail_closed(), |_, _| async {});
        let (options, warnings) = record_warnings(guarded);
        let session = start(options).await;
        let running = session.send("run it").await.unwrap();
        until("a warning", || !warnings.lock().unwrap().is_empty()).await;
        assert!(!has_file(&harness, "made"));
        session.stop().await.unwrap();
        drop(running);
    });
}
