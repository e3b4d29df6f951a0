//! Lagging readers.

use std::future::Future as _;
use std::task::{Context, Waker};

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::{ErrorKind, Limits, Options, Permission};
use claude_agent_testkit::sim::{Fault, Faults};
use tests_e2e::harness::Harness;

use crate::fake_cli::{self, message};
use crate::helpers::{kind, start, touch_script, turn};
use crate::support::{hello, in_time, run};

const KIB: usize = 1024;

#[test]
fn unread_stream_does_not_block_turns_and_loses_nothing() {
    run(async {
        let faults = Faults::new().after("system/init", Fault::Messages(2_000));
        let harness = Harness::faulty(hello(), faults).await.unwrap();
        let session = start(
            harness
                .options()
                .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(1 << 30)),
        )
        .await;
        let mut slow = session.messages();
        for _ in 0..3 {
            turn(&session, "hello").await;
        }
        session.stop().await.unwrap();
        let mut results = 0;
        let mut all = 0;
        while let Some(item) = in_time(slow.next()).await {
            results += usize::from(kind(&item.unwrap()) == "result");
            all += 1;
        }
        assert_eq!(results, 3);
        assert!(all > 2_000, "{all}");
    });
}

#[test]
fn lagging_reader_is_cut_off_at_the_hard_limit_and_others_continue() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(64 * KIB));
        let (session, mut cli) = fake_cli::connect(options).await;
        let (mut slow, mut quick) = (session.messages(), session.messages());
        let mut running = session.send("hello").await.unwrap();
        let user = cli.read_line().await;
        cli.send_lifecycle(&user, "started").await;
        assert_eq!(kind(&in_time(quick.next()).await.unwrap().unwrap()), "command_lifecycle");
        let long = "x".repeat(KIB);
        for number in 0..300 {
            cli.send_text(&format!("{number} {long}")).await;
            let item = in_time(quick.next()).await.unwrap().unwrap();
            assert!(item.message().unwrap().raw_str().unwrap().contains(&format!("{number} x")));
            while kind(&in_time(running.next()).await.unwrap().unwrap()) != "assistant" {}
        }
        let error = in_time(slow.next()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lagged);
        assert!(error.size() >= Some(60 * KIB as u64), "{:?}", error.size());
        assert!(slow.next().await.is_none());
        cli.send_result(&user).await;
        assert_eq!(in_time(running.finish()).await.unwrap().text.len(), 300 * KIB + 1_090);
        assert_eq!(kind(&in_time(quick.next()).await.unwrap().unwrap()), "result");
    });
}

#[test]
fn finish_of_a_lagged_turn_returns_the_lag_error_again() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(KIB).backlog_hard_bytes(4 * KIB));
        let (session, mut cli) = fake_cli::connect(options).await;
        let mut quick = session.messages();
        let mut slow = session.send("hello").await.unwrap();
        let user = cli.read_line().await;
        cli.send_lifecycle(&user, "started").await;
        for number in 0..20 {
            cli.send_text(&format!("{number} {}", "x".repeat(KIB))).await;
            while kind(&in_time(quick.next()).await.unwrap().unwrap()) != "assistant" {}
        }
        cli.send_result(&user).await;
        while kind(&in_time(quick.next()).await.unwrap().unwrap()) != "result" {}
        let error = in_time(slow.next()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lagged);
        assert_eq!(in_time(slow.finish()).await.unwrap_err().kind(), ErrorKind::Lagged);
    });
}

#[test]
fn reading_pauses_at_the_soft_limit_and_resumes() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(32 * KIB));
        let (session, mut cli) = fake_cli::connect(options).await;
        let mut messages = session.messages();
        let talking = tokio::spawn(async move {
            for number in 0..5_000 {
                cli.send(message(&format!("number {number}"))).await;
            }
            cli
        });
        // Without a reader the pipe fills up, so the writer cannot finish before the messages are
        // read.
        for number in 0..5_000 {
            if number == 0 {
                tokio::task::yield_now().await;
                assert!(!talking.is_finished());
            }
            let item = in_time(messages.next()).await.unwrap().unwrap();
            let raw = item.message().unwrap().raw_str().unwrap().to_owned();
            assert!(raw.contains(&format!("\"number {number}\"")), "{number}: {raw}");
        }
        let cli = in_time(talking).await.unwrap();
        drop(cli);
    });
}

