//! What probably was the cause, and what to do: first by what stderr says, then by how the process
//! ended and whether it had written anything.

use claude_wire::session::{Exit, RunFailure};

use super::Evidence;
use super::login::tells_of_login;

/// A probable cause and its help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clue {
    pub(super) hint: String,
    pub(super) help: String,
}

fn clue(hint: impl Into<String>, help: impl Into<String>) -> Clue {
    Clue { hint: hint.into(), help: help.into() }
}

/// What points to the cause of a failure.
pub(super) fn of(failure: &RunFailure, evidence: &Evidence) -> Option<Clue> {
    let by_stderr = || of_stderr(evidence);
    match failure {
        RunFailure::Process { stopped: true, .. } => by_stderr().or_else(|| {
            Some(clue(
                "nothing more could come from it",
                "look at stderr, and see whether something else closed its output",
            ))
        }),
        RunFailure::Process { exit, silent, .. } => by_stderr().or_else(|| of_exit(*exit, *silent)),
        RunFailure::ExitedDuringInit(exit) => {
            by_stderr().or_else(|| of_exit(*exit, evidence.nothing_on_stdout()))
        }
        RunFailure::NonZeroExitAfterResult(_) => Some(clue(
            "`strict_exit_status` makes that an error",
            "look at stderr, or do without `strict_exit_status`",
        )),
        RunFailure::InitializeTimeout(_) => by_stderr().or_else(|| Some(of_silence(evidence))),
        RunFailure::InitializeRejected(_) => by_stderr().or_else(|| {
            Some(clue(
                "it does not accept what the options ask for",
                "correct what it names, or update the CLI",
            ))
        }),
        RunFailure::IdleTimeout => by_stderr().or_else(|| {
            Some(clue(
                "the API or a tool took too long, or the network is gone",
                "raise `Timeouts::idle`, or leave it out",
            ))
        }),
        RunFailure::StdinNotRead(_) => Some(clue(
            "it keeps sending requests without reading the responses",
            "check that stdin of the CLI is connected and that nothing between the host and the \
             CLI holds it back; let callbacks and tools return less",
        )),
        RunFailure::TooManyMalformedLines(..) => Some(clue(
            "whatever writes them is not the CLI",
            "see that the executable is the CLI and that nothing else writes to its stdout",
        )),
        RunFailure::LineTooLong(_) => Some(clue(
            "a tool or a prompt holds something large",
            "raise `Limits::max_line_bytes`, or let tools return less",
        )),
    }
}

fn of_silence(evidence: &Evidence) -> Clue {
    if evidence.nothing_on_stdout() {
        clue(
            "it wrote nothing at all",
            "see that it is the program `claude` and that nothing between keeps its output; on a \
             slow machine raise `Timeouts::initialize`",
        )
    } else {
        clue(
            "it wrote something, but no answer",
            "see whether its servers or plugins start slowly, and raise `Timeouts::initialize`",
        )
    }
}

/// The help for everything that is wrong with the build.
const OTHER_BUILD: &str = "install the CLI on this very system, so that the right build is chosen";

/// What the CLI writes to stderr when the conversation to resume does not exist.
pub(super) const NO_CONVERSATION: &str = "No conversation found with session ID";

/// What the CLI writes to stderr when the message to resume at is not in the conversation.
pub(super) const NO_MESSAGE: &str = "No message found with message.uuid";

