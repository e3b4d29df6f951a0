//! What the host asks of a session while it runs.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use claude_agent_kit::{ErrorKind, Session};
use claude_wire::control::ListModels;

use super::draw::Draw;
use super::fate::{Promise, Waiting};

type Asking<'a> = Pin<Box<dyn Future<Output = Result<(), ErrorKind>> + Send + 'a>>;

/// An operation by its name on the wire.
fn draw_one<'a>(session: &'a Session, draw: &mut Draw) -> (&'static str, Asking<'a>) {
    macro_rules! asking {
        ($name:literal, $call:expr) => {
            ($name, Box::pin(async move { $call.await.map(drop).map_err(|error| error.kind()) }))
        };
    }
    match draw.between(0, 12) {
        0 | 1 => asking!("interrupt", session.interrupt()),
        2 => asking!("interrupt", session.interrupt_all()),
        3 => asking!("set_model", session.set_model("some-model")),
        4 => {
            let mode = draw.pick(&["default", "acceptEdits", "plan"]);
            asking!("set_permission_mode", session.set_permission_mode(mode))
        }
        5 => asking!("mcp_status", session.mcp().status()),
        6 => asking!("rename_session", session.rename("a title")),
        7 => asking!("get_context_usage", session.context_usage()),
        8 => asking!("get_settings", session.settings()),
        9 => asking!("stop_task", session.stop_task("nothing")),
        10 => asking!("mcp_reconnect", session.mcp().reconnect("sim")),
        11 => asking!("list_models", session.request(ListModels::default())),
        _ => asking!("mcp_status", session.mcp().wait(Duration::from_secs(20))),
    }
}

/// Asks for something and notes what came of it.
pub(super) async fn ask(session: &Session, waiting: &Waiting, draw: &mut Draw) {
    let (name, asking) = draw_one(session, draw);
    match waiting.mortal(name, Promise::Kept, draw, asking).await {
        Some(Ok(())) => {
            waiting.record.count(format!("operation: {name}"));
            *waiting.record.lock().succeeded.entry(name).or_default() += 1;
        }
        Some(Err(kind)) => waiting.record.count(format!("operation failed: {kind:?}")),
        None => {}
    }
}
