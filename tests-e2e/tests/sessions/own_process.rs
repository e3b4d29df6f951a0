//! Tests that need their own process: resource leaks, and `shutdown_all`, which affects every
//! session of the process.

use std::process::Command;

use claude_agent_kit::{ErrorKind, Options, Session, SessionState, Timeouts, shutdown_all};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::sim::{Fault, Faults};
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::{ResourceUsage, children_of, exists};
use tokio::runtime::Handle;

use crate::fake_cli;
use crate::helpers::{start, turn};
use crate::lifetime::remaining_states;
use crate::support::{LIMIT, SHORT, SIM, hello, in_time, run, until};

/// Set in a process that was started to run a single test.
const OWN_PROCESS: &str = "SESSIONS_TEST_OWN_PROCESS";

/// Runs a test in its own process.
fn in_own_process(name: &str, test: impl FnOnce()) {
    if std::env::var_os(OWN_PROCESS).is_some() {
        return test();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(OWN_PROCESS, "1")
        .output()
        .unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
}

#[test]
fn shutdown_all_ends_all_sessions_concurrently() {
    in_own_process("own_process::shutdown_all_ends_all_sessions_concurrently", || {
        run(async {
            assert_eq!(shutdown_all(LIMIT).await, 0);
            let story = || Script::new().otherwise([Reply::text("Once upon a time").hold()]);
            let process = Harness::sim_process(story(), SIM).await.unwrap();
            let memory = Harness::in_memory(story()).await.unwrap();
            let mut sessions = Vec::new();
            for _ in 0..4 {
                for harness in [&process, &memory] {
                    let session = start(harness.options()).await;
                    drop(session.send("story").await.unwrap());
                    sessions.push(session);
                }
            }
            assert_eq!(children_of(std::process::id()).len(), 4);
            assert_eq!(in_time(shutdown_all(LIMIT)).await, 0);
            assert!(children_of(std::process::id()).is_empty());
            for session in sessions {
                let last = remaining_states(&session).await.pop();
                assert!(matches!(last, Some(SessionState::Stopped(_))), "{last:?}");
            }
            // A session that does not end in time is counted and not awaited.
            let options = Options::new().timeouts(Timeouts::new().exit_grace(LIMIT));
            let (session, cli) = fake_cli::connect(options).await;
            assert_eq!(in_time(shutdown_all(SHORT)).await, 1);
            drop((session, cli));
        });
    });
}

/// Starts, uses and ends a session; `number` selects how it ends.
async fn run_session(number: usize, good: &Harness, bad: &Harness) {
    match number % 6 {
        0 => {
            let session = start(good.options()).await;
            turn(&session, "hello").await;
            session.stop().await.unwrap();
        }
        1 => {
            let session = start(good.options()).await;
            drop(session.send("hello").await.unwrap());
        }
        2 => {
            let session = start(good.options()).await;
            let running = session.send("hello").await.unwrap();
            session.end_input().await.unwrap();
            in_time(running.finish()).await.unwrap();
        }
        3 => {
            // The CLI crashes when it receives the message.
            let session = start(bad.options()).await;
            let running = session.send("hello").await.unwrap();
            let error = in_time(running.finish()).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TransportClosed);
        }
        4 => drop(Session::open(good.options()).await.unwrap()),
        _ => {
            let session = start(good.options()).await;
            let mut messages = session.messages();
            let operation = session.mcp().status();
            drop(operation);
            tokio::spawn(async move { session.stop().await });
            while let Some(item) = in_time(messages.next()).await {
                item.unwrap();
            }
        }
    }
}

async fn wait_until_released(before: ResourceUsage, tasks: usize) {
    until("all resources are released", || {
        let now = ResourceUsage::now();
        let grown = now.descriptors > before.descriptors
            || now.threads > before.threads
            || now.children > before.children
            || Handle::current().metrics().num_alive_tasks() > tasks;
        !grown
    })
    .await;
}

