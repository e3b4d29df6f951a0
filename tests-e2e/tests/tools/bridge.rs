//! MCP messages, line by line, on a fake CLI.

use std::time::Duration;

use claude_agent_kit::NoArguments;
use claude_agent_kit::mcp::RawServer;
use claude_agent_kit::{
    ErrorKind, Json, Limits, Options, Session, Timeouts, Tool, ToolContext, ToolServer, WarningCode,
};
use serde_json::{Value, json};

use crate::calc::{Pair, calc};
use crate::fake_cli::{FakeCli, connect, open};
use crate::helpers::Notes;
use crate::support::{LIMIT, in_time, record_warnings, run, until};

/// Sends an MCP message to a server.
pub(crate) async fn send_mcp(cli: &mut FakeCli, id: &str, server: &str, message: Value) {
    let request = json!({"subtype": "mcp_message", "server_name": server, "message": message});
    cli.send_request(id, request).await;
}

/// Returns a call of a tool of `calc`.
pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: impl Into<Value>) -> Value {
    let params = json!({"name": tool, "arguments": arguments.into()});
    json!({"jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params})
}

/// Returns the next response of the host, with the ID of its control request.
pub(crate) async fn read_response(cli: &mut FakeCli) -> (String, Value) {
    let line = cli.read_line().await;
    let response = &line["response"];
    assert_eq!(response["subtype"], "success", "{line}");
    let id = response["request_id"].as_str().unwrap().to_owned();
    (id, response["response"]["mcp_response"].clone())
}

/// Sends an MCP message and returns the response.
async fn request_mcp(cli: &mut FakeCli, message: Value) -> Value {
    send_mcp(cli, "m", "calc", message).await;
    let (id, response) = read_response(cli).await;
    assert_eq!(id, "m");
    response
}

async fn connect_calc(server: ToolServer) -> (Session, FakeCli) {
    connect(Options::new().mcp("calc", server)).await
}

#[test]
fn mcp_messages_before_the_handshake_are_served() {
    run(async {
        let server = calc().version("2.0").instructions("Add with it.");
        let (session, mut cli) = open(Options::new().mcp("calc", server)).await;
        let handshake = cli.expect_request("initialize").await;
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let greeting = request_mcp(&mut cli, hello).await;
        assert_eq!(greeting["id"], 0);
        let result = &greeting["result"];
        assert_eq!(result["protocolVersion"], "2025-06-18");
        assert_eq!(result["serverInfo"], json!({"name": "calc", "version": "2.0"}));
        assert_eq!(result["instructions"], "Add with it.");
        // With another ID, because a repeated control request is not served twice.
        let list = json!({"jsonrpc": "2.0", "id": "one", "method": "tools/list"});
        send_mcp(&mut cli, "n", "calc", list).await;
        let (_, list) = read_response(&mut cli).await;
        assert_eq!(list["id"], "one");
        assert_eq!(list["result"]["tools"][0]["name"], "add");
        let schema = &list["result"]["tools"][0]["inputSchema"];
        assert_eq!(schema["required"], json!(["a", "b"]));
        assert_eq!(schema["properties"]["a"]["description"], "The first.");
        cli.respond(&handshake, json!({})).await;
        in_time(session.ready()).await.unwrap();
    });
}

#[test]
fn unknown_mcp_protocol_version_is_answered_with_a_known_one() {
    run(async {
        let (_session, mut cli) = connect_calc(calc()).await;
        let params = json!({"protocolVersion": "2099-01-01"});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        assert_eq!(request_mcp(&mut cli, hello).await["result"]["protocolVersion"], "2025-11-25");
    });
}

#[test]
fn tool_list_contains_annotations() {
    run(async {
        let tool = Tool::new("look", "Looks", |_: NoArguments| async { Ok(()) })
            .read_only()
            .destructive(false)
            .idempotent()
            .open_world(true)
            .title("Look")
            .search_hint("see")
            .always_load()
            .max_result_size(5);
        let (_session, mut cli) = connect_calc(ToolServer::new().add(tool)).await;
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        let list = request_mcp(&mut cli, list).await;
        let tool = &list["result"]["tools"][0];
        let annotations = json!({"readOnlyHint": true, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": true, "title": "Look"});
        assert_eq!(tool["annotations"], annotations);
        let meta = json!({"anthropic/searchHint": "see", "anthropic/alwaysLoad": true,
            "anthropic/maxResultSizeChars": 5});
        assert_eq!(tool["_meta"], meta);
        assert_eq!(tool["inputSchema"]["type"], "object");
    });
}

#[test]
fn invalid_mcp_messages_get_errors_with_unchanged_ids() {
    run(async {
        let (options, noted) = record_warnings(Options::new().mcp("calc", calc()));
        let (_session, mut cli) = connect(options).await;
        for (message, id, code) in [
            (call("x", "nothing", json!({})), json!("x"), json!(-32602)),
            (json!({"id": 1.5, "method": "resources/list"}), json!(1.5), json!(-32601)),
            (json!({"id": 7, "method": "tools/call"}), json!(7), json!(-32602)),
            (json!({"id": 8}), json!(8), json!(-32600)),
            (json!("text"), json!(null), json!(-32600)),
        ] {
            let response = request_mcp(&mut cli, message.clone()).await;
            assert_eq!((&response["id"], &response["error"]["code"]), (&id, &code), "{message}");
        }
        let ping =
            request_mcp(&mut cli, json!({"id": 9_007_199_254_740_993_u64, "method": "ping"})).await;
        assert_eq!(ping["id"], 9_007_199_254_740_993_u64);
        assert_eq!(ping["result"], json!({}));
        for message in [
            json!({"method": "notifications/initialized"}),
            json!({"method": "notifications/cancelled", "params": {"requestId": 99}}),
            json!({"id": 5, "result": {}}),
        ] {
            let response = request_mcp(&mut cli, message).await;
            assert_eq!(response, json!({"jsonrpc": "2.0", "result": {}}));
        }
        assert!(noted.lock().unwrap().is_empty());
        send_mcp(&mut cli, "u", "missing", call(3, "add", json!({}))).await;
        let (id, response) = read_response(&mut cli).await;
        assert_eq!((id.as_str(), &response["error"]["code"]), ("u", &json!(-32601)));
        assert_eq!(response["id"], 3);
    });
}

#[test]
fn wrong_arguments_are_reported_with_the_field_and_the_reason() {
    #[derive(serde::Deserialize, claude_agent_kit::schemars::JsonSchema)]
    #[schemars(crate = "claude_agent_kit::schemars")]
    struct Nested {
        pairs: Vec<Pair>,
    }
    run(async {
        let server =
            calc().tool("count", "Counts", |nested: Nested| async move { Ok(nested.pairs.len()) });
        let (_session, mut cli) = connect_calc(server).await;
        for (tool, arguments, expected) in [
            ("add", json!({"a": 1, "b": 2}), "3"),
            ("add", json!({}), "Invalid arguments: missing field `a`"),
            ("add", json!(null), "Invalid arguments: invalid type: null"),
            ("add", json!([1]), "Invalid arguments: invalid length 1"),
            ("add", json!({"a": 1.5, "b": 2}), "Invalid arguments: `a`: invalid type: floating"),
            ("count", json!({"pairs": [{"a": 1, "b": 2}]}), "1"),
            (
                "count",
                json!({"pairs": [{"a": 1, "b": 2}, {"a": 1, "b": []}]}),
                "Invalid arguments: `pairs[1].b`: invalid type: sequence",
            ),
            ("count", json!({"pairs": [{"a": 1}]}), "Invalid arguments: `pairs[0]`: missing field"),
        ] {
            let response = request_mcp(&mut cli, call(1, tool, arguments.clone())).await;
            let text = response["result"]["content"][0]["text"].as_str().unwrap_or_default();
            assert!(text.starts_with(expected), "{arguments}: {response}");
            assert_eq!(response["result"]["isError"], text.starts_with("Invalid"), "{response}");
        }
        // Missing arguments are an empty object.
        let none = json!({"id": 1, "method": "tools/call", "params": {"name": "add"}});
        let text = request_mcp(&mut cli, none).await["result"]["content"][0]["text"].to_string();
        assert!(text.contains("missing field `a`"), "{text}");
    });
}

/// Returns a server whose tool never ends, and the events of its calls.
fn endless_server() -> (ToolServer, Notes<&'static str>) {
    struct Dropped(Notes<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.add("dropped");
        }
    }
    let notes = Notes::new();
    let noted = notes.clone();
    let server = calc().tool("wait", "Waits", move |_: NoArguments| {
        let dropped = Dropped(noted.clone());
        noted.add("called");
        async move {
            std::future::pending::<()>().await;
            drop(dropped);
            Ok(())
        }
    });
    (server, notes)
}

#[test]
fn cancelled_call_is_dropped_immediately_without_a_response() {
    run(async {
        let (server, notes) = endless_server();
        let (options, noted) = record_warnings(Options::new().mcp("calc", server));
        // The grace period does not apply: the call is dropped as soon as it is cancelled.
        let (_session, mut cli) =
            connect(options.timeouts(Timeouts::new().cancel_grace(Duration::from_secs(3600))))
                .await;
        send_mcp(&mut cli, "first", "calc", call("a", "wait", json!({}))).await;
        send_mcp(&mut cli, "second", "calc", call(2, "wait", json!({}))).await;
        until("both are called", || notes.len() == 2).await;
        // An ID of another type, or of another server, belongs to another call.
        for (server, id) in [("calc", json!(1)), ("calc", json!("2")), ("other", json!(2))] {
            let params = json!({"requestId": id});
            let message = json!({"method": "notifications/cancelled", "params": params});
            send_mcp(&mut cli, "ack", server, message).await;
            assert_eq!(read_response(&mut cli).await.0, "ack");
        }
        assert_eq!(notes.len(), 2);
        let params = json!({"requestId": 2, "reason": "AbortError"});
        let message =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        send_mcp(&mut cli, "ack", "calc", message).await;
        assert_eq!(read_response(&mut cli).await.0, "ack");
        until("the second is dropped", || notes.len() == 3).await;
        cli.send(json!({"type": "control_cancel_request", "request_id": "first"})).await;
        until("the first is dropped", || notes.len() == 4).await;
        // The next response is that of the next call, so the cancelled call had none.
        assert_eq!(request_mcp(&mut cli, call(3, "add", json!({"a": 1, "b": 1}))).await["id"], 3);
        assert!(!noted.lock().unwrap().contains(&WarningCode::CallbackFailed));
    });
}

#[test]
fn no_tool_runs_or_responds_after_a_stop() {
    run(async {
        let (server, notes) = endless_server();
        let options =
            Options::new().mcp("calc", server).timeouts(Timeouts::new().exit_grace(LIMIT));
        let (session, mut cli) = connect(options).await;
        send_mcp(&mut cli, "wait", "calc", call(1, "wait", json!({}))).await;
        until("the tool is called", || notes.len() == 1).await;
        let stopping = tokio::spawn(async move { session.stop().await });
        until("the call is dropped", || notes.len() == 2).await;
        send_mcp(&mut cli, "late", "calc", call(2, "add", json!({"a": 1, "b": 1}))).await;
        while let Some(line) = cli.next_line().await {
            assert_ne!(line["type"], "control_response", "{line}");
        }
        cli.exit(claude_agent_kit::Exit::Code(0));
        in_time(stopping).await.unwrap().unwrap();
    });
}

#[test]
fn raw_server_response_is_forwarded_except_for_the_id() {
    let server = RawServer::new(|message: Json, _| async move {
        let message: Value = message.deserialize()?;
        Ok(match message["method"].as_str() {
            Some("own") => {
                let error = json!({"code": -32050, "message": "no", "data": {"x": 1}});
                json!({"id": "wrong", "error": error}).into()
            }
            Some("nothing") => json!({"id": 1}).into(),
            Some("text") => json!("text").into(),
            Some("panic") => panic!("on purpose"),
            Some("fail") => return Err("it is broken".into()),
            _ => json!({"result": message["params"]}).into(),
        })
    });
    run(async {
        let (_session, mut cli) = connect(Options::new().mcp("calc", server)).await;
        let own = request_mcp(&mut cli, json!({"id": 4, "method": "own"})).await;
        let error = json!({"code": -32050, "message": "no", "data": {"x": 1}});
        assert_eq!(own, json!({"id": 4, "jsonrpc": "2.0", "error": error}));
        let echo = request_mcp(&mut cli, json!({"id": "e", "method": "echo", "params": [1]})).await;
        assert_eq!(echo, json!({"id": "e", "jsonrpc": "2.0", "result": [1]}));
        for method in ["nothing", "text", "panic", "fail"] {
            let response = request_mcp(&mut cli, json!({"id": 5, "method": method})).await;
            assert_eq!((&response["id"], &response["error"]["code"]), (&json!(5), &json!(-32603)));
        }
        for notification in ["fail", "panic", "echo"] {
            let response = request_mcp(&mut cli, json!({"method": notification})).await;
            assert_eq!(response, json!({"jsonrpc": "2.0", "result": {}}), "{notification}");
        }
    });
}

#[test]
fn messages_beyond_the_queue_limit_get_an_error_and_a_warning() {
    run(async {
        let (server, notes) = endless_server();
        let (options, noted) = record_warnings(
            Options::new().mcp("calc", server).limits(Limits::new().running_mcp_messages(1)),
        );
        let (_session, mut cli) = connect(options).await;
        send_mcp(&mut cli, "0", "calc", call(0, "wait", json!({}))).await;
        until("the first runs", || notes.len() == 1).await;
        for id in 1..102 {
            send_mcp(&mut cli, &id.to_string(), "calc", call(id, "wait", json!({}))).await;
        }
        let (id, refused) = read_response(&mut cli).await;
        assert_eq!((id.as_str(), &refused["id"]), ("101", &json!(101)));
        assert_eq!(refused["error"]["code"], -32603);
        until("the warning is reported", || {
            *noted.lock().unwrap() == [WarningCode::CallbackRefused]
        })
        .await;
        assert_eq!(notes.len(), 1);
    });
}

#[test]
fn server_notifications_are_sent_in_order() {
    run(async {
        let server =
            calc().tool("notify", "Notifies", |_: NoArguments, ctx: ToolContext| async move {
                ctx.progress(0.5).await?;
                ctx.client.tools_changed().await?;
                Ok(())
            });
        let (_session, mut cli) = connect_calc(server).await;
        let meta = json!({"progressToken": "t"});
        let params = json!({"name": "notify", "_meta": meta});
        send_mcp(&mut cli, "m", "calc", json!({"id": 1, "method": "tools/call", "params": params}))
            .await;
        let notification = cli.expect_request("mcp_message").await;
        assert_eq!(notification["request"]["server_name"], "calc");
        let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": "t", "progress": 0.5}});
        assert_eq!(notification["request"]["message"], progress);
        cli.respond(&notification, json!({})).await;
        let notification = cli.expect_request("mcp_message").await;
        let method = &notification["request"]["message"]["method"];
        assert_eq!(method, "notifications/tools/list_changed");
        cli.respond_error(&notification, "not now").await;
        // The tool returned the rejection as its error.
        let (_, response) = read_response(&mut cli).await;
        assert_eq!(response["result"]["isError"], true);
    });
}

#[test]
fn invalid_servers_are_all_reported_at_once() {
    run(async {
        let nothing = |_: NoArguments| async { Ok(()) };
        let twice = ToolServer::new().tool("a", "", nothing).tool("a", "", nothing);
        let options = Options::new()
            .mcp("has space", ToolServer::new())
            .mcp("twice", twice)
            .mcp("list", ToolServer::new().tool("l", "", |_: Vec<i64>| async { Ok(()) }))
            .mcp("long", ToolServer::new().tool("x".repeat(65), "", nothing))
            .mcp("y".repeat(64), ToolServer::new().tool("z".repeat(58), "", nothing))
            .mcp("__proto__", ToolServer::new())
            .mcp("ide", ToolServer::new().tool("lint", "", nothing))
            .mcp("a", ToolServer::new().tool("b__c", "", nothing))
            .mcp("a__b", ToolServer::new().tool("c", "", nothing))
            .limits(Limits::new().running_mcp_messages(0));
        let error = Session::open(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        let text = error.to_string();
        for expected in [
            "\"has space\" is not a valid server name",
            "two tools are named \"a\"",
            "the argument of tool \"l\" is not an object",
            "is not a valid tool name",
            "has 129 characters",
            "ignores a server named \"__proto__\"",
            "tool \"lint\" of server \"ide\"",
            "servers \"a\" and \"a__b\" both have a tool that the CLI names `mcp__a__b__c`",
            "limits.running_mcp_messages",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        // A config file may define a server that the host has as well.
        let layers = Options::layered().file_text("a.json", r#"{"mcp": {"same": {}}}"#);
        let twice = layers.under(Options::new().mcp("same", ToolServer::new())).unwrap_err();
        assert!(twice.to_string().contains("two servers are named \"same\""), "{twice}");
        // A name of 65 characters is too long for a tool, but not for the CLI.
        assert_eq!(error.problems().len(), 9, "{text}");
    });
}
