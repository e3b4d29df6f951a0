//! The context that callbacks receive, and the session handle in it.

use std::sync::Arc;

use claude_agent_kit::Exit;
use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::{Options, Permission, PermissionMode, Session, SessionState, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tokio::sync::Notify;

use crate::fake_cli;
use crate::helpers::{Notes, bash, has_file, on_both, start, touch_script, turn};
use crate::support::{in_time, run, until};

#[test]
fn permission_callback_can_change_the_mode_of_its_session() {
    let script = || {
        let write = |name| Reply::tool("Write", json!({"file_path": name, "content": "x"}));
        Script::new().otherwise([write("one"), write("two"), Reply::text("Done.")])
    };
    on_both(script, async |harness| {
        let calls = Notes::new();
        let notes = calls.clone();
        let options = harness.options().can_use_tool(move |_, ctx| {
            let notes = notes.clone();
            async move {
                let session = ctx.session().ok_or("no session")?;
                session.set_permission_mode(PermissionMode::AcceptEdits).await?;
                notes.add(session.session_id());
                Ok(Permission::allow())
            }
        });
        let session = start(options).await;
        turn(&session, "run it").await;
        assert!(has_file(&harness, "one") && has_file(&harness, "two"));
        assert_eq!(calls.all(), [session.session_id()], "the new mode allows the second call");
        session.stop().await.unwrap();
    });
}

#[test]
fn callbacks_have_a_session_handle_only_in_a_session() {
    on_both(touch_script, async |harness| {
        let found = Notes::new();
        let (of_hook, of_permission) = (found.clone(), found.clone());
        let options = harness
            .options()
            .on(PreToolUse, move |_, ctx| {
                of_hook.add((ctx.callback_id.is_some(), ctx.session().is_some()));
                async {}
            })
            .can_use_tool(move |_, ctx| {
                of_permission.add((ctx.callback_id.is_some(), ctx.session().is_some()));
                async { Permission::allow() }
            });
        let session = start(options.clone()).await;
        turn(&session, "run it").await;
        session.stop().await.unwrap();
        assert_eq!(found.all(), [(true, true), (false, true)]);
        query("run it", options).await.unwrap().collect().await;
        assert_eq!(found.all()[2..], [(true, false), (false, false)]);
    });
}

#[test]
fn session_handle_of_a_callback_does_not_keep_the_session_alive() {
    run(async {
        let held = Notes::<Session>::new();
        let contexts = Notes::new();
        let (sessions, notes) = (held.clone(), contexts.clone());
        let called = Arc::new(Notify::new());
        let entered = called.clone();
        let options = Options::new().can_use_tool(move |_, ctx| {
            sessions.add(ctx.session().unwrap());
            notes.add(ctx.clone());
            entered.notify_one();
            async move {
                ctx.cancel.cancelled().await;
                Permission::deny("cancelled")
            }
        });
        let (session, mut cli) = fake_cli::connect(options).await;
        let request = json!({"subtype": "can_use_tool", "tool_name": "Bash", "input": {}});
        cli.send(json!({"type": "control_request", "request_id": "1", "request": request})).await;
        in_time(called.notified()).await;
        drop(session);
        assert!(cli.next_line().await.is_none(), "stdin is closed, because no owner is left");
        cli.exit(Exit::Code(0));
        let held = held.all().remove(0);
        until("the session has ended", || held.state().is_final()).await;
        assert!(matches!(held.state(), SessionState::Stopped(_)), "{:?}", held.state());
        assert!(contexts.all()[0].session().is_none(), "no session handle after the end");
    });
}

#[test]
fn event_stream_starts_with_the_current_state() {
    on_both(
        || bash(&[]),
        async |harness| {
            let session = start(harness.options()).await;
            assert!(matches!(session.state(), SessionState::Running), "{:?}", session.state());
            let first = session.events().next().await;
            assert!(matches!(first, Some(SessionState::Running)), "{first:?}");
            session.stop().await.unwrap();
            assert!(matches!(session.state(), SessionState::Stopped(Some(_))));
            let mut events = session.events();
            assert!(events.next().await.is_some_and(|state| state.is_final()));
            assert!(events.next().await.is_none());
        },
    );
}
