//! Tool calls that an earlier run deferred.

use claude_agent_kit::VersionCheck;
use claude_agent_kit::hook::HookResponse;
use tests_e2e::harness::Harness;
use tests_e2e::prove::deferred;

use crate::helpers::has_file;
use crate::support::{hello, in_time, real, run, write_executable};

#[test]
fn denied_deferred_call_is_never_executed_on_resume() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let repetitions = deferred::AREA.repetitions / 10;
        let count = deferred::count(&harness, repetitions).await.unwrap();
        assert_eq!((count.asked, count.executed), (repetitions, 0), "{count:?}");
    });
}

#[test]
fn allowed_deferred_call_runs_once() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
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
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
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

#[test]
fn simulated_cli_replays_a_deferred_call() {
    run(async {
        let harness = Harness::in_memory(hello()).await.unwrap();
        let count = in_time(deferred::count(&harness, 1)).await.unwrap();
        assert_eq!((count.asked, count.executed), (1, 0), "{count:?}");
    });
}
