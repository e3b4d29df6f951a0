//! What works on every supported version.

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::{
    Conversation, MINIMUM_VERSION, Permission, PermissionMode, Session, WarningCode, query,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::real_cli::pinned_versions;

use crate::calc::{calc, call_script, texts, with_server};
use crate::helpers::{
    ENDLESS_ROUNDS, Notes, bash, calls, command_of, endless_script, has_file, interrupt_each_turn,
    interrupt_session_after_each_send, model_received, one_turn, start, touch_script, turn,
};
use crate::on_each;
use crate::support::{ask, codes, hello, in_time, until};

#[test]
fn pinned_minimum_is_the_documented_minimum() {
    assert_eq!(pinned_versions()[0], MINIMUM_VERSION.to_string());
}

#[test]
fn handshake_and_query_work() {
    on_each(hello, async |harness| {
        let session = start(harness.options()).await;
        assert!(!session.server_info().unwrap().commands.as_slice().is_empty());
        session.stop().await.unwrap();
        let collected = ask("hello", harness.options()).await;
        assert!(collected.error.is_none(), "{:?}", collected.error);
        assert_eq!(collected.text(), "Hello.");
        assert_eq!(codes(&collected), []);
        for message in collected.messages() {
            assert!(message.undecodable().is_none(), "{:?}", message.raw());
        }
    });
}

#[test]
fn print_mode_works() {
    on_each(hello, async |harness| {
        let collected = ask("hello", harness.options().print_mode(true)).await;
        assert!(collected.error.is_none(), "{:?}", collected.error);
        assert_eq!(collected.text(), "Hello.");
    });
}

#[test]
fn three_turns_run_in_one_session() {
    let script = || {
        Script::new()
            .when("one", [Reply::text("1")])
            .when("two", [Reply::text("2")])
            .when("three", [Reply::text("3")])
    };
    on_each(script, async |harness| {
        let session = start(harness.options()).await;
        for (prompt, answer) in [("one", "1"), ("two", "2"), ("three", "3")] {
            assert_eq!(turn(&session, prompt).await.text, answer);
        }
        session.stop().await.unwrap();
    });
}

#[test]
fn prompts_and_schemas_reach_the_model() {
    on_each(hello, async |harness| {
        let options = harness.options().system_prompt("You are a parrot.");
        one_turn(
            options.system_prompt(claude_agent_kit::SystemPrompt::default().append("A green one.")),
        )
        .await;
        assert!(model_received(&harness, "You are a parrot."));
        assert!(model_received(&harness, "A green one."));
    });
}

#[test]
fn hook_can_deny_and_allow() {
    on_each(
        || bash(&["touch denied", "touch allowed", "touch undecided"]),
        async |harness| {
            // Some versions use a classifier unless a mode is set.
            let options = harness.options().permission_mode(PermissionMode::Default);
            let options = options.on(PreToolUse.matching("Bash"), |call, _| async move {
                match command_of(call.input.as_ref()).as_str() {
                    "touch denied" => HookResponse::deny("not today"),
                    "touch allowed" => HookResponse::allow(),
                    _ => HookResponse::new(),
                }
            });
            assert_eq!(one_turn(options).await.text, "Done.");
            assert!(has_file(&harness, "allowed"));
            assert!(!has_file(&harness, "denied") && !has_file(&harness, "undecided"));
            assert!(model_received(&harness, "not today"));
        },
    );
}

#[test]
fn permission_callback_can_allow_and_deny() {
    on_each(
        || bash(&["touch allowed", "touch denied"]),
        async |harness| {
            let called = Notes::new();
            let notes = called.clone();
            let options = harness.options().permission_mode(PermissionMode::Default);
            let options = options.can_use_tool(move |request, _| {
                let command = command_of(Some(&request.input));
                notes.add(command.clone());
                async move {
                    if command == "touch allowed" {
                        Permission::allow()
                    } else {
                        Permission::deny("not on a Friday")
                    }
                }
            });
            one_turn(options).await;
            assert!(has_file(&harness, "allowed") && !has_file(&harness, "denied"));
            assert!(model_received(&harness, "not on a Friday"));
            assert_eq!(called.len(), 2);
        },
    );
}

/// Some versions start in a mode in which they decide themselves.
#[test]
fn permission_callback_is_called_or_a_warning_explains_why_not() {
    on_each(touch_script, async |harness| {
        let called = Notes::new();
        let (notes, warnings) = (called.clone(), Notes::new());
        let codes = warnings.clone();
        let options = harness.options().on_warning(move |warning| codes.add(warning.code()));
        let options = options.can_use_tool(move |_, _| {
            notes.add(());
            async { Permission::deny("not here") }
        });
        one_turn(options).await;
        let warned = warnings.all().contains(&WarningCode::PermissionCallbackShadowed);
        assert_eq!(called.len() == 0, warned);
        assert_eq!(has_file(&harness, "made"), warned);
    });
}

#[test]
fn interrupt_ends_the_turn_and_not_the_session() {
    let script = || {
        Script::new()
            .when("run it", [calls(&["touch begun; sleep 60; touch ended"])])
            .when("again", [Reply::text("yes")])
    };
    on_each(script, async |harness| {
        let session = start(harness.options().allowed_tools(["Bash"])).await;
        let running = session.send("run it").await.unwrap();
        until("the tool runs", || has_file(&harness, "begun")).await;
        session.interrupt().await.unwrap();
        assert!(in_time(running.finish()).await.unwrap().result.is_error());
        assert!(!has_file(&harness, "ended"));
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn turn_can_be_interrupted_right_after_its_message_was_sent() {
    on_each(endless_script, async |harness| {
        let session = start(harness.options()).await;
        interrupt_each_turn(&session, ENDLESS_ROUNDS).await;
        interrupt_session_after_each_send(&session, ENDLESS_ROUNDS).await;
        assert_eq!(turn(&session, "again").await.text, "yes");
        session.stop().await.unwrap();
    });
}

#[test]
fn model_and_permission_mode_can_be_changed() {
    let script = || {
        Script::new()
            .when("run it", [calls(&["touch made"]), Reply::text("Done.")])
            .otherwise([Reply::text("Hello.")])
    };
    on_each(script, async |harness| {
        let session = start(harness.options()).await;
        session.set_model("claude-haiku-4-5").await.unwrap();
        turn(&session, "hello").await;
        assert_eq!(harness.api().requests().last().unwrap().model(), "claude-haiku-4-5");
        session.set_permission_mode(PermissionMode::AcceptEdits).await.unwrap();
        turn(&session, "run it").await;
        assert!(has_file(&harness, "made"));
        session.stop().await.unwrap();
    });
}

#[test]
fn in_process_tool_is_called() {
    let script = || call_script(&[("mcp__calc__add", json!({"a": 2, "b": 3}))]);
    on_each(script, async |harness| {
        one_turn(with_server(&harness, calc())).await;
        assert_eq!(texts(&harness), ["5"]);
    });
}

#[test]
fn conversation_is_resumed() {
    on_each(hello, async |harness| {
        let mut first = query("The number is 7.", harness.options()).await.unwrap();
        while let Some(item) = first.next().await {
            item.unwrap();
        }
        let id = first.session_id().unwrap().clone();
        let options = harness.options().conversation(Conversation::resume_or_start(id.clone()));
        let session = Session::start(options).await.unwrap();
        assert_eq!(session.is_resumed(), Some(true));
        turn(&session, "Which number?").await;
        assert_eq!(session.session_id(), Some(id));
        let requests = harness.api().requests();
        let prompts = requests.last().unwrap().prompts();
        assert!(prompts.iter().any(|prompt| prompt.contains("The number is 7.")), "{prompts:?}");
        session.stop().await.unwrap();
    });
}

#[test]
fn session_id_of_new_and_forked_conversations_is_known_immediately() {
    on_each(hello, async |harness| {
        let new = "11111111-2222-4333-8444-555555555555";
        let conversation = Conversation::resume_or_start(new);
        let session = Session::start(harness.options().conversation(conversation)).await.unwrap();
        assert_eq!(
            (session.session_id().unwrap().as_str(), session.is_resumed()),
            (new, Some(false))
        );
        turn(&session, "Hi.").await;
        assert_eq!(session.session_id().unwrap(), new);
        session.stop().await.unwrap();
        for conversation in [Conversation::new(), Conversation::fork(new)] {
            let session =
                Session::start(harness.options().conversation(conversation)).await.unwrap();
            let id = session.session_id().unwrap();
            turn(&session, "Hi.").await;
            assert_eq!(session.session_id(), Some(id), "as the CLI names it");
            session.stop().await.unwrap();
        }
    });
}