async fn run_many_sessions(good: Harness, bad: Harness, count: usize) {
    for number in 0..12 {
        run_session(number, &good, &bad).await;
    }
    until("the warm-up is over", || children_of(std::process::id()).is_empty()).await;
    // Tokio keeps idle blocking threads for a while, and the mock API keeps connections.
    let tasks = || Handle::current().metrics().num_alive_tasks();
    let mut least = (ResourceUsage::now(), tasks());
    until("the counts are stable", || {
        let now = (ResourceUsage::now(), tasks());
        let quiet = now.0.descriptors == least.0.descriptors && now.1 == least.1;
        least = now;
        quiet
    })
    .await;
    let (before, tasks) = least;
    for number in 0..count {
        run_session(number, &good, &bad).await;
    }
    // A few tasks may remain: there is no defined point at which the mock API closes its
    // connections.
    let mut allowed = before;
    allowed.descriptors += 8;
    allowed.threads += 2;
    wait_until_released(allowed, tasks + 8).await;
}

fn crash_faults() -> Faults {
    Faults::new().on_read("user", Fault::Exit(3))
}

#[test]
fn a_thousand_sessions_in_memory_leak_nothing() {
    in_own_process("own_process::a_thousand_sessions_in_memory_leak_nothing", || {
        run(async {
            let good = Harness::in_memory(hello()).await.unwrap();
            let bad = Harness::faulty(hello(), crash_faults()).await.unwrap();
            run_many_sessions(good, bad, 1_000).await;
        });
    });
}

#[test]
fn two_hundred_sessions_with_processes_leak_nothing() {
    in_own_process("own_process::two_hundred_sessions_with_processes_leak_nothing", || {
        run(async {
            let file = "otherwise say \"Hello.\"\n";
            let good = Harness::scripted(file, SIM).await.unwrap();
            let file = format!("{file}faults\non user exit 3\n");
            let bad = Harness::scripted(&file, SIM).await.unwrap();
            run_many_sessions(good, bad, 200).await;
        });
    });
}

#[test]
fn two_hundred_concurrent_sessions_work() {
    run(async {
        let harness = Harness::in_memory(hello()).await.unwrap();
        let sessions: Vec<_> = (0..200)
            .map(|number| {
                let options = harness.options();
                tokio::spawn(async move {
                    let session = start(options).await;
                    let outcome = turn(&session, &format!("hello {number}")).await;
                    assert_eq!(outcome.text, "Hello.");
                    session
                })
            })
            .collect();
        let mut alive = Vec::new();
        for session in sessions {
            alive.push(in_time(session).await.unwrap());
        }
        for session in &alive {
            assert!(session.mcp().status().await.is_ok());
        }
        for session in alive {
            in_time(session.stop()).await.unwrap();
        }
    });
}

#[test]
fn runtime_shutdown_under_a_session_leaks_no_process_and_returns_an_error() {
    let theirs = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    run(async {
        let harness = Harness::sim_process(hello(), SIM).await.unwrap();
        let options = harness.options();
        let session =
            theirs.spawn(async move { Session::start(options).await.unwrap() }).await.unwrap();
        let pid = session.pid().unwrap();
        let (second_handle, mut messages) = (session.clone(), session.messages());
        assert!(second_handle.mcp().status().await.is_ok());
        theirs.shutdown_background();
        let error = in_time(session.mcp().status()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RuntimeGone, "{error}");
        let error = in_time(messages.next()).await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::RuntimeGone);
        assert_eq!(in_time(session.stop()).await.unwrap_err().kind(), ErrorKind::RuntimeGone);
        let last = remaining_states(&session).await.pop();
        assert!(matches!(last, Some(SessionState::Failed(_))), "{last:?}");
        drop((session, second_handle, messages));
        until("the process ends and is reaped", || !exists(pid)).await;
    });
}
