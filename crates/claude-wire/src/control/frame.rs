//! The frames that carry the control protocol.

use crate::control::{CliRequest, HostRequest};
use crate::id::RequestId;
use crate::json::{Extra, Json, List};

wire_struct! {
    /// A control request of the CLI.
    pub struct CliControlRequest ["type" = "control_request"] {
        /// The request ID, which the response must contain.
        request_id: RequestId,
        /// The question text.
        request: CliRequest,
    }
}

wire_struct! {
    /// A control request of the host.
    pub struct HostControlRequest ["type" = "control_request"] {
        /// The request ID, which the response will contain.
        request_id: RequestId,
        /// The question text.
        request: HostRequest,
    }
}

impl HostControlRequest {
    /// Creates a request with this ID.
    pub fn new(request_id: impl Into<RequestId>, request: HostRequest) -> Self {
        Self { request_id: request_id.into(), request, extra: Extra::default() }
    }
}

wire_struct! {
    /// The response to a control request, in either direction.
    pub struct ControlResponse ["type" = "control_response"] {
        /// The answer.
        response: ControlOutcome,
        /// The request ID, if the response itself does not contain it.
        outer_request_id: Option<RequestId> as "request_id",
    }
}

impl ControlResponse {
    /// Creates a success response to a request.
    pub fn success(request_id: impl Into<RequestId>, response: impl Into<Json>) -> Self {
        Self::from(ControlOutcome::Success(ControlSuccess {
            request_id: Some(request_id.into()),
            response: Some(response.into()),
            ..ControlSuccess::default()
        }))
    }

    /// Creates an error response to a request.
    pub fn error(request_id: impl Into<RequestId>, error: impl Into<String>) -> Self {
        Self::from(ControlOutcome::Error(ControlFailure {
            request_id: Some(request_id.into()),
            error: error.into(),
            error_code: None,
            extra: Extra::default(),
        }))
    }

    /// Returns the ID of the request.
    pub fn request_id(&self) -> Option<&RequestId> {
        let inner = match &self.response {
            ControlOutcome::Success(success) => success.request_id.as_ref(),
            ControlOutcome::Error(failure) => failure.request_id.as_ref(),
            ControlOutcome::Unknown(_) | ControlOutcome::Undecodable(_) => None,
        };
        inner.or(self.outer_request_id.as_ref())
    }
}

impl From<ControlOutcome> for ControlResponse {
    fn from(response: ControlOutcome) -> Self {
        Self { response, outer_request_id: None, extra: Extra::default() }
    }
}

open_union! {
    /// The outcome of a control request.
    pub enum ControlOutcome by "subtype" {
        /// The model finished its answer.
        Success(ControlSuccess) = "success",
        /// It was not.
        Error(ControlFailure) = "error",
    }
}

wire_struct! {
    /// A success response.
    #[derive(Default)]
    pub struct ControlSuccess ["subtype" = "success"] {
        /// The request.
        request_id: Option<RequestId>,
        /// The payload; its schema depends on the request.
        response: Option<Json>,
        /// The pending permission requests, in the response to a handshake.
        pending_permission_requests: List<Json>,
        /// The pending dialogs.
        pending_user_dialog_requests: List<Json>,
        /// The pending elicitations.
        pending_elicitation_requests: List<Json>,
    }
}

wire_struct! {
    /// An error response.
    #[derive(Default)]
    pub struct ControlFailure ["subtype" = "error"] {
        /// The request.
        request_id: Option<RequestId>,
        /// The error message.
        error: String,
        /// The error code.
        error_code: Option<String>,
    }
}

wire_struct! {
    /// Cancels a control request. A cancellation has no response.
    pub struct ControlCancel ["type" = "control_cancel_request"] {
        /// The request.
        request_id: RequestId,
    }
}

impl ControlCancel {
    /// Creates the cancellation of this request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: request_id.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// A keep-alive message.
    #[derive(Default)]
    pub struct KeepAlive ["type" = "keep_alive"] {
        /// The progress of the startup.
        startup_mark: Option<String>,
    }
}

wire_struct! {
    /// Transcript entries for a session store.
    #[derive(Default)]
    pub struct TranscriptMirror ["type" = "transcript_mirror"] {
        /// The transcript.
        file_path: Option<String> as "filePath",
        /// The lines.
        entries: List<Json>,
    }
}
