//! Lagging readers.

use std::future::Future as _;
use std::task::{Context, Waker};

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::{ErrorKind, Limits, Options, Permission};
use claude_agent_testkit::sim::{Fault, Faults};
use tests_e2e::stage::Stage;

use crate::play::{kind, start, touching, turn};
use crate::puppet::{self, message};
use crate::support::{hello, in_time, run};

const KIB: usize = 1024;

#[test]
fn turns_go_on_while_a_stream_is_not_read_and_nothing_is_lost() {
    run(async {
        let faults = Faults::new().after("system/init", Fault::Messages(2_000));
        let stage = Stage::faulty(hello(), faults).await.unwrap();
        let session = start(
            stage
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
fn at_the_hard_limit_the_slow_reader_is_cut_off_and_the_others_go_on() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(64 * KIB));
        let (session, mut puppet) = puppet::running(options).await;
        let (mut slow, mut quick) = (session.messages(), session.messages());
        let mut running = session.send("hello").await.unwrap();
        let user = puppet.hear().await;
        puppet.lifecycle(&user, "started").await;
        assert_eq!(kind(&in_time(quick.next()).await.unwrap().unwrap()), "command_lifecycle");
        let long = "x".repeat(KIB);
        for number in 0..300 {
            puppet.talk(&format!("{number} {long}")).await;
            let item = in_time(quick.next()).await.unwrap().unwrap();
            assert!(item.message().unwrap().raw_str().unwrap().contains(&format!("{number} x")));
            while kind(&in_time(running.next()).await.unwrap().unwrap()) != "assistant" {}
        }
        let error = in_time(slow.next()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lagged);
        assert!(error.size() >= Some(60 * KIB as u64), "{:?}", error.size());
        assert!(slow.next().await.is_none());
        puppet.result(&user).await;
        assert_eq!(in_time(running.finish()).await.unwrap().text.len(), 300 * KIB + 1_090);
        assert_eq!(kind(&in_time(quick.next()).await.unwrap().unwrap()), "result");
    });
}

#[test]
fn a_turn_that_was_cut_off_says_so_again_when_it_is_finished() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(KIB).backlog_hard_bytes(4 * KIB));
        let (session, mut puppet) = puppet::running(options).await;
        let mut quick = session.messages();
        let mut slow = session.send("hello").await.unwrap();
        let user = puppet.hear().await;
        puppet.lifecycle(&user, "started").await;
        for number in 0..20 {
            puppet.talk(&format!("{number} {}", "x".repeat(KIB))).await;
            while kind(&in_time(quick.next()).await.unwrap().unwrap()) != "assistant" {}
        }
        puppet.result(&user).await;
        while kind(&in_time(quick.next()).await.unwrap().unwrap()) != "result" {}
        let error = in_time(slow.next()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lagged);
        assert_eq!(in_time(slow.finish()).await.unwrap_err().kind(), ErrorKind::Lagged);
    });
}

#[test]
fn when_nobody_waits_reading_pauses_and_goes_on_later() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(32 * KIB));
        let (session, mut puppet) = puppet::running(options).await;
        let mut messages = session.messages();
        let talking = tokio::spawn(async move {
            for number in 0..5_000 {
                puppet.say(message(&format!("number {number}"))).await;
            }
            puppet
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
        let puppet = in_time(talking).await.unwrap();
        drop(puppet);
    });
}

#[test]
fn an_operation_is_answered_behind_any_number_of_unread_messages() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(1 << 30));
        let (session, mut puppet) = puppet::running(options).await;
        let mut messages = session.messages();
        let asking = session.clone();
        let asked = tokio::spawn(async move { asking.interrupt().await });
        let request = puppet.asked("interrupt").await;
        for number in 0..10_000 {
            puppet.talk(&number.to_string()).await;
        }
        puppet.answer(&request, serde_json::json!({"still_queued": []})).await;
        in_time(asked).await.unwrap().unwrap();
        for _ in 0..10_000 {
            in_time(messages.next()).await.unwrap().unwrap();
        }
    });
}

#[test]
fn a_turn_that_is_not_read_holds_up_no_callback() {
    run(async {
        let faults = Faults::new().after("system/init", Fault::Messages(1_000));
        let stage = Stage::faulty(touching(), faults).await.unwrap();
        let options = stage
            .options()
            .limits(Limits::new().backlog_soft_bytes(8 * KIB).backlog_hard_bytes(1 << 30))
            .can_use_tool(|_, _| async { Permission::allow() });
        let session = start(options).await;
        let running = session.send("run it").await.unwrap();
        crate::support::until("the tool ran", || stage.project().join("made").exists()).await;
        assert!(in_time(running.finish()).await.unwrap().text.contains("Done."));
        session.stop().await.unwrap();
    });
}

#[test]
fn a_receive_that_is_cancelled_in_the_middle_of_a_line_loses_nothing() {
    run(async {
        let (session, mut puppet) = puppet::running(Options::new()).await;
        let mut messages = session.messages();
        for number in 0..200 {
            let line = format!("{}\n", message(&number.to_string()));
            let (start, end) = line.split_at(line.len() / 2);
            puppet.write(start.as_bytes()).await;
            {
                let mut next = std::pin::pin!(messages.next());
                let polled = next.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                assert!(polled.is_pending());
            }
            puppet.write(end.as_bytes()).await;
            let item = in_time(messages.next()).await.unwrap().unwrap();
            assert!(item.message().unwrap().raw_str().unwrap().contains(&format!("\"{number}\"")));
        }
        drop(session);
    });
}

#[test]
fn stderr_and_lines_that_are_no_messages_do_no_harm() {
    run(async {
        let faults = Faults::new()
            .after("system/init", Fault::Stderr(320 * KIB))
            .after("system/init", Fault::Bytes(b"this is no JSON\n".to_vec()))
            .after("system/init", Fault::Bytes(b"{\"type\":\"brand_new\"}\n".to_vec()))
            .after("system/init", Fault::LongLine(300 * KIB));
        let stage = Stage::faulty(hello(), faults).await.unwrap();
        let session = start(stage.options()).await;
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
fn a_hook_is_asked_in_a_turn_that_the_cli_began_although_nobody_reads_messages() {
    run(async {
        let options = Options::new()
            .limits(Limits::new().backlog_soft_bytes(16 * KIB).backlog_hard_bytes(1 << 30))
            .on(PreToolUse, async |_, _| HookResponse::deny("no"));
        let (session, mut puppet) = puppet::running(options).await;
        let unread = session.messages();
        let long = "x".repeat(KIB);
        for _ in 0..200 {
            puppet.talk(&long).await;
        }
        puppet.ask_hook("h").await;
        let response = puppet.hear().await;
        assert_eq!(response["response"]["request_id"], "h", "{response}");
        drop(unread);
    });
}
