//! Limits on operations and callbacks, and unexpected responses of the CLI.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::{ErrorKind, Options, Permission, WarningCode};
use claude_wire::control::McpStatusResponse;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::fake_cli::{connect, open};
use crate::helpers::Notes;
use crate::support::{in_time, record_warnings, run, until};

type StatusFuture =
    Pin<Box<dyn Future<Output = claude_agent_kit::Result<McpStatusResponse>> + Send>>;

/// Starts `count` operations and polls each of them once.
fn start_status_requests(session: &claude_agent_kit::Session, count: usize) -> Vec<StatusFuture> {
    let one = |_| -> StatusFuture {
        let session = session.clone();
        let mut future: StatusFuture = Box::pin(async move { session.mcp().status().await });
        assert!(poll(&mut future).is_pending());
        future
    };
    (0..count).map(one).collect()
}

fn poll<T>(future: &mut Pin<Box<dyn Future<Output = T> + Send>>) -> Poll<T> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn seventeenth_operation_before_the_handshake_is_rejected() {
    run(async {
        let (session, mut cli) = open(Options::new()).await;
        let waiting = start_status_requests(&session, 16);
        let error = in_time(session.interrupt()).await.unwrap_err();
        assert_eq!(
            (error.kind(), error.operation()),
            (ErrorKind::InitQueueFull, Some("interrupt"))
        );
        // Messages do not count as operations.
        let mut sending = Box::pin(session.send("hello"));
        let sent = sending.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(sent.is_pending());
        cli.handshake().await;
        // All requests are written, in order, before the first response.
        let mut requests = Vec::new();
        for _ in 0..16 {
            requests.push(cli.expect_request("mcp_status").await);
        }
        assert_eq!(cli.read_line().await["type"], "user");
        drop(sending);
        requests.sort_by_key(|request| std::cmp::Reverse(request["request_id"].to_string()));
        for request in &requests {
            cli.respond(request, json!({"mcpServers": []})).await;
        }
        for operation in waiting {
            in_time(operation).await.unwrap();
        }
    });
}

#[test]
fn sixty_fifth_pending_operation_is_rejected_and_dropped_ones_free_capacity() {
    run(async {
        let (session, mut cli) = connect(Options::new()).await;
        for _ in 0..3 {
            let pending = start_status_requests(&session, 64);
            let error = in_time(session.interrupt()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooManyPending);
            drop(pending);
        }
        // Responses to dropped operations have no effect.
        let mut pending = start_status_requests(&session, 1);
        for number in 1..=3 * 64 + 1 {
            let request = cli.expect_request("mcp_status").await;
            cli.respond(&request, json!({"mcpServers": [], "number": number})).await;
        }
        let response = in_time(pending.pop().unwrap()).await.unwrap();
        assert_eq!(response.extra.get("number").unwrap().text(), "193");
    });
}

#[test]
fn responses_are_matched_by_request_id() {
    run(async {
        let (session, mut cli) = connect(Options::new()).await;
        let mut pending = start_status_requests(&session, 2);
        let (first, second) =
            (cli.expect_request("mcp_status").await, cli.expect_request("mcp_status").await);
        let stranger = json!({"request_id": "req_9_unknown"});
        cli.respond(&stranger, json!({"from": "a stranger"})).await;
        cli.respond(&second, json!({"from": "the second"})).await;
        cli.respond(&second, json!({"from": "the second, again"})).await;
        cli.respond_error(&first, "no").await;
        cli.respond(&first, json!({"from": "the first, too late"})).await;
        let response = in_time(pending.pop().unwrap()).await.unwrap();
        assert_eq!(response.extra.get("from").unwrap().text(), "\"the second\"");
        let error = in_time(pending.pop().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ControlRejected);
        assert!(error.to_string().contains("no"), "{error}");
    });
}

