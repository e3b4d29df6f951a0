//! Startup failures, and the help in their errors.

use std::fs;
use std::future::Future as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::pin::pin;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use claude_agent_kit::Exit;
use claude_agent_kit::{
    Cli, Conversation, Error, ErrorKind, Limits, Options, Prompt, Session, Timeouts, VersionCheck,
    WarningCode, query,
};
use claude_agent_testkit::sim::{Fault, Faults};
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::marked;

use crate::support::{
    FakeProgram, HANDSHAKE, HOST, LIMIT, RESULT, SHORT, SIM, ask, error_of, faulty, hello, kind_of,
    on_all, real, record_warnings, run, start_error, until,
};

/// Asserts that an error is of this kind, contains these parts and has help.
fn assert_helpful(error: &Error, kind: ErrorKind, parts: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(error.help().is_some(), "{text}");
}

#[test]
fn cli_path_that_is_not_executable_is_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text");
    fs::write(&text, "hello").unwrap();
    fs::set_permissions(&text, fs::Permissions::from_mode(0o644)).unwrap();
    run(async {
        for (path, why) in [
            (folder.path().join("missing"), "does not exist"),
            (folder.path().to_owned(), "is a directory"),
            (text, "is not executable"),
        ] {
            let shown = path.display().to_string();
            let error = start_error("hello", Options::new().cli_path(path)).await;
            assert_helpful(&error, ErrorKind::CliNotFound, &[&shown, why]);
        }
    });
}

#[test]
fn a_runtime_without_timers_or_io_is_rejected() {
    let builder = tokio::runtime::Builder::new_current_thread;
    for (runtime, missing) in [
        (builder().build(), "has no timers"),
        (builder().enable_io().build(), "has no timers"),
        (builder().enable_time().build(), "has no I/O"),
    ] {
        let program = FakeProgram::new("exec sleep 60");
        let error = runtime.unwrap().block_on(start_error("hello", program.options()));
        assert_helpful(&error, ErrorKind::NoRuntime, &[missing, "`enable_all`"]);
        assert!(!error.is_retryable(), "{error}");
    }
}

#[test]
fn another_program_is_not_worth_a_retry() {
    run(async {
        for (program, parts) in [
            ("/bin/cat", ["is not the CLI", "`cli_path`"]),
            ("/bin/true", ["exited", "`cli_path`"]),
        ] {
            let options = Options::new().cli_path(program).version_check(VersionCheck::Skip);
            let error = ask("hello", &options).await.into_result().unwrap_err();
            assert_helpful(&error, error.kind(), &parts);
            let session = Session::start(&options).await.unwrap_err();
            assert_helpful(&session, ErrorKind::ExitedDuringInit, &["the CLI", "`cli_path`"]);
            for error in [error, session] {
                assert!(!error.is_retryable(), "{error}");
            }
        }
    });
}

#[test]
fn a_program_without_a_version_is_not_worth_a_retry() {
    let silent = FakeProgram::bare("#!/bin/sh\nexit 1\n");
    let silent = silent.path();
    run(async {
        // Some systems have a `false` that prints its version.
        for (program, is_silent) in [(Path::new("/bin/false"), false), (silent.as_path(), true)] {
            let options = Options::new().cli_path(program);
            let session = Session::start(&options).await.unwrap_err();
            assert_helpful(&session, ErrorKind::ExitedDuringInit, &["exited"]);
            let print = query("hello", options.clone().print_mode(true)).await.unwrap_err();
            let found = Cli::find(options).await.unwrap_err();
            if is_silent {
                let parts = ["nothing was printed (exit status: 1)"];
                assert_helpful(&print, ErrorKind::VersionDetection, &parts);
                assert_helpful(&found, ErrorKind::VersionDetection, &parts);
            }
            for error in [session, print, found] {
                assert!(!error.is_retryable(), "{error}");
            }
        }
    });
}

#[test]
fn a_permission_mode_that_does_not_exist_is_a_problem_of_the_options() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let options = harness.options().permission_mode("acceptEdit");
        let query = ask("hello", &options).await.into_result().unwrap_err();
        let session = Session::start(&options).await.unwrap_err();
        for error in [query, session] {
            assert_helpful(
                &error,
                ErrorKind::InvalidOptions,
                &["`permission_mode`", "acceptEdits"],
            );
            assert!(!error.is_retryable(), "{error}");
        }
    });
}

