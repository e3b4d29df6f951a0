//! The faults of the simulated CLI, as a client sees them.

use std::process::Stdio;
use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::recording::Exit;
use claude_agent_testkit::sim::{Fault, Faults, Point, Sim, SimProcess};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

/// The timeout of every operation, far longer than any of them takes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How long to wait for something that must not happen; if it happened, it would happen
/// immediately.
const QUIET: Duration = Duration::from_millis(300);

const SESSION: &[&str] =
    &["--output-format", "stream-json", "--input-format", "stream-json", "--verbose"];

const HANDSHAKE: &str = r#"{"type":"control_request","request_id":"req_1_00000000","request":{"subtype":"initialize"}}"#;
const PROMPT: &str = r#"{"type":"user","message":{"role":"user","content":"hello"},"parent_tool_use_id":null,"session_id":""}"#;

fn sim(faults: Faults) -> SimProcess {
    Sim::new()
        .script(Script::new().otherwise([Reply::text("Hello.")]))
        .faults(faults)
        .args(SESSION.iter().copied())
        .start()
}

/// Sends these lines, closes stdin, and reads everything until the exit.
async fn talk(mut process: SimProcess, lines: &[&str]) -> (String, String, Exit) {
    for line in lines {
        // A CLI that has ended does not accept more input, so errors are ignored.
        drop(process.stdin.write_all(format!("{line}\n").as_bytes()).await);
    }
    drop(process.stdin.shutdown().await);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let reading = async {
        let (out, err) = tokio::join!(
            process.stdout.read_to_end(&mut stdout),
            process.stderr.read_to_end(&mut stderr)
        );
        out.and(err).unwrap();
    };
    timeout(TIMEOUT, reading).await.expect("the streams end");
    let exit = timeout(TIMEOUT, process.wait()).await.expect("the process ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(stdout), text(stderr), exit)
}

/// Runs a turn with these faults; returns stdout, stderr and the exit.
async fn turn(faults: Faults) -> (String, String, Exit) {
    talk(sim(faults), &[HANDSHAKE, PROMPT]).await
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

const RESULT: &str = r#""type":"result""#;
const ANSWERED: &str = r#""type":"control_response""#;

#[tokio::test]
async fn a_turn_without_faults_completes() {
    let (stdout, stderr, exit) = turn(Faults::new()).await;
    assert_eq!(count(&stdout, RESULT), 1, "{stdout}");
    assert_eq!(stderr, "");
    assert_eq!(exit, Exit::Code(0));
}

#[tokio::test]
async fn exit_codes_and_signals_occur_at_any_point() {
    let (stdout, _, exit) = turn(Faults::new().before("result", Fault::Exit(3))).await;
    assert_eq!((count(&stdout, RESULT), exit), (0, Exit::Code(3)));
    assert_eq!(count(&stdout, r#""type":"assistant""#), 1);
    let (stdout, _, exit) = turn(Faults::new().after("result", Fault::Signal(9))).await;
    assert_eq!((count(&stdout, RESULT), exit), (1, Exit::Signal(9)));
    let (stdout, _, exit) = turn(Faults::new().at_start(Fault::Exit(127))).await;
    assert_eq!((stdout.as_str(), exit), ("", Exit::Code(127)));
    let (stdout, _, exit) = turn(Faults::new().on_read("user", Fault::Exit(4))).await;
    assert_eq!((count(&stdout, RESULT), exit), (0, Exit::Code(4)));
}

#[tokio::test]
async fn a_fault_can_select_the_nth_line_of_a_kind() {
    let faults = Faults::new().at(Point::Before("*".to_owned(), 3), Fault::Exit(5));
    let (stdout, _, exit) = turn(faults).await;
    assert_eq!((stdout.lines().count(), exit), (2, Exit::Code(5)));
}

#[tokio::test]
async fn a_hanging_cli_can_be_killed() {
    let mut process = sim(Faults::new().before("control_response", Fault::Hang));
    process.stdin.write_all(format!("{HANDSHAKE}\n").as_bytes()).await.unwrap();
    let mut byte = [0];
    assert!(timeout(QUIET, process.stdout.read(&mut byte)).await.is_err(), "nothing is written");
    assert!(timeout(QUIET, process.wait()).await.is_err(), "the CLI is still running");
    process.terminate();
    assert_eq!(timeout(TIMEOUT, process.wait()).await.unwrap(), Exit::Code(143));
}

#[tokio::test]
async fn sigterm_can_be_ignored_but_not_sigkill() {
    let mut process = sim(Faults::new().at_start(Fault::IgnoreTerminate));
    process.stdin.write_all(format!("{HANDSHAKE}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(&mut process.stdout);
    timeout(TIMEOUT, stdout.read_line(&mut line)).await.unwrap().unwrap();
    process.terminate();
    assert!(timeout(QUIET, process.wait()).await.is_err(), "the CLI is still running");
    process.kill();
    assert_eq!(timeout(TIMEOUT, process.wait()).await.unwrap(), Exit::Signal(9));
}

#[tokio::test]
async fn garbage_partial_lines_and_invalid_utf8_are_written() {
    let faults = Faults::new()
        .before("assistant", Fault::Bytes(b"not json\n\xff\xfe\n".to_vec()))
        .after("result", Fault::Bytes(br#"{"type":"half"#.to_vec()))
        .after("result", Fault::Exit(0));
    let (stdout, _, exit) = turn(faults).await;
    assert!(stdout.contains("not json\n\u{fffd}\u{fffd}\n"), "{stdout}");
    assert!(stdout.ends_with(r#"{"type":"half"#), "{stdout}");
    assert_eq!(exit, Exit::Code(0));
}

#[tokio::test]
async fn lines_of_any_size_are_written() {
    for size in [100, 64 * 1024, 3_000_000] {
        let (stdout, ..) = turn(Faults::new().before("result", Fault::LongLine(size))).await;
        let longest = stdout.lines().filter(|line| line.contains("flood")).map(str::len).max();
        assert_eq!(longest, Some(size));
    }
}

#[tokio::test]
async fn floods_of_messages_and_deltas_are_written() {
    let faults = Faults::new()
        .before("assistant", Fault::Messages(5_000))
        .before("result", Fault::Deltas(7_000));
    let (stdout, ..) = turn(faults).await;
    assert_eq!(count(&stdout, r#"{"type":"assistant""#), 5_001);
    assert_eq!(count(&stdout, r#"{"type":"stream_event""#), 7_000);
    assert!(stdout.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[tokio::test]
async fn a_flood_of_stderr_is_written() {
    let (_, stderr, _) = turn(Faults::new().before("result", Fault::Stderr(320 * 1024))).await;
    assert!(stderr.len() >= 320 * 1024);
    assert!(stderr.lines().count() > 1000);
}

#[tokio::test(start_paused = true)]
async fn pauses_delay_startup_and_responses() {
    let began = tokio::time::Instant::now();
    let faults = Faults::new()
        .at_start(Fault::Pause(Duration::from_secs(7)))
        .before("control_response", Fault::Pause(Duration::from_secs(11)));
    let mut process = sim(faults);
    process.stdin.write_all(format!("{HANDSHAKE}\n").as_bytes()).await.unwrap();
    let mut line = String::new();
    BufReader::new(&mut process.stdout).read_line(&mut line).await.unwrap();
    assert!(line.contains(ANSWERED), "{line}");
    assert!(began.elapsed() >= Duration::from_secs(18), "{:?}", began.elapsed());
}

#[tokio::test]
async fn responses_can_be_missing_duplicated_or_reordered() {
    let mode = r#"{"type":"control_request","request_id":"req_2_00000000","request":{"subtype":"set_permission_mode","mode":"plan"}}"#;
    let model = r#"{"type":"control_request","request_id":"req_3_00000000","request":{"subtype":"set_model","model":"m"}}"#;
    let answers = |stdout: &str| -> Vec<String> {
        let ids = stdout.lines().filter(|line| line.contains(ANSWERED)).map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).unwrap();
            value["response"]["request_id"].as_str().unwrap().to_owned()
        });
        ids.map(|id| id[..5].to_owned()).collect()
    };
    let lines = [HANDSHAKE, mode, model];
    let kind = "control_response/set_permission_mode";
    let (stdout, ..) = talk(sim(Faults::new().before(kind, Fault::Swallow)), &lines).await;
    assert_eq!(answers(&stdout), ["req_1", "req_3"]);
    let (stdout, ..) = talk(sim(Faults::new().before(kind, Fault::Twice)), &lines).await;
    assert_eq!(answers(&stdout), ["req_1", "req_2", "req_2", "req_3"]);
    let first = "control_response/initialize";
    let (stdout, ..) = talk(sim(Faults::new().before(first, Fault::Behind)), &lines).await;
    assert_ne!(answers(&stdout)[0], "req_1", "{stdout}");
    assert_eq!(answers(&stdout).len(), 3);
}

#[tokio::test]
async fn responses_can_have_the_wrong_id_or_shape() {
    let kind = "control_response/initialize";
    let (stdout, ..) = talk(sim(Faults::new().before(kind, Fault::WrongId)), &[HANDSHAKE]).await;
    assert!(stdout.contains("req_0_ffffffff") && !stdout.contains("req_1_00000000"), "{stdout}");
    let (stdout, ..) = talk(sim(Faults::new().before(kind, Fault::WrongShape)), &[HANDSHAKE]).await;
    let answer: serde_json::Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    assert!(answer["response"]["response"].is_string(), "{answer}");
}

#[tokio::test]
async fn stdout_can_be_closed_while_the_cli_keeps_running() {
    let mut process = sim(Faults::new().after("control_response", Fault::CloseStdout));
    process.stdin.write_all(format!("{HANDSHAKE}\n").as_bytes()).await.unwrap();
    let mut stdout = Vec::new();
    timeout(TIMEOUT, process.stdout.read_to_end(&mut stdout)).await.unwrap().unwrap();
    assert!(timeout(QUIET, process.wait()).await.is_err(), "the CLI is still running");
    process.stdin.shutdown().await.unwrap();
    assert_eq!(timeout(TIMEOUT, process.wait()).await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn reading_stdin_can_stop() {
    let mut process = sim(Faults::new().after("control_response", Fault::StopReading));
    process.stdin.write_all(format!("{HANDSHAKE}\n").as_bytes()).await.unwrap();
    let filling = async {
        let line = vec![b' '; 64 * 1024];
        for _ in 0..64 {
            process.stdin.write_all(&line).await.unwrap();
        }
    };
    assert!(timeout(QUIET, filling).await.is_err(), "the pipe fills up");
}

/// Starts the program with real pipes and a script file.
fn process(faults: &str) -> (tokio::process::Child, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.sim");
    std::fs::write(&script, format!("otherwise\n  say \"Hello.\"\nfaults\n  {faults}\n")).unwrap();
    let child = tokio::process::Command::new(env!("CARGO_BIN_EXE_claude-sim"))
        .args(SESSION)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder.path())
        .env("CLAUDE_SIM_SCRIPT", &script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    (child, folder)
}

#[cfg(unix)]
mod with_the_program {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    async fn first_line(child: &mut tokio::process::Child) -> String {
        let stdin = child.stdin.as_mut().unwrap();
        stdin.write_all(format!("{HANDSHAKE}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        let stdout = BufReader::new(child.stdout.as_mut().unwrap());
        let mut stdout = stdout.take(1 << 20);
        timeout(TIMEOUT, stdout.read_line(&mut line)).await.unwrap().unwrap();
        line
    }

    fn signal(child: &tokio::process::Child, signal: rustix::process::Signal) {
        let id = i32::try_from(child.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    #[tokio::test]
    async fn a_signal_ends_the_process() {
        let (mut child, _folder) = process("after control_response signal SIGKILL");
        first_line(&mut child).await;
        let status = timeout(TIMEOUT, child.wait()).await.unwrap().unwrap();
        assert_eq!(status.signal(), Some(9));
    }

    #[tokio::test]
    async fn sigterm_exits_with_143_unless_ignored() {
        let (mut child, _folder) = process("at start pause 0ms");
        first_line(&mut child).await;
        // Kept open, because the CLI exits at EOF.
        let _stdin = child.stdin.take();
        signal(&child, rustix::process::Signal::TERM);
        let status = timeout(TIMEOUT, child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(143));

        let (mut child, _folder) = process("at start ignore-sigterm");
        first_line(&mut child).await;
        let _stdin = child.stdin.take();
        signal(&child, rustix::process::Signal::TERM);
        assert!(timeout(QUIET, child.wait()).await.is_err(), "the CLI is still running");
        child.kill().await.unwrap();
    }

    #[tokio::test]
    async fn a_grandchild_keeps_stdout_open() {
        let (mut child, _folder) = process("after control_response leave-grandchild 15s");
        first_line(&mut child).await;
        let status = timeout(TIMEOUT, child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(0));
        let mut stdout = child.stdout.take().unwrap();
        let mut rest = Vec::new();
        let read = stdout.read_to_end(&mut rest);
        tokio::pin!(read);
        assert!(timeout(QUIET, &mut read).await.is_err(), "the grandchild keeps stdout open");
        timeout(TIMEOUT, read).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn sigusr1_triggers_a_fault() {
        let (mut child, _folder) = process("at signal exit 9");
        assert!(first_line(&mut child).await.contains(ANSWERED));
        let _stdin = child.stdin.take();
        signal(&child, rustix::process::Signal::USR1);
        let status = timeout(TIMEOUT, child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(9));
    }

    #[tokio::test]
    async fn a_running_process_can_close_either_pipe() {
        let (mut child, _folder) = process("after control_response close-stdout");
        first_line(&mut child).await;
        let _stdin = child.stdin.take();
        let mut rest = Vec::new();
        let mut stdout = child.stdout.take().unwrap();
        timeout(TIMEOUT, stdout.read_to_end(&mut rest)).await.unwrap().unwrap();
        assert!(child.try_wait().unwrap().is_none(), "the CLI is still running");

        let (mut child, _folder) = process("after control_response close-stdin");
        first_line(&mut child).await;
        let mut stdin = child.stdin.take().unwrap();
        // Stdin is closed at some time after the response was written.
        let writing = async { while stdin.write_all(b"\n").await.is_ok() {} };
        timeout(TIMEOUT, writing).await.unwrap();
        assert!(child.try_wait().unwrap().is_none(), "the CLI is still running");
    }

    #[tokio::test]
    async fn a_script_error_is_reported_with_its_position() {
        let (child, _folder) = process("before result exti 3");
        let output = timeout(TIMEOUT, child.wait_with_output()).await.unwrap().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success());
        assert!(stderr.contains("line 4") && stderr.contains("exit"), "{stderr}");
    }
}

#[tokio::test]
async fn faults_of_one_run_do_not_affect_other_runs() {
    let sim = Sim::new()
        .script(Script::new().otherwise([Reply::text("Hello.")]))
        .args(SESSION.iter().copied())
        .faults_in_run(2, Faults::new().before("result", Fault::Exit(3)));
    let model = sim.model();
    let mut exits = Vec::new();
    for _ in 0..3 {
        let (stdout, _, exit) = talk(sim.clone().start(), &[HANDSHAKE, PROMPT]).await;
        assert_eq!(count(&stdout, r#""type":"result""#), usize::from(exit == Exit::Code(0)));
        exits.push(exit);
    }
    assert_eq!(exits, [Exit::Code(0), Exit::Code(3), Exit::Code(0)]);
    assert_eq!(model.requests().len(), 3, "all runs ask the same model");
}
