//! Elicitations of external servers, and dialogs of the CLI.

use std::time::Duration;

use claude_agent_kit::elicitation::{DialogResponse, ElicitationResponse};
use claude_agent_kit::mcp::StdioServer;
use claude_agent_kit::{BoxError, ErrorKind, Options, Session, Timeouts, WarningCode};
use claude_agent_testkit::mock_api::Script;
use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use crate::calc::{call_script, texts};
use crate::external_servers::MCP_SERVER;
use crate::fake_cli::{FakeCli, connect, open};
use crate::helpers::{Notes, on_both, panic_silently, start, turn};
use crate::support::{LIMIT, in_time, record_warnings, run, until};

fn ask_script() -> Script {
    call_script(&[("mcp__out__ask", json!({}))])
}

/// Runs a turn in which the server asks its question, and returns the response that it received.
async fn run_elicitation(harness: &Harness, options: impl FnOnce(Options) -> Options) -> Value {
    let server = StdioServer::new(MCP_SERVER).always_load(true);
    let with_server = harness.options().mcp("out", server).allowed_tools(["mcp__out"]);
    let session = start(options(with_server)).await;
    in_time(session.mcp().wait_for(["out"], LIMIT)).await.unwrap();
    turn(&session, "go").await;
    session.stop().await.unwrap();
    serde_json::from_str(&texts(harness).concat()).unwrap()
}

#[test]
fn elicitation_callback_can_accept_a_form() {
    on_both(ask_script, async |harness| {
        let notes = Notes::new();
        let noted = notes.clone();
        let answer = run_elicitation(&harness, |options| {
            options.on_elicitation(move |question, ctx| {
                noted.add((question, ctx.session_id));
                async { ElicitationResponse::accept(json!({"name": "Ada"})) }
            })
        });
        assert_eq!(answer.await, json!({"action": "accept", "content": {"name": "Ada"}}));
        let (question, session_id) = notes.all().remove(0);
        assert_eq!(question.mcp_server_name, "out");
        assert_eq!(question.message.as_deref(), Some("Who is it?"));
        assert_eq!(question.mode.as_deref(), Some("form"));
        let schema: Value = question.requested_schema.unwrap().deserialize().unwrap();
        assert_eq!(schema["properties"]["name"]["type"], "string");
        assert!(session_id.is_some());
    });
}

#[test]
fn elicitation_is_declined_by_callback_by_failure_and_by_default() {
    on_both(ask_script, async |harness| {
        let by_hand = run_elicitation(&harness, |options| {
            options.on_elicitation_blocking(|_, _| ElicitationResponse::decline())
        });
        assert_eq!(by_hand.await["action"], "decline");
    });
    on_both(ask_script, async |harness| {
        let mut noted = None;
        let failed = run_elicitation(&harness, |options| {
            let (options, notes) = record_warnings(options);
            noted = Some(notes);
            options
                .on_elicitation(|_, _| async { Err::<ElicitationResponse, BoxError>("no".into()) })
        });
        assert_eq!(failed.await["action"], "decline");
        assert_eq!(*noted.unwrap().lock().unwrap(), [WarningCode::CallbackFailed]);
    });
    on_both(ask_script, async |harness| {
        let mut noted = None;
        let alone = run_elicitation(&harness, |options| {
            let (options, notes) = record_warnings(options);
            noted = Some(notes);
            options
        });
        assert_eq!(alone.await["action"], "decline");
        assert_eq!(*noted.unwrap().lock().unwrap(), [WarningCode::UnansweredRequest]);
    });
}

const DIALOG: &str = "refusal_fallback_prompt";

async fn request_dialog(cli: &mut FakeCli, id: &str, kind: &str) {
    let payload = json!({"model": "m"});
    let request = json!({"subtype": "request_user_dialog", "dialog_kind": kind,
        "payload": payload, "tool_use_id": "t", "brand_new": 1});
    cli.send_request(id, request).await;
}

async fn read_response(cli: &mut FakeCli) -> Value {
    cli.read_line().await["response"].clone()
}