#[test]
fn executable_text_file_is_a_specific_error() {
    // Without `#!` the system runs the file with a shell, which does not find the command.
    let text = FakeProgram::bare("just words\n");
    let interpreter = FakeProgram::bare("#!/no/such/interpreter\n");
    run(async {
        let collected = ask("hello", text.options().version_check(VersionCheck::Skip)).await;
        let error = error_of(&collected);
        let path = text.path().display().to_string();
        assert_helpful(error, ErrorKind::ProcessFailed, &[&path, "not found"]);
        assert_eq!(error.exit(), Some(Exit::Code(127)));
        let options = interpreter.options().version_check(VersionCheck::Skip);
        let error = start_error("hello", options).await;
        assert_helpful(&error, ErrorKind::SpawnFailed, &["/no/such/interpreter", "was not found"]);
    });
}

#[test]
fn executable_removed_after_the_check_is_named() {
    let fake = FakeProgram::new(&format!("{HANDSHAKE}{RESULT}"));
    run(async {
        assert!(ask("hello", fake.options()).await.result().is_some());
        fs::remove_file(fake.path()).unwrap();
        let error = start_error("hello", fake.options()).await;
        assert_helpful(&error, ErrorKind::CliNotFound, &["does not exist"]);
    });
}

#[test]
fn exit_codes_126_and_127_are_explained() {
    run(async {
        for (code, program) in [(126, "/dev/null"), (127, "/no/such/claude")] {
            // A wrapper that calls a program that cannot be executed; the shell sets the exit code.
            let fake = FakeProgram::new(program);
            for print_mode in [false, true] {
                let collected = ask("hello", fake.options().print_mode(print_mode)).await;
                let error = error_of(&collected);
                assert_helpful(error, ErrorKind::ProcessFailed, &[program]);
                assert_eq!(error.exit(), Some(Exit::Code(code)), "{error}");
                assert!(error.hint().is_some(), "{error}");
            }
        }
    });
}

#[test]
fn handshake_timeout_reports_whether_the_cli_wrote_anything() {
    let silent = FakeProgram::new("exec sleep 1000");
    let chatty = FakeProgram::new("echo '{\"type\":\"x\"}'; echo words >&2; exec sleep 1000");
    run(async {
        // The CLI that writes has enough time to do so.
        let half = (SHORT * 5, "500ms");
        for (fake, empty, (limit, shown)) in
            [(silent, true, half), (chatty, false, (SHORT * 50, "5s"))]
        {
            let options =
                fake.options().timeouts(Timeouts::new().initialize(limit).exit_grace(SHORT));
            let collected = ask("hello", options.env("KIT_MARK", "silent")).await;
            let error = error_of(&collected);
            assert_helpful(error, ErrorKind::InitializeTimeout, &[shown]);
            assert_eq!(error.limit(), Some(limit));
            assert_eq!(error.stdout_tail().is_none(), empty);
            assert_eq!(error.stderr_tail().is_none(), empty);
        }
        until("no process survives", || marked("KIT_MARK", "silent").is_empty()).await;
    });
}

/// Returns options that record every line of stderr.
fn record_stderr(options: Options) -> (Options, Arc<Mutex<Vec<String>>>) {
    let recorded = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&recorded);
    (options.on_stderr(move |line| lines.lock().unwrap().push(line.to_owned())), recorded)
}

#[test]
fn megabyte_on_stderr_is_drained_and_its_tail_kept() {
    let flood = "i=0; while [ $i -lt 16384 ]; do echo \"$i: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" >&2; i=$((i+1)); done";
    run(async {
        let failing = FakeProgram::new(&format!("{flood}; exit 3"));
        let (options, recorded) = record_stderr(failing.options());
        let collected = ask("hello", options).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::ProcessFailed);
        let tail = error.stderr_tail().unwrap();
        assert!(tail.len() <= 64 * 1024 && tail.len() > 60 * 1024, "{}", tail.len());
        assert!(tail.lines().last().unwrap().starts_with("16383: "));
        assert_eq!(recorded.lock().unwrap().len(), 16384);
        // A successful run reports every line too, including the last ones.
        let well = FakeProgram::new(&format!("{HANDSHAKE}{flood}\n{RESULT} read -r more; {flood}"));
        let (options, recorded) =
            record_stderr(well.options().timeouts(Timeouts::new().exit_grace(LIMIT)));
        let collected = ask("hello", options).await;
        assert!(collected.error.is_none(), "{:?}", collected.error);
        assert_eq!(recorded.lock().unwrap().len(), 2 * 16384);
    });
}

