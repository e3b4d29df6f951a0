//! Scheduling of callbacks on a current-thread and on a multi-thread runtime.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use claude_agent_kit::Exit;
use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::{Limits, Options, Session, Timeouts, query};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fake_cli::{self, FakeCli};
use crate::helpers::command_of;
use crate::support::{FakeProgram, HANDSHAKE, LIMIT, RESULT, in_time, run};

fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(in_time(future))
}

/// Returns a request to the hook that was registered first, as one line.
fn hook_request(id: &str) -> String {
    let input = json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                       "tool_input": {"command": id}});
    let request = json!({"subtype": "hook_callback", "callback_id": "hook_0", "input": input});
    format!("{}\n", json!({"type": "control_request", "request_id": id, "request": request}))
}

/// Returns the ID and the content of the next response.
async fn read_response(cli: &mut FakeCli) -> (String, Value) {
    let line = cli.read_line().await;
    let response = &line["response"];
    (response["request_id"].as_str().unwrap().to_owned(), response["response"].clone())
}

/// Asserts that an operation completes although a callback is still running.
async fn assert_not_blocked(session: &Session, cli: &mut FakeCli) {
    let respond = async {
        let request = cli.expect_request("mcp_status").await;
        cli.respond(&request, json!({"mcpServers": []})).await;
    };
    let (status, ()) = in_time(async { tokio::join!(session.mcp().status(), respond) }).await;
    status.unwrap();
}

#[test]
fn callbacks_start_in_the_order_of_their_requests() {
    on_one_thread(async {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let notes = begun.clone();
        let options = Options::new().on(PreToolUse, move |call, _| {
            let notes = notes.clone();
            async move { notes.lock().unwrap().push(command_of(call.input.as_ref())) }
        });
        let (_session, mut cli) = fake_cli::connect(options).await;
        for batch in [&["a", "b", "c"][..], &["d"], &["e", "f"]] {
            begun.lock().unwrap().clear();
            let lines: String = batch.iter().map(|id| hook_request(id)).collect();
            cli.write(lines.as_bytes()).await;
            for id in batch {
                assert_eq!(read_response(&mut cli).await, ((*id).to_owned(), json!({})));
            }
            assert_eq!(*begun.lock().unwrap(), batch);
        }
    });
}

#[test]
fn waiting_callback_delays_nothing_and_completes_later() {
    on_one_thread(async {
        let go = Arc::new(Notify::new());
        let gate = go.clone();
        let options = Options::new().on(PreToolUse, move |call, _| {
            let gate = gate.clone();
            async move {
                if command_of(call.input.as_ref()) == "slow" {
                    gate.notified().await;
                }
                HookResponse::deny("no")
            }
        });
        let (session, mut cli) = fake_cli::connect(options).await;
        cli.write(hook_request("slow").as_bytes()).await;
        assert_not_blocked(&session, &mut cli).await;
        cli.write(hook_request("quick").as_bytes()).await;
        assert_eq!(read_response(&mut cli).await.0, "quick");
        go.notify_one();
        assert_eq!(read_response(&mut cli).await.0, "slow");
    });
}

#[test]
fn callback_that_panics_before_its_first_await_fails_only_itself() {
    on_one_thread(async {
        let options = Options::new().on(PreToolUse.fail_closed(), |call, _| async move {
            assert_ne!(command_of(call.input.as_ref()), "panic", "deliberate failure");
        });
        let (_session, mut cli) = fake_cli::connect(options).await;
        cli.write(hook_request("panic").as_bytes()).await;
        let (id, response) = read_response(&mut cli).await;
        assert_eq!(id, "panic");
        assert_eq!(response["hookSpecificOutput"]["permissionDecision"], "deny", "{response}");
        cli.write(hook_request("fine").as_bytes()).await;
        assert_eq!(read_response(&mut cli).await, ("fine".to_owned(), json!({})));
    });
}

#[test]
fn cancelled_callback_sees_its_token_or_never_starts() {
    on_one_thread(async {
        for (grace, begins) in [(Duration::from_secs(9), true), (Duration::ZERO, false)] {
            let seen = Arc::new(Mutex::new(Vec::new()));
            let notes = seen.clone();
            let options = Options::new().timeouts(Timeouts::new().cancel_grace(grace)).on(
                PreToolUse,
                move |_, context| {
                    notes.lock().unwrap().push(context.cancel.is_cancelled());
                    async {}
                },
            );
            let (_session, mut cli) = fake_cli::connect(options).await;
            let withdrawn = json!({"type": "control_cancel_request", "request_id": "x"});
            cli.write(format!("{}{withdrawn}\n", hook_request("x")).as_bytes()).await;
            cli.write(hook_request("y").as_bytes()).await;
            assert_eq!(read_response(&mut cli).await.0, "y");
            let expected: &[bool] = if begins { &[true, false] } else { &[false] };
            assert_eq!(*seen.lock().unwrap(), expected);
        }
    });
}