#[test]
fn undecodable_response_fails_only_its_operation() {
    run(async {
        let (session, mut cli) = connect(Options::new()).await;
        for odd in [json!([7]), json!("what?"), json!({"still_queued": {"a": 1}})] {
            let interrupting = session.clone();
            let operation = tokio::spawn(async move { interrupting.interrupt().await });
            let request = cli.expect_request("interrupt").await;
            cli.respond(&request, odd.clone()).await;
            let error = in_time(operation).await.unwrap().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UndecodableResponse, "{odd}");
        }
        let mut pending = start_status_requests(&session, 1);
        let request = cli.expect_request("mcp_status").await;
        let line = json!({"type": "control_response",
                          "response": {"subtype": "maybe", "request_id": request["request_id"]}});
        cli.send(line).await;
        let error = in_time(pending.pop().unwrap()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UndecodableResponse);
        // A successful response may be empty.
        let second_handle = session.clone();
        let operation = tokio::spawn(async move { second_handle.stop_task("t").await });
        let request = cli.expect_request("stop_task").await;
        let response = json!({"subtype": "success", "request_id": request["request_id"]});
        cli.send(json!({"type": "control_response", "response": response})).await;
        in_time(operation).await.unwrap().unwrap();
    });
}

#[test]
fn late_response_is_discarded() {
    run(async {
        let (session, mut cli) = connect(Options::new()).await;
        let limited = session.with_timeout(Duration::from_millis(50));
        let error = in_time(limited.mcp().status()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ControlTimeout);
        let late = cli.expect_request("mcp_status").await;
        let mut pending = start_status_requests(&session, 1);
        let request = cli.expect_request("mcp_status").await;
        cli.respond(&late, json!({"late": true})).await;
        cli.respond(&request, json!({"late": false})).await;
        let response = in_time(pending.pop().unwrap()).await.unwrap();
        assert_eq!(response.extra.get("late").unwrap().text(), "false");
    });
}

#[test]
fn three_hundred_concurrent_callbacks_are_all_answered() {
    run(async {
        let (entered, gate) = (Notes::new(), Arc::new(Semaphore::new(0)));
        let (notes, waiting) = (entered.clone(), gate.clone());
        let options = Options::new().on(PreToolUse, move |_, _| {
            notes.add(());
            let gate = waiting.clone();
            async move {
                gate.acquire().await.unwrap().forget();
                HookResponse::deny("no")
            }
        });
        let (session, mut cli) = connect(options).await;
        for number in 0..300 {
            cli.call_hook(&format!("cli_{number}")).await;
        }
        until("the maximum number runs", || entered.len() == 256).await;
        // Queued callbacks do not delay operations.
        let mut pending = start_status_requests(&session, 1);
        let request = cli.expect_request("mcp_status").await;
        cli.respond(&request, json!({})).await;
        in_time(pending.pop().unwrap()).await.unwrap();
        assert_eq!(entered.len(), 256);
        gate.add_permits(300);
        let mut answered = Vec::new();
        for _ in 0..300 {
            let line = cli.read_line().await;
            let output = &line["response"]["response"]["hookSpecificOutput"];
            assert_eq!(output["permissionDecision"], "deny", "{line}");
            answered.push(line["response"]["request_id"].as_str().unwrap().to_owned());
        }
        answered.sort();
        answered.dedup();
        assert_eq!((answered.len(), entered.len()), (300, 300));
    });
}

#[test]
fn overload_denies_and_never_allows() {
    run(async {
        let options = Options::new()
            .can_use_tool(|_, _| std::future::pending::<Permission>())
            .on(PreToolUse, |_, _| std::future::pending::<()>());
        let (options, warnings) = record_warnings(options);
        let (_session, mut cli) = connect(options).await;
        for number in 0..256 + 4_096 {
            cli.request_permission(&format!("cli_{number}")).await;
        }
        cli.request_permission("too many").await;
        let line = cli.read_line().await;
        assert_eq!(line["response"]["request_id"], "too many");
        assert_eq!(line["response"]["response"]["behavior"], "deny");
        // A fail-open hook is denied too.
        cli.call_hook("too many again").await;
        let line = cli.read_line().await;
        assert_eq!(line["response"]["request_id"], "too many again");
        let output = &line["response"]["response"]["hookSpecificOutput"];
        assert_eq!(output["permissionDecision"], "deny", "{line}");
        let refused = [WarningCode::CallbackRefused, WarningCode::CallbackRefused];
        assert_eq!(*warnings.lock().unwrap(), refused);
    });
}

