//! Tool calls that an earlier run deferred.

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::{Conversation, Session, VersionCheck};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::harness::Harness;
use tests_e2e::prove::deferred;

use crate::helpers::{Notes, has_file, real_with_and_without_tools, turn, with_and_without_tools};
use crate::support::{hello, in_time, real, run, until, write_executable};

#[test]
fn denied_deferred_call_is_never_executed_on_resume() {
    real_with_and_without_tools(hello, async |harness| {
        let repetitions = deferred::AREA.repetitions / 10;
        let count = deferred::count(&harness, repetitions).await.unwrap();
        assert_eq!((count.asked, count.executed), (repetitions, 0), "{count:?}");
    });
}

#[test]
fn allowed_deferred_call_runs_once() {
    real_with_and_without_tools(hello, async |harness| {
        let options = || deferred::options(&harness);
        let id = deferred::defer(&harness).await.unwrap();
        let again = deferred::resume(&harness, options(), id.clone(), HookResponse::defer);
        assert_eq!(in_time(again).await.unwrap(), 1);
        assert!(!has_file(&harness, deferred::MARK));
        let allowed = deferred::resume(&harness, options(), id, HookResponse::allow);
        assert_eq!(in_time(allowed).await.unwrap(), 1);
        let lines = std::fs::read_to_string(harness.project().join(deferred::MARK)).unwrap();
        assert_eq!(lines, "once\n");
    });
}

#[test]
fn deferred_call_waits_for_a_late_handshake() {
    real_with_and_without_tools(hello, async |harness| {
        let id = deferred::defer(&harness).await.unwrap();
        // The host's lines arrive long after the CLI could have replayed the call.
        let late = harness.root().join("late");
        let cli = real().path.display();
        write_executable(&late, &format!("#!/bin/sh\n(sleep 4; exec cat) | '{cli}' \"$@\"\n"));
        let options = deferred::options(&harness).cli_path(&late).version_check(VersionCheck::Skip);
        let deny = || HookResponse::deny("not approved");
        assert_eq!(in_time(deferred::resume(&harness, options, id, deny)).await.unwrap(), 1);
        assert!(!has_file(&harness, deferred::MARK));
    });
}

/// The hook is called for the call, which is then neither executed nor replayed.
#[test]
fn deferred_call_of_a_background_agent_is_lost() {
    let agent = json!({"description": "Work", "prompt": "work for me",
        "subagent_type": "general-purpose", "run_in_background": true});
    let script = move || {
        let call = json!({"command": "touch executed", "description": "Run it"});
        Script::new()
            .when("work for me", [Reply::tool("Bash", call), Reply::text("Worked.")])
            .otherwise([Reply::tool("Agent", agent.clone()), Reply::text("Done.")])
    };
    with_and_without_tools(script, async |harness| {
        let asked = Notes::new();
        let notes = asked.clone();
        let options =
            deferred::options(&harness).allowed_tools(["Bash", "Agent"]).on(
                PreToolUse,
                move |call, _| {
                    let is_subagent = call.agent_id.is_some();
                    if is_subagent {
                        notes.add(());
                    }
                    async move {
                        if is_subagent { HookResponse::defer() } else { HookResponse::allow() }
                    }
                },
            );
        let session = Session::start(options).await.unwrap();
        let outcome = turn(&session, "delegate").await;
        until("the hook is called for the subagent", || asked.len() == 1).await;
        session.stop().await.unwrap();
        let id = outcome.session_id().unwrap().clone();
        let options = deferred::options(&harness).conversation(Conversation::resume(id));
        let session = Session::start(options).await.unwrap();
        assert!(in_time(session.replayed_turn()).await.unwrap().is_none());
        session.stop().await.unwrap();
        assert!(!has_file(&harness, deferred::MARK));
    });
}

#[test]
fn simulated_cli_replays_a_deferred_call() {
    run(async {
        let without = Harness::in_memory(hello()).await.unwrap();
        let with = Harness::in_memory(hello()).await.unwrap().with_tools();
        for harness in [without, with] {
            let count = in_time(deferred::count(&harness, 1)).await.unwrap();
            assert_eq!((count.asked, count.executed), (1, 0), "{count:?}");
        }
    });
}