#[test]
fn operation_completes_behind_unread_messages() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(1 << 30));
        let (session, mut cli) = fake_cli::connect(options).await;
        let mut messages = session.messages();
        let interrupter = session.clone();
        let interrupt = tokio::spawn(async move { interrupter.interrupt().await });
        let request = cli.expect_request("interrupt").await;
        for number in 0..10_000 {
            cli.send_text(&number.to_string()).await;
        }
        cli.respond(&request, serde_json::json!({"still_queued": []})).await;
        in_time(interrupt).await.unwrap().unwrap();
        for _ in 0..10_000 {
            in_time(messages.next()).await.unwrap().unwrap();
        }
    });
}

#[test]
fn unread_turn_delays_no_callback() {
    run(async {
        let faults = Faults::new().after("system/init", Fault::Messages(1_000));
        let harness = Harness::faulty(touch_script(), faults).await.unwrap();
        let options = harness
            .options()
            .limits(Limits::new().backlog_soft_bytes(8 * KIB).backlog_hard_bytes(1 << 30))
            .can_use_tool(|_, _| async { Permission::allow() });
        let session = start(options).await;
        let running = session.send("run it").await.unwrap();
        crate::support::until("the tool ran", || harness.project().join("made").exists()).await;
        assert!(in_time(running.finish()).await.unwrap().text.contains("Done."));
        session.stop().await.unwrap();
    });
}

#[test]
fn next_cancelled_within_a_line_loses_nothing() {
    run(async {
        let (session, mut cli) = fake_cli::connect(Options::new()).await;
        let mut messages = session.messages();
        for number in 0..200 {
            let line = format!("{}\n", message(&number.to_string()));
            let (start, end) = line.split_at(line.len() / 2);
            cli.write(start.as_bytes()).await;
            {
                let mut next = std::pin::pin!(messages.next());
                let polled = next.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending());
            }
            cli.write(end.as_bytes()).await;
            let item = in_time(messages.next()).await.unwrap().unwrap();
            assert!(item.message().unwrap().raw_str().unwrap().contains(&format!("\"{number}\"")));
        }
        drop(session);
    });
}

#[test]
fn stderr_and_malformed_lines_do_not_disturb_a_session() {
    run(async {
        let faults = Faults::new()
            .after("system/init", Fault::Stderr(320 * KIB))
            .after("system/init", Fault::Bytes(b"not JSON\n".to_vec()))
            .after("system/init", Fault::Bytes(b"{\"type\":\"brand_new\"}\n".to_vec()))
            .after("system/init", Fault::LongLine(300 * KIB));
        let harness = Harness::faulty(hello(), faults).await.unwrap();
        let session = start(harness.options()).await;
        let mut messages = session.messages();
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        session.stop().await.unwrap();
        let mut kinds = Vec::new();
        while let Some(item) = messages.next().await {
            kinds.push(kind(&item.unwrap()));
        }
        assert!(kinds.iter().any(|kind| kind == "brand_new"), "{kinds:?}");
        assert!(kinds.iter().any(|kind| kind == "warning"), "{kinds:?}");
    });
}

/// The CLI starts turns by itself, for example when a background task has ended.
#[test]
fn hook_runs_in_a_turn_of_the_cli_without_a_reader() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(1 << 30))
            .on(PreToolUse, async |_, _| HookResponse::deny("no"));
        let (session, mut cli) = fake_cli::connect(options).await;
        let unread = session.messages();
        let long = "x".repeat(KIB);
        for _ in 0..200 {
            cli.send_text(&long).await;
        }
        cli.call_hook("h").await;
        let response = cli.read_line().await;
        assert_eq!(response["response"]["request_id"], "h", "{response}");
        drop(unread);
    });
}
