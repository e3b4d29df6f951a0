//! Failures of the process and of turns.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use claude_agent_core::session::RunFailure;
use claude_wire::message::ResultMessage;
use claude_wire::{Exit, Message};
use serde_json::{Value, json};

use super::Messages;
use crate::CliVersion;
use crate::cli::{Places, Probe, find, judge};
use crate::diagnose::{Evidence, failure, spawn_failed, turn_failure};
use crate::driver;
use crate::driver::callback_tasks::APPROVALS_CLAIMED;
use crate::mask::Mask;

pub(super) fn add(messages: &mut Messages) {
    finding_the_cli(messages);
    starting_the_cli(messages);
    failures_by_kind(messages);
    failures_by_exit(messages);
    failures_by_stderr(messages);
    turns(messages);
}

fn evidence(stderr: &str) -> Evidence {
    Evidence {
        stderr_tail: stderr.into(),
        cli_version: Some(CliVersion::new(2, 1, 325)),
        cli_path: Some(PathBuf::from("/opt/claude")),
        cwd: Some(PathBuf::from("/home/me")),
        command: Some(
            "/opt/claude --output-format stream-json --model=opus --settings=…".to_owned(),
        ),
        ..Evidence::default()
    }
}

fn finding_the_cli(messages: &mut Messages) {
    messages.section("Finding the CLI");
    let folder = tempfile::tempdir().unwrap();
    messages.replace(folder.path(), "/opt");
    let file = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        path
    };
    let home = folder.path().join("home");
    let nothing = Places { windows: true, home: Some(home), ..Places::default() };
    messages.error(&find(&nothing).unwrap_err());
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("claude.cmd"), "").unwrap();
    let batch = Places { path: Some(bin.into()), ..nothing };
    messages.error(&find(&batch).unwrap_err());
    for (explicit, windows) in [
        (folder.path().join("missing"), false),
        (folder.path().to_owned(), false),
        (file("text"), false),
        (file("claude.cmd"), true),
    ] {
        let places = Places { explicit: Some(explicit), windows, ..Places::default() };
        messages.error(&find(&places).unwrap_err());
    }
    let variable = Places { variable: Some(folder.path().join("missing")), ..Places::default() };
    messages.error(&find(&variable).unwrap_err());
    let script = file("cli.mjs");
    let options = crate::Options::new().cli_path(script).executable(["no-such-runtime"]);
    messages.error(&crate::cli::find_program(&options).unwrap_err());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let transport = crate::transport::InMemory::new(|_| async { Err(io::Error::other("none")) });
    let options = crate::Options::new().transport(transport);
    messages.error(&runtime.block_on(crate::Cli::find(options)).unwrap_err());

    let minimum = CliVersion::new(2, 1, 261);
    for probe in [
        Probe::Printed("0.9.9".to_owned()),
        Probe::Printed("1.9.9".to_owned()),
        Probe::Printed("hello".to_owned()),
        Probe::TimedOut(Duration::from_secs(5)),
        Probe::Failed("nothing was printed (exit status: 3)".to_owned()),
        Probe::Failed("nothing was printed, and the exit status is unknown".to_owned()),
    ] {
        messages.error(&judge(&probe, minimum).unwrap_err());
    }
}

fn starting_the_cli(messages: &mut Messages) {
    messages.section("Starting the CLI");
    let folder = tempfile::tempdir().unwrap();
    messages.replace(folder.path(), "/opt");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let (program, script) = (file("claude", "\u{7f}ELF"), file("script", "#!/usr/bin/node\n"));
    let missing = folder.path().join("missing");
    let not_found = io::Error::from_raw_os_error(2);
    messages.error(&spawn_failed(&not_found, &missing, None));
    messages.error(&spawn_failed(&not_found, &script, None));
    messages.error(&spawn_failed(&not_found, &program, Some(&missing)));
    messages.error(&spawn_failed(&not_found, &program, Some(&program)));
    messages.error(&spawn_failed(&not_found, &program, Some(&program.join("below"))));
    for code in [2, 7, 8, 11, 13, 26, 5] {
        let error = io::Error::from_raw_os_error(code);
        messages.error(&spawn_failed(&error, &program, None));
    }
    messages.error(&driver::connect::transport_failed(io::Error::other("connection refused")));
    messages.error(&driver::require_runtime().unwrap_err());
    messages.error(&driver::incomplete_runtime("timers"));
    let no_io = io::Error::other(crate::transport::NoIo);
    messages.error(&spawn_failed(&no_io, &program, None));
}

fn failures_by_kind(messages: &mut Messages) {
    messages.section("Failures of a run");
    let malformed = Message::decode(Bytes::from_static(b"hello")).unwrap_err();
    let limit = Duration::from_secs(60);
    for cause in [
        RunFailure::Process { exit: Exit::Signal(15), stopped: true, silent: false },
        RunFailure::NonZeroExitAfterResult(Exit::Code(7)),
        RunFailure::InitializeTimeout(limit),
        RunFailure::InitializeRejected("unknown agent".to_owned()),
        RunFailure::McpServersNotApplied,
        RunFailure::IdleTimeout,
        RunFailure::LineTooLong(99_000_000),
        RunFailure::TooManyMalformedLines(5, malformed),
        RunFailure::StdinNotRead(9_000_000),
        RunFailure::Superseded("session s was claimed by another host".to_owned()),
        RunFailure::Superseded(APPROVALS_CLAIMED.to_owned()),
        RunFailure::StoreFailed("the database is read-only".to_owned()),
    ] {
        messages.error(&failure(&cause, &evidence("")));
    }
    let printed = Evidence {
        stdout_tail: "hello".to_owned(),
        last_malformed_line: Some(Bytes::from_static(b"hello")),
        read_error: Some("connection reset".to_owned()),
        ..evidence("first line\nlast line\n")
    };
    messages.error(&failure(&RunFailure::InitializeTimeout(limit), &printed));
    let unknown = evidence("error: unknown option '--modell'\n(Did you mean --model?)\n");
    let exited = RunFailure::ExitedDuringInit(Exit::Code(1));
    messages.error(&failure(&exited, &unknown));
    let extra = Evidence { extra_flags: vec!["modell".to_owned()], ..unknown };
    messages.error(&failure(&exited, &extra));
    messages.error(&driver::publish::runtime_gone());
}

