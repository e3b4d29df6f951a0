//! Tool calls that an earlier run deferred.

use claude_agent_kit::hook::PreToolUseAnswer;
use tests_e2e::prove::deferred;
use tests_e2e::stage::Stage;

use crate::play::is_made;
use crate::support::{hello, in_time, real, run};

#[test]
fn a_denied_deferred_call_is_never_executed_on_resume() {
    run(async {
        let stage = Stage::real(hello(), real()).await.unwrap();
        let repetitions = deferred::AREA.repetitions / 10;
        let count = deferred::count(&stage, repetitions).await.unwrap();
        assert_eq!((count.asked, count.executed), (repetitions, 0), "{count:?}");
    });
}

#[test]
fn a_deferred_call_runs_once_when_it_is_allowed() {
    run(async {
        let stage = Stage::real(hello(), real()).await.unwrap();
        let id = deferred::defer(&stage).await.unwrap();
        let again = deferred::resume(&stage, id.clone(), PreToolUseAnswer::defer);
        assert_eq!(in_time(again).await.unwrap(), 1);
        assert!(!is_made(&stage, deferred::MARK));
        let allowed = deferred::resume(&stage, id, PreToolUseAnswer::allow);
        assert_eq!(in_time(allowed).await.unwrap(), 1);
        let lines = std::fs::read_to_string(stage.project().join(deferred::MARK)).unwrap();
        assert_eq!(lines, "once\n");
    });
}
