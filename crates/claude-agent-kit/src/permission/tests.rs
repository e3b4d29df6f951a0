//! The permission inbox, and the serialization of permission requests.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::{Permission, PermissionInbox, PermissionOrigin, ToolRequest};
use crate::callback::{CallbackContext, CancelToken};
use crate::error::ErrorKind;
use crate::session::SessionLink;
use crate::{Item, Warning, WarningCode};

type ReplyTask = tokio::task::JoinHandle<Permission>;

fn request(run: u32, id: &str) -> ToolRequest {
    let line = json!({
        "type": "control_request",
        "request_id": id,
        "request": {
            "subtype": "can_use_tool", "tool_name": "Bash", "input": {"command": "ls"},
            "tool_use_id": "toolu_1", "title": "Run ls", "default_to_no": true,
        },
    });
    let origin = PermissionOrigin { run, session_id: Some("s".into()) };
    ToolRequest::decode(Bytes::from(line.to_string()), origin).unwrap()
}

fn context(request: &ToolRequest, cancel: &CancelToken) -> CallbackContext {
    CallbackContext::new(request.id.as_str().into(), cancel.clone(), SessionLink::default())
}

/// Sends a request in its own task, as a session does.
fn ask<F>(callback: F, run: u32, id: &str, cancel: &CancelToken) -> ReplyTask
where
    F: Fn(ToolRequest, CallbackContext) -> Pin<Box<dyn Future<Output = Permission> + Send>>,
{
    let request = request(run, id);
    let context = context(&request, cancel);
    tokio::spawn(callback(request, context))
}

#[tokio::test]
async fn inbox_returns_a_request_once_and_keeps_it_pending_until_answered() {
    let inbox = PermissionInbox::new();
    let cancel = CancelToken::new();
    let reply = ask(inbox.callback(), 7, "r", &cancel);
    let request = inbox.next().await;
    assert_eq!(request.id, "00000007-r");
    assert_eq!(inbox.pending().len(), 1);
    inbox.answer(&request.id, Permission::allow()).unwrap();
    assert_eq!(reply.await.unwrap(), Permission::allow());
    assert!(inbox.pending().is_empty());
    let again = inbox.answer(&request.id, Permission::allow()).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::RequestAnswered, "{again}");
    let unknown = inbox.answer("00000007-x", Permission::allow()).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::RequestUnknown, "{unknown}");
}

#[tokio::test]
async fn requests_of_many_sessions_are_delivered_in_order_to_one_reader_each() {
    let inbox = PermissionInbox::new();
    let cancel = CancelToken::new();
    let mut reply = Vec::new();
    for run in 0..20 {
        // Every session uses the same request ID.
        reply.push(ask(inbox.callback(), run, "r", &cancel));
        tokio::task::yield_now().await;
    }
    let pending: Vec<String> = inbox.pending().into_iter().map(|request| request.id).collect();
    let expected: Vec<String> = (0..20).map(|run| format!("{run:08x}-r")).collect();
    assert_eq!(pending, expected);
    let readers: Vec<_> = (0..20)
        .map(|_| {
            let inbox = inbox.clone();
            tokio::spawn(async move { inbox.next().await.id })
        })
        .collect();
    let mut seen = Vec::new();
    for reader in readers {
        seen.push(reader.await.unwrap());
    }
    seen.sort();
    assert_eq!(seen, expected);
    for id in &expected {
        inbox.answer(id, Permission::deny("no")).unwrap();
    }
    for reply in reply {
        assert_eq!(reply.await.unwrap(), Permission::deny("no"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn only_one_of_several_concurrent_answers_counts() {
    for round in 0..200 {
        let inbox = PermissionInbox::new();
        let cancel = CancelToken::new();
        let reply = ask(inbox.callback(), round, "r", &cancel);
        let id: Arc<str> = inbox.next().await.id.into();
        let answers: Vec<_> = (0..4)
            .map(|_| {
                let (inbox, id) = (inbox.clone(), id.clone());
                tokio::spawn(async move { inbox.answer(&*id, Permission::allow()).is_ok() })
            })
            .collect();
        let mut counted = 0;
        for answer in answers {
            counted += usize::from(answer.await.unwrap());
        }
        assert_eq!(counted, 1);
        assert_eq!(reply.await.unwrap(), Permission::allow());
    }
}

#[tokio::test]
async fn cancelled_or_dropped_request_is_withdrawn() {
    let inbox = PermissionInbox::new();
    let cancel = CancelToken::new();
    let cancelled = ask(inbox.callback(), 1, "r", &cancel);
    let aborted = ask(inbox.callback(), 2, "r", &CancelToken::new());
    let ids = [inbox.next().await.id, inbox.next().await.id];
    cancel.cancel();
    assert_ne!(cancelled.await.unwrap(), Permission::allow());
    aborted.abort();
    assert!(aborted.await.unwrap_err().is_cancelled());
    assert!(inbox.pending().is_empty());
    for id in ids {
        let error = inbox.answer(&id, Permission::allow()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestWithdrawn, "{error}");
    }
}

#[tokio::test]
async fn requests_are_denied_without_an_inbox_or_beyond_its_capacity() {
    let inbox = PermissionInbox::with_capacity(1);
    let callback = inbox.callback();
    let cancel = CancelToken::new();
    let first = ask(callback.clone(), 1, "r", &cancel);
    let copy = inbox.clone();
    drop(copy.next().await);
    let second = ask(callback.clone(), 2, "r", &cancel).await.unwrap();
    assert!(format!("{second:?}").contains("too many"), "{second:?}");
    drop(inbox);
    assert!(!first.is_finished(), "a clone remains");
    drop(copy);
    let late = ask(callback, 3, "r", &cancel).await.unwrap();
    for denied in [first.await.unwrap(), late] {
        assert!(format!("{denied:?}").contains("nothing answers"), "{denied:?}");
    }
}

#[tokio::test]
async fn inbox_next_is_cancel_safe() {
    let inbox = PermissionInbox::new();
    let cancel = CancelToken::new();
    for _ in 0..2 {
        let mut waiting = Box::pin(inbox.next());
        let polled = std::future::poll_fn(|context| {
            std::task::Poll::Ready(waiting.as_mut().poll(context).is_ready())
        });
        assert!(!polled.await);
    }
    let reply = ask(inbox.callback(), 1, "r", &cancel);
    let request = inbox.next().await;
    inbox.answer(request.id, Permission::allow()).unwrap();
    assert_eq!(reply.await.unwrap(), Permission::allow());
}

#[test]
fn every_item_serializes_as_an_object_with_its_type() {
    let message = br#"{"type":"result","subtype":"success","total_cost_usd":1.50}"#;
    let message = claude_wire::Message::decode(Bytes::from_static(message)).unwrap();
    let request = request(0x1f, "r");
    for (item, expected) in [
        (
            Item::Message(message),
            r#"{"type":"message","message":{"type":"result","subtype":"success","total_cost_usd":1.50}}"#,
        ),
        (
            Item::PermissionRequest(Box::new(request)),
            concat!(
                r#"{"type":"permission_request","id":"0000001f-r","session_id":"s","#,
                r#""tool_use_id":"toolu_1","tool_name":"Bash","input":{"command":"ls"},"#,
                r#""title":"Run ls","default_to_no":true}"#,
            ),
        ),
        (
            Item::Warning(Warning::new(WarningCode::EmptyOutput, "nothing came")),
            r#"{"type":"warning","code":"empty_output","text":"nothing came"}"#,
        ),
    ] {
        assert_eq!(serde_json::to_string(&item).unwrap(), expected);
    }
}
