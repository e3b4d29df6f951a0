//! The operations of a session, one file per subject.

use std::time::Instant;

use claude_agent_core::session::Event;
use claude_wire::Json;
use claude_wire::control::HostRequest;
use serde::de::DeserializeOwned;
use tracing::Instrument as _;

use super::Session;
use crate::commands::Reply;
use crate::diagnose::method_of;
use crate::error::{Error, ErrorKind, Result};

/// Declares operations of a type: the request, and the type of the response; an operation without one
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
mod steer;
mod timeout;

pub use mcp::McpHandle;
pub use requests::Operation;

use requests::sealed::{Requirement, Response as _};
pub(crate) use timeout::OPERATION_TIMEOUT;
use timeout::default_timeout;

impl Session {
    /// Sends a control request and returns its response. For operations without a method:
    /// [`Operation`] lists those with a typed response. A [`HostRequest`], which can also be an
    /// operation that this version does not know, returns the response as JSON.
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
    /// - [`ControlRejected`](ErrorKind::ControlRejected) when the CLI rejects the request,
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
        let requirement = request.requirement();
        let request = request.into();
        let operation = request.kind().unwrap_or("request").to_owned();
        if let Some(requirement) = requirement {
            self.require(&operation, requirement).await?;
        }
        R::Response::decode(&operation, self.response(request).await?)
    }

    async fn response(&self, request: HostRequest) -> Result<Option<Json>> {
        match self.send_request(request).await? {
            Reply::Response(response) | Reply::Interrupted(response, _) => Ok(response),
            Reply::Accepted => Ok(None),
        }
    }

    pub(super) async fn acknowledged(&self, request: HostRequest) -> Result<()> {
        self.response(request).await.map(drop)
    }

    pub(super) async fn send_request(&self, request: HostRequest) -> Result<Reply> {
        let operation = request.kind().unwrap_or("request").to_owned();
        let timeout = self.timeout.unwrap_or_else(|| default_timeout(&request));
        let pending =
            self.post(&operation, None, |waiter| Event::Request { waiter, request, timeout });
        let span = tracing::debug_span!("claude_operation", operation);
        let began = Instant::now();
        let reply = self.reply(&operation, pending).instrument(span.clone()).await;
        span.in_scope(|| tracing::debug!(took = ?began.elapsed(), "the operation ended"));
        reply.map_err(|error| self.with_version(error))
    }

    pub(super) async fn operate<T: DeserializeOwned + Default>(
        &self,
        request: HostRequest,
    ) -> Result<T> {
        let operation = request.kind().unwrap_or("request").to_owned();
        decode(&operation, self.response(request).await?)
    }

    /// Returns an error if the CLI lacks a capability and would ignore the field.
    async fn require(&self, operation: &str, requirement: Requirement) -> Result<()> {
        let Requirement { field, capability } = requirement;
        self.ready().await?;
        let info = self.server_info().unwrap_or_default();
        if info.capabilities.iter().any(|other| other == capability) {
            return Ok(());
        }
        Err(self.with_version(missing_capability(operation, field, capability)))
    }

    /// Adds the version of a CLI that does not support an operation.
    fn with_version(&self, error: Error) -> Error {
        let info = if error.kind() == ErrorKind::Unsupported { self.server_info() } else { None };
        match info.and_then(|info| info.claude_code_version) {
            Some(version) => error.with_hint(format!("the CLI has version {version}")),
            None => error,
        }
    }
}

/// Decodes the response to an operation.
pub(super) fn decode<T: DeserializeOwned + Default>(
    operation: &str,
    response: Option<Json>,
) -> Result<T> {
    match response {
        Some(response) => response.deserialize().map_err(|error| undecodable(operation, error)),
        None => Ok(T::default()),
    }
}

pub(crate) fn missing_capability(operation: &str, field: &str, capability: &str) -> Error {
    let message = format!(
        "`{}` was not sent: the CLI would ignore the field `{field}`, because it lacks the capability \
         `{capability}`",
        method_of(operation)
    );
    Error::new(ErrorKind::Unsupported, message)
        .with_help("update the CLI, or omit the field")
        .with(|facts| facts.operation = Some(operation.to_owned()))
}

pub(crate) fn undecodable(operation: &str, error: claude_wire::DecodeError) -> Error {
    let method = method_of(operation);
    let message = format!("failed to decode the response to `{method}`: {error}");
    Error::new(ErrorKind::UndecodableResponse, message)
        .with_help("use `Session::request` with a `HostRequest` to get the raw response")
        .with(|facts| facts.operation = Some(operation.to_owned()))
        .caused_by(error)
}
