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

/// Declares operations of a type: what is sent, and the type of the response; an operation without one
/// is only acknowledged.
macro_rules! operations {
    (Session: $($declared:tt)+) => {
        operations! { @methods $crate::Session, self, [&self] $($declared)+ }
    };
    (McpHandle: $($declared:tt)+) => {
        operations! { @methods $crate::session::McpHandle<'_>, self, [self] $($declared)+ }
    };
    (@methods $target:ty, $self:ident, $receiver:tt $(
        $(#[$meta:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) $(-> $response:ty)? $request:block
    )+) => {
        impl $target {$(
            operations! {
                @method $self, $receiver,
                $(#[$meta])*
                $name($($argument: $type),*) ($($response)?) $request
            }
        )+}
    };
    (@method $self:ident, [$($receiver:tt)+],
        $(#[$meta:meta])*
        $name:ident($($argument:ident: $type:ty),*) ($($response:ty)?) $request:block
    ) => {
        $(#[$meta])*
        ///
        /// # Errors
        /// Those of [`Session::request`](crate::Session::request).
        ///
        /// # Cancel safety
        /// That of [`Session::request`](crate::Session::request).
        pub async fn $name($($receiver)+, $($argument: $type),*) -> $crate::Result<operations!(@$($response)?)> {
            operations!(@$self $request $($response)?)
        }
    };
    (@) => { () };
    (@$response:ty) => { $response };
    (@$self:ident $request:block) => { $self.acknowledged($request.into()).await };
    (@$self:ident $request:block $response:ty) => {
        $self.operate::<$response>($request.into()).await
    };
}

mod files;
mod info;
mod mcp;
mod requests;
mod settings;
mod steer;
mod timeout;

pub use mcp::McpHandle;
pub use requests::Operation;

use requests::sealed::Response as _;
pub(crate) use timeout::OPERATION_TIMEOUT;
use timeout::default_timeout;

impl Session {
    /// Sends a control request and returns its response. For operations that have no method here:
    /// see [`Operation`] for those with a typed response. A [`HostRequest`], which can also be an
    /// operation that this version does not know, returns the response as it came.
    ///
    /// ```no_run
    /// use claude_agent_kit::control::GetBinaryVersion;
    ///
    /// # async fn example(session: claude_agent_kit::Session) -> claude_agent_kit::Result<()> {
    /// let version = session.request(GetBinaryVersion::default()).await?;
    /// println!("{:?}", version.build_time);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`ControlRejected`](ErrorKind::ControlRejected) when the CLI refuses,
    ///   [`Unsupported`](ErrorKind::Unsupported) when it does not know the operation,
    ///   [`ControlTimeout`](ErrorKind::ControlTimeout) when it does not respond in time: then the
    ///   operation may have taken effect.
    /// - [`TransportClosed`](ErrorKind::TransportClosed),
    ///   [`SessionStopped`](ErrorKind::SessionStopped), [`InputEnded`](ErrorKind::InputEnded),
    ///   [`NotInitialized`](ErrorKind::NotInitialized) when the session has ended.
    /// - [`InitQueueFull`](ErrorKind::InitQueueFull),
    ///   [`TooManyPending`](ErrorKind::TooManyPending) when too many operations are pending.
    /// - [`ResponseTooLarge`](ErrorKind::ResponseTooLarge),
    ///   [`UndecodableResponse`](ErrorKind::UndecodableResponse) when the response cannot be used.
    ///
    /// # Cancel safety
    /// Dropping the future frees its place; the operation may still take effect.
    pub async fn request<R: Operation>(&self, request: R) -> Result<R::Response> {
        let request = request.into();
        let operation = request.kind().unwrap_or("request").to_owned();
        R::Response::decode(&operation, self.response(request).await?)
    }

    async fn response(&self, request: HostRequest) -> Result<Option<Json>> {
        match self.ask(request).await? {
            Reply::Response(response) | Reply::Interrupted(response, _) => Ok(response),
            Reply::Accepted => Ok(None),
        }
    }

    pub(super) async fn acknowledged(&self, request: HostRequest) -> Result<()> {
        self.response(request).await.map(drop)
    }

    pub(super) async fn ask(&self, request: HostRequest) -> Result<Reply> {
        let operation = request.kind().unwrap_or("request").to_owned();
        let limit = self.timeout.unwrap_or_else(|| default_timeout(&request));
        let pending = self.post(&operation, None, |waiter| Event::Request {
            waiter,
            request,
            timeout: limit,
        });
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
        decoded(&operation, self.response(request).await?)
    }

    /// Fails where the CLI does not have what would else be ignored.
    async fn require(&self, operation: &str, field: &str, capability: &str) -> Result<()> {
        self.ready().await?;
        let info = self.server_info().unwrap_or_default();
        if info.capabilities.iter().any(|other| other == capability) {
            return Ok(());
        }
        let message = format!(
            "`{operation}` was not sent: the CLI would ignore its field `{field}`, which needs the \
             capability `{capability}`"
        );
        let error = Error::new(ErrorKind::Unsupported, message)
            .with_help("update the CLI, or do without the field")
            .with(|facts| {
                facts.operation = Some(operation.to_owned());
            });
        Err(self.with_version(error))
    }

    /// Says which CLI does not know an operation.
    fn with_version(&self, error: Error) -> Error {
        let info = if error.kind() == ErrorKind::Unsupported { self.server_info() } else { None };
        match info.and_then(|info| info.claude_code_version) {
            Some(version) => error.with_hint(format!("the CLI is of version {version}")),
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
    Error::new(ErrorKind::UndecodableResponse, message)
        .with_help("use `request` to get it as it came")
        .with(|facts| facts.operation = Some(operation.to_owned()))
        .caused_by(error)
}
