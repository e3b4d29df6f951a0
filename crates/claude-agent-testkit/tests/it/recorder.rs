//! The recorder with real pipes and processes; shell scripts act as the CLI.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure here fails the test")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use claude_agent_testkit::recorder::{CliStreams, ClientStreams, RecordingWriter, relay};
use claude_agent_testkit::recording::{Channel, EntryKind, Exit, Header, Recording};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Summarizes the entries, without their times.
fn summaries(recording: &Recording) -> Vec<String> {
    let text = |bytes: &[u8]| bytes.escape_ascii().to_string();
    let name = |kind: &EntryKind| match kind {
        EntryKind::Sent(line) => format!(">> {}", text(line)),
        EntryKind::Received(line) => format!("<< {}", text(line)),
        EntryKind::Stderr(line) => format!("!! {}", text(line)),
        EntryKind::Unfinished(channel, rest) => format!("{channel:?}~ {}", text(rest)),
        EntryKind::StdinClosed => ">> closed".to_owned(),
        EntryKind::StdoutClosed => "<< closed".to_owned(),
        EntryKind::Exited(exit) => format!("EXIT {exit}"),
        other => format!("{other:?}"),
    };
    recording.entries.iter().map(|entry| name(&entry.kind)).collect()
}

/// A fake CLI and the directory of its recordings.
struct Recorded {
    directory: TempDir,
}

impl Recorded {
    fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cli = directory.path().join("cli");
        // The recorder runs `--version` first, which must not start the script.
        let text =
            format!("#!/bin/sh\n[ \"$1\" = --version ] && echo '1.2.3 (Fake)' && exit\n{script}\n");
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

    /// Waits for a recording that contains the exit of the CLI; the started program may exit earlier.
    fn complete_recording(&self) -> Recording {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(120) {
            let recording =
                self.files().first().and_then(|file| Recording::parse(&fs::read(file).ok()?).ok());
            if let Some(recording) = recording.filter(|recording| recording.exit().is_some()) {
                return recording;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the recording never ended: {:?}", summaries(&self.recording()));
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
fn both_directions_are_relayed_and_recorded_in_order() {
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
    assert_eq!(summaries(&recording), expected);
    assert_eq!(recording.header.argv, ["--flag", "value"]);
    assert_eq!(recording.header.cli_version, "1.2.3");
    assert_eq!(recording.header.env["CLAUDE_CODE_ENTRYPOINT"], "test");
    assert!(!recording.header.env.contains_key("CLAUDE_CODE_OAUTH_TOKEN"));
    let times: Vec<_> = recording.entries.iter().map(|entry| entry.at).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn stderr_and_invalid_utf8_are_recorded() {
    let recorded = Recorded::new(r"printf 'a\377b\r\n'; printf 'half'; echo warning >&2");
    let mut child = recorded.command().spawn().unwrap();
    let mut output = Vec::new();
    child.stdout.take().unwrap().read_to_end(&mut output).unwrap();
    assert_eq!(output, b"a\xffb\r\nhalf");
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(errors, "warning\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let mut seen = summaries(&recorded.recording());
    // The two streams have no order between them.
    seen.sort();
    assert_eq!(seen, ["!! warning", "<< a\\xffb\\r", "<< closed", "EXIT 0", "Received~ half"]);
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
    assert_eq!(recorded.complete_recording().exit(), Some(Exit::Code(143)));
}

#[test]
fn a_vanished_client_leaves_a_complete_recording() {
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
    assert_eq!(summaries(&recorded.recording()), expected);
}

#[test]
fn version_checks_are_not_recorded() {
    let recorded = Recorded::new("exit 3");
    let output = recorded.command().arg("--version").output().unwrap();
    assert_eq!(output.stdout, b"1.2.3 (Fake)\n");
    assert!(recorded.files().is_empty());
}

#[test]
fn a_missing_cli_variable_is_reported() {
    let recorded = Recorded::new("exit 0");
    let output = recorded.command().env_remove("CLAUDE_RECORDER_CLI").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("CLAUDE_RECORDER_CLI is not set"), "{text}");
}

#[test]
fn lines_are_reassembled_from_any_chunks() {
    let bytes = b"{\"a\":1}\n\n\xff\xfe\r\nrest";
    for cut in 0..=bytes.len() {
        let writer = RecordingWriter::new(Header::new("cut"));
        writer.record_bytes(Channel::Received, &bytes[..cut]);
        writer.record_bytes(Channel::Received, &bytes[cut..]);
        writer.record_exit(Exit::Code(0));
        let expected = ["<< {\"a\":1}", "<< ", "<< \\xff\\xfe\\r", "Received~ rest", "EXIT 0"]
            .map(|text| text.replace('"', "\\\""));
        assert_eq!(summaries(&writer.recording()), expected, "cut at {cut}");
    }
}

#[tokio::test]
async fn a_relay_buffers_no_more_than_the_pipes() {
    // The client reads nothing, so a CLI that keeps writing must block.
    let (client_output, _unread) = tokio::io::duplex(1024);
    let (mut cli_output, relayed) = tokio::io::duplex(1024);
    let writer = RecordingWriter::new(Header::new("full"));
    let client = ClientStreams {
        stdin: tokio::io::empty(),
        stdout: client_output,
        stderr: tokio::io::sink(),
    };
    let cli = CliStreams { stdin: tokio::io::sink(), stdout: relayed, stderr: tokio::io::empty() };
    let relaying = relay(&writer, client, cli);
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
        written = writing => assert!(written <= 128 * 1024, "{written} bytes were accepted"),
    }
}

#[tokio::test]
async fn a_relay_works_on_any_streams() {
    let (mut client, client_input) = tokio::io::duplex(64);
    let (client_output, mut shown) = tokio::io::duplex(64);
    let (cli_input, mut cli_stdin) = tokio::io::duplex(64);
    let (mut cli_stdout, cli_output) = tokio::io::duplex(64);
    let writer = RecordingWriter::new(Header::new("relay"));
    let client_streams =
        ClientStreams { stdin: client_input, stdout: client_output, stderr: tokio::io::sink() };
    let cli = CliStreams { stdin: cli_input, stdout: cli_output, stderr: tokio::io::empty() };
    let exchange = async {
        client.write_all(b"question\n").await.unwrap();
        client.shutdown().await.unwrap();
        let mut question = String::new();
        cli_stdin.read_to_string(&mut question).await.unwrap();
        assert_eq!(question, "question\n");
        cli_stdout.write_all(b"answer\n").await.unwrap();
        drop(cli_stdout);
        let mut answer = String::new();
        shown.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer, "answer\n");
    };
    tokio::join!(relay(&writer, client_streams, cli), exchange);
    assert_eq!(
        summaries(&writer.recording()),
        [">> question", ">> closed", "<< answer", "<< closed"]
    );
}
