//! Host code that panics, and host code that must not run.

use std::future::poll_fn;
use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use claude_agent_kit::hook::{HookResponse, PreToolUse, input::PreToolUseInput};
use claude_agent_kit::transport::{ChildFuture, Connection, InMemory};
use claude_agent_kit::{ErrorKind, Exit, Options, Session, WarningCode, query};
use serde_json::json;
use tokio::sync::Notify;

use crate::fake_cli::{FakeCli, connect};
use crate::support::{in_time, run};

/// A value that panics when it is dropped, with a payload that panics in turn.
struct Explosive(usize);

impl Drop for Explosive {
    fn drop(&mut self) {
        if self.0 > 0 {
            panic_any(Explosive(self.0 - 1));
        }
    }
}

/// Asserts that the session still performs operations.
async fn assert_works(session: &Session, cli: &mut FakeCli) {
    let (response, ()) = tokio::join!(in_time(session.mcp().status()), async {
        let request = cli.expect_request("mcp_status").await;
        cli.respond(&request, json!({"mcpServers": []})).await;
    });
    response.unwrap();
}

fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(in_time(future))
}

#[test]
fn panicking_payload_of_on_warning_ends_nothing() {
    run(async {
        let options = Options::new().on_warning(|_| panic_any(Explosive(3)));
        let (session, mut cli) = connect(options).await;
        cli.write(b"not a message\n").await;
        cli.send_request("r", json!({"subtype": "unknown"})).await;
        assert_eq!(cli.read_line().await["response"]["subtype"], "error");
        assert_works(&session, &mut cli).await;
    });
}

#[test]
fn a_transport_that_panics_when_it_ends_the_cli_ends_nothing_else() {
    run(async {
        let end = Arc::new(Notify::new());
        let exit = Arc::clone(&end);
        let transport = InMemory::new(move |_| {
            let (stdin, stdout) = (tokio::io::sink(), tokio::io::empty());
            let exit = Arc::clone(&exit);
            let killed = Arc::clone(&exit);
            let child = ChildFuture::new(async move {
                exit.notified().await;
                Exit::Signal(9)
            });
            let child = child.on_terminate(|| panic_any(Explosive(3))).on_kill(move || {
                killed.notify_one();
                panic_any(Explosive(3));
            });
            std::future::ready(Ok(Connection::new(stdin, stdout, child)))
        });
        let error = in_time(Session::start(Options::new().transport(transport))).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ExitedDuringInit, "{error}");
    });
}

#[test]
fn a_transport_that_panics_when_it_is_asked_for_the_exit_is_an_error() {
    run(async {
        let transport = InMemory::new(|_| {
            let child = ChildFuture::new(poll_fn(|_| -> Poll<Exit> { panic_any(Explosive(3)) }));
            let (stdin, stdout) = (tokio::io::sink(), tokio::io::empty());
            std::future::ready(Ok(Connection::new(stdin, stdout, child)))
        });
        let options = Options::new().transport(transport);
        let error = in_time(Session::start(&options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ExitedDuringInit, "{error}");
        assert_eq!(error.exit(), Some(Exit::Unknown), "{error}");
        let collected = in_time(query("Hi.", options).await.unwrap().collect()).await;
        let error = collected.error.unwrap();
        assert_eq!(error.kind(), ErrorKind::ProcessFailed, "{error}");
    });
}

#[test]
fn panicking_payload_of_a_callback_ends_only_that_call() {
    on_one_thread(async {
        let options =
            Options::new().on(PreToolUse, async |_, _| -> HookResponse<PreToolUseInput> {
                panic_any(Explosive(3));
            });
        let (session, mut cli) = connect(options).await;
        for id in ["a", "b"] {
            cli.call_hook(id).await;
            assert_eq!(cli.read_line().await["response"]["request_id"], id);
        }
        assert_works(&session, &mut cli).await;
    });
}

#[test]
fn panicking_waker_ends_nothing() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic_any(Explosive(3));
        }
    }
    run(async {
        let (session, mut cli) = connect(Options::new()).await;
        let waker = Waker::from(Arc::new(Panics));
        let mut context = Context::from_waker(&waker);
        let mut messages = session.messages();
        let mut next = Box::pin(messages.next());
        assert!(next.as_mut().poll(&mut context).is_pending());
        let mut pending = Box::pin(session.mcp().status());
        assert!(pending.as_mut().poll(&mut context).is_pending());
        let request = cli.expect_request("mcp_status").await;
        cli.send_text("hello").await;
        cli.respond(&request, json!({"mcpServers": []})).await;
        assert_works(&session, &mut cli).await;
        in_time(pending).await.unwrap();
        assert!(in_time(next).await.unwrap().is_ok());
    });
}

/// Every reader decodes lines that look like messages, so each reader finds the malformed line.
#[test]
fn on_warning_receives_every_malformed_line_once() {
    const LINES: usize = 200;
    for length in [200, 3_000] {
        run(async move {
            let reported = Arc::new(AtomicUsize::new(0));
            let counted = reported.clone();
            let options = Options::new().on_warning(move |warning| {
                counted.fetch_add(
                    usize::from(warning.code() == WarningCode::Malformed),
                    Ordering::SeqCst,
                );
            });
            let (session, mut cli) = connect(options).await;
            let mut readers = [session.messages(), session.messages()];
            let line = format!("{{\"type\":\"assistant\",{}\n", "x".repeat(length));
            for _ in 0..LINES {
                cli.write(line.as_bytes()).await;
                for reader in &mut readers {
                    assert!(in_time(reader.next()).await.unwrap().unwrap().warning().is_some());
                }
            }
            assert_eq!(reported.load(Ordering::SeqCst), LINES, "lines of {length} bytes");
        });
    }
}

#[test]
fn blocking_callback_cancelled_before_it_has_a_thread_does_not_run() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(in_time(async {
        let (free, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let called = Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = called.clone();
        let options = Options::new().on_blocking(PreToolUse, move |call, context| {
            noted.lock().unwrap().push(context.request_id.as_str().to_owned());
            drop(call);
            held.lock().unwrap().recv().unwrap();
            HookResponse::allow()
        });
        let (session, mut cli) = connect(options).await;
        for id in ["first", "cancelled", "last"] {
            cli.call_hook(id).await;
        }
        cli.send(json!({"type": "control_cancel_request", "request_id": "cancelled"})).await;
        assert_works(&session, &mut cli).await;
        for id in ["first", "last"] {
            free.send(()).unwrap();
            assert_eq!(cli.read_line().await["response"]["request_id"], id);
        }
        assert_eq!(*called.lock().unwrap(), ["first", "last"]);
    }));
}
