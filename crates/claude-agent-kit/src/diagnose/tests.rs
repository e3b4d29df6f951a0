//! Every failure and every refusal with its kind, its facts and its words.

use std::time::Duration;

use claude_wire::control::{ControlOutcome, ControlResponse};
use claude_wire::id::RequestId;
use claude_wire::session::Rejection;

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

/// Every failure that can come before the handshake has ended.
fn startup_failures() -> [RunFailure; 4] {
    [
        ended(1),
        RunFailure::ExitedDuringInit(Exit::Code(1)),
        RunFailure::InitializeTimeout(Duration::from_secs(60)),
        RunFailure::InitializeRejected("no".to_owned()),
    ]
}

#[test]
fn each_failure_has_its_kind_and_says_what_happened_where_and_what_to_do() {
    let stopped = RunFailure::Process { exit: Exit::Signal(15), stopped: true, silent: false };
    for (cause, kind, part) in [
        (ended(1), ErrorKind::ProcessFailed, "exit code 1 without having written anything"),
        (stopped, ErrorKind::ProcessFailed, "did not end, and was stopped"),
        (
            RunFailure::ExitedDuringInit(Exit::Signal(9)),
            ErrorKind::ExitedDuringInit,
            "signal 9 before it answered the handshake",
        ),
        (
            RunFailure::InitializeTimeout(Duration::from_secs(60)),
            ErrorKind::InitializeTimeout,
            "within 60s",
        ),
        (
            RunFailure::InitializeRejected("bad agents".to_owned()),
            ErrorKind::InitializeRejected,
            "refused the handshake: bad agents",
        ),
        (RunFailure::IdleTimeout, ErrorKind::IdleTimeout, "Timeouts::idle"),
        (RunFailure::LineTooLong(99), ErrorKind::LineTooLong, "a line of 99 bytes"),
        (RunFailure::StdinNotRead(99), ErrorKind::StdinNotRead, "does not read stdin: 99 bytes"),
    ] {
        let error = failure(&cause, &evidence("first\nlast words\n"));
        let text = error.to_string();
        assert_eq!(error.kind(), kind);
        assert!(text.contains(part), "{text}");
        assert!(text.contains("the CLI (/opt/claude, 2.1.325, in /home/me)"), "{text}");
        assert!(text.contains(r#"stderr ends with "first\nlast words""#), "{text}");
        assert!(text.contains(error.hint().unwrap()), "{text}");
        assert!(text.ends_with(error.suggestion().unwrap()), "{text}");
        assert_eq!(error.session_id().unwrap().as_str(), "session-1");
        assert_eq!(error.stderr_tail(), Some("first\nlast words\n"));
        assert_eq!(error.detected_version(), Some(CliVersion::new(2, 1, 325)));
    }
}

#[test]
fn the_facts_of_a_failure_can_be_asked_for() {
    let mut seen = evidence("");
    seen.last_malformed_line = Some(Bytes::from_static(b"Segmentation fault"));
    seen.read_error = Some("reset by peer".to_owned());
    let cause = RunFailure::Process { exit: Exit::Code(3), stopped: true, silent: false };
    let error = failure(&cause, &seen);
    assert_eq!(error.exit(), Some(Exit::Code(3)));
    assert!(error.stopped_by_sdk() && !error.stdout_was_empty());
    assert_eq!(error.line().unwrap(), "Segmentation fault");
    assert_eq!(error.stderr_tail(), None);
    let text = error.to_string();
    assert!(text.contains("Segmentation fault") && text.contains("reset by peer"), "{text}");

    assert!(failure(&ended(1), &evidence("")).stdout_was_empty());
    let late = RunFailure::InitializeTimeout(Duration::from_secs(7));
    let error = failure(&late, &evidence(""));
    assert_eq!(error.limit(), Some(Duration::from_secs(7)));
    assert!(error.stdout_was_empty());
    let mut seen = evidence("");
    seen.stdout_tail = "welcome".to_owned();
    let error = failure(&RunFailure::ExitedDuringInit(Exit::Code(4)), &seen);
    assert_eq!(error.exit(), Some(Exit::Code(4)));
    assert_eq!(error.stdout_tail(), Some("welcome"));
    assert!(!error.stdout_was_empty());
    assert_eq!(failure(&RunFailure::LineTooLong(99), &seen).size(), Some(99));
}

#[test]
fn a_flag_that_the_cli_does_not_know_comes_before_everything_else() {
    for cause in startup_failures() {
        let error = failure(&cause, &evidence(&format!("a warning\n{UNKNOWN}")));
        assert_eq!(error.kind(), ErrorKind::UnsupportedCliVersion, "{cause:?}");
        assert_eq!(error.flag(), Some("--no-such-flag"));
        assert_eq!(error.output(), Some("error: unknown option '--no-such-flag'"));
        assert_eq!(error.detected_version(), Some(CliVersion::new(2, 1, 325)));
        assert!(error.suggestion().unwrap().contains("npm install"));
        let text = error.to_string();
        assert!(text.contains("/opt/claude") && text.contains("--no-such-flag"), "{text}");
    }
}

#[test]
fn a_flag_of_the_extra_arguments_is_the_fault_of_the_options() {
    for name in ["no-such-flag", "--no-such-flag"] {
        for cause in startup_failures() {
            let mut seen = evidence(UNKNOWN);
            seen.extra_flags = vec!["other".to_owned(), name.to_owned()];
            let error = failure(&cause, &seen);
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert_eq!(error.flag(), Some("--no-such-flag"));
            assert!(error.to_string().contains("`extra_args`"), "{error}");
        }
    }
    // Another flag of theirs is not to blame.
    let mut seen = evidence(UNKNOWN);
    seen.extra_flags = vec!["no-such".to_owned()];
    assert_eq!(failure(&ended(1), &seen).kind(), ErrorKind::UnsupportedCliVersion);
}

#[test]
fn the_value_of_an_unknown_flag_is_not_repeated_and_the_advice_is() {
    let said = "error: unknown option '--modell=hush-hush'\n(Did you mean --model?)\n";
    let error = failure(&ended(1), &evidence(said));
    assert_eq!(error.flag(), Some("--modell"));
    assert!(error.to_string().contains("(Did you mean --model?)"), "{error}");
    assert!(!error.to_string().contains("hush"), "{error}");
    assert!(!error.output().unwrap().contains("hush"), "{error}");
    assert_eq!(failure(&ended(1), &evidence("error: unknown option '-x'")).flag(), Some("-x"));
}

#[test]
fn a_cli_that_worked_is_not_said_to_be_too_old() {
    let worked = RunFailure::Process { exit: Exit::Code(1), stopped: false, silent: false };
    for cause in [worked, RunFailure::IdleTimeout, RunFailure::LineTooLong(1)] {
        let error = failure(&cause, &evidence(UNKNOWN));
        assert_ne!(error.kind(), ErrorKind::UnsupportedCliVersion, "{cause:?}");
    }
    for said in ["error: unknown option --x", "error: unknown option '", "an unknown option '--x'"]
    {
        let error = failure(&ended(1), &evidence(said));
        assert_eq!(error.kind(), ErrorKind::ProcessFailed, "{said}");
    }
}

#[test]
fn only_the_end_of_stderr_is_quoted_and_all_of_it_is_kept() {
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

/// Every text of an error.
fn all_of(error: &Error) -> String {
    let line = error.line().map(|line| String::from_utf8_lossy(line).into_owned());
    let tails = [error.stderr_tail(), error.stdout_tail(), error.output(), error.flag()];
    let said = [error.hint(), error.suggestion(), error.code(), error.operation()];
    format!("{error} {error:?} {error:#?} {line:?} {tails:?} {said:?}")
}

#[test]
fn a_secret_that_is_planted_anywhere_is_shown_nowhere() {
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
            let shown = all_of(&failure(&cause, &seen(format!("{stderr}{planted}"))));
            assert!(!shown.contains("top-secret") && !shown.contains("hidden"), "{shown}");
        }
    }
    for refused in refusals(&planted) {
        let shown = all_of(&refusal(&refused.0, "set_model", &seen(planted.clone())));
        assert!(!shown.contains("top-secret") && !shown.contains("hidden"), "{shown}");
    }
}

fn rejected(error: &str, code: Option<&str>) -> Rejection {
    let response = ControlResponse::error("req_1", error).response;
    let ControlOutcome::Error(mut failure) = response else { panic!("an error is one") };
    failure.error_code = code.map(str::to_owned);
    Rejection::ByCli(failure)
}

/// Every refusal with its kind.
fn refusals(text: &str) -> Vec<(Rejection, ErrorKind)> {
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
        (Rejection::ResponseTooLarge(99), ErrorKind::AnswerTooLarge),
        (Rejection::UndecodableResponse(text.to_owned()), ErrorKind::UndecodableAnswer),
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
fn each_refusal_has_its_kind_and_names_the_operation() {
    for (refused, kind) in refusals("the reason") {
        let error = refusal(&refused, "set_model", &evidence(""));
        assert_eq!(error.kind(), kind, "{refused:?}");
        assert_eq!(error.operation(), Some("set_model"));
        let text = error.to_string();
        assert!(text.contains("`set_model`"), "{text}");
        if format!("{refused:?}").contains("the reason") {
            assert!(text.contains("the reason"), "{text}");
        }
    }
}

#[test]
fn the_facts_of_a_refusal_can_be_asked_for() {
    let mut seen = evidence("last words");
    seen.exit = Some(Exit::Code(1));
    let told = |refused: &Rejection| refusal(refused, "set_permission_mode", &seen);
    let error = told(&rejected("Bad mode", Some("invalid_mode")));
    assert_eq!(error.code(), Some("invalid_mode"));
    assert_eq!(error.request_id().unwrap().as_str(), "req_1");
    assert_eq!(error.output(), Some("Bad mode"));
    let request_id = RequestId::from("req_2");
    let error = told(&Rejection::TimedOut { request_id, timeout: Duration::from_secs(30) });
    assert_eq!(error.request_id().unwrap().as_str(), "req_2");
    assert_eq!(error.limit(), Some(Duration::from_secs(30)));
    assert_eq!(told(&Rejection::ResponseTooLarge(99)).size(), Some(99));
    let error = told(&Rejection::Closed("its input broke".to_owned()));
    assert_eq!((error.exit(), error.stderr_tail()), (Some(Exit::Code(1)), Some("last words")));
    let text = error.to_string();
    assert!(text.contains("its input broke") && text.contains("last words"), "{text}");
    assert!(text.contains("exit code 1"), "{text}");
}
