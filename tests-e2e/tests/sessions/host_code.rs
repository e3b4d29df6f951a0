//! Host code that panics, and host code that must not run.

use std::panic::panic_any;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Wake, Waker};

use claude_agent_kit::hook::{HookResponse, PreToolUse, PreToolUseInput};
use claude_agent_kit::{Options, Session, WarningCode};
use serde_json::json;

use crate::puppet::{Puppet, running};
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
async fn works(session: &Session, puppet: &mut Puppet) {
    let (answer, ()) = tokio::join!(in_time(session.mcp().status()), async {
        let request = puppet.asked("mcp_status").await;
        puppet.answer(&request, json!({"mcpServers": []})).await;
    });
    answer.unwrap();
}

fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(in_time(future))
}

#[test]
fn a_panic_payload_of_on_warning_that_panics_when_dropped_ends_nothing() {
    run(async {
        let options = Options::new().on_warning(|_| panic_any(Explosive(3)));
        let (session, mut puppet) = running(options).await;
        puppet.write(b"this is no message\n").await;
        puppet.ask("r", json!({"subtype": "unheard_of"})).await;
        assert_eq!(puppet.hear().await["response"]["subtype"], "error");
        works(&session, &mut puppet).await;
    });
}

#[test]
fn a_panic_payload_of_a_callback_that_panics_when_dropped_ends_that_call_only() {
    on_one_thread(async {
        let options =
            Options::new().on(PreToolUse, async |_, _| -> HookResponse<PreToolUseInput> {
                panic_any(Explosive(3));
            });
        let (session, mut puppet) = running(options).await;
        for id in ["a", "b"] {
            puppet.ask_hook(id).await;
            assert_eq!(puppet.hear().await["response"]["request_id"], id);
        }
        works(&session, &mut puppet).await;
    });
}

#[test]
fn a_waker_that_panics_ends_nothing() {
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic_any(Explosive(3));
        }
    }
    run(async {
        let (session, mut puppet) = running(Options::new()).await;
        let waker = Waker::from(Arc::new(Panics));
        let mut context = Context::from_waker(&waker);
        let mut messages = session.messages();
        let mut next = Box::pin(messages.next());
        assert!(next.as_mut().poll(&mut context).is_pending());
        let mut asking = Box::pin(session.mcp().status());
        assert!(asking.as_mut().poll(&mut context).is_pending());
        let request = puppet.asked("mcp_status").await;
        puppet.talk("hello").await;
        puppet.answer(&request, json!({"mcpServers": []})).await;
        works(&session, &mut puppet).await;
        in_time(asking).await.unwrap();
        assert!(in_time(next).await.unwrap().is_ok());
    });
}

/// Every reader decodes lines that look like messages, so each reader finds the malformed line.
#[test]
fn on_warning_gets_every_malformed_line_once() {
    const LINES: usize = 200;
    for length in [200, 3_000] {
        run(async move {
            let told = Arc::new(AtomicUsize::new(0));
            let counted = told.clone();
            let options = Options::new().on_warning(move |warning| {
                counted.fetch_add(
                    usize::from(warning.code() == WarningCode::Malformed),
                    Ordering::SeqCst,
                );
            });
            let (session, mut puppet) = running(options).await;
            let mut readers = [session.messages(), session.messages()];
            let line = format!("{{\"type\":\"assistant\",{}\n", "x".repeat(length));
            for _ in 0..LINES {
                puppet.write(line.as_bytes()).await;
                for reader in &mut readers {
                    assert!(in_time(reader.next()).await.unwrap().unwrap().warning().is_some());
                }
            }
            assert_eq!(told.load(Ordering::SeqCst), LINES, "lines of {length} bytes");
        });
    }
}

#[test]
fn a_blocking_callback_whose_request_was_closed_while_it_waited_for_a_thread_is_not_run() {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(in_time(async {
        let (free, held) = mpsc::channel::<()>();
        let held = Arc::new(std::sync::Mutex::new(held));
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = asked.clone();
        let options = Options::new().on_blocking(PreToolUse, move |call, context| {
            noted.lock().unwrap().push(context.request_id.as_str().to_owned());
            drop(call);
            held.lock().unwrap().recv().unwrap();
            HookResponse::allow()
        });
        let (session, mut puppet) = running(options).await;
        for id in ["first", "cancelled", "last"] {
            puppet.ask_hook(id).await;
        }
        puppet.say(json!({"type": "control_cancel_request", "request_id": "cancelled"})).await;
        works(&session, &mut puppet).await;
        for id in ["first", "last"] {
            free.send(()).unwrap();
            assert_eq!(puppet.hear().await["response"]["request_id"], id);
        }
        assert_eq!(*asked.lock().unwrap(), ["first", "last"]);
    }));
}
