//! Servers behind the bridge, without a CLI.

use std::sync::Arc;

use claude_wire::Json;
use claude_wire::control::McpMessage;
use serde_json::{Value, json};

use super::message::{Incoming, Kind, Reply};
use super::{RawServer, Server, Servers};
use crate::callback::{CancelToken, Running};
use crate::mailbox::Mailbox;

fn connected(server: impl Server + 'static) -> Servers {
    let mut servers = Servers::default();
    servers.add(Arc::new(server));
    servers.connect(&Arc::default())
}

fn call(servers: &Servers, message: Value, cancel: &CancelToken) -> Running {
    let message = McpMessage::new("s", Json::from(message));
    servers.call(message, None, cancel.clone()).unwrap()
}

async fn ended(running: Running) -> Result<Value, String> {
    let Running::Async(future) = running else { return Err("it blocks".to_owned()) };
    future.await.map(|answer| answer.parse::<Value>().unwrap()["mcp_response"].clone())
}

#[test]
fn a_message_is_what_its_fields_say() {
    let kind = |message: Value| match Incoming::read(message.into()).kind {
        Kind::Request { id, method, params } => format!("request {id} {method} {params}"),
        Kind::Notification => "notification".to_owned(),
        Kind::Response { id } => format!("response {id}"),
        Kind::Invalid { id } => format!("invalid {id}"),
    };
    for (message, expected) in [
        (json!({"id": 1, "method": "m"}), "request 1 m null"),
        (json!({"id": "1", "method": "m", "params": {}}), "request \"1\" m {}"),
        (json!({"id": null, "method": "m"}), "request null m null"),
        (json!({"method": "m"}), "notification"),
        (json!({"id": 1, "result": null}), "response 1"),
        (json!({"id": 1, "error": {}}), "response 1"),
        (json!({"id": 1}), "invalid 1"),
        (json!({"id": 1, "method": 5}), "invalid 1"),
        (json!([]), "invalid null"),
        (json!("x"), "invalid null"),
    ] {
        assert_eq!(kind(message.clone()), expected, "{message}");
    }
}

#[test]
fn an_answer_has_the_id_of_its_request_and_a_result_or_an_error() {
    let encode = |reply: Reply, id: Option<Value>| {
        let encoded = reply.encode(id.map(Json::from));
        encoded.map(|json| json.parse::<Value>().unwrap()["mcp_response"].clone())
    };
    let whole = |value: Value| Reply::Whole(value.into());
    let good = json!({"jsonrpc": "2.0", "id": 1, "result": 2});
    assert_eq!(encode(Reply::Result(json!(2).into()), Some(json!(1))), Ok(good.clone()));
    assert_eq!(encode(whole(json!({"id": 9, "result": 2})), Some(json!(1))), Ok(good));
    assert!(encode(whole(json!({"id": 1})), Some(json!(1))).is_err());
    assert!(encode(whole(json!([])), Some(json!(1))).is_err());
    assert!(encode(Reply::Nothing, Some(json!(1))).is_err());
    let acknowledged = json!({"jsonrpc": "2.0", "result": {}});
    assert_eq!(encode(whole(json!([])), None), Ok(acknowledged));
}

#[tokio::test]
async fn a_server_that_is_not_connected_serves_nothing() {
    let server = RawServer::new("s", |_, _| async { Ok(json!({"result": 1}).into()) });
    let servers = connected(server);
    let cancel = CancelToken::new();
    let message = McpMessage::new("t", Json::from(json!({"id": 1, "method": "m"})));
    assert!(servers.call(message, None, cancel.clone()).is_none());
    let answer = ended(call(&servers, json!({"id": 1, "method": "m"}), &cancel)).await;
    assert_eq!(answer.unwrap()["result"], 1);
}

#[tokio::test]
async fn a_client_whose_session_is_over_says_so() {
    let mailbox = Arc::new(Mailbox::default());
    drop(mailbox.close());
    let client = super::McpClient::new("s", mailbox);
    let error = client.tools_changed().await.unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::SessionStopped);
    assert!(client.request("ping", None).await.is_err());
}

#[cfg(feature = "rmcp")]
mod hosted {
    use rmcp::model::{
        CallToolRequestParams, CallToolResult, ErrorCode, ErrorData, ListToolsResult,
        PaginatedRequestParams,
    };
    use rmcp::service::RequestContext;
    use rmcp::{RoleServer, ServerHandler};
    use tokio::sync::mpsc;

    use super::*;
    use crate::mcp::RmcpServer;

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

    async fn greeted() -> (Servers, mpsc::UnboundedReceiver<&'static str>) {
        let (sender, notes) = mpsc::unbounded_channel();
        let servers = connected(RmcpServer::new("s", move || Handler(sender.clone())));
        let info = json!({"name": "c", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let hello = request(&json!(0), "initialize", &params);
        let greeting = ended(call(&servers, hello, &CancelToken::new())).await.unwrap();
        assert_eq!(greeting["id"], 0);
        assert_eq!(greeting["result"]["protocolVersion"], "2025-11-25");
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let acknowledged = ended(call(&servers, note, &CancelToken::new())).await.unwrap();
        assert_eq!(acknowledged, json!({"jsonrpc": "2.0", "result": {}}));
        (servers, notes)
    }

    #[tokio::test]
    async fn a_handler_of_the_official_sdk_answers_fails_and_panics() {
        let (servers, _notes) = greeted().await;
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
    async fn a_cancelled_handler_is_dropped_and_so_is_one_whose_session_is_over() {
        let (servers, mut notes) = greeted().await;
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
        // The factory and the handlers are gone too.
        assert_eq!(notes.recv().await, None);
    }
}
