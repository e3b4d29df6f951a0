//! Questions of servers outside, and dialogs of the CLI.

use std::time::Duration;

use claude_agent_kit::elicitation::{DialogResponse, ElicitationResponse};
use claude_agent_kit::mcp::StdioServer;
use claude_agent_kit::{BoxError, ErrorKind, Options, Session, Timeouts, WarningCode};
use claude_agent_testkit::mock_api::Script;
use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use crate::calc::{calling, texts};
use crate::outside::OUTSIDE;
use crate::play::{Notes, on_both, panic_silently, start, turn};
use crate::puppet::{Puppet, open, running};
use crate::support::{LIMIT, in_time, noting, run, until};

fn asking() -> Script {
    calling(&[("mcp__out__ask", json!({}))])
}

/// Lets the server ask its question, and gives what it was told.
async fn asked(harness: &Harness, options: impl FnOnce(Options) -> Options) -> Value {
    let server = StdioServer::new(OUTSIDE).always_load(true);
    let with_server = harness.options().mcp("out", server).allowed_tools(["mcp__out"]);
    let session = start(options(with_server)).await;
    in_time(session.mcp().wait_for(["out"], LIMIT)).await.unwrap();
    turn(&session, "go").await;
    session.stop().await.unwrap();
    serde_json::from_str(&texts(harness).concat()).unwrap()
}

#[test]
fn the_form_of_a_server_is_filled_in() {
    on_both(asking, async |harness| {
        let notes = Notes::new();
        let noted = notes.clone();
        let answer = asked(&harness, |options| {
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
fn a_question_of_a_server_is_declined_by_hand_for_a_failure_and_without_a_callback() {
    on_both(asking, async |harness| {
        let by_hand = asked(&harness, |options| {
            options.on_elicitation_blocking(|_, _| ElicitationResponse::decline())
        });
        assert_eq!(by_hand.await["action"], "decline");
    });
    on_both(asking, async |harness| {
        let mut noted = None;
        let failed = asked(&harness, |options| {
            let (options, notes) = noting(options);
            noted = Some(notes);
            options
                .on_elicitation(|_, _| async { Err::<ElicitationResponse, BoxError>("no".into()) })
        });
        assert_eq!(failed.await["action"], "decline");
        assert_eq!(*noted.unwrap().lock().unwrap(), [WarningCode::CallbackFailed]);
    });
    on_both(asking, async |harness| {
        let mut noted = None;
        let alone = asked(&harness, |options| {
            let (options, notes) = noting(options);
            noted = Some(notes);
            options
        });
        assert_eq!(alone.await["action"], "decline");
        assert_eq!(*noted.unwrap().lock().unwrap(), [WarningCode::UnansweredRequest]);
    });
}

const DIALOG: &str = "refusal_fallback_prompt";

async fn show(puppet: &mut Puppet, id: &str, kind: &str) {
    let payload = json!({"model": "m"});
    let request = json!({"subtype": "request_user_dialog", "dialog_kind": kind,
        "payload": payload, "tool_use_id": "t", "brand_new": 1});
    puppet.ask(id, request).await;
}

async fn answer(puppet: &mut Puppet) -> Value {
    puppet.hear().await["response"].clone()
}

#[test]
fn dialogs_of_the_named_kinds_are_shown() {
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
        let (options, noted) = noting(options);
        let (session, mut puppet) = open(options).await;
        let handshake = puppet.asked("initialize").await;
        assert_eq!(handshake["request"]["supportedDialogKinds"], json!([DIALOG, "panic"]));
        puppet.answer(&handshake, json!({})).await;
        in_time(session.ready()).await.unwrap();
        show(&mut puppet, "a", DIALOG).await;
        let shown = answer(&mut puppet).await;
        assert_eq!(shown["response"], json!({"behavior": "completed", "result": "a"}));
        show(&mut puppet, "b", "panic").await;
        assert_eq!(answer(&mut puppet).await["response"], json!({"behavior": "cancelled"}));
        assert_eq!(*noted.lock().unwrap(), [WarningCode::CallbackFailed]);
    });
}

#[test]
fn a_dialog_that_is_withdrawn_or_late_is_over() {
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
        let (_session, mut puppet) = running(options.clone()).await;
        show(&mut puppet, "late", DIALOG).await;
        let late = answer(&mut puppet).await;
        assert_eq!(late["response"], json!({"behavior": "cancelled"}));
        until("it was told", || notes.len() == 2).await;
        let (_session, mut puppet) =
            running(options.timeouts(Timeouts::new().permission(None))).await;
        show(&mut puppet, "withdrawn", DIALOG).await;
        until("it is shown", || notes.len() == 3).await;
        puppet.say(json!({"type": "control_cancel_request", "request_id": "withdrawn"})).await;
        until("it was told", || notes.len() == 4).await;
        // The next answer is to the next request.
        puppet.ask("next", json!({"subtype": "elicitation", "mcp_server_name": "s"})).await;
        assert_eq!(answer(&mut puppet).await["request_id"], "next");
    });
}

#[test]
fn without_a_callback_no_dialog_is_wanted_or_answered() {
    run(async {
        let (options, noted) = noting(Options::new());
        let (session, mut puppet) = open(options).await;
        let handshake = puppet.asked("initialize").await;
        assert!(handshake["request"]["supportedDialogKinds"].is_null());
        puppet.answer(&handshake, json!({})).await;
        in_time(session.ready()).await.unwrap();
        show(&mut puppet, "a", DIALOG).await;
        until("it is told", || *noted.lock().unwrap() == [WarningCode::UnansweredRequest]).await;
        puppet.ask("next", json!({"subtype": "elicitation", "mcp_server_name": "s"})).await;
        assert_eq!(answer(&mut puppet).await["request_id"], "next");
    });
}

#[test]
fn dialogs_of_no_kind_are_refused_and_print_mode_asks_nobody() {
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
