//! Callbacks: what every one of them is given, and the registry that runs them.

mod registry;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;

use claude_wire::id::{CallbackId, RequestId, SessionId, ToolUseId};
use tokio_util::sync::CancellationToken;

pub(crate) use registry::{Call, CallResult, Misfit, Registry, Running, told};

/// Whatever went wrong in a callback. `?` makes one of any error.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a callback may return: the value, or a `Result` of it with [`BoxError`].
#[diagnostic::on_unimplemented(
    message = "the callback must return `{T}`, and this is `{Self}`",
    note = "return `{T}`, or a `Result` of it with `BoxError`"
)]
pub trait Fallible<T>: sealed::Sealed + Send + 'static {
    #[doc(hidden)]
    fn into_result(self) -> Result<T, BoxError>;
}

impl<T: sealed::Sealed + Send + 'static> Fallible<T> for Result<T, BoxError> {
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
/// A callback that does not end soon after that is aborted (`Options::cancel_grace`), at its next
/// `await`; one on a blocking thread cannot be aborted and should look at it.
#[derive(Clone)]
pub struct CancelToken(CancellationToken);

impl CancelToken {
    pub(crate) fn new() -> Self {
        Self(CancellationToken::new())
    }

    pub(crate) fn cancel(&self) {
        self.0.cancel();
    }

    /// What comes of `future`, which is dropped when the answer is no longer wanted.
    pub(crate) async fn unless_cancelled<F: Future>(self, future: F) -> Option<F::Output> {
        self.0.run_until_cancelled(future).await
    }

    /// Whether the answer is no longer wanted.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until the answer is no longer wanted.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}

impl fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancelToken").field("is_cancelled", &self.is_cancelled()).finish()
    }
}

/// What a hook knows besides its input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HookContext {
    /// The session, if it is known by now.
    pub session_id: Option<SessionId>,
    /// The CLI's request.
    pub request_id: RequestId,
    /// The tool call, or another id that stands for the event.
    pub tool_use_id: Option<ToolUseId>,
    /// This callback, as the CLI knows it.
    pub callback_id: CallbackId,
    /// Tells when the answer is no longer wanted.
    pub cancel: CancelToken,
}

/// What a permission callback, or a handler of questions, knows besides its input.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PermissionContext {
    /// The session, if it is known by now.
    pub session_id: Option<SessionId>,
    /// The CLI's request.
    pub request_id: RequestId,
    /// The tool call.
    pub tool_use_id: Option<ToolUseId>,
    /// Tells when the answer is no longer wanted.
    pub cancel: CancelToken,
}