#[test]
fn dialog_callback_is_called_for_the_named_kinds() {
    run(async {
        let options = Options::new().on_user_dialog([DIALOG, "panic"], |dialog, ctx| async move {
            if dialog.dialog_kind == "panic" {
                panic_silently();
            }
            assert_eq!(dialog.payload.unwrap().text(), r#"{"model":"m"}"#);
            assert_eq!(dialog.tool_use_id.unwrap().as_str(), "t");
            assert!(dialog.extra.get("brand_new").is_some());
            DialogResponse::completed(ctx.request_id.as_str())
        });
        let (options, noted) = record_warnings(options);
        let (session, mut cli) = open(options).await;
        let handshake = cli.expect_request("initialize").await;
        assert_eq!(handshake["request"]["supportedDialogKinds"], json!([DIALOG, "panic"]));
        cli.respond(&handshake, json!({})).await;
        in_time(session.ready()).await.unwrap();
        request_dialog(&mut cli, "a", DIALOG).await;
        let shown = read_response(&mut cli).await;
        assert_eq!(shown["response"], json!({"behavior": "completed", "result": "a"}));
        request_dialog(&mut cli, "b", "panic").await;
        assert_eq!(read_response(&mut cli).await["response"], json!({"behavior": "cancelled"}));
        assert_eq!(*noted.lock().unwrap(), [WarningCode::CallbackFailed]);
    });
}

#[test]
fn cancelled_or_timed_out_dialog_ends() {
    run(async {
        let notes = Notes::new();
        let noted = notes.clone();
        let options = Options::new()
            .on_user_dialog_blocking(["quick"], |_, _| DialogResponse::cancelled())
            .on_user_dialog([DIALOG], move |_, ctx| {
                let notes = noted.clone();
                async move {
                    notes.add("shown");
                    ctx.cancel.cancelled().await;
                    notes.add("closed");
                    DialogResponse::cancelled()
                }
            })
            .timeouts(Timeouts::new().permission(Duration::from_millis(50)));
        let (_session, mut cli) = connect(options.clone()).await;
        request_dialog(&mut cli, "late", DIALOG).await;
        let late = read_response(&mut cli).await;
        assert_eq!(late["response"], json!({"behavior": "cancelled"}));
        until("the callback is called", || notes.len() == 2).await;
        let (_session, mut cli) = connect(options.timeouts(Timeouts::new().permission(None))).await;
        request_dialog(&mut cli, "withdrawn", DIALOG).await;
        until("the dialog is shown", || notes.len() == 3).await;
        cli.send(json!({"type": "control_cancel_request", "request_id": "withdrawn"})).await;
        until("the callback is called", || notes.len() == 4).await;
        // The next response belongs to the next request.
        cli.send_request("next", json!({"subtype": "elicitation", "mcp_server_name": "s"})).await;
        assert_eq!(read_response(&mut cli).await["request_id"], "next");
    });
}

#[test]
fn dialogs_are_not_announced_without_a_callback() {
    run(async {
        let (options, noted) = record_warnings(Options::new());
        let (session, mut cli) = open(options).await;
        let handshake = cli.expect_request("initialize").await;
        assert!(handshake["request"]["supportedDialogKinds"].is_null());
        cli.respond(&handshake, json!({})).await;
        in_time(session.ready()).await.unwrap();
        request_dialog(&mut cli, "a", DIALOG).await;
        until("the warning is reported", || {
            *noted.lock().unwrap() == [WarningCode::UnansweredRequest]
        })
        .await;
        cli.send_request("next", json!({"subtype": "elicitation", "mcp_server_name": "s"})).await;
        assert_eq!(read_response(&mut cli).await["request_id"], "next");
    });
}

#[test]
fn dialog_callback_without_kinds_or_with_print_mode_is_rejected() {
    run(async {
        let options = Options::new()
            .on_user_dialog([""; 0], |_, _| async { DialogResponse::cancelled() })
            .print_mode(true);
        let error = Session::open(options).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        let text = error.to_string();
        assert!(text.contains("on_user_dialog: no kind of dialog"), "{text}");
        assert!(text.contains("on_elicitation or on_user_dialog"), "{text}");
    });
}
