//! Replays a recorded session.

use claude_agent_kit::testing::{Recording, Replay};
use claude_agent_kit::{Options, query};

#[tokio::test]
async fn the_recorded_session_ends_as_it_did() {
    let file = std::fs::read("tests/session.wire").unwrap();
    let replay = Replay::strict(Recording::parse(&file).unwrap());
    let answer = query("How many?", Options::new().replayed(&replay)).await.unwrap().collect().await;
    assert_eq!(answer.into_result().unwrap().text(), "Two.");
    assert!(replay.mismatch().is_none());
}
