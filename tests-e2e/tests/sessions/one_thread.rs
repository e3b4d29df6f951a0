//! Scheduling of callbacks on a current-thread and on a multi-thread runtime.

use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, mpsc};
use std::task::Poll;
use std::time::Duration;

use claude_agent_kit::hook::{HookResponse, PreToolUse};
use claude_agent_kit::transport::Exit;
use claude_agent_kit::{Limits, Options, Session, Timeouts, query};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::play::command_of;
use crate::puppet::{self, Puppet};
use crate::support::{Fake, HANDSHAKE, LIMIT, RESULT, in_time, run};

fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(in_time(future))
}

/// Returns a request to the hook that was registered first, as one line.
fn question(id: &str) -> String {
    let input = json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                       "tool_input": {"command": id}});
    let request = json!({"subtype": "hook_callback", "callback_id": "hook_0", "input": input});
    format!("{}\n", json!({"type": "control_request", "request_id": id, "request": request}))
}

/// Returns the ID and the content of the next response.
async fn answered(puppet: &mut Puppet) -> (String, Value) {
    let line = puppet.hear().await;
    let response = &line["response"];
    (response["request_id"].as_str().unwrap().to_owned(), response["response"].clone())
}

/// Asserts that an operation completes although a callback is still running.
async fn goes_on(session: &Session, puppet: &mut Puppet) {
    let answer = async {
        let asked = puppet.asked("mcp_status").await;
        puppet.answer(&asked, json!({"mcpServers": []})).await;
    };
    let (status, ()) = in_time(async { tokio::join!(session.mcp().status(), answer) }).await;
    status.unwrap();
}

#[test]
fn several_at_once_begin_in_their_order() {
    on_one_thread(async {
        let begun = Arc::new(Mutex::new(Vec::new()));
        let notes = begun.clone();
        let options = Options::new().on(PreToolUse, move |call, _| {
            let notes = notes.clone();
            async move { notes.lock().unwrap().push(command_of(call.input.as_ref())) }
        });
        let (_session, mut puppet) = puppet::running(options).await;
        for batch in [&["a", "b", "c"][..], &["d"], &["e", "f"]] {
            begun.lock().unwrap().clear();
            let lines: String = batch.iter().map(|id| question(id)).collect();
            puppet.write(lines.as_bytes()).await;
            for id in batch {
                assert_eq!(answered(&mut puppet).await, ((*id).to_owned(), json!({})));
            }
            assert_eq!(*begun.lock().unwrap(), batch);
        }
    });
}

#[test]
fn one_that_waits_holds_up_nothing_and_is_answered_in_the_end() {
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
        let (session, mut puppet) = puppet::running(options).await;
        puppet.write(question("slow").as_bytes()).await;
        goes_on(&session, &mut puppet).await;
        puppet.write(question("quick").as_bytes()).await;
        assert_eq!(answered(&mut puppet).await.0, "quick");
        go.notify_one();
        assert_eq!(answered(&mut puppet).await.0, "slow");
    });
}

#[test]
fn one_that_panics_before_it_waits_ends_only_itself() {
    on_one_thread(async {
        let options = Options::new().on(PreToolUse.fail_closed(), |call, _| async move {
            assert_ne!(command_of(call.input.as_ref()), "panic", "as the test wants it");
        });
        let (_session, mut puppet) = puppet::running(options).await;
        puppet.write(question("panic").as_bytes()).await;
        let (id, answer) = answered(&mut puppet).await;
        assert_eq!(id, "panic");
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
        puppet.write(question("fine").as_bytes()).await;
        assert_eq!(answered(&mut puppet).await, ("fine".to_owned(), json!({})));
    });
}

#[test]
fn one_that_is_withdrawn_with_its_question_is_told_so_or_never_begins() {
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
            let (_session, mut puppet) = puppet::running(options).await;
            let withdrawn = json!({"type": "control_cancel_request", "request_id": "x"});
            puppet.write(format!("{}{withdrawn}\n", question("x")).as_bytes()).await;
            puppet.write(question("y").as_bytes()).await;
            assert_eq!(answered(&mut puppet).await.0, "y");
            let expected: &[bool] = if begins { &[true, false] } else { &[false] };
            assert_eq!(*seen.lock().unwrap(), expected);
        }
    });
}

/// Returns a CLI that writes all `lines` at once, creates a file at the first response, reads
/// `more` further responses and then sends its result.
fn asking(lines: &str, more: usize) -> Fake {
    let more = "read -r answer\n".repeat(more);
    Fake::new(&format!(
        "{HANDSHAKE}printf '%s' '{lines}'\nread -r answer\n: > told\n{more}{RESULT}"
    ))
}

