//! The stream of a query: nothing is lost, mixed up or leaked.

use std::future::ready;

use claude_agent_kit::{
    Collected, ErrorKind, Include, Limits, Options, QueryStream, Timeouts, query,
};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults};
use claude_wire::Body;
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::exists;
use tokio::task::JoinSet;

use crate::support::{
    SHORT, SIM, ask, codes, error_of, faulty, faulty_process, hello, kinds, run, until,
};

/// Compiles only if a stream and its futures can move to any task.
const fn assert_send<T: Send + 'static>() {}
const _: () = assert_send::<QueryStream>();
const _: () = assert_send::<Collected>();

fn sendable<T: Send>(future: T) -> T {
    future
}

#[test]
fn query_stream_and_its_futures_are_send() {
    run(async {
        let harness = Harness::in_memory(hello()).await.unwrap();
        let mut stream = sendable(query("hello", harness.options())).await.unwrap();
        let first = tokio::spawn(async move {
            let first = sendable(stream.next()).await.unwrap().unwrap();
            (first, stream)
        });
        let (first, stream) = first.await.unwrap();
        assert!(first.message().is_some());
        let rest = tokio::spawn(sendable(stream.collect())).await.unwrap();
        assert_eq!(rest.text(), "Hello.");
    });
}

#[test]
fn stream_is_fused_after_the_end_and_after_an_error() {
    run(async {
        let failing = Faults::new().before("result", Fault::Exit(3));
        for (faults, fails) in [(Faults::new(), false), (failing, true)] {
            let harness = faulty(faults).await;
            let mut stream = query("hello", harness.options()).await.unwrap();
            let mut errors = 0;
            while let Some(item) = stream.next().await {
                assert_eq!(errors, 0, "an error is the last item");
                errors += usize::from(item.is_err());
            }
            assert_eq!(errors, usize::from(fails));
            for _ in 0..3 {
                assert!(stream.next().await.is_none());
            }
            stream.close().await;
            assert!(stream.next().await.is_none());
        }
    });
}

#[test]
fn dropping_a_pending_next_loses_nothing() {
    run(async {
        let slow = Reply::text("one two three four five six")
            .deltas_of(2)
            .pause_between(std::time::Duration::from_millis(2));
        let held = slow.clone().hold();
        let script = Script::new().when("at once", [slow]).when("held", [held]);
        let harness = Harness::in_memory(script).await.unwrap();
        let options = harness.options().include(Include::PARTIAL_MESSAGES);
        let whole = ask("at once", &options).await;
        let mut stream = query("held", &options).await.unwrap();
        let mut items = Vec::new();
        let mut dropped = 0;
        loop {
            let next = tokio::select! {
                biased;
                item = stream.next() => item,
                // Always ready: whenever no item is available, the pending future is dropped.
                () = ready(()) => {
                    dropped += 1;
                    if dropped > 10 {
                        harness.api().release_held();
                    }
                    tokio::task::yield_now().await;
                    continue;
                }
            };
            match next {
                Some(item) => items.push(item.unwrap()),
                None => break,
            }
        }
        assert!(dropped > 10, "{dropped}");
        let mut pieced = Collected::default();
        pieced.items = items;
        assert_eq!(kinds(&pieced), kinds(&whole));
        assert_eq!(pieced.text(), whole.text());
    });
}

#[test]
fn collecting_keeps_items_warnings_and_the_error() {
    run(async {
        let faults = Faults::new()
            .before("assistant", Fault::Bytes(b"garbage\n".to_vec()))
            .before("result", Fault::Exit(3));
        let harness = faulty(faults).await;
        let collected = ask("hello", harness.options()).await;
        assert_eq!((collected.text().as_str(), codes(&collected).len()), ("Hello.", 1));
        assert_eq!(error_of(&collected).kind(), ErrorKind::ProcessFailed);
        let positions: Vec<bool> =
            collected.items.iter().map(|item| item.warning().is_some()).collect();
        assert!(positions[0] != positions[positions.len() - 2], "in order: {positions:?}");
        let error = query("hello", harness.options()).await.unwrap().collect().await.into_result();
        assert_eq!(error.unwrap_err().kind(), ErrorKind::ProcessFailed);
        let harness = Harness::in_memory(hello()).await.unwrap();
        let answer = query("hello", harness.options()).await.unwrap().collect().await;
        assert!(answer.messages().any(|message| matches!(message.body, Body::Result(_))));
    });
}

