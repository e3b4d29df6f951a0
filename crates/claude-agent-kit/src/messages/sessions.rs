//! Errors of sessions, operations and other calls, and warnings.

use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::{FailureResponse, Rejection, RunWarning};
use claude_wire::control::{ControlOutcome, ControlResponse, McpServerInfo, PermissionMode};
use claude_wire::id::RequestId;
use claude_wire::message::ResultMessage;
use claude_wire::{Exit, Json, Message};

use super::Messages;
use crate::commands::DriverGone;
use crate::diagnose::{Evidence, failure, rejection};
use crate::drift::Drift;
use crate::error::{Error, ErrorKind};
use crate::panics::CALLBACK_PANICKED;
use crate::permission::inbox::{Closed, rejected};
use crate::session::{mcp, operations};
use crate::warning::{Warning, WarningCode};
use crate::{driver, feed, group, query, session, transport, typed};

pub(super) fn add(messages: &mut Messages) {
    messages.section("Operations of a session");
    rejections(messages);
    messages.section("Sessions, queries and other calls");
    calls(messages);
    typed_answers(messages);
    messages.section("Warnings");
    notices(messages);
    warnings(messages);
}

fn by_cli(error: &str, code: Option<&str>) -> Rejection {
    let ControlOutcome::Error(mut failure) = ControlResponse::error("req_1", error).response else {
        panic!("an error response");
    };
    failure.error_code = code.map(str::to_owned);
    Rejection::ByCli(failure)
}

fn rejections(messages: &mut Messages) {
    let evidence = Evidence::default();
    for rejected_operation in [
        by_cli("Cannot set the mode", None),
        by_cli("Cannot set the mode", Some("invalid_mode")),
        by_cli("Unsupported control request subtype: set_model", None),
        Rejection::TimedOut { request_id: RequestId::from("1"), timeout: Duration::from_secs(30) },
        Rejection::ResponseTooLarge(99_000_000),
        Rejection::UndecodableResponse("missing field `x`".to_owned()),
        Rejection::HandshakeQueueFull,
        Rejection::TooManyPending,
        Rejection::NotInitialized,
        Rejection::InputEnded,
        Rejection::Stopped,
        Rejection::CheckpointingNotEnabled,
        Rejection::Unencodable("key must be a string".to_owned()),
        Rejection::DuplicateMessage,
    ] {
        messages.error(&rejection(&rejected_operation, "set_model", &evidence));
    }
    let exited = Evidence {
        exit: Some(Exit::Code(1)),
        stderr_tail: "last line of stderr".into(),
        ..Evidence::default()
    };
    messages.error(&rejection(&Rejection::Closed("broken pipe".to_owned()), "set_model", &exited));
    let ended = claude_agent_core::session::RunFailure::IdleTimeout;
    messages.error(&failure(&ended, &evidence).in_operation("set_model"));
    messages.error(&session::input_ended("set_model"));
    messages.error(&session::stopped("set_model"));
    let capability = "mcp_call_check_permissions_v1";
    messages.error(&operations::missing_capability("mcp_call", "check_permissions", capability));
    let response = Json::from_text("[]").unwrap().deserialize::<ResultMessage>().unwrap_err();
    messages.error(&operations::undecodable("get_settings", response));
}

