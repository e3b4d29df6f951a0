//! A query without any fault.

use claude_agent_kit::{Item, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::Body;

use crate::support::on_all;

#[test]
fn query_returns_the_answer() {
    let script = || Script::new().when("capital", [Reply::text("Paris.")]);
    on_all(script, async |harness| {
        let mut stream = query("What is the capital of France?", harness.options()).await.unwrap();
        let mut kinds = Vec::new();
        let mut text = String::new();
        while let Some(item) = stream.next().await {
            let Item::Message(message) = item.unwrap() else { panic!("a warning") };
            kinds.extend(message.body.kind().map(str::to_owned));
            if let Body::Assistant(answer) = &message.body {
                text.push_str(&answer.text());
            }
        }
        assert_eq!(text, "Paris.");
        assert_eq!(kinds.first().map(String::as_str), Some("command_lifecycle"), "{kinds:?}");
        assert_eq!(kinds.iter().filter(|kind| *kind == "result").count(), 1, "{kinds:?}");
        assert!(stream.session_id().is_some());
        assert!(stream.next().await.is_none());
        assert!(stream.next().await.is_none());
    });
}
