//! Failing starts and resumed sessions.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

use super::{Fixture, Outcome, Plan};

pub(super) async fn unknown_flag(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello().args(&["--no-such-flag"])).await?;
    let line = cli.next().await?;
    cli.check(line.is_none(), "nothing on stdout")?;
    let recording = cli.finish(1).await?;
    let text = String::from_utf8_lossy(&recording.to_bytes()).into_owned();
    if text.contains("unknown option '--no-such-flag'") {
        Ok(recording)
    } else {
        Err(super::Failure::new("stderr names the option", text))
    }
}

pub(super) async fn flat_user_frame(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.send(r#"{"type":"user","content":"hello"}"#).await?;
    while cli.next().await?.is_some() {}
    cli.finish(1).await
}

pub(super) async fn garbage_on_stdin(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.send("this is not JSON").await?;
    while cli.next().await?.is_some() {}
    cli.finish(1).await
}

pub(super) async fn unknown_frame_on_stdin(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.send(r#"{"type":"keep_alive"}"#).await?;
    cli.send(r#"{"type":"weather","sunny":true}"#).await?;
    cli.turn("hello").await?;
    cli.finish(0).await
}

pub(super) async fn resume(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let first = cli.turn("remember the number 7").await?;
    let session = first["session_id"].as_str().unwrap_or_default().to_owned();
    cli.finish(0).await?;

    let script = Script::new().otherwise([Reply::text("Seven.")]);
    let mut cli = fixture.start(Plan::session(script).args(&["--resume", &session])).await?;
    cli.initialize().await?;
    let second = cli.turn("which number?").await?;
    cli.check(second["session_id"] == *session, "the session keeps its ID")?;
    let remembers = cli.api()?.requests().iter().any(|request| {
        request.prompts().iter().any(|prompt| prompt.contains("remember the number 7"))
    });
    cli.check(remembers, "the first prompt is still there")?;
    cli.finish(0).await
}

pub(super) async fn resume_fork(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let first = cli.turn("remember the number 7").await?;
    let session = first["session_id"].as_str().unwrap_or_default().to_owned();
    cli.finish(0).await?;

    let plan = Plan::hello().args(&["--resume", &session, "--fork-session"]);
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let second = cli.turn("which number?").await?;
    cli.check(second["session_id"] != *session, "the fork has an id of its own")?;
    cli.finish(0).await
}

pub(super) async fn resume_and_clear(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let first = cli.turn("remember the number 7").await?;
    let session = first["session_id"].as_str().unwrap_or_default().to_owned();
    cli.finish(0).await?;

    let mut cli = fixture.start(Plan::hello().args(&["--resume", &session])).await?;
    cli.initialize().await?;
    cli.turn("which number?").await?;
    cli.turn("/clear").await?;
    let last = cli.turn("which number?").await?;
    cli.check(last["session_id"] != *session, "the cleared session has an id of its own")?;
    let requests = cli.api()?.requests();
    let remembers = requests.last().is_some_and(|request| {
        request.prompts().iter().any(|prompt| prompt.contains("remember the number 7"))
    });
    cli.check(!remembers, "the first prompt is forgotten")?;
    cli.finish(0).await
}

pub(super) async fn resume_missing(fixture: &Fixture) -> Outcome {
    let id = "00000000-0000-4000-8000-000000000000";
    let mut cli = fixture.start(Plan::hello().args(&["--resume", id])).await?;
    // The CLI may exit before stdin is written.
    drop(cli.request("initialize", json!({})).await);
    while cli.next().await?.is_some() {}
    cli.finish(1).await
}
