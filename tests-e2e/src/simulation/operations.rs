//! The operations that the host sends while a session is running.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use claude_agent_kit::{ErrorKind, Session};
use claude_wire::control::{GetSettings, ListModels};

use super::rng::Rng;
use super::watcher::{Completion, Watcher};

type PendingOperation<'a> = Pin<Box<dyn Future<Output = Result<(), ErrorKind>> + Send + 'a>>;

/// Picks an operation and returns it with its name on the wire.
fn pick_operation<'a>(session: &'a Session, rng: &mut Rng) -> (&'static str, PendingOperation<'a>) {
    macro_rules! operation {
        ($name:literal, $call:expr) => {
            ($name, Box::pin(async move { $call.await.map(drop).map_err(|error| error.kind()) }))
        };
    }
    match rng.between(0, 12) {
        0 | 1 => operation!("interrupt", session.interrupt()),
        2 => operation!("interrupt", session.interrupt_all()),
        3 => operation!("set_model", session.set_model("some-model")),
        4 => {
            let mode = rng.pick(&["default", "acceptEdits", "plan"]);
            operation!("set_permission_mode", session.set_permission_mode(mode))
        }
        5 => operation!("mcp_status", session.mcp().status()),
        6 => operation!("rename_session", session.rename("a title")),
        7 => operation!("get_context_usage", session.context_usage()),
        8 => operation!("get_settings", session.request(GetSettings::default())),
        9 => operation!("stop_task", session.stop_task("nothing")),
        10 => operation!("mcp_reconnect", session.mcp().reconnect("sim")),
        11 => operation!("list_models", session.request(ListModels::default())),
        _ => operation!("mcp_status", session.mcp().wait(Duration::from_secs(20))),
    }
}

/// Sends an operation and records the result.
pub(super) async fn send_random(session: &Session, watcher: &Watcher, rng: &mut Rng) {
    let (name, pending) = pick_operation(session, rng);
    match watcher.run_or_drop(name, Completion::Guaranteed, rng, pending).await {
        Some(Ok(())) => {
            watcher.record.count(format!("operation: {name}"));
            *watcher.record.lock().succeeded.entry(name).or_default() += 1;
        }
        Some(Err(kind)) => watcher.record.count(format!("operation failed: {kind:?}")),
        None => {}
    }
}