fn failures_by_exit(messages: &mut Messages) {
    messages.section("Failures by exit status");
    let codes = [0, 1, 2, 3, 126, 127, 137, 159].map(Exit::Code);
    let signals = [1, 2, 4, 6, 7, 9, 11, 13, 15, 31].map(Exit::Signal);
    for exit in codes.into_iter().chain(signals).chain([Exit::Unknown]) {
        let cause = RunFailure::Process { exit, stopped: false, silent: true };
        messages.error(&failure(&cause, &evidence("")));
    }
    for exit in [Exit::Code(0), Exit::Code(1), Exit::Signal(9)] {
        let cause = RunFailure::Process { exit, stopped: false, silent: false };
        messages.error(&failure(&cause, &evidence("last line of stderr\n")));
    }
    let cause = RunFailure::Process { exit: Exit::Code(1), stopped: false, silent: false };
    let session_id = Some("00000000-0000-4000-8000-000000000001".into());
    messages.error(&failure(&cause, &Evidence { session_id, ..evidence("last line of stderr\n") }));
    let exited = RunFailure::ExitedDuringInit(Exit::Code(1));
    messages.error(&failure(&exited, &evidence("")));
    // A transport started it.
    messages.error(&failure(&exited, &Evidence { command: None, ..evidence("") }));
}

fn failures_by_stderr(messages: &mut Messages) {
    messages.section("Failures by the text on stderr");
    for stderr in [
        "cannot be used with root/sudo privileges",
        "No conversation found with session ID: 1",
        "No message found with message.uuid of: 1",
        "Error: --resume requires a valid session ID. Provided value \"x\" is not a UUID",
        "Error: --resume requires a valid session ID",
        "Error: Session ID 1 is already in use.",
        "Error: Invalid session ID. Must be a valid UUID.",
        "Error: Invalid MCP configuration: x",
        "Error: Settings file not found: /x.json",
        "claude: version `GLIBC_2.38' not found",
        "claude: error while loading shared libraries: libpthread.so.0",
        "Error loading shared library ld-linux-x86-64.so.2: No such file",
        "Error relocating claude: __register_atfork: symbol not found",
        "sh: claude: cannot execute binary file",
        "exec claude: Exec format error",
        "/bin/cat: unrecognized option '--output-format'",
        "cat: illegal option -- -",
        "FATAL ERROR: JavaScript heap out of memory",
        "Error: ENOSPC: write",
        "write error: No space left on device",
        "/usr/bin/env: 'node': No such file or directory",
        "env: can't execute 'node'",
        "error: option '--permission-mode <mode>' argument 'x' is invalid.",
        "Invalid API key · Please run /login",
    ] {
        let cause = RunFailure::ExitedDuringInit(Exit::Code(1));
        messages.error(&failure(&cause, &evidence(stderr)));
    }
}

fn turns(messages: &mut Messages) {
    messages.section("Failures of a turn");
    for value in [
        json!({"result": "Invalid API key · Please run /login", "api_error_status": 401}),
        json!({"errors": ["No conversation found with session ID: 1"]}),
        json!({"subtype": "error_max_turns", "errors": ["Reached maximum number of turns (1)"]}),
        json!({"subtype": "error_max_budget_usd", "errors": ["Reached maximum budget ($0.01)"]}),
        json!({"subtype": "error_max_structured_output_retries"}),
        json!({"stop_reason": "refusal", "result": "the request was flagged"}),
        json!({"api_error_status": 429, "result": "API Error: 429 slow down"}),
        json!({"api_error_status": 529, "result": "API Error: 529 Overloaded"}),
        json!({"api_error_status": 404, "result": "API Error: 404 model: x"}),
        json!({"api_error_status": 500, "result": "API Error: 500 Internal server error"}),
        json!({"api_error_status": 400, "result": "API Error: 400 tools: too many"}),
        json!({"terminal_reason": "prompt_too_long"}),
        json!({"terminal_reason": "aborted_streaming"}),
        json!({"subtype": "error_during_execution"}),
        json!({"subtype": "success"}),
        json!({"errors": ["lost"], "session_id": "00000000-0000-4000-8000-000000000001"}),
    ] {
        messages.error(&turn(value, None));
    }
    let delay = Some(Duration::from_secs(42));
    for status in [429, 529, 500] {
        messages.error(&turn(json!({"api_error_status": status}), delay));
    }
    messages.error(&crate::turn::completed_without_result());
    messages.error(&crate::turn::cancelled());
    messages.error(&crate::turn::result_too_long());
    messages.error(&crate::turn::undecodable_result());
}

fn turn(mut value: Value, retry_delay: Option<Duration>) -> crate::Error {
    value["type"] = "result".into();
    value["is_error"] = true.into();
    let result: ResultMessage = serde_json::from_value(value).unwrap();
    turn_failure(&result, &Mask::default(), retry_delay).unwrap()
}
