//! Finds the probable cause of a failure, and what to do: first from stderr, then from the exit status
//! and from whether anything was written to stdout.

use claude_agent_core::session::RunFailure;
use claude_wire::Exit;

use super::Evidence;
use super::login::is_login_error;
use crate::options::MCP_IN_HANDSHAKE;

/// What to do about a failure, and its probable cause if the summary of the failure does not name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Diagnosis {
    pub(super) cause: Option<String>,
    pub(super) help: String,
    /// Whether the same run fails again until the user changes something.
    pub(super) is_permanent: bool,
}

impl Diagnosis {
    fn new(cause: impl Into<String>, help: impl Into<String>) -> Self {
        Self { cause: Some(cause.into()), help: help.into(), is_permanent: false }
    }

    fn without_cause(help: impl Into<String>) -> Self {
        Self { cause: None, help: help.into(), is_permanent: false }
    }

    /// Marks a mistake in the options, the environment or the installation.
    fn permanent(self) -> Self {
        Self { is_permanent: true, ..self }
    }
}

/// Returns the diagnosis of a failure.
pub(super) fn diagnose(failure: &RunFailure, evidence: &Evidence) -> Diagnosis {
    let or_from_stderr = |otherwise: Diagnosis| from_stderr(evidence).unwrap_or(otherwise);
    match failure {
        RunFailure::Process { stopped: true, .. } => or_from_stderr(Diagnosis::new(
            "the CLI closed stdout without sending a result, so no further messages could arrive",
            "check stderr for the reason, and whether a wrapper closed stdout",
        )),
        RunFailure::Process { exit, silent, .. } => {
            or_from_stderr(from_exit(*exit, *silent, evidence))
        }
        RunFailure::ExitedDuringInit(exit) => {
            or_from_stderr(from_exit(*exit, evidence.nothing_on_stdout(), evidence))
        }
        RunFailure::NonZeroExitAfterResult(_) => Diagnosis::new(
            "`strict_exit_status` makes this an error",
            "check stderr, or remove `strict_exit_status`",
        ),
        RunFailure::InitializeTimeout(_) => or_from_stderr(from_silence(evidence)),
        RunFailure::InitializeRejected(_) => or_from_stderr(Diagnosis::without_cause(
            "correct the option that the CLI names, or update the CLI",
        )),
        RunFailure::McpServersNotApplied => Diagnosis::new(
            format!("CLIs before {MCP_IN_HANDSHAKE} ignore them"),
            "update the CLI with `npm install -g @anthropic-ai/claude-code`, or pass the servers on the \
             command line, which all users of the machine can read, with \
             `mcp_delivery(McpDelivery::Arguments)`",
        ),
        RunFailure::IdleTimeout => or_from_stderr(Diagnosis::new(
            "the API or a tool took too long, or the network connection was lost",
            "increase or remove `Timeouts::idle`",
        )),
        RunFailure::StdinNotRead(_) => Diagnosis::new(
            "the CLI keeps sending requests without reading the responses",
            "check that nothing between the host and the CLI holds back stdin, and let callbacks and \
             tools return less",
        ),
        RunFailure::TooManyMalformedLines(..) => Diagnosis::new(
            "a program other than the CLI writes to stdout",
            "check that the executable is the CLI, and that no wrapper or hook writes to its stdout",
        ),
        RunFailure::Superseded(_) => Diagnosis::without_cause(
            "resume the session if it should continue in this process; the transcript on the local disk \
             has all entries",
        ),
        RunFailure::StoreFailed(_) => Diagnosis::without_cause(
            "check the store, or let runs continue without it with `StoreFailurePolicy::Continue`",
        ),
        RunFailure::LineTooLong(_) => Diagnosis::new(
            "a tool result or a prompt is very large",
            "increase `Limits::max_line_bytes`, or let tools return less",
        ),
    }
}

fn from_silence(evidence: &Evidence) -> Diagnosis {
    if evidence.nothing_on_stdout() {
        Diagnosis::new(
            "the CLI wrote nothing to stdout",
            "check that the program is `claude` and that no wrapper holds back its output, with \
             `claude_agent_kit::doctor(options).await`; on a slow machine, increase `Timeouts::initialize`",
        )
    } else {
        Diagnosis::new(
            "the CLI wrote to stdout, but did not respond to `initialize`",
            "check whether MCP servers or plugins start slowly, and increase `Timeouts::initialize`",
        )
    }
}

/// The help for every build that does not fit the machine.
const OTHER_BUILD: &str =
    "reinstall the CLI on this machine so that the installer selects the matching build";

