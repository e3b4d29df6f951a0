//! Tools that are added and removed while sessions are running.

use claude_agent_kit::NoArguments;
use claude_agent_kit::{ErrorKind, Options, Session, Tool, ToolServer};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::harness::Harness;

use crate::calc::{calc, results, texts, with_server};
use crate::fake_cli::connect;
use crate::helpers::{on_both, start, turn};
use crate::support::{in_time, run, until};

/// Returns a tool that returns its name and is always loaded.
fn named_tool(name: &'static str) -> Tool {
    Tool::new(name, "Says its name", move |_: NoArguments| async move { Ok(name) }).always_load()
}

fn script() -> Script {
    Script::new()
        .when("pick", [Reply::tool("mcp__calc__apple", json!({})), Reply::text("Picked.")])
        .when("look", [Reply::tool("mcp__calc__pear", json!({})), Reply::text("Looked.")])
        .otherwise([Reply::text("Hello.")])
}

/// Waits until the CLI lists these tools; it requests them after it has acknowledged a change.
pub(crate) async fn wait_for_tools(session: &Session, names: &[&str]) {
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

/// Returns the tools of the server in the last request to the model.
fn offered_tools(harness: &Harness) -> Vec<String> {
    let requests = harness.api().requests();
    let names = requests.last().unwrap().tool_names().into_iter();
    names.filter_map(|name| Some(name.strip_prefix("mcp__calc__")?.to_owned())).collect()
}

#[test]
fn added_tools_are_offered_and_removed_ones_are_not() {
    on_both(script, async |harness| {
        let (server, tools) = ToolServer::new().add(named_tool("pear")).changeable();
        let session = start(with_server(&harness, server)).await;
        turn(&session, "hello").await;
        assert_eq!(offered_tools(&harness), ["pear"]);
        in_time(tools.add(named_tool("apple"))).await.unwrap();
        wait_for_tools(&session, &["pear", "apple"]).await;
        assert_eq!(turn(&session, "pick").await.text, "Picked.");
        assert_eq!(texts(&harness), ["apple"]);
        assert_eq!(tools.names(), ["pear", "apple"]);
        assert!(in_time(tools.remove("pear")).await.unwrap());
        assert!(!in_time(tools.remove("pear")).await.unwrap());
        wait_for_tools(&session, &["apple"]).await;
        // The real CLI still offers the tool, but it cannot be called any more.
        turn(&session, "look for it").await;
        assert_eq!(results(&harness).last().unwrap()["is_error"], true);
        assert!(texts(&harness).last().unwrap().contains("No such tool"), "{:?}", texts(&harness));
        in_time(tools.replace([named_tool("plum"), named_tool("fig")])).await.unwrap();
        wait_for_tools(&session, &["plum", "fig"]).await;
        turn(&session, "hello").await;
        let now = offered_tools(&harness);
        assert!(["fig", "plum"].iter().all(|name| now.iter().any(|n| n == name)), "{now:?}");
        session.stop().await.unwrap();
        // No session remains to be notified.
        in_time(tools.add(named_tool("apple"))).await.unwrap();
    });
}

#[test]
fn invalid_tools_are_rejected_without_a_change() {
    run(async {
        let (server, tools) = calc().changeable();
        let (_session, _cli) = connect(Options::new().mcp("calc", server)).await;
        let list = Tool::new("list", "", |_: Vec<i64>| async { Ok(()) });
        for (tool, reason) in [
            (named_tool("add"), "two tools are named \"add\""),
            (named_tool("has space"), "not a valid tool name"),
            (list, "not an object"),
        ] {
            let error = in_time(tools.add(tool)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert!(error.to_string().contains(reason), "{error}");
        }
        let twice = [named_tool("x"), named_tool("x")];
        assert!(in_time(tools.replace(twice)).await.is_err());
        assert_eq!(tools.names(), ["add"]);
        // The limit of a tool name includes the name that a session gives to the server.
        let (server, tools) = ToolServer::new().changeable();
        let (_session, _cli) = connect(Options::new().mcp("s".repeat(64), server)).await;
        let long = || Tool::new("t".repeat(58), "", |_: NoArguments| async { Ok(()) });
        let error = in_time(tools.add(long())).await.unwrap_err();
        assert!(error.to_string().contains("129 characters"), "{error}");
        assert_eq!(tools.names(), Vec::<String>::new());
        // No session uses this server yet.
        let (server, tools) = ToolServer::new().changeable();
        in_time(tools.add(long())).await.unwrap();
        let options = Options::new().mcp("s".repeat(64), server);
        let error = Session::open(options).await.unwrap_err();
        assert!(error.to_string().contains("129 characters"), "{error}");
    });
}

#[test]
fn tool_changes_notify_all_running_sessions() {
    run(async {
        let (server, tools) = calc().changeable();
        let options = Options::new().mcp("calc", server);
        let (first, mut one) = connect(options.clone()).await;
        let (_second, mut two) = connect(options).await;
        let adding = tokio::spawn({
            let tools = tools.clone();
            async move { tools.add(named_tool("apple")).await }
        });
        for cli in [&mut one, &mut two] {
            let notification = cli.expect_request("mcp_message").await;
            let method = &notification["request"]["message"]["method"];
            assert_eq!(method, "notifications/tools/list_changed");
            cli.respond(&notification, json!({})).await;
        }
        in_time(adding).await.unwrap().unwrap();
        end_session(first, one).await;
        let removing = tokio::spawn({
            let tools = tools.clone();
            async move { tools.remove("apple").await }
        });
        let notification = two.expect_request("mcp_message").await;
        two.respond_error(&notification, "not now").await;
        // A session that could not be notified is an error; the tool is removed anyway.
        assert_eq!(
            in_time(removing).await.unwrap().unwrap_err().kind(),
            ErrorKind::ControlRejected
        );
        until("the tool is removed", || tools.names() == ["add"]).await;
    });
}

async fn end_session(session: Session, cli: crate::fake_cli::FakeCli) {
    cli.exit(claude_agent_kit::Exit::Code(0));
    // The CLI exited by itself, which may or may not be an error.
    drop(in_time(session.stop()).await);
}
