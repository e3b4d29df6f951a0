//! Waiting for servers, and raw servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claude_agent_kit::mcp::RawServer;
use claude_agent_kit::{ErrorKind, Json, Options, ToolServer, WarningCode};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use crate::bridge::{call, read_response, send_mcp};
use crate::calc::{Pair, calc, call_script, results, texts, with_server};
use crate::calls::Dropped;
use crate::changeable_servers::wait_for_tools;
use crate::fake_cli::{connect, on_paused_clock};
use crate::helpers::{Notes, start, turn};
use crate::support::{LIMIT, SHORT, hello, in_time, on_all, real, run, until};

#[test]
fn wait_returns_connected_servers_and_reports_failed_ones() {
    on_all(hello, async |harness| {
        let broken = Json::from_text(r#"{"command":"/does/not/exist"}"#).unwrap();
        let session = start(with_server(&harness, calc()).mcp("broken", broken)).await;
        let servers = in_time(session.mcp().wait_for(["calc"], LIMIT)).await.unwrap();
        assert_eq!(servers.len(), 1);
        assert_eq!(servers[0].name.as_deref(), Some("calc"));
        let broken = session.mcp().wait(LIMIT).await.unwrap_err();
        assert_eq!(broken.kind(), ErrorKind::McpServerFailed, "{broken}");
        assert_eq!(broken.server(), Some("broken"));
        let unknown = in_time(session.mcp().wait_for(["missing"], SHORT)).await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::McpServerFailed, "{unknown}");
        assert_eq!(unknown.server(), Some("missing"));
        session.stop().await.unwrap();
    });
}

#[test]
fn wait_uses_the_last_status_if_the_cli_stops_responding() {
    on_paused_clock(async {
        let (session, mut cli) = connect(Options::new()).await;
        let answers_once = async {
            let request = cli.expect_request("mcp_status").await;
            cli.respond(&request, json!({"mcpServers": []})).await;
            cli
        };
        let limit = Duration::from_secs(10);
        let (waited, _cli) = tokio::join!(session.mcp().wait_for(["missing"], limit), answers_once);
        let error = waited.unwrap_err();
        assert_eq!((error.kind(), error.server()), (ErrorKind::McpServerFailed, Some("missing")));
        // Without any status the error is a timeout.
        let (session, _cli) = connect(Options::new()).await;
        let error = session.mcp().wait_for(["missing"], limit).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ControlTimeout);
    });
}

#[test]
fn wait_covers_every_server() {
    on_all(hello, async |harness| {
        let session = start(with_server(&harness, calc())).await;
        let servers = in_time(session.mcp().wait(LIMIT)).await.unwrap();
        assert_eq!(servers.len(), 1);
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}

/// Returns a raw server whose second tool exists after the first was called.
fn growing_server() -> RawServer {
    let grown = Arc::new(AtomicBool::new(false));
    RawServer::new(move |message: Json, ctx| {
        let grown = grown.clone();
        async move {
            let message: Value = message.deserialize()?;
            let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": true}},
                    "serverInfo": {"name": "calc", "version": "1"},
                }),
                "tools/list" if grown.load(Ordering::SeqCst) => {
                    json!({"tools": [tool("grow"), tool("fruit")]})
                }
                "tools/list" => json!({"tools": [tool("grow")]}),
                "tools/call" if message["params"]["name"] == "grow" => {
                    grown.store(true, Ordering::SeqCst);
                    ctx.client.tools_changed().await?;
                    json!({"content": [{"type": "text", "text": "grown"}]})
                }
                "tools/call" => json!({"content": [{"type": "text", "text": "an apple"}]}),
                _ => json!({}),
            };
            // An `id` in the response is replaced.
            Ok(json!({"id": "mine", "result": result}).into())
        }
    })
}

#[test]
fn raw_server_that_exceeds_its_timeout_gets_an_error_response() {
    run(async {
        let notes = Notes::new();
        let noted = notes.clone();
        let server = RawServer::new(move |_, ctx| {
            let notes = noted.clone();
            async move {
                let _dropped = Dropped(notes.clone());
                drop(tokio::spawn(async move {
                    ctx.cancel.cancelled().await;
                    notes.add("fired");
                }));
                std::future::pending().await
            }
        });
        let server = server.timeout(Duration::from_millis(50));
        let (_session, mut cli) = connect(Options::new().mcp("calc", server)).await;
        send_mcp(&mut cli, "m", "calc", call(1, "wait", json!({}))).await;
        let (_, late) = read_response(&mut cli).await;
        assert_eq!((&late["id"], &late["error"]["code"]), (&json!(1), &json!(-32603)), "{late}");
        until("both calls are recorded", || notes.len() == 2).await;
        assert!(notes.all().contains(&"fired") && notes.all().contains(&"dropped"));
    });
}

