//! Tool calls that an earlier run deferred.

use claude_agent_kit::VersionCheck;
use claude_agent_kit::hook::HookResponse;
use tests_e2e::prove::deferred;
use tests_e2e::stage::Stage;

use crate::helpers::has_file;
use crate::support::{hello, in_time, real, run, write_executable};

#[test]
fn denied_deferred_call_is_never_executed_on_resume() {
    run(async {
        let stage = Stage::real(hello(), real()).await.unwrap();
        let repetitions = deferred::AREA.repetitions / 10;
        let count = deferred::count(&stage, repetitions).await.unwrap();
        assert_eq!((count.asked, count.executed), (repetitions, 0), "{count:?}");
    });
}

#[test]
fn allowed_deferred_call_runs_once() {
    run(async {
        let stage = Stage::real(hello(), real()).await.unwrap();
        let options = || deferred::options(&stage);
        let id = deferred::defer(&stage).await.unwrap();
        let again = deferred::resume(&stage, options(), id.clone(), HookResponse::defer);
        assert_eq!(in_time(again).await.unwrap(), 1);
        assert!(!has_file(&stage, deferred::MARK));
        let allowed = deferred::resume(&stage, options(), id, HookResponse::allow);
        assert_eq!(in_time(allowed).await.unwrap(), 1);
        let lines = std::fs::read_to_string(stage.project().join(deferred::MARK)).unwrap();
        assert_eq!(lines, "once\n");
    });
}

#[test]
fn deferred_call_waits_for_a_late_handshake() {
    run(async {
        let stage = Stage::real(hello(), real()).await.unwrap();
        let id = deferred::defer(&stage).await.unwrap();
        // The host's lines arrive long after the CLI could have replayed the call.
        let late = stage.root().join("late");
        let cli = real().path.display();
        write_executable(&late, &format!("#!/bin/sh\n(sleep 4; exec cat) | '{cli}' \"$@\"\n"));
        let options = deferred::options(&stage).cli_path(&late).version_check(VersionCheck::Skip);
        let deny = || HookResponse::deny("not approved");
        assert_eq!(in_time(deferred::resume(&stage, options, id, deny)).await.unwrap(), 1);
        assert!(!has_file(&stage, deferred::MARK));
    });
}

#[test]
fn simulated_cli_replays_a_deferred_call() {
    run(async {
        let stage = Stage::in_memory(hello()).await.unwrap();
        let count = in_time(deferred::count(&stage, 1)).await.unwrap();
        assert_eq!((count.asked, count.executed), (1, 0), "{count:?}");
    });
}