#[test]
fn invalid_requests_get_one_response_and_have_no_effect() {
    run(async {
        let options = Options::new()
            .on(PreToolUse.fail_closed(), |_, _| async {})
            .can_use_tool(|_, _| async { Permission::allow() });
        let (options, warnings) = record_warnings(options);
        let (session, mut cli) = connect(options).await;
        let stranger = json!({"subtype": "hook_callback", "callback_id": "hook_77",
                              "input": {"hook_event_name": "PreToolUse"}});
        cli.send_request("a", stranger).await;
        cli.send_request("b", json!({"subtype": "make_coffee"})).await;
        cli.send_request("c", json!({"subtype": "can_use_tool"})).await;
        cli.send_request("d", json!({"subtype": "hook_callback", "callback_id": "hook_0"})).await;
        cli.send_request("e", json!(7)).await;
        cli.send(json!({"type": "control_request", "request": {"subtype": "x"}})).await;
        cli.send(json!({"type": "control_cancel_request"})).await;
        cli.send(json!({"type": "control_cancel_request", "request_id": "missing"})).await;
        cli.write(b"not JSON\n[1, 2]\n").await;
        cli.request_permission("f").await;
        let mut responses = std::collections::BTreeMap::new();
        for _ in 0..6 {
            let response = cli.read_line().await["response"].clone();
            responses.insert(response["request_id"].as_str().unwrap().to_owned(), response);
        }
        let denied = |id: &str| responses[id].to_string().contains("\"deny\"");
        assert!(denied("a") && denied("c") && denied("d"), "{responses:?}");
        assert_eq!(responses["b"]["subtype"], "error");
        assert_eq!(responses["e"]["subtype"], "error");
        assert_eq!(responses["f"]["response"]["behavior"], "allow");
        assert!(warnings.lock().unwrap().len() >= 6, "{warnings:?}");
        let mut pending = start_status_requests(&session, 1);
        let request = cli.expect_request("mcp_status").await;
        cli.respond(&request, json!({})).await;
        in_time(pending.pop().unwrap()).await.unwrap();
    });
}

#[test]
fn request_during_the_handshake_is_served_immediately() {
    run(async {
        let options = Options::new().can_use_tool(|_, _| async { Permission::deny("no") });
        let (session, mut cli) = open(options).await;
        let initialize = cli.expect_request("initialize").await;
        cli.request_permission("early").await;
        let line = cli.read_line().await;
        assert_eq!(line["response"]["request_id"], "early");
        // Only the response to `initialize` completes the handshake.
        cli.send_text("hello").await;
        assert!(session.server_info().is_none());
        cli.respond(&initialize, json!({"output_style": "plain"})).await;
        in_time(session.ready()).await.unwrap();
        assert!(session.server_info().is_some());
    });
}

#[test]
fn cancelled_request_gets_no_response() {
    run(async {
        let entered = Notes::new();
        let notes = entered.clone();
        let options = Options::new().can_use_tool(move |request, context| {
            notes.add(());
            async move {
                if request.tool_use_id.is_some_and(|id| id.as_str() == "first") {
                    context.cancel.cancelled().await;
                }
                Permission::allow()
            }
        });
        let (_session, mut cli) = connect(options).await;
        cli.request_permission("first").await;
        until("the callback is called", || entered.len() == 1).await;
        cli.send(json!({"type": "control_cancel_request", "request_id": "first"})).await;
        cli.request_permission("second").await;
        // The next response belongs to the second request, and the first callback did not run
        // twice.
        assert_eq!(cli.read_line().await["response"]["request_id"], "second");
        assert_eq!(entered.len(), 2);
    });
}
