//! Cases in which other clients hang, lose messages or leak, mostly on the simulated CLI.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::{Body, Item, Options, Permission, Session, Timeouts, WarningCode};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults, Sim};
use serde_json::json;
use tests_e2e::harness::Harness;

use crate::support::{LIMIT, SIM, on_all, real, run};

fn faulty(faults: Faults) -> Options {
    Options::new().simulated(Sim::new().faults(faults))
}

#[test]
fn interrupt_completes_while_a_callback_sleeps() {
    let script = || {
        Script::new()
            .when("run", [Reply::tool("Bash", json!({"command": "touch x"})), Reply::text("?")])
    };
    run(async {
        for path in [SIM, real().path.to_str().unwrap()] {
            let harness = Harness::sim_process(script(), path).await.unwrap();
            let called = Arc::new(tokio::sync::Notify::new());
            let (entered, gone) = (called.clone(), Arc::new(tokio::sync::Notify::new()));
            let cancelled = gone.clone();
            let options = harness
                .options()
                .timeouts(Timeouts::new().cancel_grace(LIMIT))
                .can_use_tool(move |_, context| {
                    let (entered, cancelled) = (entered.clone(), cancelled.clone());
                    async move {
                        entered.notify_one();
                        tokio::select! {
                            () = tokio::time::sleep(Duration::from_secs(3600)) => {}
                            () = context.cancel.cancelled() => cancelled.notify_one(),
                        }
                        Permission::allow()
                    }
                });
            let session = Session::start(options).await.unwrap();
            let turn = session.send("run").await.unwrap();
            called.notified().await;
            session.interrupt().await.unwrap();
            gone.notified().await;
            assert!(turn.finish().await.unwrap().result.is_error());
            assert!(!harness.project().join("x").exists());
            session.stop().await.unwrap();
        }
    });
}

#[test]
fn three_thousand_deltas_reach_a_slow_reader() {
    run(async {
        let session =
            Session::start(faulty(Faults::new().before("assistant", Fault::Deltas(3_000))))
                .await
                .unwrap();
        let mut messages = session.messages();
        let turn = session.send("go").await.unwrap();
        let mut pieces = 0;
        while pieces < 3_000 {
            let Item::Message(message) = messages.next().await.unwrap().unwrap() else { panic!() };
            pieces += usize::from(matches!(message.body, Body::StreamEvent(_)));
            tokio::task::yield_now().await;
        }
        turn.finish().await.unwrap();
        session.stop().await.unwrap();
    });
}

#[test]
fn ten_thousand_unread_messages_do_not_delay_an_operation() {
    run(async {
        let faults = Faults::new().before("assistant", Fault::Messages(10_000));
        let session = Session::start(faulty(faults)).await.unwrap();
        let unread = session.messages();
        let turn = session.send("go").await.unwrap();
        session.interrupt().await.unwrap();
        session.mcp().status().await.unwrap();
        turn.finish().await.unwrap();
        drop(unread);
        session.stop().await.unwrap();
    });
}

#[test]
fn a_thousand_sequential_operations_succeed() {
    run(async {
        let session = Session::start(Options::new().simulated(Sim::new())).await.unwrap();
        for round in 0..1_000 {
            session.set_model(format!("m{round}")).await.unwrap();
        }
        session.stop().await.unwrap();
    });
}

#[test]
fn stderr_malformed_lines_and_unknown_types_disturb_nothing() {
    run(async {
        // More malformed lines in a row than a query accepts.
        let garbage = [b"no json\n".repeat(6), b"{\"type\":\"brand_new\"}\n".to_vec()].concat();
        let faults = Faults::new()
            .at_start(Fault::Stderr(320 * 1024))
            .before("assistant", Fault::Bytes(garbage));
        let lines = Arc::new(AtomicUsize::new(0));
        let counter = lines.clone();
        let options = faulty(faults).on_stderr(move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        });
        let session = Session::start(options).await.unwrap();
        let mut messages = session.messages();
        let turn = session.send("go").await.unwrap();
        turn.finish().await.unwrap();
        session.stop().await.unwrap();
        let (mut malformed, mut unknown) = (0, 0);
        while let Some(item) = messages.next().await {
            match item.unwrap() {
                Item::Warning(warning) => {
                    malformed += usize::from(warning.code() == WarningCode::Malformed);
                }
                Item::PermissionRequest(_) => {}
                Item::Message(message) => {
                    unknown += usize::from(message.body.kind() == Some("brand_new"));
                }
            }
        }
        assert_eq!((malformed, unknown), (6, 1));
        assert!(lines.load(Ordering::Relaxed) > 4_000, "{lines:?}");
    });
}

#[test]
fn repeatedly_cancelled_next_loses_nothing() {
    run(async {
        let faults = Faults::new().before("assistant", Fault::Messages(2_000));
        let session = Session::start(faulty(faults)).await.unwrap();
        let mut messages = session.messages();
        session.send("go").await.unwrap();
        let mut answers = 0;
        loop {
            let item = tokio::select! {
                biased;
                item = messages.next() => item.unwrap().unwrap(),
                () = tokio::task::yield_now() => continue,
            };
            let Item::Message(message) = item else { panic!("{item:?}") };
            match message.body {
                Body::Assistant(_) => answers += 1,
                Body::Result(_) => break,
                _ => {}
            }
        }
        // The flood and the answer itself.
        assert_eq!(answers, 2_001);
        session.stop().await.unwrap();
    });
}

#[test]
fn forty_tools_in_one_answer_call_their_hooks() {
    let script = || {
        let calls = (0..40).fold(Reply::new(), |reply, call| {
            reply.and_tool("Bash", json!({"command": format!("touch made_{call}")}))
        });
        Script::new().when("forty", [calls, Reply::text("done")])
    };
    on_all(script, async |harness| {
        let called = Arc::new(AtomicUsize::new(0));
        let counter = called.clone();
        let options = harness.options().on(PreToolUse, move |_, _| {
            counter.fetch_add(1, Ordering::Relaxed);
            async { claude_agent_kit::hook::HookResponse::deny("no") }
        });
        let session = Session::start(options).await.unwrap();
        let outcome = session.send("forty").await.unwrap().finish().await.unwrap();
        assert_eq!((outcome.text.as_str(), called.load(Ordering::Relaxed)), ("done", 40));
        assert_eq!(std::fs::read_dir(harness.project()).unwrap().count(), 0);
        session.stop().await.unwrap();
    });
}

#[test]
fn two_hundred_concurrent_sessions_do_not_mix() {
    run(async {
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..200 {
            tasks.spawn(async move {
                let session = Session::start(Options::new().simulated(Sim::new())).await.unwrap();
                let prompt = format!("I am number {number}.");
                let outcome = session.send(&*prompt).await.unwrap().finish().await.unwrap();
                assert!(outcome.text.contains(&prompt), "{}", outcome.text);
                session.stop().await.unwrap();
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
    });
}
