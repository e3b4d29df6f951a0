//! The program `claude-mock-api`.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::http_client::{Connection, TIMEOUT};
use super::{joined, streaming};

fn program(script: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_claude-mock-api"));
    command.arg(script).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.kill_on_drop(true);
    command
}

#[tokio::test]
async fn the_program_prints_variables_and_follows_the_script() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("a.sim");
    std::fs::write(&script, "when \"hi\" say \"Hello.\"").unwrap();
    let mut child = program(&script).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = async || timeout(TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
    let first = next().await;
    let address = first.strip_prefix("export ANTHROPIC_BASE_URL=").expect(&first);
    assert_eq!(next().await, "export ANTHROPIC_API_KEY=none");

    let mut connection = Connection::open_url(address).await;
    connection.send("POST", "/v1/messages", &[], &streaming("hi")).await;
    assert_eq!(joined(&connection.response().await.events(), 0, "text"), "Hello.");
    timeout(TIMEOUT, child.kill()).await.unwrap().unwrap();
}

#[tokio::test]
async fn the_program_rejects_faults_and_versions() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("a.sim");
    for (text, reason) in [
        (None, "a.sim: "),
        (Some("sya"), "a.sim: line 1, column 1: expected"),
        (Some("faults at start hang"), "the mock API does not support `faults`"),
    ] {
        if let Some(text) = text {
            std::fs::write(&script, text).unwrap();
        }
        let output = timeout(TIMEOUT, program(&script).output()).await.unwrap().unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.starts_with("claude-mock-api: ") && errors.contains(reason), "{errors}");
    }
}
