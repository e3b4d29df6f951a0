//! The kind, properties and text of every failure and every rejection.

use std::time::Duration;

use claude_agent_core::session::Rejection;
use claude_wire::control::{ControlOutcome, ControlResponse};
use claude_wire::id::RequestId;

use super::*;

const UNKNOWN: &str = "error: unknown option '--no-such-flag'\n";

fn evidence(stderr: &str) -> Evidence {
    Evidence {
        stderr_tail: stderr.into(),
        session_id: Some(SessionId::from("session-1")),
        cli_version: Some(CliVersion::new(2, 1, 325)),
        cli_path: Some(PathBuf::from("/opt/claude")),
        cwd: Some(PathBuf::from("/home/me")),
        ..Evidence::default()
    }
}

fn ended(code: i32) -> RunFailure {
    RunFailure::Process { exit: Exit::Code(code), stopped: false, silent: true }
}

/// Returns every failure that can occur before the handshake has completed.
fn startup_failures() -> [RunFailure; 4] {
    [
        ended(1),
        RunFailure::ExitedDuringInit(Exit::Code(1)),
        RunFailure::InitializeTimeout(Duration::from_secs(60)),
        RunFailure::InitializeRejected("no".to_owned()),
    ]
}

#[test]
fn every_failure_has_a_kind_a_cause_and_help() {
    let stopped = RunFailure::Process { exit: Exit::Signal(15), stopped: true, silent: false };
    for (cause, kind, part) in [
        (ended(1), ErrorKind::ProcessFailed, "exited with status 1 without writing any output"),
        (stopped, ErrorKind::ProcessFailed, "did not exit after closing stdout and was stopped"),
        (
            RunFailure::ExitedDuringInit(Exit::Signal(9)),
            ErrorKind::ExitedDuringInit,
            "signal 9 before completing the handshake",
        ),
        (
            RunFailure::InitializeTimeout(Duration::from_secs(60)),
            ErrorKind::InitializeTimeout,
            "within 60s",
        ),
        (
            RunFailure::InitializeRejected("bad agents".to_owned()),
            ErrorKind::InitializeRejected,
            "rejected the handshake: bad agents",
        ),
        (RunFailure::IdleTimeout, ErrorKind::IdleTimeout, "Timeouts::idle"),
        (RunFailure::LineTooLong(99), ErrorKind::LineTooLong, "a line of 99 bytes"),
        (RunFailure::StdinNotRead(99), ErrorKind::StdinNotRead, "does not read stdin (99 bytes"),
    ] {
        let error = failure(&cause, &evidence("first\nlast words\n"));
        let text = error.to_string();
        assert_eq!(error.kind(), kind);
        assert!(text.contains(part), "{text}");
        assert!(text.contains("the CLI (/opt/claude, 2.1.325, in /home/me)"), "{text}");
        assert!(text.contains(r#"stderr ends with "first\nlast words""#), "{text}");
        assert!(text.contains(error.hint().unwrap_or_default()), "{text}");
        assert!(text.ends_with(error.help().unwrap()), "{text}");
        assert_eq!(error.session_id().unwrap().as_str(), "session-1");
        assert_eq!(error.stderr_tail(), Some("first\nlast words\n"));
        assert_eq!(error.detected_version(), Some(CliVersion::new(2, 1, 325)));
    }
}

#[test]
fn failure_details_are_available_from_the_error() {
    let mut seen = evidence("");
    seen.last_malformed_line = Some(Bytes::from_static(b"Segmentation fault"));
    seen.read_error = Some("reset by peer".to_owned());
    let cause = RunFailure::Process { exit: Exit::Code(3), stopped: true, silent: false };
    let error = failure(&cause, &seen);
    assert_eq!(error.exit(), Some(Exit::Code(3)));
    assert!(error.stopped_by_sdk());
    assert_eq!(error.line().unwrap(), "Segmentation fault");
    assert_eq!(error.stderr_tail(), None);
    let text = error.to_string();
    assert!(text.contains("Segmentation fault") && text.contains("reset by peer"), "{text}");

    let late = RunFailure::InitializeTimeout(Duration::from_secs(7));
    let error = failure(&late, &evidence(""));
    assert_eq!(error.limit(), Some(Duration::from_secs(7)));
    let mut seen = evidence("");
    seen.stdout_tail = "welcome".to_owned();
    let error = failure(&RunFailure::ExitedDuringInit(Exit::Code(4)), &seen);
    assert_eq!(error.exit(), Some(Exit::Code(4)));
    assert_eq!(error.stdout_tail(), Some("welcome"));
    assert_eq!(failure(&RunFailure::LineTooLong(99), &seen).size(), Some(99));
}

#[test]
fn unknown_flag_takes_precedence_over_other_diagnoses() {
    for cause in startup_failures() {
        let error = failure(&cause, &evidence(&format!("a warning\n{UNKNOWN}")));
        assert_eq!(error.kind(), ErrorKind::UnsupportedCliVersion, "{cause:?}");
        assert_eq!(error.flag(), Some("--no-such-flag"));
        assert_eq!(error.output(), Some("error: unknown option '--no-such-flag'"));
        assert_eq!(error.detected_version(), Some(CliVersion::new(2, 1, 325)));
        assert!(error.help().unwrap().contains("npm install"));
        let text = error.to_string();
        assert!(text.contains("/opt/claude") && text.contains("--no-such-flag"), "{text}");
    }
}

#[test]
fn a_rejected_value_is_an_options_error_that_names_the_option() {
    let rejected = "error: option '--permission-mode <mode>' argument 'acceptEdit' is invalid.";
    let exit = Exit::Code(1);
    for cause in [
        RunFailure::Process { exit, stopped: false, silent: true },
        RunFailure::ExitedDuringInit(exit),
    ] {
        let error = failure(&cause, &evidence(rejected));
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert!(error.help().unwrap().contains("`permission_mode`"), "{error}");
    }
    // A tool of a CLI that works may write the same text.
    let late = RunFailure::Process { exit, stopped: false, silent: false };
    assert_eq!(failure(&late, &evidence(rejected)).kind(), ErrorKind::ProcessFailed);
}

#[test]
fn only_failures_that_may_go_away_are_retryable() {
    let silent = |exit| RunFailure::Process { exit, stopped: false, silent: true };
    let is_retryable =
        |cause: &RunFailure, stderr| failure(cause, &evidence(stderr)).is_retryable();
    for (exit, stderr, expected) in [
        (Exit::Code(0), "", false),
        (Exit::Code(1), "", false),
        (Exit::Code(2), "", false),
        (Exit::Code(127), "", false),
        (Exit::Code(1), "/bin/cat: unrecognized option '--output-format'", false),
        (Exit::Code(1), "Invalid API key · Please run /login", false),
        (Exit::Code(1), "/usr/bin/env: 'node': No such file or directory", false),
        (Exit::Code(1), "Error: ENOSPC: write", true),
        (Exit::Code(1), "FATAL ERROR: JavaScript heap out of memory", true),
        (Exit::Code(3), "", true),
        (Exit::Signal(9), "", true),
    ] {
        assert_eq!(is_retryable(&silent(exit), stderr), expected, "{exit:?} {stderr}");
    }
    // It worked before it failed.
    let late = RunFailure::Process { exit: Exit::Code(1), stopped: false, silent: false };
    assert!(is_retryable(&late, ""));
}

#[test]
fn unknown_extra_argument_is_an_options_error() {
    for name in ["no-such-flag", "--no-such-flag"] {
        for cause in startup_failures() {
            let mut seen = evidence(UNKNOWN);
            seen.extra_flags = vec!["other".to_owned(), name.to_owned()];
            let error = failure(&cause, &seen);
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert_eq!(error.flag(), Some("--no-such-flag"));
            assert!(error.to_string().contains("extra argument `--no-such-flag`"), "{error}");
        }
    }
    // An unrelated extra flag is not the cause.
    let mut seen = evidence(UNKNOWN);
    seen.extra_flags = vec!["no-such".to_owned()];
    assert_eq!(failure(&ended(1), &seen).kind(), ErrorKind::UnsupportedCliVersion);
}

#[test]
fn error_omits_the_value_of_an_unknown_flag_and_keeps_the_help() {
    let stderr = "error: unknown option '--modell=hush-hush'\n(Did you mean --model?)\n";
    let error = failure(&ended(1), &evidence(stderr));
    assert_eq!(error.flag(), Some("--modell"));
    assert!(error.to_string().contains("(Did you mean --model?)"), "{error}");
    assert!(!error.to_string().contains("hush"), "{error}");
    assert!(!error.output().unwrap().contains("hush"), "{error}");
    assert_eq!(failure(&ended(1), &evidence("error: unknown option '-x'")).flag(), Some("-x"));
}

#[test]
fn unknown_flag_after_startup_does_not_blame_the_version() {
    let worked = RunFailure::Process { exit: Exit::Code(1), stopped: false, silent: false };
    for cause in [worked, RunFailure::IdleTimeout, RunFailure::LineTooLong(1)] {
        let error = failure(&cause, &evidence(UNKNOWN));
        assert_ne!(error.kind(), ErrorKind::UnsupportedCliVersion, "{cause:?}");
    }
    for stderr in
        ["error: unknown option --x", "error: unknown option '", "an unknown option '--x'"]
    {
        let error = failure(&ended(1), &evidence(stderr));
        assert_eq!(error.kind(), ErrorKind::ProcessFailed, "{stderr}");
    }
}

#[test]
fn error_quotes_only_the_last_lines_of_stderr_and_keeps_all() {
    let lines: Vec<String> = (0..1000).map(|number| format!("line {number}\n\n")).collect();
    let long = lines.concat();
    let error = failure(&ended(1), &evidence(&long));
    let text = error.to_string();
    assert!(text.contains(r#""line 997\nline 998\nline 999""#), "{text}");
    assert!(!text.contains("line 996"), "{text}");
    assert_eq!(error.stderr_tail(), Some(&*long));
    let wide = format!("{}end", "ü".repeat(10_000));
    let text = failure(&ended(1), &evidence(&wide)).to_string();
    assert!(text.contains("…ü") && text.contains("üend\""), "{text}");
    assert!(text.chars().count() < 1500, "{}", text.chars().count());
}

/// Returns every text of an error.
fn all_text(error: &Error) -> String {
    let line = error.line().map(|line| String::from_utf8_lossy(line).into_owned());
    let tails = [error.stderr_tail(), error.stdout_tail(), error.output(), error.flag()];
    let details = [error.hint(), error.help(), error.code(), error.operation()];
    format!("{error} {error:?} {error:#?} {line:?} {tails:?} {details:?}")
}

#[test]
fn errors_never_show_a_secret() {
    let secret = "top-secret-value";
    let planted = format!("the key {secret} and sk-ant-api03-hidden with Bearer abcdef.hidden\n");
    let mask = Mask::new([secret.to_owned()]);
    let seen = |stderr: String| Evidence {
        stderr_tail: mask.apply(&stderr).into(),
        stdout_tail: mask.apply(&planted).into_owned(),
        last_malformed_line: Some(Bytes::from(planted.clone())),
        read_error: Some(planted.clone()),
        mask: mask.clone(),
        ..Evidence::default()
    };
    let worked = RunFailure::Process { exit: Exit::Code(1), stopped: false, silent: false };
    let causes = startup_failures().into_iter().chain([
        worked,
        RunFailure::InitializeRejected(planted.clone()),
        RunFailure::IdleTimeout,
        RunFailure::LineTooLong(1),
        RunFailure::StdinNotRead(1),
    ]);
    for cause in causes {
        let option = format!("error: unknown option '--x={secret}'\n");
        let value = format!("error: option '{secret} <x>' argument '{secret}' is invalid.\n");
        for stderr in [planted.clone(), option, value, "root/sudo".to_owned()] {
            let shown = all_text(&failure(&cause, &seen(format!("{stderr}{planted}"))));
            assert!(!shown.contains("top-secret") && !shown.contains("hidden"), "{shown}");
        }
    }
    for refused in rejections(&planted) {
        let shown = all_text(&rejection(&refused.0, "set_model", &seen(planted.clone())));
        assert!(!shown.contains("top-secret") && !shown.contains("hidden"), "{shown}");
    }
}

fn rejected(error: &str, code: Option<&str>) -> Rejection {
    let response = ControlResponse::error("req_1", error).response;
    let ControlOutcome::Error(mut failure) = response else { panic!("an error is one") };
    failure.error_code = code.map(str::to_owned);
    Rejection::ByCli(failure)
}

/// Returns every rejection with its kind.
fn rejections(text: &str) -> Vec<(Rejection, ErrorKind)> {
    let request_id = RequestId::from("req_2");
    vec![
        (rejected(text, None), ErrorKind::ControlRejected),
        (rejected(text, Some("invalid_mode")), ErrorKind::ControlRejected),
        (rejected(text, Some("unsupported_request")), ErrorKind::Unsupported),
        (rejected("Unsupported control request subtype: x", None), ErrorKind::Unsupported),
        (
            Rejection::TimedOut { request_id, timeout: Duration::from_secs(30) },
            ErrorKind::ControlTimeout,
        ),
        (Rejection::ResponseTooLarge(99), ErrorKind::ResponseTooLarge),
        (Rejection::UndecodableResponse(text.to_owned()), ErrorKind::UndecodableResponse),
        (Rejection::HandshakeQueueFull, ErrorKind::InitQueueFull),
        (Rejection::TooManyPending, ErrorKind::TooManyPending),
        (Rejection::NotInitialized, ErrorKind::NotInitialized),
        (Rejection::InputEnded, ErrorKind::InputEnded),
        (Rejection::Stopped, ErrorKind::SessionStopped),
        (Rejection::Closed(text.to_owned()), ErrorKind::TransportClosed),
        (Rejection::CheckpointingNotEnabled, ErrorKind::CheckpointingNotEnabled),
        (Rejection::Unencodable(text.to_owned()), ErrorKind::InvalidOptions),
    ]
}

#[test]
fn every_rejection_has_a_kind_and_names_the_operation() {
    for (refused, kind) in rejections("the reason") {
        let error = rejection(&refused, "set_model", &evidence(""));
        assert_eq!(error.kind(), kind, "{refused:?}");
        assert_eq!(error.operation(), Some("set_model"));
        let text = error.to_string();
        assert!(text.contains("`set_model`"), "{text}");
        if format!("{refused:?}").contains("the reason") {
            assert!(text.contains("the reason"), "{text}");
        }
    }
}

/// The host called a method, and does not know the names of control requests.
#[test]
fn texts_name_the_method_that_the_host_called() {
    let sources = [
        include_str!("../session/operations/info.rs"),
        include_str!("../session/operations/mcp.rs"),
        include_str!("../session/operations/steer.rs"),
    ]
    .concat();
    for operation in [
        "cancel_async_message",
        "get_context_usage",
        "mcp_call",
        "mcp_reconnect",
        "mcp_set_servers",
        "mcp_status",
        "mcp_toggle",
        "rename_session",
    ] {
        let method = method_of(operation);
        let (_, names) = method.split_once("::").unwrap();
        for name in names.split('/') {
            assert!(sources.contains(&format!("fn {name}(")), "{method}");
        }
        let errors = [
            rejection(&Rejection::Stopped, operation, &evidence("")),
            failure(&RunFailure::IdleTimeout, &evidence("")).in_operation(operation),
            crate::session::stopped(operation),
            crate::session::input_ended(operation),
        ];
        for error in errors {
            assert!(error.to_string().starts_with(&format!("`{method}` ")), "{error}");
            assert_eq!(error.operation(), Some(operation));
        }
    }
    assert_eq!(method_of("interrupt"), "interrupt");
}

#[test]
fn rejection_details_are_available_from_the_error() {
    let mut seen = evidence("last words");
    seen.exit = Some(Exit::Code(1));
    let error_for = |refused: &Rejection| rejection(refused, "set_permission_mode", &seen);
    let error = error_for(&rejected("Bad mode", Some("invalid_mode")));
    assert_eq!(error.code(), Some("invalid_mode"));
    assert_eq!(error.request_id().unwrap().as_str(), "req_1");
    assert_eq!(error.output(), Some("Bad mode"));
    let request_id = RequestId::from("req_2");
    let error = error_for(&Rejection::TimedOut { request_id, timeout: Duration::from_secs(30) });
    assert_eq!(error.request_id().unwrap().as_str(), "req_2");
    assert_eq!(error.limit(), Some(Duration::from_secs(30)));
    assert_eq!(error_for(&Rejection::ResponseTooLarge(99)).size(), Some(99));
    let error = error_for(&Rejection::Closed("its input broke".to_owned()));
    assert_eq!((error.exit(), error.stderr_tail()), (Some(Exit::Code(1)), Some("last words")));
    let text = error.to_string();
    assert!(text.contains("its input broke") && text.contains("last words"), "{text}");
    assert!(text.contains("exited with status 1"), "{text}");
}
