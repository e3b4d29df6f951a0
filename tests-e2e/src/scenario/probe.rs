//! Probes of the CLI that are not part of the corpus.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::tools::bash;
use super::{Backend, Cli, Failure, Fixture, Plan};
use crate::real_cli::SandboxDir;

/// Returns the environment of a tool, in the format of `env`.
///
/// # Errors
///
/// Returns a failure when the CLI does not run the tool.
///
/// # Cancel safety
///
/// Dropping the future ends the CLI.
pub async fn environment_of_a_tool(backend: Arc<dyn Backend>) -> Result<String, Failure> {
    let fixture = Fixture::new(backend, "environment", "", "")?;
    let plan = Plan::session(bash("env > environment")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("run it").await?;
    let environment = fixture.text_of("environment");
    cli.finish(0).await?;
    environment.ok_or_else(|| Failure::new("the tool writes its environment", ""))
}

/// Returns whether the CLI knows an operation, even if it rejects this request.
///
/// # Errors
///
/// Returns a failure when the CLI does not respond.
///
/// # Cancel safety
///
/// Dropping the future ends the CLI.
pub async fn knows_operation(
    backend: Arc<dyn Backend>,
    operation: &str,
    fields: Value,
) -> Result<bool, Failure> {
    let fixture = Fixture::new(backend, "operation", "", "")?;
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let id = cli.request(operation, fields).await?;
    let answer = cli.response_to(&id).await?;
    cli.end().await;
    let refused = answer["error"].as_str().unwrap_or_default();
    Ok(answer["error_code"] != "unsupported_request"
        && !refused.starts_with("Unsupported control request subtype"))
}

/// Returns whether the CLI takes MCP servers in the handshake, as it confirms in its response.
///
/// # Errors
///
/// Returns a failure when the CLI does not respond.
///
/// # Cancel safety
///
/// Dropping the future ends the CLI.
pub async fn takes_mcp_servers(backend: Arc<dyn Backend>) -> Result<bool, Failure> {
    let fixture = Fixture::new(backend, "servers", "", "")?;
    let mut cli = fixture.start(Plan::hello().args(&["--await-initialize"])).await?;
    let servers = json!({"mcpServers": {"absent": {"command": "/nowhere/server"}}});
    let answer = cli.operation("initialize", servers).await?;
    cli.end().await;
    Ok(answer["mcp_servers_applied"] == true)
}

/// Starts a CLI whose tool runs for a minute, and returns it with its sandbox directory.
///
/// # Errors
///
/// Returns a failure when the CLI does not run the tool.
///
/// # Cancel safety
///
/// Dropping the future ends the CLI.
pub async fn busy_with_a_tool(
    backend: Arc<dyn Backend>,
) -> Result<(Cli, Arc<SandboxDir>), Failure> {
    let fixture = Fixture::new(backend, "busy", "", "")?;
    let plan = Plan::session(bash("touch begun; sleep 60")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.operation("initialize", json!({})).await?;
    cli.send_prompt("run it").await?;
    cli.until("the call", |line| line["message"]["content"][0]["type"] == "tool_use").await?;
    cli.wait("the tool runs", fixture.appears("begun")).await?;
    Ok((cli, Arc::clone(fixture.sandbox())))
}

/// Returns the running processes that were started in this sandbox directory, found through `/proc`.
pub fn alive_in(sandbox: &SandboxDir) -> Vec<String> {
    let home = format!("HOME={}", sandbox.home().display());
    let lives_here = |process: &Path| {
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|entry| entry.path())
        .filter(|process| lives_here(process))
        .map(|process| {
            let command = fs::read(process.join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).replace('\0', " ")
        })
        .collect()
}
