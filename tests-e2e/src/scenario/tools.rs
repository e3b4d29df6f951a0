//! Tools that a rule allows, and their results.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::{Fixture, Outcome, Plan};

/// Scripts a model that calls Bash once and then answers `Done.`
pub(super) fn bash(command: &str) -> Script {
    Script::new().otherwise([
        Reply::tool("Bash", json!({"command": command, "description": "Run it"})),
        Reply::text("Done."),
    ])
}

/// Returns the `tool_result` blocks of a line.
pub(super) fn tool_results(line: &Value) -> impl Iterator<Item = &Value> {
    let content = line["message"]["content"].as_array();
    content.into_iter().flatten().filter(|block| block["type"] == "tool_result")
}

pub(super) async fn tool_allowed(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("touch made && echo hi")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let result = cli.turn("run it").await?;
    cli.check(result["result"] == "Done.", "the turn continues after the tool")?;
    cli.check(
        cli.saw(|line| tool_results(line).any(|block| block["content"] == "hi")),
        "the result of the tool is reported",
    )?;
    cli.check(fixture.text_of("made").is_some(), "the tool ran")?;
    cli.finish(0).await
}

pub(super) async fn tool_disallowed(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("touch made")).args(&["--disallowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("run it").await?;
    cli.check(
        cli.saw(|line| tool_results(line).any(|block| block["is_error"] == true)),
        "the model gets an error for the missing tool",
    )?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn tool_not_asked_about(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::session(bash("touch made"))).await?;
    cli.initialize().await?;
    let result = cli.turn("run it").await?;
    cli.check(
        result["permission_denials"][0]["tool_name"] == "Bash",
        "without anybody to ask the tool is denied",
    )?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn tool_fails(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("echo oops >&2; exit 3")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let result = cli.turn("run it").await?;
    cli.check(result["is_error"] == false, "a failed tool does not fail the turn")?;
    cli.check(
        cli.saw(|line| tool_results(line).any(|block| block["is_error"] == true)),
        "the failure of the tool is reported",
    )?;
    cli.finish(0).await
}

pub(super) async fn several_tools(fixture: &Fixture) -> Outcome {
    fixture.file("one.txt", "first\n")?;
    fixture.file("two.txt", "second\n")?;
    let reply = Reply::text("Three things.")
        .and_tool("Read", json!({"file_path": fixture.path("one.txt")}))
        .and_tool("Read", json!({"file_path": fixture.path("two.txt")}))
        .and_tool("Bash", json!({"command": "echo three"}));
    let script = Script::new().otherwise([reply, Reply::text("Done.")]);
    let mut cli =
        fixture.start(Plan::session(script).args(&["--allowedTools", "Bash,Read"])).await?;
    cli.initialize().await?;
    cli.turn("do three things").await?;
    let results = cli.history().iter().flat_map(tool_results).count();
    cli.check(results == 3, "each tool has its result")?;
    cli.finish(0).await
}

pub(super) async fn edits_files(fixture: &Fixture) -> Outcome {
    let notes = fixture.path("notes.txt");
    let script = Script::new().otherwise([
        Reply::tool("Write", json!({"file_path": notes, "content": "one\n"})),
        Reply::tool("Edit", json!({"file_path": notes, "old_string": "one", "new_string": "two"})),
        Reply::text("Done."),
    ]);
    let mut cli =
        fixture.start(Plan::session(script).args(&["--permission-mode", "acceptEdits"])).await?;
    cli.initialize().await?;
    cli.turn("write and edit").await?;
    cli.check(fixture.text_of("notes.txt").as_deref() == Some("two\n"), "both tools ran")?;
    cli.finish(0).await
}
