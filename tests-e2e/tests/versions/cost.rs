//! The cost of turns, however the CLI reports it.

use claude_agent_kit::{Conversation, PermissionMode};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::control::GetUsage;
use serde_json::json;

use crate::helpers::{start, turn};
use crate::on_each;

#[test]
fn every_turn_reports_its_own_cost() {
    let agent = json!({"description": "Greet", "prompt": "greet at once",
                       "subagent_type": "general-purpose", "run_in_background": false});
    let script = || {
        let agent = agent.clone();
        Script::new()
            .when("greet at once", [Reply::text("Greeted.").usage(100_000, 1_000)])
            .when("one", [Reply::text("1").usage(1_000, 10)])
            .when(
                "delegate",
                [Reply::tool("Agent", agent).usage(4_000, 40), Reply::text("3").usage(5_000, 50)],
            )
    };
    on_each(script, async |harness| {
        // Some versions start in a mode in which a model decides about agents.
        let options = || harness.options().permission_mode(PermissionMode::Default);
        let session = start(options()).await;
        for (prompt, input, output) in [("one", 1_000, 10), ("delegate", 109_000, 1_090)] {
            let outcome = turn(&session, prompt).await;
            let tokens = outcome.cost.tokens;
            assert_eq!((tokens.input, tokens.output), (input, output));
            assert!(outcome.cost.is_complete && outcome.cost.usd > 0.0);
        }
        let mut request = GetUsage::default();
        request.skip_behaviors = Some(true);
        let usage = session.request(request).await.unwrap().session.unwrap();
        let total = usage.total_cost_usd.unwrap().as_f64();
        assert!((session.cost().usd - total).abs() < 1e-9, "{total} {}", session.cost());
        let id = session.session_id().unwrap();
        session.stop().await.unwrap();
        // Some versions then count from zero. Others keep counting; with those that do not report
        // the usage since the last result, the cost of the first turn is unknown.
        let resumed = start(options().conversation(Conversation::resume(id))).await;
        let first = turn(&resumed, "one").await.cost;
        let second = turn(&resumed, "one").await.cost;
        assert!(second.is_complete && second.usd > 0.0, "{second:?}");
        assert_eq!((first.tokens.input, second.tokens.input), (1_000, 1_000));
        if first.is_complete {
            assert!((first.usd - second.usd).abs() < 1e-9, "{first:?}");
        } else {
            assert!(first.usd == 0.0, "{first:?}");
        }
        resumed.stop().await.unwrap();
    });
}
