//! Callbacks that wait until they are told what to do.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::NoArguments;
use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::{
    BoxError, CancelToken, Options, Permission, Timeouts, ToolError, ToolServer,
};
use tokio::sync::watch;

use super::State;

/// Longer than a callback may hold its thread without a warning.
const TOO_LONG: Duration = Duration::from_millis(1300);

/// What a callback is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Order {
    Wait,
    Answer,
    Panic,
    Fail,
    Block,
    AnswerWhenCancelled,
}

/// Where callbacks wait.
#[derive(Debug)]
pub(super) struct Gate {
    order: watch::Sender<Order>,
    entered: watch::Sender<bool>,
}

impl Gate {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            order: watch::Sender::new(Order::Wait),
            entered: watch::Sender::new(false),
        })
    }

    pub(super) fn order(&self, order: Order) {
        self.order.send_replace(order);
    }

    /// Returns when a callback waits.
    pub(super) async fn entered(&self) {
        // The sender is in `self`, so that this does not fail.
        drop(self.entered.subscribe().wait_for(|entered| *entered).await);
    }

    /// Options with a callback of this state that waits here.
    pub(super) fn guard(
        self: &Arc<Self>,
        options: Options,
        state: State,
        limit: Option<Duration>,
    ) -> Options {
        let gate = Arc::clone(self);
        match state {
            State::Tool => options.allowed_tools(["Bash"]),
            State::Hook => {
                let options = match limit {
                    Some(limit) => options.timeouts(Timeouts::new().hook(limit)),
                    None => options,
                };
                let callback = move |_, context: claude_agent_kit::CallbackContext| {
                    Arc::clone(&gate).pass(context.cancel)
                };
                options.allowed_tools(["Bash"]).on(PreToolUse, callback)
            }
            State::Permission => options.timeouts(Timeouts::new().permission(limit)).can_use_tool(
                move |_, context| {
                    let passed = Arc::clone(&gate).pass(context.cancel);
                    async move { passed.await.map(|()| Permission::allow()) }
                },
            ),
            State::Mcp => {
                let pass = move |_: NoArguments, context: claude_agent_kit::ToolContext| {
                    let passed = Arc::clone(&gate).pass(context.cancel);
                    async move {
                        passed.await.map_err(|error| ToolError::new(error.to_string()))?;
                        Ok("passed")
                    }
                };
                let server = ToolServer::new().tool("pass", "Passes", pass);
                let server = server.timeout(limit);
                options.allowed_tools(["mcp__gate"]).mcp("gate", server)
            }
            _ => options,
        }
    }

    async fn pass(self: Arc<Self>, cancel: CancelToken) -> Result<(), BoxError> {
        self.entered.send_replace(true);
        let mut orders = self.order.subscribe();
        let order = *orders.wait_for(|order| *order != Order::Wait).await?;
        obey(order, &cancel).await
    }
}

/// What a callback says that panics on order.
const PANIC: &str = "as the fault matrix wants it";

/// Keeps the panics that the matrix wants from being told on stderr. With a backtrace that can take
/// so long that the callback blocks.
pub fn quiet_panics() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.to_string().contains(PANIC) {
            told(panic);
        }
    }));
}

#[expect(clippy::panic, reason = "that is the order")]
async fn obey(order: Order, cancel: &CancelToken) -> Result<(), BoxError> {
    match order {
        Order::Wait | Order::Answer => {}
        Order::Panic => panic!("{PANIC}"),
        Order::Fail => return Err(PANIC.into()),
        Order::Block => std::thread::sleep(TOO_LONG),
        Order::AnswerWhenCancelled => cancel.cancelled().await,
    }
    Ok(())
}