#[test]
fn exit_before_reading_is_reported_with_status_and_stderr() {
    run(async {
        let fake = FakeProgram::new(
            "echo '{\"type\":\"x\"}'; echo some words; echo 'the reason' >&2; exit 5",
        );
        let collected = ask("x".repeat(1024 * 1024), fake.options()).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::ProcessFailed);
        let text = error.to_string();
        assert!(text.contains("the reason") && text.contains("some words"), "{text}");
        assert_eq!(error.exit(), Some(Exit::Code(5)));
        assert!(error.stdout_tail().unwrap().contains("{\"type\":\"x\"}"));
        let killed = FakeProgram::new("kill -9 $$");
        let collected = ask("hello", killed.options()).await;
        assert_eq!(error_of(&collected).exit(), Some(Exit::Signal(9)));
    });
}

#[test]
fn empty_prompt_of_a_query_is_rejected() {
    run(async {
        for prompt in ["", " \n\t "] {
            // Rejected before the CLI is located.
            let error = start_error(prompt, Options::new().cli_path("/no/such/cli")).await;
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
            assert_eq!(error.problems()[0].options, ["prompt"]);
        }
    });
}

#[test]
fn all_option_problems_are_reported_at_once() {
    run(async {
        let options = Options::new()
            .conversation(Conversation::latest().at("m"))
            .max_turns(0)
            .max_budget_usd(-1.0)
            .model("same")
            .fallback_model("same");
        let error = start_error(" ", options).await;
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        let named: Vec<&str> =
            error.problems().iter().flat_map(|problem| problem.options.iter().copied()).collect();
        for option in
            ["prompt", "conversation", "max_turns", "max_budget_usd", "model", "fallback_model"]
        {
            assert!(named.contains(&option), "{option}: {named:?}");
            assert!(error.to_string().contains(option), "{error}");
        }
    });
}

#[test]
fn argument_that_the_system_cannot_pass_is_rejected_before_the_start() {
    run(async {
        let options = Options::new().cli_path(SIM).add_arg(("name", &"x".repeat(200_000)));
        let error = start_error("hello", options).await;
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert!(error.to_string().len() < 2000, "without the argument itself");
        assert!(error.to_string().contains("--name"), "{error}");
    });
}

#[test]
fn ignored_option_is_reported_by_the_first_warning() {
    run(async {
        let harness = Harness::in_memory(hello()).await.unwrap();
        let options =
            harness.options().permission_prompts("none").permission_prompt_tool("mcp__a__b");
        let (options, noted) = record_warnings(options);
        let collected = ask("hello", options).await;
        let warning = collected.items[0].warning().unwrap();
        assert_eq!(warning.code(), WarningCode::OptionIgnored);
        assert_eq!(warning.options(), ["permission_prompt_tool", "permission_prompts"]);
        assert_eq!(noted.lock().unwrap()[0], WarningCode::OptionIgnored);
    });
}

