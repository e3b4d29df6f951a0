//! The recorder with real pipes and real processes; shell scripts play the CLI.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what goes wrong here fails the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use claude_agent_testkit::recorder::{CliStreams, ClientStreams, Tape, relay};
use claude_agent_testkit::recording::{Channel, Exit, Header, Recording, What};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// What happened, without the times.
fn whats(recording: &Recording) -> Vec<String> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let name = |what: &What| match what {
        What::Sent(line) => format!(">> {}", text(line)),
        What::Received(line) => format!("<< {}", text(line)),
        What::Stderr(line) => format!("!! {}", text(line)),
        What::Unfinished(channel, rest) => format!("{channel:?}~ {}", text(rest)),
        What::InputClosed => ">> closed".to_owned(),
        What::OutputClosed => "<< closed".to_owned(),
        What::Exited(exit) => format!("EXIT {exit}"),
        other => format!("{other:?}"),
    };
    recording.entries.iter().map(|entry| name(&entry.what)).collect()
}

/// A script that plays the CLI, and the directory of its recordings.
struct Recorded {
    directory: TempDir,
}

impl Recorded {
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cli = directory.path().join("cli");
        // The recorder asks for the version; a script that plays a conversation has none to say.
        let text =
            format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '1.2.3 (Play)' && exit\n{script}\n");
        fs::write(&cli, text).unwrap();
        fs::set_permissions(&cli, fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claude-recorder"));
        command
            .env("CLAUDE_RECORDER_CLI", self.directory.path().join("cli"))
            .env("CLAUDE_RECORDER_TO", self.directory.path().join("to"))
            .env("CLAUDE_CODE_ENTRYPOINT", "test")
            .env("CLAUDE_CODE_OAUTH_TOKEN", "secret")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.directory.path().join("to")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn recording(&self) -> Recording {
        let files = self.files();
        assert_eq!(files.len(), 1, "one run leaves one file: {files:?}");
        Recording::parse(&fs::read(&files[0]).unwrap()).unwrap()
    }

    /// Waits for a recording that shows the end of the CLI: the program that was started may be
    /// gone before it.
    fn recording_with_an_end(&self) -> Recording {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(120) {
            let recording =
                self.files().first().and_then(|file| Recording::parse(&fs::read(file).ok()?).ok());
            if let Some(recording) = recording.filter(|recording| recording.exit().is_some()) {
                return recording;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the recording never ended: {:?}", whats(&self.recording()));
    }
}

fn line(stdout: &mut BufReader<ChildStdout>) -> String {
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    line
}

fn stdout_of(child: &mut Child) -> BufReader<ChildStdout> {
    BufReader::new(child.stdout.take().unwrap())
}

#[test]
fn both_directions_are_passed_on_and_recorded_in_order() {
    let recorded = Recorded::new("while read -r line; do echo \"got $line\"; done; exit 7");
    let mut child = recorded.command().args(["--flag", "value"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = stdout_of(&mut child);
    for word in ["one", "two"] {
        writeln!(stdin, "{word}").unwrap();
        assert_eq!(line(&mut stdout), format!("got {word}\n"));
    }
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(7));
    let recording = recorded.recording();
    let expected =
        [">> one", "<< got one", ">> two", "<< got two", ">> closed", "<< closed", "EXIT 7"];
    assert_eq!(whats(&recording), expected);
    assert_eq!(recording.header.argv, ["--flag", "value"]);
    assert_eq!(recording.header.cli_version, "1.2.3");
    assert_eq!(recording.header.env["CLAUDE_CODE_ENTRYPOINT"], "test");
    assert!(!recording.header.env.contains_key("CLAUDE_CODE_OAUTH_TOKEN"));
    let times: Vec<_> = recording.entries.iter().map(|entry| entry.at).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn stderr_and_bytes_that_are_no_text_are_kept() {
    let recorded = Recorded::new(r"printf 'a\377b\r\n'; printf 'half'; echo complaint >&2");
    let mut child = recorded.command().spawn().unwrap();
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    assert_eq!(output, b"a\xffb\r\nhalf");
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(errors, "complaint\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut seen = whats(&recorded.recording());
    // The two streams have no order between them.
    seen.sort();
    assert_eq!(seen, ["!! complaint", "<< a\\xffb\\r", "<< closed", "EXIT 0", "Received~ half"]);
}

#[test]
fn a_signal_that_ends_the_cli_ends_the_recorder() {
    let recorded = Recorded::new("kill -KILL $$");
    let status = recorded.command().status().unwrap();
    assert_eq!(status.signal(), Some(9));
    assert_eq!(recorded.recording().exit(), Some(Exit::Signal(9)));
}

#[test]
fn a_terminated_recorder_terminates_the_cli_and_still_records() {
    let recorded =
        Recorded::new("trap 'echo bye; exit 143' TERM; echo ready; while :; do sleep 0.01; done");
    let mut child = recorded.command().spawn().unwrap();
    let mut stdout = stdout_of(&mut child);
    assert_eq!(line(&mut stdout), "ready\n");
    let process = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
    assert_eq!(line(&mut stdout), "bye\n");
    child.wait().unwrap();
    assert_eq!(recorded.recording_with_an_end().exit(), Some(Exit::Code(143)));
}

#[test]
fn a_client_that_vanishes_leaves_a_whole_recording() {
    let recorded = Recorded::new("while read -r line; do echo \"got $line\"; done; echo end");
    let mut child = recorded.command().spawn().unwrap();
    writeln!(child.stdin.as_ref().unwrap(), "one").unwrap();
    let mut stdout = stdout_of(&mut child);
    assert_eq!(line(&mut stdout), "got one\n");
    // Both pipes close, as they do when the client dies.
    drop(stdout);
    drop(child.stdin.take());
    child.wait().unwrap();
    let expected = [">> one", "<< got one", ">> closed", "<< end", "<< closed", "EXIT 0"];
    assert_eq!(whats(&recorded.recording()), expected);
}

#[test]
fn the_version_is_passed_through_and_not_recorded() {
    let recorded = Recorded::new("exit 3");
    let output = recorded.command().arg("--version").output().unwrap();
    assert_eq!(output.stdout, b"1.2.3 (Play)\n");
    assert!(recorded.files().is_empty());
}

#[test]
fn without_a_cli_the_recorder_says_what_is_missing() {
    let recorded = Recorded::new("exit 0");
    let output = recorded.command().env_remove("CLAUDE_RECORDER_CLI").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("CLAUDE_RECORDER_CLI does not name an executable"), "{text}");
}

#[test]
fn lines_are_whole_wherever_their_bytes_are_cut() {
    let bytes = b"{\"a\":1}\n\n\xff\xfe\r\nrest";
    for cut in 0..=bytes.len() {
        let tape = Tape::new(Header::new("cut"));
        tape.bytes(Channel::Received, &bytes[..cut]);
        tape.bytes(Channel::Received, &bytes[cut..]);
        tape.exited(Exit::Code(0));
        let expected = ["<< {\"a\":1}", "<< ", "<< \\xff\\xfe\\r", "Received~ rest", "EXIT 0"]
            .map(|text| text.replace('"', "\\\""));
        assert_eq!(whats(&tape.recording()), expected, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_relay_holds_no_more_than_the_pipes_allow() {
    // The client reads nothing: a CLI that writes without end must come to a halt.
    let (client_output, _unread) = tokio::io::duplex(1024);
    let (mut cli_output, relayed) = tokio::io::duplex(1024);
    let tape = Tape::new(Header::new("full"));
    let client = ClientStreams {
        input: tokio::io::empty(),
        output: client_output,
        errors: tokio::io::sink(),
    };
    let cli = CliStreams { input: tokio::io::sink(), output: relayed, errors: tokio::io::empty() };
    let relaying = relay(&tape, client, cli);
    let writing = async {
        let chunk = [b'x'; 1024];
        let mut written = 0_usize;
        let halt = Duration::from_millis(200);
        while let Ok(result) = tokio::time::timeout(halt, cli_output.write_all(&chunk)).await {
            result.unwrap();
            written += chunk.len();
        }
        written
    };
    tokio::select! {
        () = relaying => panic!("the relay ended"),
        written = writing => assert!(written <= 128 * 1024, "{written} bytes were taken"),
    }
}

#[tokio::test]
async fn a_relay_works_on_any_streams() {
    let (mut client, client_input) = tokio::io::duplex(64);
    let (client_output, mut shown) = tokio::io::duplex(64);
    let (cli_input, mut heard) = tokio::io::duplex(64);
    let (mut says, cli_output) = tokio::io::duplex(64);
    let tape = Tape::new(Header::new("relay"));
    let client_streams =
        ClientStreams { input: client_input, output: client_output, errors: tokio::io::sink() };
    let cli = CliStreams { input: cli_input, output: cli_output, errors: tokio::io::empty() };
    let play = async {
        client.write_all(b"question\n").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        heard.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question\n");
        says.write_all(b"answer\n").await.unwrap();
        drop(says);
        let mut answer = String::new();
        shown.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer\n");
    };
    tokio::join!(relay(&tape, client_streams, cli), play);
    assert_eq!(whats(&tape.recording()), [">> question", ">> closed", "<< answer", "<< closed"]);
}
