//! Runs the examples, as the tests built them.

use std::error::Error;
use std::process::{Command, Stdio};
use std::time::Instant;

#[cfg(target_os = "linux")]
use tests_servers::{postgres, s3};

use super::checks::{Run, StepOutcome, StepResult};
use super::timing::Part;
use tests_e2e::workspace::root;

/// The examples that need no arguments.
const EXAMPLES: [&str; 13] = [
    "quickstart",
    "stream_text",
    "resume",
    "history",
    "chat",
    "observe",
    "guard",
    "steer",
    "calculator",
    "rmcp_server",
    "structured",
    "doctor",
    "approve_later",
];

/// Runs each example until one fails.
pub(crate) fn run(run: &mut Run) -> StepResult {
    for name in EXAMPLES {
        println!("example: {name}");
        let began = Instant::now();
        let passed = example(run, name)?.status()?.success();
        run.parts.push(Part { name: name.to_owned(), took: began.elapsed() });
        if !passed {
            return Ok(StepOutcome::Failed);
        }
    }
    Ok(StepOutcome::Passed)
}

fn example(run: &mut Run, name: &str) -> Result<Command, Box<dyn Error>> {
    let mut command = Command::new(&run.programs()?.example(name)?.path);
    command.current_dir(root()).stdin(Stdio::null());
    Ok(command)
}

/// Runs the example `move_session` on every store, and checks that the second machine knows what the first one was
/// told.
pub(crate) fn sessions_move(run: &mut Run) -> StepResult {
    if !session_moves(run, &[])? {
        return Ok(StepOutcome::Failed);
    }
    #[cfg(target_os = "linux")]
    if !postgres::is_skipped() {
        let server = postgres::Server::start()?;
        let url = server.url_with_password(server.port());
        if !session_moves(run, &["--postgres", &url])? {
            return Ok(StepOutcome::Failed);
        }
    }
    #[cfg(target_os = "linux")]
    if !s3::is_skipped() {
        let server = s3::Server::start()?;
        let url = s3::url(server.port(), "move-session");
        return Ok(session_moves(run, &["--s3", &url])?.into());
    }
    Ok(StepOutcome::Passed)
}

fn session_moves(run: &mut Run, arguments: &[&str]) -> Result<bool, Box<dyn Error>> {
    println!("example: move_session {}", arguments.first().unwrap_or(&""));
    let mut command = example(run, "move_session")?;
    command.args(arguments);
    #[cfg(target_os = "linux")]
    command.env("AWS_ACCESS_KEY_ID", s3::ACCESS_KEY).env("AWS_SECRET_ACCESS_KEY", s3::SECRET_KEY);
    let output = command.stderr(Stdio::inherit()).output()?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    print!("{stdout}");
    Ok(output.status.success() && stdout.contains("second machine: It was 42."))
}