const OTHER_LIBC: &str = "the CLI was built for a different C library";

const OTHER_PLATFORM: &str = "the CLI was built for a different platform";

/// What GNU and BSD programs write that are not the CLI.
const OTHER_PROGRAM: (&str, &str) =
    ("the program is not the CLI", "set `cli_path` to the `claude` program");

const DISK_FULL: (&str, &str) =
    ("the disk is full", "free space on the disks of the CLI's home and temporary directories");

/// The text on stderr when the conversation to resume does not exist.
pub(super) const NO_CONVERSATION: &str = "No conversation found with session ID";

/// The text on stderr when the message to resume at is not in the conversation.
pub(super) const NO_MESSAGE: &str = "No message found with message.uuid";

/// Known texts on stderr in order of priority, with their cause and help. All parts of a row must occur
/// in one line.
const STDERR_TEXTS: [(&[&str], &str, &str); 19] = [
    (
        &["cannot be used with root/sudo privileges"],
        "the CLI does not allow root to bypass permissions",
        "run the CLI as another user, choose another permission mode, or set IS_SANDBOX=1 if it \
         runs in a sandbox",
    ),
    (
        &[NO_CONVERSATION],
        "the session to resume was not found",
        "resume it with the config directory of its first run (`CLAUDE_CONFIG_DIR`, or the home \
         directory), or start a new session",
    ),
    (
        &[NO_MESSAGE],
        "the session does not contain the message to resume at",
        "pass the ID of a message of that session",
    ),
    (
        &["Session ID", "already in use"],
        "a session with this ID already exists",
        "resume it, or choose another ID",
    ),
    (&["Invalid session ID"], "the session ID is not a UUID", "pass a UUID, or omit the ID"),
    (
        &["Invalid MCP configuration"],
        "the CLI rejected an MCP server of `mcp`",
        "correct the configuration of the server that stderr names",
    ),
    (
        &["Settings file not found"],
        "the settings file was not found",
        "correct the path passed to `settings`",
    ),
    (&["GLIBC", "not found"], "the CLI was built for a newer C library", OTHER_BUILD),
    (&["error while loading shared libraries"], OTHER_LIBC, OTHER_BUILD),
    (&["Error loading shared library"], OTHER_LIBC, OTHER_BUILD),
    (&["Error relocating", "symbol not found"], OTHER_LIBC, OTHER_BUILD),
    (&["ld-linux", "No such file"], OTHER_LIBC, OTHER_BUILD),
    (&["cannot execute binary file"], OTHER_PLATFORM, OTHER_BUILD),
    (&["xec format error"], OTHER_PLATFORM, OTHER_BUILD),
    (&["unrecognized option", "--output-format"], OTHER_PROGRAM.0, OTHER_PROGRAM.1),
    (&["illegal option"], OTHER_PROGRAM.0, OTHER_PROGRAM.1),
    (
        &["heap out of memory"],
        "the CLI ran out of memory",
        "give the CLI more memory, or run fewer sessions at a time",
    ),
    (&["ENOSPC"], DISK_FULL.0, DISK_FULL.1),
    (&["No space left"], DISK_FULL.0, DISK_FULL.1),
];

/// The texts of [`STDERR_TEXTS`] whose cause may go away by itself.
const TEMPORARY: [&str; 3] = ["heap out of memory", "ENOSPC", "No space left"];

fn from_stderr(evidence: &Evidence) -> Option<Diagnosis> {
    let text: &str = &evidence.stderr_tail;
    let row = STDERR_TEXTS.iter().find(|(parts, ..)| {
        // In one line: parts of unrelated lines mean nothing together.
        text.lines().any(|line| parts.iter().all(|part| line.contains(part)))
    });
    if let Some((parts, cause, help)) = row {
        let diagnosis = Diagnosis::new(*cause, *help);
        // Memory and disks may have room again later.
        let is_temporary = TEMPORARY.iter().any(|text| parts.contains(text));
        return Some(if is_temporary { diagnosis } else { diagnosis.permanent() });
    }
    let by_line = [not_a_session_id, missing_node, rejected_value];
    let by_line = by_line.iter().find_map(|find| text.lines().find_map(find));
    let diagnosis = by_line.or_else(|| {
        is_login_error(text).then(|| {
            Diagnosis::new(
                "the CLI is not logged in, or its credentials were rejected",
                "set `ANTHROPIC_API_KEY`, or run `claude` in a terminal and log in",
            )
        })
    });
    diagnosis.map(Diagnosis::permanent)
}

