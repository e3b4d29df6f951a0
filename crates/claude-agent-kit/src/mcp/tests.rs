//! Servers behind the bridge, without a CLI.

use std::sync::Arc;

use claude_wire::Json;
use claude_wire::control::McpMessage;
use serde_json::{Value, json};

use super::message::{Incoming, Kind, Reply};
use super::{RawServer, Server, Servers};
use crate::callback::{CallbackRun, CancelToken};
use crate::commands;

pub(super) fn connected(server: impl Server + 'static) -> Servers {
    let mut servers = Servers::default();
    servers.add("s".to_owned(), Arc::new(server));
    servers.connect(&commands::channel().0)
}

pub(super) fn call(servers: &Servers, message: Value, cancel: &CancelToken) -> CallbackRun {
    let message = McpMessage::new("s", Json::from(message));
    servers.call(message, None, cancel.clone()).unwrap()
}

pub(super) async fn ended(running: CallbackRun) -> Result<Value, String> {
    let CallbackRun::Async(future) = running else { return Err("it blocks".to_owned()) };
    future.await.map(|answer| answer.deserialize::<Value>().unwrap()["mcp_response"].clone())
}

#[test]
fn mcp_message_kind_follows_from_its_fields() {
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
fn mcp_response_has_the_request_id_and_a_result_or_an_error() {
    let encode = |reply: Reply, id: Option<Value>| {
        let encoded = reply.encode(id.map(Json::from));
        encoded.map(|json| json.deserialize::<Value>().unwrap()["mcp_response"].clone())
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
async fn disconnected_server_serves_nothing() {
    let server = RawServer::new(|_, _| async { Ok(json!({"result": 1}).into()) });
    let servers = connected(server);
    let cancel = CancelToken::new();
    let message = McpMessage::new("t", Json::from(json!({"id": 1, "method": "m"})));
    assert!(servers.call(message, None, cancel.clone()).is_none());
    let answer = ended(call(&servers, json!({"id": 1, "method": "m"}), &cancel)).await;
    assert_eq!(answer.unwrap()["result"], 1);
}

#[tokio::test]
async fn client_of_an_ended_session_returns_an_error() {
    let (commands, receiver) = commands::channel();
    drop(receiver);
    let client = super::McpClient::new("s", commands);
    let error = client.tools_changed().await.unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::SessionStopped);
    assert!(client.request("ping", None).await.is_err());
}
