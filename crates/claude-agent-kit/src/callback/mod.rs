//! Callbacks: their context, and the registry that runs them.

mod registry;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use claude_wire::id::{CallbackId, RequestId, SessionId, ToolUseId};
use tokio::sync::Notify;

use crate::panics;
use crate::session::{Session, SessionLink};

pub(crate) use registry::{Call, CallResult, CallbackRun, IgnoredFields, Registry, error_text};

/// The error of a callback. `?` converts any error into it.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The return type of a callback: the value, or a `Result` of it with [`BoxError`].
#[diagnostic::on_unimplemented(
    message = "the callback must return `{T}`, but returns `{Self}`",
    note = "return `{T}`, or a `Result` of it with `BoxError`"
)]
pub trait IntoCallbackResult<T>: sealed::Sealed + Send + 'static {
    #[doc(hidden)]
    fn into_result(self) -> Result<T, BoxError>;
}

impl<T: sealed::Sealed + Send + 'static> IntoCallbackResult<T> for Result<T, BoxError> {
    fn into_result(self) -> Result<T, BoxError> {
        self
    }
}

/// Seals the trait.
pub(crate) mod sealed {
    use super::BoxError;

    pub trait Sealed {}

    impl<T: Sealed> Sealed for Result<T, BoxError> {}
}

/// Signals to a callback that its response is no longer needed: the CLI cancelled the request, the
/// timeout has passed, or the session ends. Clones share the signal.
///
/// A callback that does not return within `Timeouts::cancel_grace` after that is aborted, at its next
/// `await`. A callback on a blocking thread cannot be aborted and should check the token.
#[derive(Clone)]
pub struct CancelToken(Arc<Signal>);

#[derive(Default)]
struct Signal {
    cancelled: AtomicBool,
    notify: Notify,
}

impl CancelToken {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::SeqCst);
        // Wakers of the host's executors run here.
        if panics::catch(|| self.0.notify.notify_waiters()).is_err() {
            tracing::warn!("a waker of the host's executor panicked");
        }
    }

    /// Returns the output of `future`; `None` if the token is cancelled first.
    pub(crate) async fn unless_cancelled<F: Future>(self, future: F) -> Option<F::Output> {
        let mut cancelled = pin!(self.cancelled());
        let mut future = pin!(future);
        poll_fn(|context| match cancelled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(context).map(Some),
        })
        .await
    }

    /// Returns whether the response is no longer needed.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Waits until the response is no longer needed.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect.
    pub async fn cancelled(&self) {
        // Created before the check, so that a cancellation after the check wakes it.
        let cancelled = self.0.notify.notified();
        if !self.is_cancelled() {
            cancelled.await;
        }
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// The context of a callback, passed along with its input: for hooks, permission requests, questions,
/// elicitations and dialogs.
///
/// ```
/// use claude_agent_kit::{Options, Permission, PermissionMode};
///
/// // Allowing the first edit allows all later ones.
/// let options = Options::new().can_use_tool(|request, ctx| async move {
///     if let Some(session) = ctx.session().filter(|_| request.tool_name == "Edit") {
///         session.set_permission_mode(PermissionMode::AcceptEdits).await?;
///     }
///     Ok(Permission::allow())
/// });
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CallbackContext {
    /// The ID of the session, if known.
    pub session_id: Option<SessionId>,
    /// The ID of the control request.
    pub request_id: RequestId,
    /// The ID of the tool call. For hooks of events without a tool, the CLI sends an ID for the event.
    pub tool_use_id: Option<ToolUseId>,
    /// The ID under which a hook callback is registered with the CLI.
    pub callback_id: Option<CallbackId>,
    /// Signals that the response is no longer needed.
    pub cancel: CancelToken,
    session: SessionLink,
}

impl CallbackContext {
    pub(crate) fn new(request_id: RequestId, cancel: CancelToken, session: SessionLink) -> Self {
        let (session_id, tool_use_id, callback_id) = (None, None, None);
        Self { session_id, request_id, tool_use_id, callback_id, cancel, session }
    }

    /// Returns the session of the request, or `None` in a query and after the session has ended.
    ///
    /// The handle does not keep the session alive. Operations can be awaited in the callback: the CLI
    /// responds to them while it waits for the callback. Do not await a turn of the same session, which
    /// would deadlock, because the turn waits for the callback.
    pub fn session(&self) -> Option<Session> {
        self.session.get()
    }
}