fn calls(messages: &mut Messages) {
    messages.error(&session::empty_prompt());
    messages.error(&session::empty_prompt_id());
    messages.error(&query::stopped());
    messages.error(&query::no_result());
    messages.error(&feed::lagged(70_000_000));
    messages.error(&group::closed());
    messages.error(&rejected("req_1", Some(Closed::Answered)));
    messages.error(&rejected("req_1", Some(Closed::Withdrawn)));
    messages.error(&rejected("req_1", None));
    for status in ["disabled", "needs-auth", "failed"] {
        let server = format!(r#"{{"name": "docs", "status": "{status}"}}"#);
        let server: McpServerInfo = serde_json::from_str(&server).unwrap();
        messages.error(&mcp::pending(&[server], false).unwrap_err());
    }
    messages.error(&mcp::failed("docs", mcp::UNKNOWN_SERVER));
    messages.error(&mcp::late("docs".to_owned(), Duration::from_secs(10)));
    messages.error(&crate::mcp::client::no_response("roots/list"));
    messages.error(&crate::turn::not_interrupted());
    messages.error(&crate::mcp::client::too_many_requests("docs"));
    messages.error(&crate::mcp::client::session_ended(DriverGone));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for name in ["-u", "no-such-user-here"] {
        let error = runtime.block_on(crate::OsUser::from(name).resolve()).unwrap_err();
        messages.error(&error);
    }
}

fn typed_answers(messages: &mut Messages) {
    let result = |text: &str| serde_json::from_str::<ResultMessage>(text).unwrap();
    let missing = result(r#"{"type": "result", "result": "Sorry."}"#);
    messages.error(&typed::value_of::<Vec<u32>>(&missing).unwrap_err());
    let mismatch = result(r#"{"type": "result", "structured_output": {"value": ["x"]}}"#);
    messages.error(&typed::value_of::<Vec<u32>>(&mismatch).unwrap_err());
}

fn notices(messages: &mut Messages) {
    let malformed = Message::decode(Bytes::from_static(b"hello")).unwrap_err();
    let request = || "hook for `PreToolUse`".to_owned();
    let reason = || "no connection to the policy server".to_owned();
    let timeout = Duration::from_secs(60);
    for notice in [
        RunWarning::Malformed(malformed),
        RunWarning::OversizedLine { size: 99_000_000, kind: Some("assistant".to_owned()) },
        RunWarning::OversizedLine { size: 99_000_000, kind: None },
        RunWarning::IncompleteLastLine(Bytes::from_static(b"{\"type")),
        RunWarning::NonZeroExitAfterResult(Exit::Code(7)),
        RunWarning::StdoutHeldOpen,
        RunWarning::StoppedAfterResult,
        RunWarning::ExitWithoutResult,
        RunWarning::EmptyOutput,
        RunWarning::CallbackFailed {
            request: request(),
            reason: reason(),
            response: FailureResponse::Deny,
        },
        RunWarning::CallbackFailed {
            request: "tool `add` of the MCP server `calc`".to_owned(),
            reason: CALLBACK_PANICKED.to_owned(),
            response: FailureResponse::Error,
        },
        RunWarning::CallbackFailed {
            request: request(),
            reason: reason(),
            response: FailureResponse::Continue,
        },
        RunWarning::CallbackFailed {
            request: "message for the MCP server calc".to_owned(),
            reason: reason(),
            response: FailureResponse::Acknowledge,
        },
        RunWarning::CallbackTimedOut {
            request: request(),
            timeout,
            response: FailureResponse::Deny,
        },
        RunWarning::CallbackOverload { request: request() },
        RunWarning::UnsupportedRequest {
            request: "elicitation".to_owned(),
            response: "declined".to_owned(),
        },
        RunWarning::ModeBypassesCallback(PermissionMode::Auto),
        RunWarning::MirrorDegraded("appends failed for 30s: no route".to_owned()),
        RunWarning::MirrorRecovered,
        RunWarning::UnknownTranscript("/tmp/notes.jsonl".to_owned()),
    ] {
        messages.warning(&Warning::of(notice));
    }
}

fn warnings(messages: &mut Messages) {
    messages.warning(&driver::callback_tasks::blocked("a hook", Duration::from_secs(2)));
    messages
        .warning(&driver::callback_tasks::unsupported_fields("Stop", &["systemMessag".to_owned()]));
    let exit = transport::local::not_killed(4711).to_string();
    messages.warning(&Warning::new(WarningCode::ExitUnknown, exit));
    let drift = Drift::default();
    for line in [
        r#"{"type": "new_type"}"#,
        r#"{"type": "system", "subtype": "new_subtype"}"#,
        r#"{"type": "assistant", "message": {"content": [{"type": "new_block"}]}}"#,
    ] {
        let message = Message::decode(Bytes::from(line)).unwrap();
        drift.look_at(&message).iter().for_each(|warning| messages.warning(warning));
    }
    for (code, kind, probe) in [
        (WarningCode::UnknownCliVersion, ErrorKind::UnknownCliVersion, "hello"),
        (WarningCode::VersionDetection, ErrorKind::VersionDetection, ""),
    ] {
        let probe = match probe {
            "" => crate::cli::Probe::Failed("nothing was printed (exit status: 3)".into()),
            text => crate::cli::Probe::Printed(text.to_owned()),
        };
        let error: Error = crate::cli::judge(&probe, crate::MINIMUM_VERSION).unwrap_err();
        assert_eq!(error.kind(), kind);
        messages.warning(&Warning::new(code, error.to_string()));
    }
}
