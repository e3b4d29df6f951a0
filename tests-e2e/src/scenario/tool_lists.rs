//! The tools that are offered to the model: `--tools`, rules, schemas and servers.

use std::collections::BTreeSet;

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::cli::Cli;
use super::tools::tool_results;
use super::{Failure, Fixture, Outcome, Plan};

const CALC: &str = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;
const CITY: &str = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}"#;

/// The search tool that the real CLI offers instead of deferred tools.
const PLACEHOLDER: &str = "DeferredToolPlaceholder";

/// Expects exactly these tools, in `system/init` and in the requests to the model.
fn check_tools(cli: &Cli, expected: &[&str]) -> Result<(), Failure> {
    let listed = cli.history().iter().find(|line| line["subtype"] == "init");
    let listed = listed.map_or(&Value::Null, |line| &line["tools"]);
    cli.check(*listed == json!(expected), &format!("init lists {expected:?}"))?;
    // The model sees it under another name.
    let expected = expected.iter().map(|name| if *name == "Task" { "Agent" } else { name });
    let expected: BTreeSet<String> = expected.map(str::to_owned).collect();
    for request in cli.api()?.requests().iter().filter(|request| request.stream()) {
        let mut offered: BTreeSet<String> = request.tool_names().into_iter().collect();
        offered.remove(PLACEHOLDER);
        cli.check(
            offered == expected,
            &format!("the model is offered {expected:?}, not {offered:?}"),
        )?;
    }
    Ok(())
}

/// Expects a tool error that reports a missing tool.
fn check_refused(cli: &Cli, name: &str) -> Result<(), Failure> {
    let text = format!("No such tool available: {name}");
    let is_reported = cli.saw(|line| {
        tool_results(line)
            .any(|block| block["is_error"] == true && block["content"].to_string().contains(&text))
    });
    cli.check(is_reported, "the model gets an error for the missing tool")
}

pub(super) async fn tools_listed(fixture: &Fixture) -> Outcome {
    fixture.file("notes.txt", "one\n")?;
    let script = Script::new().otherwise([
        Reply::tool("Read", json!({"file_path": fixture.path("notes.txt")})),
        Reply::tool("Bash", json!({"command": "touch made", "description": "Make it"})),
        Reply::text("Done."),
    ]);
    let plan = Plan::session(script).args(&["--tools", "Read,Grep"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("read it").await?;
    check_tools(&cli, &["Grep", "Read"])?;
    check_refused(&cli, "Bash")?;
    cli.check(fixture.text_of("made").is_none(), "the tool did not run")?;
    cli.finish(0).await
}

pub(super) async fn tools_listed_by_odd_names(fixture: &Fixture) -> Outcome {
    let names = "read,Write,NoSuchTool,Agent,default,Read(*.rs),Write,StructuredOutput,KillShell";
    let mut cli = fixture.start(Plan::hello().args(&["--tools", names])).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    check_tools(&cli, &["Task", "TaskStop", "Write"])?;
    cli.finish(0).await
}

pub(super) async fn tools_none(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::tool("Read", json!({"file_path": fixture.path("notes.txt")})),
        Reply::text("Done."),
    ]);
    let mut cli = fixture.start(Plan::session(script).args(&["--tools", ""])).await?;
    cli.initialize().await?;
    cli.turn("read it").await?;
    check_tools(&cli, &[])?;
    check_refused(&cli, "Read")?;
    cli.finish(0).await
}

pub(super) async fn tools_listed_and_servers(fixture: &Fixture) -> Outcome {
    let script = Script::new()
        .otherwise([Reply::tool("mcp__calc__add", json!({"a": 2, "b": 3})), Reply::text("Five.")]);
    let plan = Plan::session(script).with_permission_prompts().args(&[
        "--tools",
        "Read,AskUserQuestion",
        "--disallowedTools",
        "mcp__calc__fail",
        "--mcp-config",
        CALC,
    ]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("add 2 and 3").await?;
    check_tools(&cli, &["AskUserQuestion", "Read", "mcp__calc__add", "mcp__calc__look"])?;
    cli.finish(0).await
}

pub(super) async fn tools_added_by_rules(fixture: &Fixture) -> Outcome {
    let plan = Plan::hello().args(&["--allowedTools", "Grep,TaskList"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    let added = ["Glob", "Grep", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"];
    let listed = cli.history().iter().find(|line| line["subtype"] == "init");
    let listed = listed.and_then(|line| line["tools"].as_array()).into_iter().flatten();
    let listed: BTreeSet<&str> = listed.filter_map(Value::as_str).collect();
    cli.check(added.iter().all(|name| listed.contains(name)), "the rules add tools")?;
    cli.finish(0).await
}

pub(super) async fn tools_all_denied(fixture: &Fixture) -> Outcome {
    let plan = Plan::hello().args(&["--disallowedTools", "*", "--mcp-config", CALC]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    check_tools(&cli, &[])?;
    cli.finish(0).await
}

pub(super) async fn structured_output_and_tools(fixture: &Fixture) -> Outcome {
    fixture.file("notes.txt", "Paris\n")?;
    let script = Script::new().otherwise([
        Reply::tool("Read", json!({"file_path": fixture.path("notes.txt")})),
        Reply::tool("StructuredOutput", json!({"city": "Paris"})),
        Reply::text("Paris."),
    ]);
    let arguments = ["--tools", "Read,Grep", "--json-schema", CITY];
    typed(fixture, Plan::session(script).args(&arguments), &["Grep", "Read", "StructuredOutput"])
        .await
}

pub(super) async fn structured_output_without_tools(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::tool("StructuredOutput", json!({"city": "Paris"})),
        Reply::text("Paris."),
    ]);
    let arguments = ["--tools", "", "--json-schema", CITY];
    typed(fixture, Plan::session(script).args(&arguments), &["StructuredOutput"]).await
}

pub(super) async fn structured_output_missing(fixture: &Fixture) -> Outcome {
    let plan = Plan::hello().args(&["--json-schema", CITY]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let result = cli.turn("which city?").await?;
    cli.check(result["structured_output"].is_null(), "no structured output")?;
    cli.finish(0).await
}

/// Requests a structured answer from a model that is offered these tools.
async fn typed(fixture: &Fixture, plan: Plan, tools: &[&str]) -> Outcome {
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let result = cli.turn("which city?").await?;
    check_tools(&cli, tools)?;
    cli.check(
        result["structured_output"] == json!({"city": "Paris"}),
        "the value is in the result",
    )?;
    cli.finish(0).await
}
