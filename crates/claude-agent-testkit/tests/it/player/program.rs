//! The program `claude-player`.

use super::*;

fn program(file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_claude-player"));
    command
        .env("CLAUDE_PLAYER_RECORDING", file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Sends these lines to the program, closes its stdin and waits for its exit.
async fn output(mut command: Command, lines: &[&str]) -> Output {
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for line in lines {
        within(stdin.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }
    drop(stdin);
    within(child.wait_with_output()).await.unwrap()
}

#[tokio::test]
async fn the_program_prints_the_recorded_version() {
    let mut command = program(&corpus().join("handshake.wire"));
    command.arg("--version");
    let output = output(command, &[]).await;
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2.1.326 (Claude Code)\n");
    assert!(output.status.success());
}

#[tokio::test]
async fn the_program_replays_on_pipes_and_exits_as_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a.wire");
    let session = SESSION.replace("0.8 7", "0.8 SIGTERM");
    fs::write(&file, format!("## {{\"format\":1}}\n{session}")).unwrap();
    let run = async |lines: &[&str], lenient: &str| {
        let mut command = program(&file);
        command.arg("--any").env("CLAUDE_PLAYER_LENIENT", lenient);
        let output = output(command, lines).await;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (String::from_utf8_lossy(&output.stdout).lines().count(), errors, output.status)
    };
    let (lines, errors, status) = run(&CLIENT_LINES, "").await;
    assert_eq!((lines, errors.as_str(), status.signal()), (3, "", Some(15)));
    let (lines, errors, status) = run(&CLIENT_LINES[..1], "").await;
    assert_eq!((lines, status.code()), (1, Some(1)));
    assert!(errors.starts_with("claude-player: line 4 of the recording: expected"), "{errors}");
    let (_, errors, status) = run(&CLIENT_LINES[..1], "1").await;
    assert_eq!((errors.as_str(), status.signal()), ("", Some(15)));
}

#[tokio::test]
async fn the_program_reports_an_unreadable_recording() {
    let output = output(program(Path::new("missing.wire")), &[]).await;
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.starts_with("claude-player: missing.wire: "), "{errors}");
}
