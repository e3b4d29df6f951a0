//! Tools that come and go while sessions run.

use claude_agent_kit::NoArguments;
use claude_agent_kit::{ErrorKind, Options, Session, Tool, ToolServer};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::harness::Harness;

use crate::calc::{calc, results, texts, with};
use crate::play::{on_both, start, turn};
use crate::puppet::running;
use crate::support::{in_time, run, until};

/// A tool that says its name, and for which the model need not search.
fn named(name: &'static str) -> Tool {
    Tool::new(name, "Says its name", move |_: NoArguments| async move { Ok(name) }).always_load()
}

fn script() -> Script {
    Script::new()
        .when("pick", [Reply::tool("mcp__calc__apple", json!({})), Reply::text("Picked.")])
        .when("look", [Reply::tool("mcp__calc__pear", json!({})), Reply::text("Looked.")])
        .otherwise([Reply::text("Hello.")])
}

/// Waits until the CLI knows these tools; it asks for them after it has acknowledged a change.
pub(crate) async fn known(session: &Session, names: &[&str]) {
    in_time(async {
        loop {
            let servers = session.mcp().status().await.unwrap().mcp_servers;
            let tools = servers[0].tools.iter().filter_map(|tool| tool.name.as_deref());
            if tools.eq(names.iter().copied()) {
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// The tools of the server that the model was offered last.
fn offered(harness: &Harness) -> Vec<String> {
    let requests = harness.api().requests();
    let names = requests.last().unwrap().tool_names().into_iter();
    names.filter_map(|name| Some(name.strip_prefix("mcp__calc__")?.to_owned())).collect()
}

#[test]
fn new_tools_are_offered_and_called_and_old_ones_no_more() {
    on_both(script, async |harness| {
        let (server, tools) = ToolServer::new().add(named("pear")).changeable();
        let session = start(with(&harness, server)).await;
        turn(&session, "hello").await;
        assert_eq!(offered(&harness), ["pear"]);
        in_time(tools.add(named("apple"))).await.unwrap();
        known(&session, &["pear", "apple"]).await;
        assert_eq!(turn(&session, "pick").await.text, "Picked.");
        assert_eq!(texts(&harness), ["apple"]);
        assert_eq!(tools.names(), ["pear", "apple"]);
        assert!(in_time(tools.remove("pear")).await.unwrap());
        assert!(!in_time(tools.remove("pear")).await.unwrap());
        known(&session, &["apple"]).await;
        // The real CLI goes on offering it, but nobody can call it any more.
        turn(&session, "look for it").await;
        assert_eq!(results(&harness).last().unwrap()["is_error"], true);
        assert!(texts(&harness).last().unwrap().contains("No such tool"), "{:?}", texts(&harness));
        in_time(tools.replace([named("plum"), named("fig")])).await.unwrap();
        known(&session, &["plum", "fig"]).await;
        turn(&session, "hello").await;
        let now = offered(&harness);
        assert!(["fig", "plum"].iter().all(|name| now.iter().any(|n| n == name)), "{now:?}");
        session.stop().await.unwrap();
        // Nobody is left to be told.
        in_time(tools.add(named("apple"))).await.unwrap();
    });
}

#[test]
fn tools_that_cannot_be_are_refused_and_change_nothing() {
    run(async {
        let (server, tools) = calc().changeable();
        let (_session, _puppet) = running(Options::new().mcp("calc", server)).await;
        let list = Tool::new("list", "", |_: Vec<i64>| async { Ok(()) });
        for (tool, reason) in [
            (named("add"), "two tools are named \"add\""),
            (named("has space"), "not a valid tool name"),
            (list, "not an object"),
        ] {
            let error = in_time(tools.add(tool)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert!(error.to_string().contains(reason), "{error}");
        }
        let twice = [named("x"), named("x")];
        assert!(in_time(tools.replace(twice)).await.is_err());
        assert_eq!(tools.names(), ["add"]);
        // Whether a name is too long, the name decides that a session has for the server.
        let (server, tools) = ToolServer::new().changeable();
        let (_session, _puppet) = running(Options::new().mcp("s".repeat(64), server)).await;
        let long = || Tool::new("t".repeat(58), "", |_: NoArguments| async { Ok(()) });
        let error = in_time(tools.add(long())).await.unwrap_err();
        assert!(error.to_string().contains("129 characters"), "{error}");
        assert_eq!(tools.names(), Vec::<String>::new());
        // No session has this one yet.
        let (server, tools) = ToolServer::new().changeable();
        in_time(tools.add(long())).await.unwrap();
        let options = Options::new().mcp("s".repeat(64), server);
        let error = Session::open(options).await.unwrap_err();
        assert!(error.to_string().contains("129 characters"), "{error}");
    });
}

#[test]
fn every_session_is_told_and_one_that_is_over_no_more() {
    run(async {
        let (server, tools) = calc().changeable();
        let options = Options::new().mcp("calc", server);
        let (first, mut one) = running(options.clone()).await;
        let (_second, mut two) = running(options).await;
        let adding = tokio::spawn({
            let tools = tools.clone();
            async move { tools.add(named("apple")).await }
        });
        for puppet in [&mut one, &mut two] {
            let told = puppet.asked("mcp_message").await;
            let method = &told["request"]["message"]["method"];
            assert_eq!(method, "notifications/tools/list_changed");
            puppet.answer(&told, json!({})).await;
        }
        in_time(adding).await.unwrap().unwrap();
        end(first, one).await;
        let removing = tokio::spawn({
            let tools = tools.clone();
            async move { tools.remove("apple").await }
        });
        let told = two.asked("mcp_message").await;
        two.refuse(&told, "not now").await;
        // A session that could not be told is an error; the tool is gone all the same.
        assert_eq!(
            in_time(removing).await.unwrap().unwrap_err().kind(),
            ErrorKind::ControlRejected
        );
        until("it is removed", || tools.names() == ["add"]).await;
    });
}

async fn end(session: Session, puppet: crate::puppet::Puppet) {
    puppet.exit(claude_agent_kit::Exit::Code(0));
    // It ended by itself, which is told as an error or not.
    drop(in_time(session.stop()).await);
}