/// Words of stderr that tell, in order of priority: all of a row must stand there.
const WORDS: [(&[&str], &str, &str); 18] = [
    (
        &["cannot be used with root/sudo privileges"],
        "it does not let root bypass permissions",
        "run it as another user, choose another permission mode, or set IS_SANDBOX=1 if this \
         really is a sandbox",
    ),
    (
        &[NO_CONVERSATION],
        "the session to resume is not known here",
        "resume it in the directory and with the home it was started with, or start a new one",
    ),
    (
        &["--resume requires a valid session"],
        "what is to be resumed is no id of a session",
        "give the id that the session was started with",
    ),
    (
        &[NO_MESSAGE],
        "the message to resume at is not in that session",
        "give the id of a message of that session",
    ),
    (
        &["Session ID", "already in use"],
        "there is a session with this id",
        "resume it, or choose another id",
    ),
    (&["Invalid session ID"], "the id for the session is no UUID", "give a UUID, or none"),
    (
        &["Invalid MCP configuration"],
        "the CLI cannot use the servers of `mcp`",
        "correct the server that it names",
    ),
    (
        &["Settings file not found"],
        "the settings file is missing",
        "correct the path of `settings`",
    ),
    (&["GLIBC", "not found"], "it was built for a newer libc", OTHER_BUILD),
    (&["error while loading shared libraries"], "it was built for another libc", OTHER_BUILD),
    (&["Error loading shared library"], "it was built for another libc", OTHER_BUILD),
    (&["Error relocating", "symbol not found"], "it was built for another libc", OTHER_BUILD),
    (&["ld-linux", "No such file"], "it was built for another libc", OTHER_BUILD),
    (&["cannot execute binary file"], "it was built for another machine", OTHER_BUILD),
    (&["xec format error"], "it was built for another machine", OTHER_BUILD),
    (
        &["heap out of memory"],
        "it had no memory left",
        "give it more memory, or run fewer at a time",
    ),
    (&["ENOSPC"], "the disk is full", "make room on the disk of its home and temporary files"),
    (
        &["No space left"],
        "the disk is full",
        "make room on the disk of its home and temporary files",
    ),
];

fn of_stderr(evidence: &Evidence) -> Option<Clue> {
    let text: &str = &evidence.stderr_tail;
    let row = WORDS.iter().find(|(words, ..)| {
        // In one line: words of different complaints mean nothing together.
        text.lines().any(|line| words.iter().all(|word| line.contains(word)))
    });
    if let Some((_, hint, help)) = row {
        return Some(clue(*hint, *help));
    }
    text.lines().find_map(missing_node).or_else(|| text.lines().find_map(refused_value)).or_else(
        || {
            tells_of_login(text).then(|| {
                clue(
                    "it has no login, or one that is not accepted",
                    "set ANTHROPIC_API_KEY, or run `claude` by hand and log in",
                )
            })
        },
    )
}

/// Older CLIs are scripts, and nothing says so but the complaint of `env` or a shell.
fn missing_node(line: &str) -> Option<Clue> {
    let words =
        |line: &str| line.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "node");
    let missing = ["No such file", "not found", "can't execute"];
    (words(line) && missing.iter().any(|part| line.contains(part))).then(|| {
        clue(
            "it needs `node`, which is not on its PATH",
            "install Node.js, pass a PATH on that has it, or install the native CLI",
        )
    })
}

/// `error: option '--x <y>' argument 'z' is invalid. …`; the value is not repeated here.
fn refused_value(line: &str) -> Option<Clue> {
    let rest = line.trim().strip_prefix("error: option '")?;
    let flag = rest.split([' ', '\'']).next()?;
    Some(clue(
        format!("it does not take what is given for {flag}"),
        "give a value that this version of the CLI knows, or update it",
    ))
}

/// Signals have the same numbers on every system for these.
fn of_exit(exit: Exit, silent: bool) -> Option<Clue> {
    match exit {
        Exit::Code(code) => of_code(code, silent),
        Exit::Signal(signal) => Some(of_signal(signal)),
        Exit::Unknown => None,
    }
}

