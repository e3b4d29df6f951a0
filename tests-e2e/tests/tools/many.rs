//! Many calls.

use std::sync::Arc;

use claude_agent_kit::{Options, Tool};
use serde_json::json;
use tokio::sync::Barrier;

use crate::bridge::{answer, call, post};
use crate::calc::{Pair, calc};
use crate::puppet::running;
use crate::support::run;

#[test]
fn ten_thousand_calls_in_a_row_are_answered() {
    run(async {
        let (session, mut puppet) = running(Options::new().tool_server(calc())).await;
        for id in 0..10_000 {
            post(&mut puppet, "m", "calc", call(id, "add", json!({"a": id, "b": 1}))).await;
            let (_, answer) = answer(&mut puppet).await;
            assert_eq!(answer["id"], id);
            assert_eq!(answer["result"]["content"][0]["text"], (id + 1).to_string());
        }
        drop(session);
    });
}

#[test]
fn sixty_four_calls_run_at_the_same_time() {
    run(async {
        // Opens only if all of them are there.
        let barrier = Arc::new(Barrier::new(64));
        let meet = Tool::new("meet", "Meets", move |pair: Pair| {
            let barrier = barrier.clone();
            async move {
                barrier.wait().await;
                Ok(pair.a)
            }
        });
        let (session, mut puppet) = running(Options::new().tool_server(calc().with(meet))).await;
        for id in 0..64 {
            let message = call(id, "meet", json!({"a": id, "b": 0}));
            post(&mut puppet, &id.to_string(), "calc", message).await;
        }
        let mut answered = Vec::new();
        for _ in 0..64 {
            let (id, answer) = answer(&mut puppet).await;
            assert_eq!(answer["result"]["content"][0]["text"], id);
            answered.push(id);
        }
        answered.sort_unstable();
        answered.dedup();
        assert_eq!(answered.len(), 64);
        drop(session);
    });
}
