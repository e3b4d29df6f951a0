//! Starts that fail: what is missing, wrong or silent, and what the error says to do.

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
    Conversation, Error, ErrorKind, Limits, Options, Prompt, Timeouts, VersionCheck, WarningCode,
    query,
};
use claude_agent_testkit::sim::{Fault, Faults};
use tests_e2e::harness::Harness;
use tests_e2e::harness::processes::marked;

use crate::support::{
    Fake, HANDSHAKE, HOST, LIMIT, RESULT, SHORT, SIM, ask, error_of, faulty, hello, kind_of,
    noting, on_all, real, refused, run, until,
};

/// Every error of the start says what to do.
fn assert_helpful(error: &Error, kind: ErrorKind, parts: &[&str]) {
    let text = error.to_string();
    assert_eq!(error.kind(), kind, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part} is not in: {text}");
    }
    assert!(error.help().is_some(), "{text}");
}

#[test]
fn what_was_named_but_is_no_executable_is_not_started() {
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
            let error = refused("hello", Options::new().cli_path(path)).await;
            assert_helpful(&error, ErrorKind::CliNotFound, &[&shown, why]);
        }
    });
}

#[test]
fn an_executable_text_file_is_an_error_that_says_so() {
    // No `#!`: the system has a shell read it, which finds no such command.
    let text = Fake::bare("just words\n");
    let interpreter = Fake::bare("#!/no/such/interpreter\n");
    run(async {
        let collected = ask("hello", text.options().version_check(VersionCheck::Skip)).await;
        let error = error_of(&collected);
        let path = text.path().display().to_string();
        assert_helpful(error, ErrorKind::ProcessFailed, &[&path, "not found"]);
        assert_eq!(error.exit(), Some(Exit::Code(127)));
        let options = interpreter.options().version_check(VersionCheck::Skip);
        let error = refused("hello", options).await;
        assert_helpful(&error, ErrorKind::SpawnFailed, &["/no/such/interpreter", "was not found"]);
    });
}

#[test]
fn an_executable_that_vanished_after_it_was_checked_is_named() {
    let fake = Fake::new(&format!("{HANDSHAKE}{RESULT}"));
    run(async {
        assert!(ask("hello", fake.options()).await.result().is_some());
        fs::remove_file(fake.path()).unwrap();
        let error = refused("hello", fake.options()).await;
        assert_helpful(&error, ErrorKind::CliNotFound, &["does not exist"]);
    });
}

