//! Resumes sessions with a deferred tool call: the call must not run before the host decides.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use claude_agent_kit::hook::{HookResponse, PreToolUse, input::PreToolUseInput};
use claude_agent_kit::{Body, Conversation, Item, Options, Session, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::id::SessionId;
use serde_json::json;

use super::Area;
use crate::harness::Harness;

/// The claim.
pub const AREA: Area = Area {
    name: "deferred",
    claim: "a denied deferred tool call is never executed on resume",
    repetitions: 100,
};

/// The results of many resumed sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Count {
    /// Sessions that were resumed with a deferred call.
    pub resumed: usize,
    /// Sessions that called the hook.
    pub asked: usize,
    /// Sessions that executed the call.
    pub executed: usize,
}

/// The command that the model runs. It appends a line for each execution.
const COMMAND: &str = "echo once >> executed";

/// The file that the command appends to.
pub const MARK: &str = "executed";

/// Returns the options of a run. Bash is allowed, so the call would run without the hook.
pub fn options(harness: &Harness) -> Options {
    // Transcripts are stored even in memory.
    let config = harness.root().join("home/.claude");
    harness.options().env("CLAUDE_CONFIG_DIR", config.to_string_lossy()).allowed_tools(["Bash"])
}

/// Runs a query whose only tool call is deferred.
///
/// # Errors
/// Returns an error when the call was not deferred, or the session failed.
pub async fn defer(harness: &Harness) -> Result<SessionId, Box<dyn Error>> {
    defer_command(harness, COMMAND).await
}

/// Runs a query whose only tool call, this command, is deferred.
///
/// # Errors
/// Returns an error when the call was not deferred, or the session failed.
pub async fn defer_command(harness: &Harness, command: &str) -> Result<SessionId, Box<dyn Error>> {
    let call = Reply::tool("Bash", json!({"command": command, "description": "Run it"}));
    harness.api().set_script(Script::new().otherwise([call]));
    let options = options(harness).on(PreToolUse, |_, _| async { HookResponse::defer() });
    let collected = query("run it", options).await?.collect().await;
    let result = collected.result().ok_or("the query has no result")?;
    if result.deferred_tool_use.is_none() {
        return Err("the call was not deferred".into());
    }
    Ok(result.session_id.clone().ok_or("the result has no session id")?)
}

/// Resumes the session with these options and a hook with this response, until the replayed turn has its result.
/// Returns how often the hook was called.
///
/// # Errors
/// Returns an error when the session failed.
pub async fn resume(
    harness: &Harness,
    options: Options,
    id: SessionId,
    answer: impl Fn() -> HookResponse<PreToolUseInput> + Send + Sync + 'static,
) -> Result<usize, Box<dyn Error>> {
    harness.api().set_script(Script::new().otherwise([Reply::text("Done.")]));
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let options = options.conversation(Conversation::resume(id)).on(PreToolUse, move |_, _| {
        count.fetch_add(1, Ordering::SeqCst);
        let answer = answer();
        async move { answer }
    });
    let session = Session::open(options).await?;
    let mut messages = session.messages();
    while let Some(item) = messages.next().await {
        if let Item::Message(message) = item?
            && matches!(message.body, Body::Result(_))
        {
            break;
        }
    }
    session.stop().await?;
    Ok(asked.load(Ordering::SeqCst))
}

fn deny() -> HookResponse<PreToolUseInput> {
    HookResponse::deny("not approved")
}

/// Defers and denies a call this many times, each in its own session.
///
/// # Errors
/// Returns an error when a session failed.
pub async fn count(harness: &Harness, repetitions: usize) -> Result<Count, Box<dyn Error>> {
    let mut count = Count::default();
    for _ in 0..repetitions {
        let id = defer(harness).await?;
        let asked = resume(harness, options(harness), id, deny).await?;
        count.resumed += 1;
        count.asked += usize::from(asked > 0);
        let mark = harness.project().join(MARK);
        if mark.exists() {
            count.executed += 1;
            std::fs::remove_file(mark)?;
        }
    }
    Ok(count)
}