#[test]
fn raw_server_can_change_its_tools() {
    let script = || {
        Script::new()
            .when("grow", [Reply::tool("mcp__calc__grow", json!({})), Reply::text("Grown.")])
            .when("pick", [Reply::tool("mcp__calc__fruit", json!({})), Reply::text("Picked.")])
    };
    on_all(script, async |harness| {
        let options = harness.options().mcp("calc", growing_server()).allowed_tools(["mcp__calc"]);
        let session = start(options).await;
        assert_eq!(turn(&session, "grow").await.text, "Grown.");
        assert_eq!(texts(&harness), ["grown"]);
        wait_for_tools(&session, &["grow", "fruit"]).await;
        assert_eq!(turn(&session, "pick").await.text, "Picked.");
        assert!(texts(&harness).contains(&"an apple".to_owned()), "{:?}", texts(&harness));
        session.stop().await.unwrap();
    });
}

/// Returns a raw server, whose tools only the CLI checks.
fn server_with_tools(tools: &[String]) -> RawServer {
    let tool = |name: &String| json!({"name": name, "inputSchema": {"type": "object"}});
    let tools: Vec<Value> = tools.iter().map(tool).collect();
    RawServer::new(move |message: Json, _| {
        let tools = tools.clone();
        async move {
            let message: Value = message.deserialize()?;
            let result = match message["method"].as_str().unwrap_or_default() {
                "initialize" => json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "x", "version": "1"},
                }),
                "tools/list" => json!({"tools": tools}),
                _ => json!({}),
            };
            Ok(json!({"result": result}).into())
        }
    })
}

#[test]
fn real_cli_ignores_the_tools_that_the_sdk_rejects() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let tools = ["t".repeat(115), "t".repeat(116)];
        let editor = ["executeCode".to_owned(), "lint".to_owned()];
        let options = harness.options().env("ENABLE_TOOL_SEARCH", "false");
        let options = options.mcp("long-1", server_with_tools(&tools[..]));
        let session = start(options.mcp("ide", server_with_tools(&editor))).await;
        in_time(session.mcp().wait(LIMIT)).await.unwrap();
        turn(&session, "hello").await;
        let mut offered = harness.api().requests()[0].tool_names();
        offered.retain(|name| name.starts_with("mcp__"));
        offered.sort_unstable();
        let longest = format!("mcp__long-1__{}", tools[0]);
        assert_eq!(longest.len(), 128);
        assert_eq!(offered, ["mcp__ide__executeCode".to_owned(), longest]);
        session.stop().await.unwrap();
    });
}

#[test]
fn server_name_with_two_underscores_works_and_its_rule_needs_a_wildcard() {
    let script = || call_script(&[("mcp__a__b__add", json!({"a": 1, "b": 2}))]);
    run(async {
        for (rule, warnings, result) in [
            ("mcp__a__b", 1, None),
            ("mcp__a__b__*", 0, Some("3")),
            ("mcp__a__b__add", 0, Some("3")),
        ] {
            let harness = Harness::real(script(), real()).await.unwrap();
            let warned = Notes::new();
            let noted = warned.clone();
            let server = ToolServer::new()
                .tool("add", "Adds", |pair: Pair| async move { Ok(pair.a + pair.b) });
            let options = harness.options().mcp("a__b", server).allowed_tools([rule]);
            let options = options.on_warning(move |warning| {
                if warning.code() == WarningCode::OptionIgnored {
                    noted.add("warning");
                }
            });
            let session = start(options).await;
            turn(&session, "add").await;
            session.stop().await.unwrap();
            assert_eq!(warned.len(), warnings, "{rule}");
            let output = texts(&harness).join(" ");
            assert_eq!(
                result.is_some_and(|sum| output == sum),
                result.is_some(),
                "{rule}: {output}"
            );
            assert_eq!(
                results(&harness)[0]["is_error"] == true,
                result.is_none(),
                "{rule}: {output}"
            );
        }
    });
}