#[test]
fn panicking_stream_consumer_leaks_no_process() {
    run(async {
        let harness = Harness::sim_process(hello(), SIM).await.unwrap();
        let mut stream = query("hello", harness.options()).await.unwrap();
        let pid = stream.pid().unwrap();
        let read = async move {
            assert!(stream.next().await.is_some());
            panic!("on purpose")
        };
        // The task catches the panic, as it does in a host.
        let failed = tokio::spawn(read).await.unwrap_err();
        assert!(failed.is_panic());
        until("the process ends and is reaped", || !exists(pid)).await;
    });
}

#[test]
fn close_ends_the_process_and_is_idempotent() {
    run(async {
        // In the middle of a turn that would never end.
        let script = Script::new().otherwise([Reply::text("Never.").hold()]);
        let harness = Harness::sim_process(script, SIM).await.unwrap();
        let mut stream = query("hello", harness.options()).await.unwrap();
        let pid = stream.pid().unwrap();
        stream.next().await.unwrap().unwrap();
        let exit = stream.close().await;
        assert!(exit.is_some());
        assert!(!exists(pid), "the process has ended when close returns");
        assert_eq!(stream.close().await, exit);
        assert!(stream.next().await.is_none());
        // Dropping the future of a close does not stop the close.
        let harness = faulty_process("at start hang").await;
        let options = harness.options().timeouts(Timeouts::new().exit_grace(SHORT * 50));
        let mut stream = query("hello", options).await.unwrap();
        let pid = stream.pid().unwrap();
        tokio::select! {
            biased;
            _ = stream.close() => panic!("it cannot be over at once"),
            () = ready(()) => {}
        }
        until("the process ends and is reaped", || !exists(pid)).await;
        assert!(stream.close().await.is_some());
        // After the end, `close` returns the exit status.
        let harness = faulty_process("after result exit 3").await;
        let mut stream = query("hello", harness.options()).await.unwrap();
        while stream.next().await.is_some() {}
        assert_eq!(stream.close().await, Some(claude_agent_kit::Exit::Code(3)));
    });
}

#[test]
fn session_id_is_known_before_the_first_message() {
    run(async {
        let harness = Harness::in_memory(hello()).await.unwrap();
        let mut stream = query("hello", harness.options()).await.unwrap();
        let known = stream.session_id().cloned();
        assert!(known.is_some());
        while let Some(item) = stream.next().await {
            let named = item.unwrap().message().and_then(|message| message.session_id()).cloned();
            assert!(named.is_none() || named == known, "{named:?}");
        }
    });
}

/// Returns a model that repeats the prompt.
fn echo_script() -> Script {
    Script::respond_with(|request| Reply::text(request.last_prompt().unwrap_or_default()))
}

/// Asserts that the answer to a prompt is the prompt.
async fn assert_echo(number: usize, options: Options) {
    let prompt = format!("this is prompt number {number}");
    let collected = ask(prompt.as_str(), options).await;
    assert_eq!(collected.text(), prompt);
    assert!(collected.error.is_none(), "{:?}", collected.error);
}

#[test]
fn sequential_queries_do_not_mix_even_if_some_are_dropped() {
    run(async {
        for harness in [
            Harness::in_memory(echo_script()).await.unwrap(),
            Harness::sim_process(echo_script(), SIM).await.unwrap(),
        ] {
            for number in 0..10 {
                let mut stream = query("something else", harness.options()).await.unwrap();
                match number % 3 {
                    0 => drop(stream.next().await),
                    1 => drop(stream.close().await),
                    _ => {}
                }
                drop(stream);
                assert_echo(number, harness.options()).await;
            }
        }
    });
}

#[test]
fn fifty_concurrent_queries_do_not_mix() {
    run(async {
        for harness in [
            Harness::in_memory(echo_script()).await.unwrap(),
            Harness::sim_process(echo_script(), SIM).await.unwrap(),
        ] {
            let mut queries = JoinSet::new();
            for number in 0..50 {
                queries.spawn(assert_echo(number, harness.options()));
            }
            queries.join_all().await;
        }
    });
}

#[test]
fn unread_query_applies_backpressure_and_loses_nothing() {
    run(async {
        let faults = Faults::new().before("assistant", Fault::Messages(5000));
        let harness = faulty(faults).await;
        let options = harness.options().limits(
            Limits::new().backlog_soft_bytes(64 * 1024).backlog_hard_bytes(16 * 1024 * 1024),
        );
        let mut stream = query("hello", options).await.unwrap();
        let mut assistants = 0;
        while let Some(item) = stream.next().await {
            let item = item.unwrap();
            if matches!(item.message().map(|message| &message.body), Some(Body::Assistant(_))) {
                assistants += 1;
                // The driver may make as much progress as it can in between.
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(assistants, 5001);
    });
}
