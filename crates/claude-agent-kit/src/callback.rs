//! Callbacks: what every one of them is given, and the registry that runs them.

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

pub(crate) use registry::{Call, CallResult, Misfit, Registry, Running, told};

/// Whatever went wrong in a callback. `?` makes one of any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a callback may return: the value, or a `Result` of it with [`BoxError`].
#[diagnostic::on_unimplemented(
    message = "the callback must return `{T}`, and this is `{Self}`",
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

/// Keeps the trait to the types of this crate.
pub(crate) mod sealed {
    use super::BoxError;

    pub trait Sealed {}

    impl<T: Sealed> Sealed for Result<T, BoxError> {}
}

/// Tells a callback that its answer is no longer wanted: the CLI withdrew the question, the limit
/// has passed, or the session ends. Copies tell the same.
///
/// A callback that does not end soon after that is aborted (`Timeouts::cancel_grace`), at its next
/// `await`; one on a blocking thread cannot be aborted and should look at it.
#[derive(Clone)]
pub struct CancelToken(Arc<Signal>);

#[derive(Default)]
struct Signal {
    given: AtomicBool,
    waiting: Notify,
}

impl CancelToken {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    pub(crate) fn cancel(&self) {
        self.0.given.store(true, Ordering::SeqCst);
        // Wakers of the host's executors run here.
        if panics::catch(|| self.0.waiting.notify_waiters()).is_err() {
            tracing::warn!("a waker of the host's executor panicked");
        }
    }

    /// What comes of `future`, which is dropped when the answer is no longer wanted.
    pub(crate) async fn unless_cancelled<F: Future>(self, future: F) -> Option<F::Output> {
        let mut cancelled = pin!(self.cancelled());
        let mut future = pin!(future);
        poll_fn(|context| match cancelled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(None),
            Poll::Pending => future.as_mut().poll(context).map(Some),
        })
        .await
    }

    /// Whether the answer is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.0.given.load(Ordering::SeqCst)
    }

    /// Waits until the answer is no longer wanted.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn cancelled(&self) {
        // Made before the look at the signal: it hears of one that is given from here on.
        let given = self.0.waiting.notified();
        if !self.is_cancelled() {
            given.await;
        }
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// What every callback is given besides its input: hook callbacks, permission callbacks, and those
/// for questions, elicitations and dialogs.
///
/// ```
/// use claude_agent_kit::{Options, Permission, PermissionMode};
///
/// // The first edit that is allowed allows all later ones.
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
    /// The session, if its ID is known.
    pub session_id: Option<SessionId>,
    /// The CLI's control request.
    pub request_id: RequestId,
    /// The tool call that the request is about. For hooks of other events, an ID that stands for the
    /// event.
    pub tool_use_id: Option<ToolUseId>,
    /// The ID under which a hook callback is registered with the CLI.
    pub callback_id: Option<CallbackId>,
    /// Signals that the response is no longer wanted.
    pub cancel: CancelToken,
    session: SessionLink,
}

impl CallbackContext {
    pub(crate) fn new(request_id: RequestId, cancel: CancelToken, session: SessionLink) -> Self {
        let (session_id, tool_use_id, callback_id) = (None, None, None);
        Self { session_id, request_id, tool_use_id, callback_id, cancel, session }
    }

    /// Returns the session that the request came from. `None` in a query, and once the session has
    /// ended.
    ///
    /// The handle does not keep the session alive. Operations can be awaited inside the callback: the
    /// CLI responds to them while it waits for the callback. Do not await a turn of the same session
    /// there: the turn waits for the callback.
    pub fn session(&self) -> Option<Session> {
        self.session.get()
    }
}