/// Returns a function that blocks its thread until the CLI has received a response, and returns
/// whether it has.
fn blocks_until_told(fake: &Fake) -> impl Fn() -> bool + Send + Sync + 'static {
    let told = fake.beside("told");
    move || {
        let began = std::time::Instant::now();
        while !told.exists() && began.elapsed() < LIMIT {
            std::thread::sleep(Duration::from_millis(5));
        }
        told.exists()
    }
}

#[test]
fn time_that_a_callback_takes_is_no_silence_of_the_cli() {
    puppet::on_paused_clock(async {
        let options = Options::new().timeouts(Timeouts::new().idle(Duration::from_secs(10))).on(
            PreToolUse,
            // The clock advances during a poll, as with a callback that blocks its thread.
            |_, _| async {
                let mut passes = std::pin::pin!(tokio::time::advance(Duration::from_secs(15)));
                poll_fn(|context| Poll::Ready(passes.as_mut().poll(context).is_ready())).await;
            },
        );
        let (options, mut puppets) = puppet::with_puppets(options);
        let asks = async {
            let mut puppet = puppets.recv().await.unwrap();
            puppet.handshake().await;
            let user = puppet.hear().await;
            puppet.ask_hook("x").await;
            assert_eq!(answered(&mut puppet).await.0, "x");
            // The CLI itself is silent for less than the timeout.
            tokio::time::sleep(Duration::from_secs(9)).await;
            puppet.result(&user).await;
            puppet.exit(Exit::Code(0));
        };
        let asked = async { query("go", options).await.unwrap().final_result().await };
        let (result, ()) = tokio::join!(asked, asks);
        assert!(result.unwrap().is_some());
    });
}

#[test]
fn an_answer_is_written_before_the_next_callback_begins() {
    on_one_thread(async {
        let lines: String = ["a", "b", "c"].map(question).concat();
        let fake = asking(&lines, 2);
        let (is_told, seen) = (blocks_until_told(&fake), Arc::new(Mutex::new(Vec::new())));
        let notes = seen.clone();
        let options = fake
            .options()
            .limits(Limits::new().running_callbacks(1).waiting_callbacks(9))
            .on(PreToolUse, move |call, _| {
                let first = command_of(call.input.as_ref()) == "a";
                notes.lock().unwrap().push(first || is_told());
                async {}
            });
        query("go", options).await.unwrap().final_result().await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [true, true, true]);
    });
}

#[test]
fn others_have_their_turns_between_callbacks_that_wait_for_each_other() {
    on_one_thread(async {
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = turns.clone();
        let other = tokio::spawn(poll_fn(move |context| {
            counted.fetch_add(1, Ordering::Relaxed);
            context.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let lines: String = ["a", "b", "c"].map(question).concat();
        let fake = asking(&lines, 2);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let notes = seen.clone();
        let options = fake
            .options()
            .limits(Limits::new().running_callbacks(1).waiting_callbacks(9))
            .on(PreToolUse, move |_, _| {
                notes.lock().unwrap().push(turns.load(Ordering::Relaxed));
                async {}
            });
        query("go", options).await.unwrap().final_result().await.unwrap();
        other.abort();
        let seen = seen.lock().unwrap();
        assert!(seen.len() == 3 && seen[0] < seen[2], "{seen:?}");
    });
}

#[test]
fn what_needs_no_callback_is_answered_before_one_begins() {
    on_one_thread(async {
        let unknown = r#"{"type":"control_request","request_id":"u","request":{"subtype":"new"}}"#;
        let fake = asking(&format!("{unknown}\n{}", question("x")), 1);
        let (is_told, seen) = (blocks_until_told(&fake), Arc::new(Mutex::new(Vec::new())));
        let notes = seen.clone();
        let options = fake.options().on(PreToolUse, move |_, _| {
            notes.lock().unwrap().push(is_told());
            async {}
        });
        query("go", options).await.unwrap().final_result().await.unwrap();
        assert_eq!(*seen.lock().unwrap(), [true]);
    });
}

#[test]
fn with_more_threads_one_that_blocks_its_own_holds_up_nothing() {
    run(async {
        let (release, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let options = Options::new().on(PreToolUse, move |_, _| {
            let ended = gate.lock().unwrap().recv_timeout(LIMIT);
            assert_ne!(ended, Err(RecvTimeoutError::Timeout));
            async {}
        });
        let (session, mut puppet) = puppet::running(options).await;
        puppet.write(question("blocks").as_bytes()).await;
        goes_on(&session, &mut puppet).await;
        drop(release);
        assert_eq!(answered(&mut puppet).await, ("blocks".to_owned(), json!({})));
    });
}
