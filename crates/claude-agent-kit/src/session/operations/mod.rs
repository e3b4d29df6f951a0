//! What can be asked of a session while it runs, one file per subject.

use std::time::Instant;

use claude_wire::Json;
use claude_wire::control::HostRequest;
use claude_wire::session::Event;
use serde::de::DeserializeOwned;
use tracing::Instrument as _;

use super::Session;
use crate::commands::Reply;
use crate::error::{Error, ErrorKind, Result};

/// Declares operations: what is asked, and the type of the answer; without one, success needs
/// nothing but `success`.
macro_rules! operations {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)? $request:block
    )+) => {
        impl $crate::Session {$(
            $(#[$meta])*
            ///
            /// # Errors
            /// Those of [`Self::request`].
            ///
            /// # Cancel safety
            /// That of [`Self::request`].
            pub async fn $name(&self, $($argument: $type),*) -> $crate::Result<operations!(@$($answer)?)> {
                operations!(@self $request $($answer)?)
            }
        )+}
    };
    (@) => { () };
    (@$answer:ty) => { $answer };
    (@$session:ident $request:block) => { $session.request($request.into()).await.map(drop) };
    (@$session:ident $request:block $answer:ty) => {
        $session.operate::<$answer>($request.into()).await
    };
}

mod files;
mod info;
mod mcp;
mod settings;
mod steer;
mod timeout;

pub(crate) use timeout::OPERATION_TIMEOUT;
use timeout::default_timeout;

impl Session {
    /// Asks for any operation, also one that this version has no method for, and gives the answer
    /// as it came.
    ///
    /// # Errors
    /// - [`ControlRejected`](ErrorKind::ControlRejected) when the CLI refuses,
    ///   [`Unsupported`](ErrorKind::Unsupported) when it does not know the operation,
    ///   [`ControlTimeout`](ErrorKind::ControlTimeout) when it does not answer in time: then the
    ///   operation may have taken effect.
    /// - [`TransportClosed`](ErrorKind::TransportClosed),
    ///   [`SessionStopped`](ErrorKind::SessionStopped), [`InputEnded`](ErrorKind::InputEnded),
    ///   [`NotInitialized`](ErrorKind::NotInitialized) when there is nobody to ask any more.
    /// - [`InitQueueFull`](ErrorKind::InitQueueFull),
    ///   [`TooManyPending`](ErrorKind::TooManyPending) when too much is asked at once.
    /// - [`AnswerTooLarge`](ErrorKind::AnswerTooLarge),
    ///   [`UndecodableAnswer`](ErrorKind::UndecodableAnswer) when the answer cannot be used.
    ///
    /// # Cancel safety
    /// Dropping the future frees its place; the operation may still take effect.
    pub async fn request(&self, request: HostRequest) -> Result<Option<Json>> {
        match self.ask(request).await? {
            Reply::Response(response) | Reply::Interrupted(response, _) => Ok(response),
            Reply::Accepted => Ok(None),
        }
    }

    pub(super) async fn ask(&self, request: HostRequest) -> Result<Reply> {
        let operation = request.kind().unwrap_or("request").to_owned();
        let limit = self.limit.unwrap_or_else(|| default_timeout(&request));
        let pending = self.post(&operation, None, |waiter| Event::Ask { waiter, request, limit });
        let span = tracing::debug_span!("claude_operation", operation);
        let began = Instant::now();
        let settled = self.settled(&operation, pending).instrument(span.clone()).await;
        span.in_scope(|| tracing::debug!(took = ?began.elapsed(), "the operation ended"));
        settled.map_err(|error| self.with_version(error))
    }

    pub(super) async fn operate<A: DeserializeOwned + Default>(
        &self,
        request: HostRequest,
    ) -> Result<A> {
        let operation = request.kind().unwrap_or("request").to_owned();
        decoded(&operation, self.request(request).await?)
    }

    /// Fails where the CLI does not have what would else be ignored.
    async fn require(&self, operation: &str, field: &str, capability: &str) -> Result<()> {
        self.ready().await?;
        if self.capabilities().iter().any(|other| other == capability) {
            return Ok(());
        }
        let message = format!(
            "`{operation}` was not sent: the CLI would ignore its field `{field}`, which needs the \
             capability `{capability}`"
        );
        let error = Error::new(ErrorKind::Unsupported, message)
            .remedy("update the CLI, or do without the field")
            .with(|facts| {
                facts.operation = Some(operation.to_owned());
                facts.needs = Some(capability.to_owned());
            });
        Err(self.with_version(error))
    }

    /// Says which CLI does not know an operation.
    fn with_version(&self, error: Error) -> Error {
        let info = if error.kind() == ErrorKind::Unsupported { self.server_info() } else { None };
        match info.and_then(|info| info.claude_code_version) {
            Some(version) => error.hint_at(format!("the CLI is of version {version}")),
            None => error,
        }
    }
}

/// The typed answer to an operation.
pub(super) fn decoded<A: DeserializeOwned + Default>(
    operation: &str,
    answer: Option<Json>,
) -> Result<A> {
    match answer {
        Some(answer) => answer.deserialize().map_err(|error| undecodable(operation, error)),
        None => Ok(A::default()),
    }
}

fn undecodable(operation: &str, error: claude_wire::DecodeError) -> Error {
    let message = format!("the answer to `{operation}` could not be made out ({error})");
    Error::new(ErrorKind::UndecodableAnswer, message)
        .remedy("use `request` to get it as it came")
        .with(|facts| facts.operation = Some(operation.to_owned()))
        .caused_by(error)
}
