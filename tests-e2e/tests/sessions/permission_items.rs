//! Permission requests as items of a stream, and the permission inbox.

use claude_agent_kit::{
    Answers, ErrorKind, Item, Limits, Options, Permission, PermissionInbox, QueryStream, query,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::Body;
use serde_json::json;

use crate::fake_cli;
use crate::helpers::{
    Notes, calls, find, has_file, is_result, kind, on_both, start, touch_script, turn,
};
use crate::support::{in_time, run, until};

/// Describes the tool calls, permission requests and tool results in an item, by tool use ID.
fn tool_events(item: &Item) -> Vec<String> {
    match item {
        Item::PermissionRequest(request) => {
            vec![format!("asks {}", request.tool_use_id.as_ref().unwrap())]
        }
        Item::Message(message) => match &message.body {
            Body::Assistant(_) | Body::User(_) => {
                let raw: serde_json::Value = serde_json::from_slice(message.raw()).unwrap();
                let blocks = raw["message"]["content"].as_array().cloned().unwrap_or_default();
                let of = |block: &serde_json::Value| match block["type"].as_str()? {
                    "tool_use" => Some(format!("calls {}", block["id"].as_str()?)),
                    "tool_result" => Some(format!("did {}", block["tool_use_id"].as_str()?)),
                    _ => None,
                };
                blocks.iter().filter_map(of).collect()
            }
            _ => Vec::new(),
        },
        Item::Warning(_) => Vec::new(),
    }
}

/// Asserts that every request comes between its call and its result.
fn assert_order(places: &[String], requests: usize) {
    let requested: Vec<&String> =
        places.iter().filter(|place| place.starts_with("asks ")).collect();
    assert_eq!(requested.len(), requests, "{places:?}");
    for asks in requested {
        let call = asks.trim_start_matches("asks ");
        let at = |place: String| places.iter().position(|other| *other == place).unwrap();
        let order = [at(format!("calls {call}")), at(asks.clone()), at(format!("did {call}"))];
        assert!(order.is_sorted(), "{places:?}");
    }
}

async fn tool_events_of(mut stream: QueryStream) -> Vec<String> {
    let mut places = Vec::new();
    while let Some(item) = in_time(stream.next()).await {
        places.extend(tool_events(&item.unwrap()));
    }
    places
}

#[test]
fn permission_requests_are_between_call_and_result_in_every_stream() {
    let script = || {
        Script::new().otherwise([
            calls(&["touch one"]),
            calls(&["touch two"]),
            Reply::text("Done."),
        ])
    };
    on_both(script, async |harness| {
        let ids = Notes::new();
        let notes = ids.clone();
        let options = harness.options().can_use_tool(move |request, _| {
            notes.add(request.id);
            async { Permission::allow() }
        });
        assert_order(&tool_events_of(query("run it", options.clone()).await.unwrap()).await, 2);
        let session = start(options).await;
        let mut messages = session.messages();
        let mut running = session.send("run it").await.unwrap();
        let (mut of_turn, mut shown) = (Vec::new(), Vec::new());
        while let Some(item) = in_time(running.next()).await {
            let item = item.unwrap();
            of_turn.extend(tool_events(&item));
            shown.extend(item.permission_request().map(|request| request.id.clone()));
        }
        assert_order(&of_turn, 2);
        let mut of_all = Vec::new();
        loop {
            let item = in_time(messages.next()).await.unwrap().unwrap();
            of_all.extend(tool_events(&item));
            if is_result(&item) {
                break;
            }
        }
        assert_eq!(of_all, of_turn);
        assert_eq!(ids.all()[2..], shown, "the callback and the items have the same ids");
        session.stop().await.unwrap();
    });
}

#[test]
fn permission_item_is_delivered_before_the_callback_runs() {
    run(async {
        let options = Options::new().can_use_tool(|_, _| async { Permission::allow() });
        let (session, mut cli) = fake_cli::connect(options).await;
        let mut messages = session.messages();
        let before = json!({"type": "assistant", "message": {"role": "assistant", "content": []}});
        let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}});
        let ask = json!({"type": "control_request", "request_id": "r", "request": request});
        // A single write, so that everything is read at once, as in a replay.
        cli.write(format!("{before}\n{ask}\n").as_bytes()).await;
        let response = cli.read_line().await;
        assert_eq!(response["response"]["request_id"], "r");
        let first = in_time(messages.next()).await.unwrap().unwrap();
        let second = in_time(messages.next()).await.unwrap().unwrap();
        assert_eq!([kind(&first), kind(&second)], ["assistant", "permission_request"]);
        drop(session);
    });
}

