//! The frames that carry the control protocol.

use crate::control::{CliRequest, HostRequest};
use crate::id::RequestId;
use crate::json::{Extra, Json, List};

wire_struct! {
    /// The CLI asks the host.
    pub struct CliControlRequest ["type" = "control_request"] {
        /// What the answer must name.
        request_id: RequestId,
        /// The question.
        request: CliRequest,
    }
}

wire_struct! {
    /// The host asks the CLI.
    pub struct HostControlRequest ["type" = "control_request"] {
        /// What the answer will name.
        request_id: RequestId,
        /// The question.
        request: HostRequest,
    }
}

impl HostControlRequest {
    /// A request with this id.
    pub fn new(request_id: impl Into<RequestId>, request: HostRequest) -> Self {
        Self { request_id: request_id.into(), request, extra: Extra::default() }
    }
}

wire_struct! {
    /// The answer to a control request, in either direction.
    pub struct ControlResponse ["type" = "control_response"] {
        /// The answer.
        response: ControlOutcome,
        /// The request, where it does not stand in the answer itself.
        outer_request_id: Option<RequestId> as "request_id",
    }
}

impl ControlResponse {
    /// The answer `response` to a request.
    pub fn success(request_id: impl Into<RequestId>, response: impl Into<Json>) -> Self {
        Self::from(ControlOutcome::Success(ControlSuccess {
            request_id: Some(request_id.into()),
            response: Some(response.into()),
            ..ControlSuccess::default()
        }))
    }

    /// The refusal of a request.
    pub fn error(request_id: impl Into<RequestId>, error: impl Into<String>) -> Self {
        Self::from(ControlOutcome::Error(ControlFailure {
            request_id: Some(request_id.into()),
            error: error.into(),
            error_code: None,
            extra: Extra::default(),
        }))
    }

    /// The request that this answers.
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
    /// How a control request ended.
    pub enum ControlOutcome by "subtype" {
        /// It was done.
        Success(ControlSuccess) = "success",
        /// It was not.
        Error(ControlFailure) = "error",
    }
}

wire_struct! {
    /// A control request was done.
    #[derive(Default)]
    pub struct ControlSuccess ["subtype" = "success"] {
        /// The request.
        request_id: Option<RequestId>,
        /// What it gave; its shape is the request's.
        response: Option<Json>,
        /// Permission requests that are open: the answer to a handshake names them.
        pending_permission_requests: List<Json>,
        /// Dialogs that are open.
        pending_user_dialog_requests: List<Json>,
        /// Elicitations that are open.
        pending_elicitation_requests: List<Json>,
    }
}

wire_struct! {
    /// A control request was not done.
    #[derive(Default)]
    pub struct ControlFailure ["subtype" = "error"] {
        /// The request.
        request_id: Option<RequestId>,
        /// Why, for people.
        error: String,
        /// Why, for programs.
        error_code: Option<String>,
    }
}

wire_struct! {
    /// The asker no longer wants an answer. It is not answered itself.
    pub struct ControlCancel ["type" = "control_cancel_request"] {
        /// The request.
        request_id: RequestId,
    }
}

impl ControlCancel {
    /// The cancel of this request.
    pub fn new(request_id: impl Into<RequestId>) -> Self {
        Self { request_id: request_id.into(), extra: Extra::default() }
    }
}

wire_struct! {
    /// A sign of life.
    #[derive(Default)]
    pub struct KeepAlive ["type" = "keep_alive"] {
        /// How far the start has come.
        startup_mark: Option<String>,
    }
}

wire_struct! {
    /// Lines of the transcript, for a session store.
    #[derive(Default)]
    pub struct TranscriptMirror ["type" = "transcript_mirror"] {
        /// The transcript.
        file_path: Option<String> as "filePath",
        /// The lines.
        entries: List<Json>,
    }
}