/// `Error: --resume requires a valid session ID … Provided value "x" is not a UUID`.
fn not_a_session_id(line: &str) -> Option<Diagnosis> {
    if !line.contains("--resume requires a valid session") {
        return None;
    }
    let value = line.split_once("Provided value \"").and_then(|(_, rest)| rest.split_once('"'));
    let cause = match value {
        Some((value, _)) => format!("`resume`: {value:?} is not a session ID"),
        None => "the value passed to `resume` is not a session ID".to_owned(),
    };
    Some(Diagnosis::new(cause, "pass the ID of an earlier session"))
}

/// Older CLIs are scripts. Without Node.js only `env` or the shell reports an error.
fn missing_node(line: &str) -> Option<Diagnosis> {
    let names_node =
        |line: &str| line.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "node");
    let missing = ["No such file", "not found", "can't execute"];
    (names_node(line) && missing.iter().any(|part| line.contains(part))).then(|| {
        Diagnosis::new(
            "the CLI needs `node`, which is not on its PATH",
            "install Node.js, pass a PATH that contains it, or install the native CLI",
        )
    })
}

/// `error: option '--x <y>' argument 'z' is invalid. …`; the value is not repeated here.
fn rejected_value(line: &str) -> Option<Diagnosis> {
    let rest = line.trim().strip_prefix("error: option '")?;
    let flag = rest.split([' ', '\'']).next()?;
    let option = flag.trim_start_matches('-').replace('-', "_");
    Some(Diagnosis::new(
        format!("the CLI rejected the value of `{flag}`"),
        format!(
            "pass a value of the option `{option}` that this version of the CLI accepts, or update the \
             CLI"
        ),
    ))
}

/// Returns whether the CLI exited because it does not accept the value of an option.
pub(super) fn rejects_a_value(evidence: &Evidence) -> bool {
    evidence.stderr_tail.lines().any(|line| rejected_value(line).is_some())
}

/// The help for a start that failed.
fn run_doctor(evidence: &Evidence) -> String {
    let doctor = "print `claude_agent_kit::doctor(options).await`, which checks the CLI, the options and the \
                  environment";
    match &evidence.command {
        Some(command) => {
            let directory = match &evidence.cwd {
                Some(cwd) => format!(" in {}", cwd.display()),
                None => String::new(),
            };
            format!("{doctor}, or run this command manually{directory}: `{command}`")
        }
        None => format!("{doctor}, or run the CLI manually with the same options"),
    }
}

/// The help for an exit that nothing explains.
fn unexplained(evidence: &Evidence) -> String {
    let help = "`Error::stderr_tail` has the last 64 KiB of stderr";
    match &evidence.session_id {
        Some(id) => format!("{help}; resume session {id} to continue"),
        None => help.to_owned(),
    }
}

fn from_exit(exit: Exit, silent: bool, evidence: &Evidence) -> Diagnosis {
    match exit {
        Exit::Code(code) => from_code(code, silent, evidence),
        Exit::Signal(signal) => from_signal(signal)
            .unwrap_or_else(|| Diagnosis::without_cause("check which process sent the signal")),
        Exit::Unknown => Diagnosis::without_cause(unexplained(evidence)),
    }
}

fn from_code(code: i32, silent: bool, evidence: &Evidence) -> Diagnosis {
    let diagnosis = describe_code(code, silent, evidence);
    match (code, silent) {
        // The program, its arguments or its configuration are wrong: it ended before it did anything.
        (0..=2, true) | (126 | 127, _) => diagnosis.permanent(),
        _ => diagnosis,
    }
}

fn describe_code(code: i32, silent: bool, evidence: &Evidence) -> Diagnosis {
    match (code, silent) {
        (0, true) => Diagnosis::new(
            "the program may not be the CLI, or a wrapper does not pass on stdin and stdout",
            "check that `cli_path` names the `claude` program, and that wrappers pass on stdin and \
             stdout",
        ),
        (0, false) => Diagnosis::new(
            "the CLI exited early, possibly because its stdin was closed",
            "check that nothing else closes the stdin of the CLI",
        ),
        (1, true) => Diagnosis::new("the CLI exited during startup", run_doctor(evidence)),
        (2, _) => Diagnosis::new(
            "the command line was rejected, possibly by a wrapper",
            "check how wrappers pass on the arguments, and update the CLI",
        ),
        (126, _) => Diagnosis::new(
            "the program was found, but cannot be executed",
            "make it executable with `chmod +x`, and check that it was built for this platform",
        ),
        (127, _) => Diagnosis::new(
            "a program that the CLI needs was not found",
            "check that the programs named by the wrapper, or by the `#!` line of the script, are on \
             PATH",
        ),
        // The exit status of a shell that ran the CLI.
        (129..=159, _) => from_signal(code - 128).unwrap_or_else(|| {
            Diagnosis::new(
                format!("the CLI was terminated by signal {}", code - 128),
                "check which process sent the signal",
            )
        }),
        (_, true) => Diagnosis::without_cause(run_doctor(evidence)),
        (_, false) => Diagnosis::without_cause(unexplained(evidence)),
    }
}

