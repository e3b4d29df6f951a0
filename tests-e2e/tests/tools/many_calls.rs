//! Many calls.

use std::sync::Arc;

use claude_agent_kit::{Options, Tool};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tokio::sync::Barrier;

use crate::bridge::{call, read_response, send_mcp};
use crate::calc::{Pair, calc, texts, with_server};
use crate::fake_cli::connect;
use crate::helpers::{in_memory, one_turn};
use crate::support::run;

#[test]
fn ten_thousand_sequential_calls_are_answered() {
    run(async {
        let (session, mut cli) = connect(Options::new().mcp("calc", calc())).await;
        for id in 0..10_000 {
            send_mcp(&mut cli, "m", "calc", call(id, "add", json!({"a": id, "b": 1}))).await;
            let (_, answer) = read_response(&mut cli).await;
            assert_eq!(answer["id"], id);
            assert_eq!(answer["result"]["content"][0]["text"], (id + 1).to_string());
        }
        drop(session);
    });
}

#[test]
fn simulated_cli_makes_ten_thousand_sequential_calls() {
    let call = |reply: Reply, n: i64| reply.and_tool("mcp__calc__add", json!({"a": n, "b": 1}));
    let answer = (0..10_000).fold(Reply::new(), call);
    in_memory(Script::new().otherwise([answer, Reply::text("Done.")]), async |harness| {
        assert_eq!(one_turn(with_server(&harness, calc())).await.text, "Done.");
        let expected: Vec<String> = (1..=10_000).map(|n: i64| n.to_string()).collect();
        assert!(texts(&harness) == expected);
    });
}

#[test]
fn sixty_four_calls_of_the_simulated_cli_run_concurrently() {
    let call = |reply: Reply, n: i64| reply.and_tool("mcp__calc__meet", json!({"a": n, "b": 0}));
    let answer = (0..64).fold(Reply::new(), call);
    in_memory(Script::new().otherwise([answer, Reply::text("Done.")]), async |harness| {
        assert_eq!(
            one_turn(with_server(&harness, calc().add(meeting_tool().read_only()))).await.text,
            "Done."
        );
        let mut met: Vec<i64> = texts(&harness).iter().map(|text| text.parse().unwrap()).collect();
        met.sort_unstable();
        assert!(met.into_iter().eq(0..64));
    });
}

/// Returns a tool that ends only when it runs 64 times at once.
fn meeting_tool() -> Tool {
    let barrier = Arc::new(Barrier::new(64));
    Tool::new("meet", "Meets", move |pair: Pair| {
        let barrier = barrier.clone();
        async move {
            barrier.wait().await;
            Ok(pair.a)
        }
    })
}

#[test]
fn sixty_four_calls_run_concurrently() {
    run(async {
        let (session, mut cli) =
            connect(Options::new().mcp("calc", calc().add(meeting_tool()))).await;
        for id in 0..64 {
            let message = call(id, "meet", json!({"a": id, "b": 0}));
            send_mcp(&mut cli, &id.to_string(), "calc", message).await;
        }
        let mut answered = Vec::new();
        for _ in 0..64 {
            let (id, answer) = read_response(&mut cli).await;
            assert_eq!(answer["result"]["content"][0]["text"], id);
            answered.push(id);
        }
        answered.sort_unstable();
        answered.dedup();
        assert_eq!(answered.len(), 64);
        drop(session);
    });
}