fn of_code(code: i32, silent: bool) -> Option<Clue> {
    let found = match (code, silent) {
        (0, true) => clue(
            "it ended as if all were well, without a word",
            "see that it is the program `claude`, and that a wrapper passes its input and output on",
        ),
        (0, false) => clue(
            "it ended as if all were well, but too early",
            "see that nothing else closes its input",
        ),
        (1, true) => clue(
            "it gave up before it began",
            "run it by hand with the same options, and see that its configuration can be read",
        ),
        (1, false) => clue("it gave up", "look at its last messages and at stderr"),
        (2, _) => clue(
            "its command line was not understood, perhaps by a wrapper",
            "see what the wrapper does with the arguments, and update the CLI",
        ),
        (126, _) => clue(
            "it was found, but cannot be executed",
            "make it executable with `chmod +x`, and see that it is for this machine",
        ),
        (127, _) => clue(
            "a program that it needs was not found",
            "see that what the wrapper or the first line of the script names is on its PATH",
        ),
        // A shell that ran it says so.
        (129..=159, _) => of_signal(code - 128),
        (_, true) => clue("it wrote nothing", "run it by hand with the same options"),
        _ => return None,
    };
    Some(found)
}

fn of_signal(signal: i32) -> Clue {
    match signal {
        1 => clue("its terminal was closed", "start it where no terminal is needed"),
        2 => clue("it was interrupted", "see whether Ctrl-C reached it as well"),
        4 => clue("the processor does not know an instruction of it", OTHER_BUILD),
        6 => clue("it aborted", "look at stderr, and update the CLI"),
        7 => clue("its file or memory could not be read", "see whether its update was cut short"),
        9 => clue(
            "somebody killed it, perhaps the system because memory ran out",
            "see what the system's log says, and give it more memory",
        ),
        11 => clue("it crashed", "update or reinstall the CLI"),
        13 => clue("nobody read its output", "see whether a wrapper closed it"),
        15 => clue(
            "somebody ended it",
            "see who sends SIGTERM: a supervisor, a container that stops, a time limit",
        ),
        _ => clue("a signal ended it", "see who sends it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(failure: &RunFailure, stderr: &str, stdout: &str) -> String {
        let evidence = Evidence {
            stderr_tail: stderr.into(),
            stdout_tail: stdout.to_owned(),
            ..Evidence::default()
        };
        let clue = of(failure, &evidence);
        clue.map(|clue| format!("{} -> {}", clue.hint, clue.help)).unwrap_or_default()
    }

    fn ended(exit: Exit) -> RunFailure {
        RunFailure::Process { exit, stopped: false, silent: true }
    }

    /// Whatever the exit, each text of stderr gives its hint and its help.
    fn check(cases: &[(&str, &str, &str)]) {
        for (stderr, hinted, help) in cases {
            for exit in [Exit::Code(1), Exit::Code(127), Exit::Signal(9)] {
                for failure in [ended(exit), RunFailure::ExitedDuringInit(exit)] {
                    let told = hint(&failure, &format!("before\n{stderr}\nafter"), "");
                    let (hint, suggested) = told.split_once(" -> ").unwrap();
                    assert!(hint.contains(hinted), "{stderr}: {told}");
                    assert!(suggested.contains(help), "{stderr}: {told}");
                }
            }
        }
    }

    #[test]
    fn what_the_cli_says_comes_before_the_exit_code() {
        check(&[
            (
                "--dangerously-skip-permissions cannot be used with root/sudo privileges for \
                 security reasons\n",
                "root",
                "IS_SANDBOX",
            ),
            (
                "No conversation found with session ID: 00000000-0000-4000-8000-000000000000\n",
                "not known here",
                "new one",
            ),
            (
                "Error: --resume requires a valid session ID or session title when used with \
                 --print. Usage: claude -p --resume <session-id|title>. Provided value \"x\" is \
                 not a UUID",
                "no id of a session",
                "id",
            ),
            ("Error: Session ID 1 is already in use.", "there is a session", "resume it"),
            ("Error: Invalid session ID. Must be a valid UUID.", "no UUID", "UUID"),
            (
                "Error: Invalid MCP configuration:\nMCP config file not found: /x.json",
                "servers of `mcp`",
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
            ("Invalid API key · Please run /login", "login", "ANTHROPIC_API_KEY"),
        ]);
    }

    #[test]
    fn what_the_system_says_comes_before_the_exit_code() {
        check(&[
            (
                "claude: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found \
                 (required by claude)",
                "libc",
                "install",
            ),
            (
                "claude: error while loading shared libraries: libpthread.so.0: cannot open shared \
                 object file",
                "libc",
                "install",
            ),
            ("Error loading shared library ld-linux-x86-64.so.2: No such file", "libc", "install"),
            ("Error relocating claude: __register_atfork: symbol not found", "libc", "install"),
            ("exec: /lib64/ld-linux-x86-64.so.2: No such file or directory", "libc", "install"),
            ("sh: claude: cannot execute binary file", "another machine", "install"),
            ("exec claude: Exec format error", "another machine", "install"),
            ("/usr/bin/env: 'node': No such file or directory", "`node`", "Node.js"),
            ("/usr/bin/env: ‘node’: No such file or directory", "`node`", "Node.js"),
            ("env: can't execute 'node': No such file or directory", "`node`", "Node.js"),
            ("sh: 1: exec: node: not found", "`node`", "Node.js"),
            ("bash: node: command not found", "`node`", "Node.js"),
            ("FATAL ERROR: JavaScript heap out of memory", "memory", "memory"),
            ("Error: ENOSPC: write", "disk", "room"),
            ("cat: write error: No space left on device", "disk", "room"),
        ]);
    }

    #[test]
    fn words_of_other_complaints_do_not_mislead() {
        let without = hint(&ended(Exit::Code(1)), "", "");
        for stderr in
            ["node started", "not found: x", "GLIBC\nnot found", "nodes not found", "an error"]
        {
            assert_eq!(hint(&ended(Exit::Code(1)), stderr, ""), without, "{stderr}");
        }
    }

    #[test]
    fn each_exit_code_has_its_hint() {
        for (exit, hinted) in [
            (Exit::Code(0), "without a word"),
            (Exit::Code(1), "before it began"),
            (Exit::Code(2), "command line"),
            (Exit::Code(126), "cannot be executed"),
            (Exit::Code(127), "not found"),
            (Exit::Code(130), "interrupted"),
            (Exit::Code(137), "memory"),
            (Exit::Code(139), "crashed"),
            (Exit::Code(143), "somebody ended it"),
            (Exit::Code(3), "wrote nothing"),
            (Exit::Code(-1), "wrote nothing"),
            (Exit::Signal(1), "terminal"),
            (Exit::Signal(2), "interrupted"),
            (Exit::Signal(4), "instruction"),
            (Exit::Signal(6), "aborted"),
            (Exit::Signal(7), "could not be read"),
            (Exit::Signal(9), "memory ran out"),
            (Exit::Signal(11), "crashed"),
            (Exit::Signal(13), "nobody read"),
            (Exit::Signal(15), "somebody ended it"),
            (Exit::Signal(31), "a signal"),
        ] {
            let told = hint(&ended(exit), "", "");
            assert!(told.contains(hinted), "{exit:?}: {told}");
            assert_eq!(hint(&RunFailure::ExitedDuringInit(exit), "", ""), told, "{exit:?}");
        }
    }

    #[test]
    fn it_matters_whether_anything_was_written() {
        let wrote = |exit| RunFailure::Process { exit, stopped: false, silent: false };
        for code in [0, 1] {
            let told = hint(&wrote(Exit::Code(code)), "", "");
            assert_ne!(told, hint(&ended(Exit::Code(code)), "", ""), "{code}");
            assert_eq!(hint(&RunFailure::ExitedDuringInit(Exit::Code(code)), "", "{}"), told);
        }
        // A code that nobody knows says nothing.
        assert_eq!(hint(&wrote(Exit::Code(3)), "", ""), "");
        let late = RunFailure::InitializeTimeout(std::time::Duration::from_secs(60));
        assert!(hint(&late, "", "").contains("nothing at all"));
        assert!(hint(&late, "", "hello").contains("no answer"));
    }
}
