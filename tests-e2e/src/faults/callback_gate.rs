//! Callbacks that block until the test chooses what they do.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::hook::PreToolUse;
use claude_agent_kit::tool::NoArguments;
use claude_agent_kit::{
    BoxError, CancelToken, Options, Permission, Timeouts, ToolError, ToolServer,
};
use tokio::sync::watch;

use super::State;

/// Longer than a callback may block its thread without a warning.
const TOO_LONG: Duration = Duration::from_millis(1300);

/// What a callback does once it is released.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum CallbackAction {
    Wait,
    Answer,
    Panic,
    Fail,
    Block,
    AnswerWhenCancelled,
}

/// Holds callbacks until an action is chosen.
#[derive(Debug)]
pub(super) struct CallbackGate {
    order: watch::Sender<CallbackAction>,
    entered: watch::Sender<bool>,
}

impl CallbackGate {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            order: watch::Sender::new(CallbackAction::Wait),
            entered: watch::Sender::new(false),
        })
    }

    pub(super) fn order(&self, order: CallbackAction) {
        self.order.send_replace(order);
    }

    /// Waits until a callback has been entered.
    pub(super) async fn entered(&self) {
        // Cannot fail: `self` owns the sender.
        drop(self.entered.subscribe().wait_for(|entered| *entered).await);
    }

    /// Returns options whose callback for this state blocks on the gate.
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
        let order = *orders.wait_for(|order| *order != CallbackAction::Wait).await?;
        perform(order, &cancel).await
    }
}

/// The message of deliberate panics and errors.
const PANIC: &str = "as the fault matrix wants it";

/// Silences the panics that the matrix provokes. Printing one with a backtrace can take so long that the
/// callback counts as blocked.
pub fn quiet_panics() {
    let default_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !panic.to_string().contains(PANIC) {
            default_hook(panic);
        }
    }));
}

#[expect(clippy::panic, reason = "that is the order")]
async fn perform(order: CallbackAction, cancel: &CancelToken) -> Result<(), BoxError> {
    match order {
        CallbackAction::Wait | CallbackAction::Answer => {}
        CallbackAction::Panic => panic!("{PANIC}"),
        CallbackAction::Fail => return Err(PANIC.into()),
        CallbackAction::Block => std::thread::sleep(TOO_LONG),
        CallbackAction::AnswerWhenCancelled => cancel.cancelled().await,
    }
    Ok(())
}