/// Returns the diagnosis of a signal that has a usual cause.
fn from_signal(signal: i32) -> Option<Diagnosis> {
    let (cause, help) = match signal {
        1 => (
            "the terminal of the CLI was closed (SIGHUP)",
            "run the host without a terminal, for example under a service manager",
        ),
        2 => (
            "the CLI was interrupted (SIGINT)",
            "check whether Ctrl-C in the terminal also reached the CLI",
        ),
        4 => (
            "the CLI crashed (SIGILL): this build requires a CPU feature that is not available",
            OTHER_BUILD,
        ),
        6 => ("the CLI aborted (SIGABRT)", "check stderr, and update the CLI"),
        7 => (
            "the executable or the memory of the CLI could not be read (SIGBUS)",
            "check whether an update of the CLI was cut short, and reinstall it",
        ),
        9 => (
            "the CLI was killed (SIGKILL), possibly by the out-of-memory killer",
            "check the system log, and give the CLI more memory",
        ),
        11 => ("the CLI crashed (SIGSEGV)", "update or reinstall the CLI"),
        13 => (
            "stdout was closed while the CLI was writing to it (SIGPIPE)",
            "check whether a wrapper closes stdout",
        ),
        15 => (
            "the CLI was terminated (SIGTERM)",
            "check which process sent the signal: a supervisor, a stopping container or a timeout",
        ),
        _ => return None,
    };
    Some(Diagnosis::new(cause, help))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnosed(failure: &RunFailure, stderr: &str, stdout: &str) -> String {
        let evidence = Evidence {
            stderr_tail: stderr.into(),
            stdout_tail: stdout.to_owned(),
            cwd: Some("/srv".into()),
            command: Some("/opt/claude --verbose".to_owned()),
            ..Evidence::default()
        };
        let Diagnosis { cause, help, .. } = diagnose(failure, &evidence);
        format!("{} -> {help}", cause.unwrap_or_default())
    }

    fn exited(exit: Exit) -> RunFailure {
        RunFailure::Process { exit, stopped: false, silent: true }
    }

    /// Checks that each text on stderr has its cause and help, whatever the exit status.
    fn check(cases: &[(&str, &str, &str)]) {
        for (stderr, expected_cause, expected_help) in cases {
            for exit in [Exit::Code(1), Exit::Code(127), Exit::Signal(9)] {
                for failure in [exited(exit), RunFailure::ExitedDuringInit(exit)] {
                    let text = diagnosed(&failure, &format!("before\n{stderr}\nafter"), "");
                    let (cause, help) = text.split_once(" -> ").unwrap();
                    assert!(cause.contains(expected_cause), "{stderr}: {text}");
                    assert!(help.contains(expected_help), "{stderr}: {text}");
                }
            }
        }
    }

    #[test]
    fn errors_of_the_cli_take_precedence_over_the_exit_code() {
        check(&[
            (
                "--dangerously-skip-permissions cannot be used with root/sudo privileges for \
                 security reasons\n",
                "root",
                "IS_SANDBOX",
            ),
            (
                "No conversation found with session ID: 00000000-0000-4000-8000-000000000000\n",
                "not found",
                "new session",
            ),
            (
                "Error: --resume requires a valid session ID or session title when used with \
                 --print. Usage: claude -p --resume <session-id|title>. Provided value \"x\" is \
                 not a UUID",
                "`resume`: \"x\" is not a session ID",
                "ID",
            ),
            ("Error: Session ID 1 is already in use.", "already exists", "resume it"),
            ("Error: Invalid session ID. Must be a valid UUID.", "not a UUID", "UUID"),
            (
                "Error: Invalid MCP configuration:\nMCP config file not found: /x.json",
                "server of `mcp`",
                "correct",
            ),
            ("Error: Settings file not found: /x.json", "settings file", "path"),
            (
                "error: option '--permission-mode <mode>' argument 'foo' is invalid. Allowed \
                 choices are plan.",
                "--permission-mode",
                "value",
            ),
            ("error: option '--model <model>' argument missing", "--model", "value"),
            ("Invalid API key · Please run /login", "logged in", "ANTHROPIC_API_KEY"),
        ]);
    }

    #[test]
    fn errors_of_the_system_take_precedence_over_the_exit_code() {
        check(&[
            (
                "claude: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found \
                 (required by claude)",
                "C library",
                "install",
            ),
            (
                "claude: error while loading shared libraries: libpthread.so.0: cannot open shared \
                 object file",
                "C library",
                "install",
            ),
            (
                "Error loading shared library ld-linux-x86-64.so.2: No such file",
                "C library",
                "install",
            ),
            (
                "Error relocating claude: __register_atfork: symbol not found",
                "C library",
                "install",
            ),
            (
                "exec: /lib64/ld-linux-x86-64.so.2: No such file or directory",
                "C library",
                "install",
            ),
            ("sh: claude: cannot execute binary file", "different platform", "install"),
            ("exec claude: Exec format error", "different platform", "install"),
            ("/usr/bin/env: 'node': No such file or directory", "`node`", "Node.js"),
            ("/usr/bin/env: ‘node’: No such file or directory", "`node`", "Node.js"),
            ("env: can't execute 'node': No such file or directory", "`node`", "Node.js"),
            ("sh: 1: exec: node: not found", "`node`", "Node.js"),
            ("bash: node: command not found", "`node`", "Node.js"),
            ("/bin/cat: unrecognized option '--output-format'", "not the CLI", "`cli_path`"),
            ("cat: illegal option -- -", "not the CLI", "`cli_path`"),
            ("FATAL ERROR: JavaScript heap out of memory", "memory", "memory"),
            ("Error: ENOSPC: write", "disk", "free space"),
            ("cat: write error: No space left on device", "disk", "free space"),
        ]);
    }

    #[test]
    fn unrelated_lines_of_stderr_are_not_diagnosed() {
        let without = diagnosed(&exited(Exit::Code(1)), "", "");
        for stderr in
            ["node started", "not found: x", "GLIBC\nnot found", "nodes not found", "an error"]
        {
            assert_eq!(diagnosed(&exited(Exit::Code(1)), stderr, ""), without, "{stderr}");
        }
    }

    #[test]
    fn each_exit_status_has_its_diagnosis() {
        for (exit, expected) in [
            (Exit::Code(0), "may not be the CLI"),
            (Exit::Code(1), "during startup"),
            (Exit::Code(2), "command line was rejected"),
            (Exit::Code(126), "cannot be executed"),
            (Exit::Code(127), "not found"),
            (Exit::Code(130), "interrupted"),
            (Exit::Code(137), "memory"),
            (Exit::Code(139), "crashed"),
            (Exit::Code(143), "SIGTERM"),
            (Exit::Code(3), "run this command manually in /srv: `/opt/claude --verbose`"),
            (Exit::Code(-1), "run this command manually in /srv: `/opt/claude --verbose`"),
            (Exit::Code(159), "signal 31"),
            (Exit::Signal(1), "terminal"),
            (Exit::Signal(2), "interrupted"),
            (Exit::Signal(4), "CPU feature"),
            (Exit::Signal(6), "aborted"),
            (Exit::Signal(7), "could not be read"),
            (Exit::Signal(9), "out-of-memory killer"),
            (Exit::Signal(11), "crashed"),
            (Exit::Signal(13), "SIGPIPE"),
            (Exit::Signal(15), "SIGTERM"),
            (Exit::Signal(31), "sent the signal"),
        ] {
            let text = diagnosed(&exited(exit), "", "");
            assert!(text.contains(expected), "{exit:?}: {text}");
            assert_eq!(diagnosed(&RunFailure::ExitedDuringInit(exit), "", ""), text, "{exit:?}");
        }
    }

    #[test]
    fn the_diagnosis_depends_on_whether_anything_was_written() {
        let wrote = |exit| RunFailure::Process { exit, stopped: false, silent: false };
        for code in [0, 1] {
            let text = diagnosed(&wrote(Exit::Code(code)), "", "");
            assert_ne!(text, diagnosed(&exited(Exit::Code(code)), "", ""), "{code}");
            assert_eq!(diagnosed(&RunFailure::ExitedDuringInit(Exit::Code(code)), "", "{}"), text);
        }
        // An unknown status has no cause.
        assert!(diagnosed(&wrote(Exit::Code(3)), "", "").starts_with(" -> "));
        let late = RunFailure::InitializeTimeout(std::time::Duration::from_secs(60));
        assert!(diagnosed(&late, "", "").contains("wrote nothing"));
        assert!(diagnosed(&late, "", "hello").contains("did not respond"));
    }
}