#[test]
fn the_codes_by_which_a_wrapper_says_that_there_is_no_cli_are_explained() {
    run(async {
        for (code, program) in [(126, "/dev/null"), (127, "/no/such/claude")] {
            // A wrapper that calls what cannot be called, with a shell's own exit code.
            let fake = Fake::new(program);
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
fn a_cli_that_prints_nothing_is_told_apart_from_one_that_is_slow() {
    let silent = Fake::new("exec sleep 1000");
    let chatty = Fake::new("echo '{\"type\":\"x\"}'; echo words >&2; exec sleep 1000");
    run(async {
        // The one that talks has time enough to do so.
        let half = (SHORT * 5, "500ms");
        for (fake, empty, (limit, told)) in
            [(silent, true, half), (chatty, false, (SHORT * 50, "5s"))]
        {
            let options =
                fake.options().timeouts(Timeouts::new().initialize(limit).exit_grace(SHORT));
            let collected = ask("hello", options.env("KIT_MARK", "silent")).await;
            let error = error_of(&collected);
            assert_helpful(error, ErrorKind::InitializeTimeout, &[told]);
            assert_eq!(error.limit(), Some(limit));
            assert_eq!(error.stdout_tail().is_none(), empty);
            assert_eq!(error.stderr_tail().is_none(), empty);
        }
        until("nothing is left running", || marked("KIT_MARK", "silent").is_empty()).await;
    });
}

/// Options that write every line of stderr down.
fn listening(options: Options) -> (Options, Arc<Mutex<Vec<String>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&heard);
    (options.on_stderr(move |line| lines.lock().unwrap().push(line.to_owned())), heard)
}

#[test]
fn a_megabyte_on_stderr_is_drained_and_its_end_is_kept() {
    let flood = "i=0; while [ $i -lt 16384 ]; do echo \"$i: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" >&2; i=$((i+1)); done";
    run(async {
        let failing = Fake::new(&format!("{flood}; exit 3"));
        let (options, heard) = listening(failing.options());
        let collected = ask("hello", options).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::ProcessFailed);
        let tail = error.stderr_tail().unwrap();
        assert!(tail.len() <= 64 * 1024 && tail.len() > 60 * 1024, "{}", tail.len());
        assert!(tail.lines().last().unwrap().starts_with("16383: "));
        assert_eq!(heard.lock().unwrap().len(), 16384);
        // A run that ends well tells every line too, the last ones included.
        let well = Fake::new(&format!("{HANDSHAKE}{flood}\n{RESULT} read -r more; {flood}"));
        let (options, heard) =
            listening(well.options().timeouts(Timeouts::new().exit_grace(LIMIT)));
        let collected = ask("hello", options).await;
        assert!(collected.error.is_none(), "{:?}", collected.error);
        assert_eq!(heard.lock().unwrap().len(), 2 * 16384);
    });
}

#[test]
fn a_cli_that_exits_before_it_reads_is_told_with_its_status_and_its_words() {
    run(async {
        let fake =
            Fake::new("echo '{\"type\":\"x\"}'; echo some words; echo 'the reason' >&2; exit 5");
        let collected = ask("x".repeat(1024 * 1024), fake.options()).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::ProcessFailed);
        let text = error.to_string();
        assert!(text.contains("the reason") && text.contains("some words"), "{text}");
        assert_eq!(error.exit(), Some(Exit::Code(5)));
        assert!(error.stdout_tail().unwrap().contains("{\"type\":\"x\"}"));
        let killed = Fake::new("kill -9 $$");
        let collected = ask("hello", killed.options()).await;
        assert_eq!(error_of(&collected).exit(), Some(Exit::Signal(9)));
    });
}

#[test]
fn a_prompt_that_says_nothing_is_refused() {
    run(async {
        for prompt in ["", " \n\t "] {
            // Before anything is looked for.
            let error = refused(prompt, Options::new().cli_path("/no/such/cli")).await;
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
            assert_eq!(error.problems()[0].options, ["prompt"]);
        }
    });
}

#[test]
fn everything_that_is_wrong_with_the_options_is_told_at_once() {
    run(async {
        let options = Options::new()
            .conversation(Conversation::latest().at("m"))
            .max_turns(0)
            .max_budget_usd(-1.0)
            .model("same")
            .fallback_model("same");
        let error = refused(" ", options).await;
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
fn an_argument_that_the_system_does_not_take_is_refused_before_the_start() {
    run(async {
        let options = Options::new().cli_path(SIM).add_arg(("name", &"x".repeat(200_000)));
        let error = refused("hello", options).await;
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert!(error.to_string().len() < 2000, "without the argument itself");
        assert!(error.to_string().contains("--name"), "{error}");
    });
}

#[test]
fn an_option_that_another_one_beats_is_a_warning_that_comes_first() {
    run(async {
        let harness = Harness::in_memory(hello()).await.unwrap();
        let options =
            harness.options().permission_prompts("none").permission_prompt_tool("mcp__a__b");
        let (options, noted) = noting(options);
        let collected = ask("hello", options).await;
        let warning = collected.items[0].warning().unwrap();
        assert_eq!(warning.code(), WarningCode::OptionIgnored);
        assert_eq!(warning.options(), ["permission_prompt_tool", "permission_prompts"]);
        assert_eq!(noted.lock().unwrap()[0], WarningCode::OptionIgnored);
    });
}

#[test]
fn a_machine_without_a_cli_is_told_how_to_get_one() {
    if Path::new("/usr/local/bin/claude").exists() {
        // Nobody can look as if it were not there.
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
fn a_directory_that_does_not_exist_is_to_blame_and_not_the_cli() {
    run(async {
        for program in [SIM, real().path.to_str().unwrap()] {
            let options = Options::new().cli_path(program).cwd("/no/such/directory");
            let error = refused("hello", options).await;
            let parts = ["/no/such/directory", "does not exist"];
            assert_helpful(&error, ErrorKind::SpawnFailed, &parts);
        }
    });
}

#[test]
fn values_that_no_cli_could_work_with_are_told_before_the_start() {
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
            let error = refused("hello", wrong).await;
            assert_eq!(error.kind(), ErrorKind::InvalidOptions);
            assert!(error.to_string().contains(part), "{error}");
        }
        let error = refused(Prompt::from("hello").with_id(""), options()).await;
        assert_eq!(error.kind(), ErrorKind::InvalidOptions);
        assert!(error.to_string().contains("prompt: the ID is empty"), "{error}");
    });
}

#[test]
fn the_smallest_limit_of_a_line_is_enough_for_the_handshake() {
    on_all(hello, async |harness| {
        let collected =
            ask("hello", harness.options().limits(Limits::new().max_line_bytes(64 * 1024))).await;
        assert!(collected.error.is_none(), "{:?}", collected.error);
        assert_eq!(collected.text(), "Hello.");
    });
}

#[test]
fn without_a_runtime_there_is_an_error_and_no_panic() {
    let mut asked = pin!(query("hello", Options::new().cli_path(SIM)));
    let polled = asked.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Err(error)) = polled else { panic!("{polled:?}") };
    assert_helpful(&error, ErrorKind::NoRuntime, &["Tokio"]);
}

#[test]
fn a_handshake_that_is_refused_is_told_with_the_reason() {
    let refusing = HANDSHAKE
        .replace("success", "error")
        .replace("\\\"response\\\":{}}}", "\\\"error\\\":\\\"hooks are not welcome\\\"}}");
    run(async {
        let fake = Fake::new(&format!("{refusing}read -r more"));
        let collected = ask("hello", fake.options()).await;
        let error = error_of(&collected);
        assert_helpful(error, ErrorKind::InitializeRejected, &["hooks are not welcome"]);
    });
}

#[test]
fn a_handshake_without_an_answer_or_with_anothers_is_over_in_time() {
    run(async {
        for fault in [Fault::Swallow, Fault::WrongId, Fault::Hang] {
            let faults = Faults::new().before("control_response/initialize", fault);
            let options = faulty(faults).await.options();
            let options = options.timeouts(Timeouts::new().initialize(SHORT).exit_grace(SHORT));
            let collected = ask("hello", options).await;
            assert_eq!(kind_of(&collected), Some(ErrorKind::InitializeTimeout));
        }
        // The variable of the CLI counts when no option says anything.
        let faults = Faults::new().before("control_response/initialize", Fault::Swallow);
        let options = faulty(faults).await.options().timeouts(Timeouts::new().exit_grace(SHORT));
        let options = options.env("CLAUDE_CODE_STREAM_CLOSE_TIMEOUT", "100");
        let collected = ask("hello", options).await;
        assert_eq!(error_of(&collected).limit(), Some(SHORT));
        // It is an answer all the same, and the session can do without what it says.
        let faults = Faults::new().before("control_response/initialize", Fault::WrongShape);
        let options = faulty(faults).await.options().timeouts(Timeouts::new().initialize(LIMIT));
        assert!(ask("hello", options).await.result().is_some());
    });
}

#[test]
fn an_exit_during_the_handshake_is_told_at_once() {
    run(async {
        let faults = Faults::new().before("control_response/initialize", Fault::Exit(4));
        let collected = ask("hello", faulty(faults).await.options()).await;
        let error = error_of(&collected);
        assert_helpful(error, ErrorKind::ProcessFailed, &["exited with status 4"]);
        assert_eq!(error.exit(), Some(Exit::Code(4)));
    });
}

#[test]
fn a_flag_that_the_cli_does_not_know_is_named() {
    run(async {
        for harness in [
            Harness::in_memory(hello()).await.unwrap(),
            Harness::sim_process(hello(), SIM).await.unwrap(),
            Harness::real(hello(), real()).await.unwrap(),
        ] {
            let options = harness.options().add_arg("no-such-flag");
            let collected = ask("hello", options).await;
            let error = error_of(&collected);
            assert_helpful(error, ErrorKind::InvalidOptions, &["--no-such-flag", "extra_args"]);
            assert_eq!(error.flag(), Some("--no-such-flag"));
            assert!(error.output().unwrap().contains("unknown option"));
        }
        // One of ours means that the CLI is too old for it.
        let fake = Fake::new("echo \"error: unknown option '--verbose'\" >&2; exit 1");
        let collected = ask("hello", fake.options()).await;
        let error = error_of(&collected);
        let parts = ["--verbose", "npm install -g @anthropic-ai/claude-code"];
        assert_helpful(error, ErrorKind::UnsupportedCliVersion, &parts);
        assert_eq!(error.flag(), Some("--verbose"));
    });
}