#[test]
fn only_requests_for_the_permission_callback_are_items() {
    let script = || {
        let question = json!({"questions": [{
            "question": "Which?", "header": "W", "multiSelect": false,
            "options": [{"label": "A", "description": ""}, {"label": "B", "description": ""}],
        }]});
        Script::new().otherwise([
            Reply::tool("AskUserQuestion", question),
            calls(&["touch made"]),
            Reply::text("Done."),
        ])
    };
    on_both(script, async |harness| {
        let requested = |options: Options| async {
            let collected = query("run it", options).await.unwrap().collect().await;
            let requests = collected.items.iter().filter_map(Item::permission_request);
            requests.map(|request| request.tool_name.clone()).collect::<Vec<_>>()
        };
        let questions = harness.options().ask_user(|questions, _| async move {
            questions.iter().fold(Answers::new(), |answers, question| answers.choose(question, "A"))
        });
        assert!(requested(questions.clone()).await.is_empty());
        let both = questions.can_use_tool(|_, _| async { Permission::allow() });
        assert_eq!(requested(both).await, ["Bash"]);
        assert!(requested(harness.options()).await.is_empty());
    });
}

#[test]
fn inbox_serves_several_sessions_by_request_id() {
    on_both(touch_script, async |harness| {
        let inbox = PermissionInbox::new();
        let options = harness.options().can_use_tool(inbox.callback());
        let allowed = start(options.clone()).await;
        let denied = start(options).await;
        let turns = [allowed.send("run it").await.unwrap(), denied.send("run it").await.unwrap()];
        let first = in_time(inbox.next()).await;
        let second = in_time(inbox.next()).await;
        assert_ne!(first.id, second.id);
        assert_eq!(inbox.pending().len(), 2);
        for request in [first, second] {
            let is_allowed = request.session_id == allowed.session_id();
            let answer = if is_allowed { Permission::allow() } else { Permission::deny("no") };
            inbox.answer(&request.id, answer).unwrap();
        }
        let [allowed_turn, denied_turn] = turns;
        in_time(allowed_turn.finish()).await.unwrap();
        let outcome = in_time(denied_turn.finish()).await.unwrap();
        assert_eq!(outcome.result.permission_denials.len(), 1);
        assert!(has_file(&harness, "made") && inbox.pending().is_empty());
        for session in [allowed, denied] {
            session.stop().await.unwrap();
        }
    });
}

#[test]
fn interrupted_turn_withdraws_its_request_from_the_inbox() {
    on_both(touch_script, async |harness| {
        let inbox = PermissionInbox::new();
        let session = start(harness.options().can_use_tool(inbox.callback())).await;
        let running = session.send("run it").await.unwrap();
        let request = in_time(inbox.next()).await;
        session.interrupt().await.unwrap();
        until("the request is withdrawn", || inbox.pending().is_empty()).await;
        let error = inbox.answer(&request.id, Permission::allow()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RequestWithdrawn, "{error}");
        in_time(running.finish()).await.unwrap();
        session.stop().await.unwrap();
        assert!(!has_file(&harness, "made"));
    });
}

#[test]
fn dropped_inbox_denies_and_the_turn_continues() {
    on_both(touch_script, async |harness| {
        let inbox = PermissionInbox::new();
        let session = start(harness.options().can_use_tool(inbox.callback())).await;
        let running = session.send("run it").await.unwrap();
        drop(in_time(inbox.next()).await);
        drop(inbox);
        assert_eq!(in_time(running.finish()).await.unwrap().result.permission_denials.len(), 1);
        assert_eq!(turn(&session, "run it").await.result.permission_denials.len(), 1);
        session.stop().await.unwrap();
        assert!(!has_file(&harness, "made"));
    });
}

#[test]
fn lagging_reader_gets_an_error_for_lost_requests() {
    run(async {
        let options = Options::new()
            .can_use_tool(|_, _| async { Permission::allow() })
            .limits(Limits::new().backlog_soft_bytes(1024).backlog_hard_bytes(4096));
        let (session, mut cli) = fake_cli::connect(options).await;
        let mut slow = session.messages();
        let mut fast = session.messages();
        for number in 0..100 {
            let input = json!({"command": "x".repeat(100)});
            let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": input});
            let id = number.to_string();
            cli.send(json!({"type": "control_request", "request_id": id, "request": request}))
                .await;
            let response = cli.read_line().await;
            assert_eq!(response["response"]["request_id"], id, "the callback is called anyway");
            find(&mut fast, |item| item.permission_request().is_some()).await;
        }
        let error = loop {
            match in_time(slow.next()).await.unwrap() {
                Ok(item) => assert!(item.permission_request().is_some()),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Lagged);
        drop(session);
    });
}