#[test]
fn missing_cli_error_explains_the_installation() {
    if Path::new("/usr/local/bin/claude").exists() {
        // A CLI is installed in a place that cannot be hidden from the search.
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(HOST)
        .arg("turn")
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", home.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    for part in [
        home.path().join("claude").to_str().unwrap(),
        ".local/bin/claude",
        "npm install -g @anthropic-ai/claude-code",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn missing_working_directory_is_the_reported_cause() {
    run(async {
        for program in [SIM, real().path.to_str().unwrap()] {
            let options = Options::new().cli_path(program).cwd("/no/such/directory");
            let error = start_error("hello", options).await;
            let parts = ["/no/such/directory", "does not exist"];
            assert_helpful(&error, ErrorKind::SpawnFailed, &parts);
        }
    });
}

#[test]
fn unusable_option_values_are_rejected_before_the_start() {
    run(async {
        let options = || Options::new().cli_path(SIM);
        for (wrong, part) in [
            (
                options().conversation(Conversation::with_id("1234")),
                "conversation: the ID of a new session is not a UUID",
            ),
            (options().model(""), "model: the name"),
            (options().limits(Limits::new().max_line_bytes(64 * 1024 - 1)), "max_line_bytes: "),
        ] {
            let error = start_error("hello", wrong).await;
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert!(error.to_string().contains(part), "{error}");
        }
        let error = start_error(Prompt::from("hello").with_id(""), options()).await;
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        assert!(error.to_string().contains("prompt: the ID is empty"), "{error}");
    });
}

#[test]
fn smallest_line_limit_is_enough_for_the_handshake() {
    on_all(hello, async |harness| {
        let collected =
            ask("hello", harness.options().limits(Limits::new().max_line_bytes(64 * 1024))).await;
        assert!(collected.error.is_none(), "{:?}", collected.error);
        assert_eq!(collected.text(), "Hello.");
    });
}

#[test]
fn missing_runtime_is_an_error_and_not_a_panic() {
    let mut start = pin!(query("hello", Options::new().cli_path(SIM)));
    let polled = start.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Err(error)) = polled else { panic!("{polled:?}") };
    assert_helpful(&error, ErrorKind::NoRuntime, &["Tokio"]);
}

#[test]
fn rejected_handshake_is_reported_with_the_reason() {
    let refusing = HANDSHAKE
        .replace("success", "error")
        .replace("\\\"response\\\":{}}}", "\\\"error\\\":\\\"hooks are not welcome\\\"}}");
    run(async {
        let fake = FakeProgram::new(&format!("{refusing}read -r more"));
        let collected = ask("hello", fake.options()).await;
        let error = error_of(&collected);
        assert_helpful(error, ErrorKind::InitializeRejected, &["hooks are not welcome"]);
    });
}

#[test]
fn handshake_without_a_matching_response_times_out() {
    run(async {
        for fault in [Fault::Swallow, Fault::WrongId, Fault::Hang] {
            let faults = Faults::new().before("control_response/initialize", fault);
            // Dropping it removes the working directory.
            let harness = faulty(faults).await;
            let options =
                harness.options().timeouts(Timeouts::new().initialize(SHORT).exit_grace(SHORT));
            let collected = ask("hello", options).await;
            assert_eq!(kind_of(&collected), Some(ErrorKind::InitializeTimeout));
        }
        // The environment variable of the CLI applies when the option is not set.
        let faults = Faults::new().before("control_response/initialize", Fault::Swallow);
        let harness = faulty(faults).await;
        let options = harness.options().timeouts(Timeouts::new().exit_grace(SHORT));
        let options = options.env("CLAUDE_CODE_STREAM_CLOSE_TIMEOUT", "100");
        let collected = ask("hello", options).await;
        assert_eq!(error_of(&collected).limit(), Some(SHORT));
        // A response with the wrong shape completes the handshake, because the session does not
        // need its content.
        let faults = Faults::new().before("control_response/initialize", Fault::WrongShape);
        let harness = faulty(faults).await;
        let options = harness.options().timeouts(Timeouts::new().initialize(LIMIT));
        assert!(ask("hello", options).await.result().is_some());
    });
}

#[test]
fn exit_during_the_handshake_is_reported_immediately() {
    run(async {
        let faults = Faults::new().before("control_response/initialize", Fault::Exit(4));
        let collected = ask("hello", faulty(faults).await.options()).await;
        let error = error_of(&collected);
        assert_helpful(error, ErrorKind::ProcessFailed, &["exited with status 4"]);
        assert_eq!(error.exit(), Some(Exit::Code(4)));
    });
}

#[test]
fn unknown_flag_is_named_in_the_error() {
    run(async {
        for harness in [
            Harness::in_memory(hello()).await.unwrap(),
            Harness::sim_process(hello(), SIM).await.unwrap(),
            Harness::real(hello(), real()).await.unwrap(),
        ] {
            let options = harness.options().add_arg("no-such-flag");
            let collected = ask("hello", options).await;
            let error = error_of(&collected);
            assert_helpful(error, ErrorKind::InvalidOptions, &["extra argument `--no-such-flag`"]);
            assert_eq!(error.flag(), Some("--no-such-flag"));
            assert!(error.output().unwrap().contains("unknown option"));
        }
        // If the SDK itself passed the flag, the CLI is too old.
        let fake = FakeProgram::new("echo \"error: unknown option '--verbose'\" >&2; exit 1");
        let collected = ask("hello", fake.options()).await;
        let error = error_of(&collected);
        let parts = ["--verbose", "npm install -g @anthropic-ai/claude-code"];
        assert_helpful(error, ErrorKind::UnsupportedCliVersion, &parts);
        assert_eq!(error.flag(), Some("--verbose"));
    });
}
