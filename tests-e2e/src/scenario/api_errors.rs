//! API errors: rejected requests, failures, and an unreachable API.

use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::tools::bash;
use super::{Cli, Failure, Fixture, Outcome, Plan};

/// Runs one turn with an API that always fails like this; two retries are allowed.
async fn failing(fixture: &Fixture, reply: Reply) -> Result<(Cli, Value), Failure> {
    let script = Script::new().otherwise([reply]);
    let plan = Plan::session(script).env("CLAUDE_CODE_MAX_RETRIES", "2");
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let result = cli.turn("hello").await?;
    cli.check(result["is_error"] == true, "the result is an error")?;
    Ok((cli, result))
}

fn retries(cli: &Cli) -> usize {
    cli.history().iter().filter(|line| line["subtype"] == "api_retry").count()
}

pub(super) async fn api_error_401(fixture: &Fixture) -> Outcome {
    let reply = Reply::error(401, "authentication_error", "invalid x-api-key");
    let (cli, result) = failing(fixture, reply).await?;
    cli.check(result["api_error_status"] == 401, "the result contains the status")?;
    cli.finish(1).await
}

pub(super) async fn api_error_429_then_success(fixture: &Fixture) -> Outcome {
    let script = Script::new().when_attempts(
        "hello",
        [Reply::error(429, "rate_limit_error", "slow down").retry_after(1), Reply::text("Hello.")],
    );
    let mut cli = fixture.start(Plan::session(script)).await?;
    cli.initialize().await?;
    let result = cli.turn("hello").await?;
    cli.check(result["result"] == "Hello.", "the retry succeeds")?;
    cli.check(retries(&cli) == 1, "the retry is reported")?;
    cli.finish(0).await
}

pub(super) async fn api_error_500(fixture: &Fixture) -> Outcome {
    let (cli, result) = failing(fixture, Reply::error(500, "api_error", "it broke")).await?;
    cli.check(result["api_error_status"] == 500, "the result contains the status")?;
    cli.check(retries(&cli) == 2, "both retries are reported")?;
    cli.finish(1).await
}

pub(super) async fn api_error_529(fixture: &Fixture) -> Outcome {
    let (cli, result) = failing(fixture, Reply::error(529, "overloaded_error", "too busy")).await?;
    cli.check(result["api_error_status"] == 529, "the result contains the status")?;
    cli.finish(1).await
}

pub(super) async fn api_error_400(fixture: &Fixture) -> Outcome {
    let reply = Reply::error(400, "invalid_request_error", "that is not right");
    let (cli, _) = failing(fixture, reply).await?;
    cli.check(retries(&cli) == 0, "what is wrong is not tried again")?;
    cli.finish(1).await
}

pub(super) async fn prompt_too_long(fixture: &Fixture) -> Outcome {
    let reason = "prompt is too long: 250000 tokens > 200000 maximum";
    let (cli, result) =
        failing(fixture, Reply::error(400, "invalid_request_error", reason)).await?;
    cli.check(result["terminal_reason"] == "prompt_too_long", "the result contains the reason")?;
    cli.finish(1).await
}

pub(super) async fn api_stream_dropped(fixture: &Fixture) -> Outcome {
    let text = "An answer that is cut off.";
    let reply = Reply::text(text)
        .deltas_of(4)
        .pause_between(Duration::from_millis(50))
        .drop_after_events(5);
    let script = Script::new().when_attempts("hello", [reply, Reply::text("Whole.")]);
    let plan = Plan::session(script)
        .args(&["--include-partial-messages"])
        .env("CLAUDE_CODE_MAX_RETRIES", "2");
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    cli.finish(0).await
}

pub(super) async fn max_turns(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("echo hi")).args(&["--allowedTools", "Bash", "--max-turns", "1"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let result = cli.turn("run it").await?;
    cli.check(result["subtype"] == "error_max_turns", "the turn ends at its limit")?;
    cli.check(result["is_error"] == true, "which is an error")?;
    cli.finish(1).await
}

pub(super) async fn max_budget(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::tool("Bash", json!({"command": "echo hi"})).usage(100_000, 5_000),
        Reply::text("Done."),
    ]);
    let plan = Plan::session(script).args(&["--allowedTools", "Bash", "--max-budget-usd", "0.01"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let result = cli.turn("run it").await?;
    cli.check(result["subtype"] == "error_max_budget_usd", "the turn ends at its budget")?;
    cli.finish(1).await
}

pub(super) async fn missing_key(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello().without_env("ANTHROPIC_API_KEY")).await?;
    cli.initialize().await?;
    let result = cli.turn("hello").await?;
    cli.check(result["is_error"] == true, "the result is an error")?;
    cli.finish(1).await
}
