//! Servers of the official SDK behind the bridge, without a CLI.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use claude_agent_core::session::Event;
use claude_wire::control::{HostRequest, McpMessage};
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ErrorCode, ListToolsResult, PaginatedRequestParams,
};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

use super::*;
use crate::callback::{CallbackRun, CancelToken};
use crate::commands;
use crate::mcp::Servers;
use crate::mcp::tests::{call, connected, ended};

/// Far longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Clone)]
struct Handler(mpsc::UnboundedSender<&'static str>);

struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

impl ServerHandler for Handler {
    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<rmcp::model::CallToolResponse, ErrorData> {
        match &*request.name {
            "panic" => panic!("on purpose"),
            "own" => Err(ErrorData::new(ErrorCode(-32050), "no", None)),
            "wait" => {
                let _dropped = Dropped(self.0.clone());
                let _ = self.0.send("called");
                std::future::pending().await
            }
            _ => Ok(CallToolResult::success(Vec::new()).into()),
        }
    }
}

fn request(id: &Value, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn hello() -> Value {
    let info = json!({"name": "c", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    request(&json!(0), "initialize", &params)
}

async fn connected_after_handshake() -> (Servers, mpsc::UnboundedReceiver<&'static str>) {
    let (sender, notes) = mpsc::unbounded_channel();
    let servers = connected(RmcpServer::new(move || Handler(sender.clone())));
    let greeting = ended(call(&servers, hello(), &CancelToken::new())).await.unwrap();
    assert_eq!(greeting["id"], 0);
    assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let acknowledged = ended(call(&servers, note, &CancelToken::new())).await.unwrap();
    assert_eq!(acknowledged, json!({"jsonrpc": "2.0", "result": {}}));
    (servers, notes)
}

#[tokio::test]
async fn rmcp_handler_can_succeed_fail_and_panic() {
    let (servers, _notes) = connected_after_handshake().await;
    for (id, tool, code) in [
        (json!(1), "good", Value::Null),
        (json!("two"), "own", json!(-32050)),
        (json!(3), "panic", json!(-32603)),
    ] {
        let message = request(&id, "tools/call", &json!({"name": tool}));
        let answer = ended(call(&servers, message, &CancelToken::new())).await.unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &code), "{answer}");
    }
    let list = request(&json!(4), "tools/list", &json!({}));
    let list = ended(call(&servers, list, &CancelToken::new())).await.unwrap();
    assert_eq!(list["result"]["tools"], json!([]));
}

#[tokio::test]
async fn handler_is_dropped_on_cancel_and_at_session_end() {
    let (servers, mut notes) = connected_after_handshake().await;
    for id in [1, 2] {
        let cancel = CancelToken::new();
        let message = request(&json!(id), "tools/call", &json!({"name": "wait"}));
        let running = tokio::spawn(ended(call(&servers, message, &cancel)));
        assert_eq!(notes.recv().await, Some("called"));
        if id == 1 {
            cancel.cancel();
            assert!(running.await.unwrap().is_err());
        } else {
            break;
        }
        assert_eq!(notes.recv().await, Some("dropped"));
    }
    drop(servers);
    assert_eq!(notes.recv().await, Some("dropped"));
    // The factory and the handlers have been dropped too.
    assert_eq!(notes.recv().await, None);
}

#[tokio::test]
async fn cancelled_or_dropped_call_does_not_continue() {
    let (servers, mut notes) = connected_after_handshake().await;
    for (id, fires) in [(1, true), (2, false)] {
        let cancel = CancelToken::new();
        let message = request(&json!(id), "tools/call", &json!({"name": "wait"}));
        let running = call(&servers, message, &cancel);
        if fires {
            cancel.cancel();
            assert!(ended(running).await.is_err());
        } else {
            drop(running);
        }
        // Its response comes later, so the first call has been processed by then.
        let next = request(&json!(3), "tools/call", &json!({"name": "good"}));
        ended(call(&servers, next, &CancelToken::new())).await.unwrap();
        if let Ok(note) = notes.try_recv() {
            assert_eq!(note, "called");
            let dropped = tokio::time::timeout(LIMIT, notes.recv()).await;
            assert_eq!(dropped.expect("the call was not dropped"), Some("dropped"));
        }
    }
}

#[tokio::test]
async fn request_id_is_returned_unchanged() {
    let (servers, _notes) = connected_after_handshake().await;
    for (id, expected) in [
        ("1.0", "result"),
        ("1e2", "result"),
        (r#""\u0061\/""#, "result"),
        ("-0", "result"),
        // Not valid MCP IDs: the SDK would not respond.
        ("1.5", "-32600"),
        ("null", "-32600"),
    ] {
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#);
        let message = McpMessage::new("s", Json::from_text(message).unwrap());
        let Some(CallbackRun::Async(answer)) = servers.call(message, None, CancelToken::new())
        else {
            panic!("it is not served");
        };
        let answer = tokio::time::timeout(LIMIT, answer).await.expect(id).unwrap().to_string();
        assert!(answer.contains(&format!(r#""id":{id}"#)), "{answer}");
        assert!(answer.contains(expected), "{answer}");
    }
}

/// A server that panics when the SDK calls it outside a handler, after the MCP handshake.
#[derive(Default)]
struct Unready(AtomicBool);

impl ServerHandler for Unready {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        assert!(!self.0.swap(true, Ordering::SeqCst), "on purpose");
        Cow::Owned(vec![ProtocolVersion::V_2025_11_25])
    }
}

#[tokio::test]
async fn server_panic_outside_a_handler_fails_pending_calls() {
    let servers = connected(RmcpServer::new(Unready::default));
    for _ in 0..2 {
        let answer = ended(call(&servers, hello(), &CancelToken::new()));
        let answer = tokio::time::timeout(LIMIT, answer).await.expect("it is not answered");
        assert_eq!(answer.unwrap_err(), "the server has ended");
    }
}

#[tokio::test]
async fn server_messages_are_sent_in_order() {
    let (commands, mut driver) = commands::channel();
    let (_messages, received) = mpsc::channel(1);
    let client = McpClient::new("s", commands);
    let mut bridge = Bridge { received, waiting: Arc::default(), client };
    let expected =
        ["notifications/tools/list_changed", "ping", "notifications/prompts/list_changed"];
    // None of these is polled, as a task may not have been polled yet.
    let sent = expected.map(|method| {
        let message = match method {
            "ping" => json!({"jsonrpc": "2.0", "id": 1, "method": method}),
            _ => json!({"jsonrpc": "2.0", "method": method}),
        };
        let sent = bridge.send(serde_json::from_value(message).unwrap());
        Box::pin(sent) as Pin<Box<dyn Future<Output = crate::Result<()>> + Send>>
    });
    let mut context = Context::from_waker(Waker::noop());
    let mut methods = Vec::new();
    while let Poll::Ready(command) = driver.poll_next(&mut context) {
        let Event::Request { request: HostRequest::McpMessage(asked), .. } = command.event else {
            panic!("{:?}", command.event);
        };
        methods.push(asked.message.deserialize::<Value>().unwrap()["method"].clone());
    }
    assert_eq!(methods, expected);
    drop(sent);
}

/// A subscriber that records everything that this crate traces.
#[derive(Clone, Default)]
struct Traced(Arc<Mutex<String>>);

impl Visit for Traced {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        writeln!(lock(&self.0), "{field}={value:?}").unwrap();
    }
}

impl Subscriber for Traced {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("claude")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        event.record(&mut self.clone());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn invalid_first_message_of_a_server_is_not_traced() {
    let traced = Traced::default();
    let _listens = tracing::subscriber::set_default(traced.clone());
    let (sender, _notes) = mpsc::unbounded_channel();
    let servers = connected(RmcpServer::new(move || Handler(sender.clone())));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": "secret"}});
    ended(call(&servers, note, &CancelToken::new())).await.unwrap();
    let failed = || lock(&traced.0).contains("did not start");
    let waited = async {
        while !failed() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(LIMIT, waited).await.expect("nothing is traced");
    assert!(!lock(&traced.0).contains("secret"), "{}", lock(&traced.0));
}

#[tokio::test]
async fn messages_to_a_blocked_server_are_bounded() {
    let (servers, _notes) = connected_after_handshake().await;
    // The task of the server does not run while this test does not await.
    let notify = || {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
        ended(call(&servers, note, &CancelToken::new()))
    };
    let mut accepted = 0;
    let refusal = loop {
        match notify().await {
            Ok(_) => accepted += 1,
            Err(reason) => break reason,
        }
        assert!(accepted <= MAX_UNREAD_MESSAGES, "no message is rejected");
    };
    assert!(refusal.contains("unread messages"), "{refusal}");
}