/// Returns a CLI that writes all `lines` at once, creates a file at the first response, reads
/// `more` further responses and then sends its result.
fn cli_writing(lines: &str, more: usize) -> FakeProgram {
    let more = "read -r response\n".repeat(more);
    FakeProgram::new(&format!(
        "{HANDSHAKE}printf '%s' '{lines}'\nread -r response\n: > answered\n{more}{RESULT}"
    ))
}

/// Returns a function that blocks its thread until the CLI has received a response, and returns
/// whether it has.
fn block_until_answered(fake: &FakeProgram) -> impl Fn() -> bool + Send + Sync + 'static {
    let answered = fake.sibling("answered");
    move || {
        let began = std::time::Instant::now();
        while !answered.exists() && began.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(5));
        }
        answered.exists()
    }
}

#[test]
fn callback_time_does_not_count_for_the_idle_timeout() {
    fake_cli::on_paused_clock(async {
        let options = Options::new().timeouts(Timeouts::new().idle(Duration::from_secs(10))).on(
            PreToolUse,
            // The clock advances during a poll, as with a callback that blocks its thread.
            |_, _| async {
                let mut passes = std::pin::pin!(tokio::time::advance(Duration::from_secs(15)));
                poll_fn(|context| Poll::Ready(passes.as_mut().poll(context).is_ready())).await;
            },
        );
        let (options, mut clis) = fake_cli::with_fake_clis(options);
        let asks = async {
            let mut cli = clis.recv().await.unwrap();
            cli.handshake().await;
            let user = cli.read_line().await;
            cli.call_hook("x").await;
            assert_eq!(read_response(&mut cli).await.0, "x");
            // The CLI itself is silent for less than the timeout.
            tokio::time::sleep(Duration::from_secs(9)).await;
            cli.send_result(&user).await;
            cli.exit(Exit::Code(0));
        };
        let pending_query = async { query("go", options).await.unwrap().collect().await };
        let (result, ()) = tokio::join!(pending_query, asks);
        assert!(result.into_result().is_ok());
    });
}

#[test]
fn response_is_written_before_the_next_callback_starts() {
    on_one_thread(async {
        let lines: String = ["a", "b", "c"].map(hook_request).concat();
        let fake = cli_writing(&lines, 2);
        let (wait_for_answer, seen) =
            (block_until_answered(&fake), Arc::new(Mutex::new(Vec::new())));
        let notes = seen.clone();
        let options = fake
            .options()
            .limits(Limits::new().running_callbacks(1).waiting_callbacks(9))
            .on(PreToolUse, move |call, _| {
                let first = command_of(call.input.as_ref()) == "a";
                notes.lock().unwrap().push(first || wait_for_answer());
                async {}
            });
        query("go", options).await.unwrap().collect().await.into_result().unwrap();
        assert_eq!(*seen.lock().unwrap(), [true, true, true]);
    });
}

#[test]
fn other_tasks_run_between_queued_callbacks() {
    on_one_thread(async {
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(poll_fn(move |context| {
            counted.fetch_add(1, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let lines: String = ["a", "b", "c"].map(hook_request).concat();
        let fake = cli_writing(&lines, 2);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = seen.clone();
        let options = fake
            .options()
            .limits(Limits::new().running_callbacks(1).waiting_callbacks(9))
            .on(PreToolUse, move |_, _| {
                notes.lock().unwrap().push(turns.load(Ordering::Relaxed));
                async {}
            });
        query("go", options).await.unwrap().collect().await.into_result().unwrap();
        other.abort();
        let seen = seen.lock().unwrap();
        assert!(seen.len() == 3 && seen[0] < seen[2], "{seen:?}");
    });
}

#[test]
fn requests_without_a_callback_are_answered_first() {
    on_one_thread(async {
        let unknown = r#"{"type":"control_request","request_id":"u","request":{"subtype":"new"}}"#;
        let fake = cli_writing(&format!("{unknown}\n{}", hook_request("x")), 1);
        let (wait_for_answer, seen) =
            (block_until_answered(&fake), Arc::new(Mutex::new(Vec::new())));
        let notes = seen.clone();
        let options = fake.options().on(PreToolUse, move |_, _| {
            notes.lock().unwrap().push(wait_for_answer());
            async {}
        });
        query("go", options).await.unwrap().collect().await.into_result().unwrap();
        assert_eq!(*seen.lock().unwrap(), [true]);
    });
}

#[test]
fn callback_that_blocks_its_thread_delays_nothing_on_a_multi_thread_runtime() {
    run(async {
        let (release, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let options = Options::new().on(PreToolUse, move |_, _| {
            let ended = gate.lock().unwrap().recv_timeout(LIMIT);
            assert_ne!(ended, Err(RecvTimeoutError::Timeout));
            async {}
        });
        let (session, mut cli) = fake_cli::connect(options).await;
        cli.write(hook_request("blocks").as_bytes()).await;
        assert_not_blocked(&session, &mut cli).await;
        drop(release);
        assert_eq!(read_response(&mut cli).await, ("blocks".to_owned(), json!({})));
    });
}
