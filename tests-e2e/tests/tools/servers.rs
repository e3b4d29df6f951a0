//! Servers as a whole: waiting for them, changing tools, raw ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use claude_agent_kit::mcp::RawServer;
use claude_agent_kit::{ErrorKind, Json, Options};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use crate::bridge::{answer, call, post};
use crate::calc::{calc, texts, with};
use crate::calls::Dropped;
use crate::play::{Notes, start, turn};
use crate::puppet::running;
use crate::support::{LIMIT, SHORT, hello, in_time, on_all, run, until};

#[test]
fn servers_are_waited_for_and_one_that_is_not_there_is_told() {
    on_all(hello, async |stage| {
        let broken = Json::from_text(r#"{"command":"/does/not/exist"}"#).unwrap();
        let session = start(with(&stage, calc()).mcp_server("broken", broken)).await;
        let servers = in_time(session.wait_for_mcp_servers(["calc"], LIMIT)).await.unwrap();
        assert_eq!(servers.len(), 1);
        assert_eq!(servers[0].name.as_deref(), Some("calc"));
        let unknown = in_time(session.wait_for_mcp_servers(["nobody"], SHORT)).await.unwrap_err();
        assert_eq!(unknown.kind(), ErrorKind::McpServerFailed);
        assert_eq!(unknown.server(), Some("nobody"));
        let broken = session.wait_for_mcp(LIMIT).await.unwrap_err();
        assert_eq!(broken.kind(), ErrorKind::McpServerFailed, "{broken}");
        assert_eq!(broken.server(), Some("broken"));
        session.stop().await.unwrap();
    });
}

#[test]
fn every_server_is_waited_for() {
    on_all(hello, async |stage| {
        let session = start(with(&stage, calc())).await;
        let servers = in_time(session.wait_for_mcp(LIMIT)).await.unwrap();
        assert_eq!(servers.len(), 1);
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}

/// A server of its own hand whose second tool is there after the first was called.
fn growing() -> RawServer {
    let grown = Arc::new(AtomicBool::new(false));
    RawServer::new("calc", move |message: Json, ctx| {
        let grown = grown.clone();
        async move {
            let message: Value = message.parse()?;
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
            // An id of its own makes no difference.
            Ok(json!({"id": "mine", "result": result}).into())
        }
    })
}

#[test]
fn a_raw_server_that_takes_too_long_is_dropped_and_answered_for() {
    run(async {
        let notes = Notes::new();
        let noted = notes.clone();
        let server = RawServer::new("calc", move |_, ctx| {
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
        let (_session, mut puppet) = running(Options::new().raw_mcp_server(server)).await;
        post(&mut puppet, "m", "calc", call(1, "wait", json!({}))).await;
        let (_, late) = answer(&mut puppet).await;
        assert_eq!((&late["id"], &late["error"]["code"]), (&json!(1), &json!(-32603)), "{late}");
        until("both are noted", || notes.len() == 2).await;
        assert!(notes.all().contains(&"fired") && notes.all().contains(&"dropped"));
    });
}

#[test]
fn a_raw_server_changes_its_tools_and_the_cli_sees_it() {
    let script = || {
        Script::new()
            .when("grow", [Reply::tool("mcp__calc__grow", json!({})), Reply::text("Grown.")])
            .when("pick", [Reply::tool("mcp__calc__fruit", json!({})), Reply::text("Picked.")])
    };
    on_all(script, async |stage| {
        let options = stage.options().raw_mcp_server(growing()).allowed_tools(["mcp__calc"]);
        let session = start(options).await;
        assert_eq!(turn(&session, "grow").await.text, "Grown.");
        assert_eq!(texts(&stage), ["grown"]);
        assert_eq!(turn(&session, "pick").await.text, "Picked.");
        assert!(texts(&stage).contains(&"an apple".to_owned()), "{:?}", texts(&stage));
        session.stop().await.unwrap();
    });
}
