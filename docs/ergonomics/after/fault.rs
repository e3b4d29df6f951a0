//! A simulated CLI that dies before its result.

use claude_agent_kit::testing::{Fault, Faults, Reply, Script, Sim};
use claude_agent_kit::{ErrorKind, Options, query};

#[tokio::test]
async fn a_crash_is_reported() {
    let sim = Sim::new()
        .script(Script::new().otherwise([Reply::text("Two.")]))
        .faults(Faults::new().before("result", Fault::Exit(3)));
    let answer = query("How many?", Options::new().simulated(sim)).await.unwrap().collect().await;
    assert_eq!(answer.into_result().unwrap_err().kind(), ErrorKind::ProcessFailed);
}
