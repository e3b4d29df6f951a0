//! Continues parked conversations whose replays were lost, or whose approvals were finished too early.

use std::error::Error;
use std::fs;
use std::time::Duration;

use claude_agent_kit::approval::{self, ApprovalPolicy, ApprovalStatus, Approvals, Decision};
use claude_agent_kit::store::MemoryStore;
use claude_agent_kit::{Conversation, Options, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

use super::Area;
use crate::harness::Harness;

/// The claim.
pub const AREA: Area = Area {
    name: "continuations",
    claim: "a host sees the turn of an approved call that the CLI replays, with and without an in-process server, and \
            an approval is finished by the result of its own call, even in a background agent",
    repetitions: 12,
};

/// A conversation.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// The CLI replays the call of a session without an in-process server.
    Call,
    /// The CLI replays the call of a session with an in-process server.
    Server,
    /// An agent in the background repeats its call.
    Agent,
}

/// All of them.
pub const KINDS: [Kind; 3] = [Kind::Call, Kind::Server, Kind::Agent];

/// The command is still running when the main conversation has answered.
const COMMAND: &str = "echo begun >> executed; sleep 1; echo ended >> executed";

fn script(kind: Kind) -> Script {
    let bash = || Reply::tool("Bash", json!({"command": COMMAND, "description": "Run it"}));
    let agent = json!({
        "description": "sub", "prompt": "sub task", "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    let start = || [Reply::tool("Agent", agent.clone()), Reply::text("Done.")];
    let script = Script::new().when("sub task", [bash(), Reply::text("sub over")]);
    match kind {
        Kind::Call | Kind::Server => script
            .when("run it", [bash(), Reply::text("Not this time.")])
            .otherwise([Reply::text("Done.")]),
        Kind::Agent => script
            .when("run it", start())
            .when("waiting for approval", start())
            .otherwise([Reply::text("Noted.")]),
    }
}

/// Parks a conversation, approves its call, and continues it.
///
/// # Errors
/// Returns an error when a run failed, or the claim does not hold.
pub async fn play(harness: Harness, kind: Kind) -> Result<(), Box<dyn Error>> {
    let harness = if matches!(kind, Kind::Call) { harness } else { harness.with_tools() };
    harness.api().set_script(script(kind));
    let mark = harness.project().join("executed");
    let approvals = Approvals::new("tenant", MemoryStore::new());
    let output = query("run it", options(&harness, &approvals)).await?.collect().await;
    let output = output.into_result()?;
    let session = output.session_id().ok_or("no session")?.clone();
    let [parked] = &output.approvals[..] else {
        return Err(format!("{:?}", output.approvals).into());
    };
    approvals.decide(&parked.request.id, Decision::allow("ana")).await?;
    let options = options(&harness, &approvals).conversation(Conversation::resume(session));
    let outcome = approval::resume(options).await?.ok_or("nothing was continued")?;
    let text = outcome.into_result()?.text;
    let executed = fs::read_to_string(&mark).unwrap_or_default();
    fs::remove_file(&mark)?;
    let status = approvals.get(&parked.request.id).await?.ok_or("no approval")?.status;
    if (&*text, &*executed, status) == ("Done.", "begun\nended\n", ApprovalStatus::Finished) {
        return Ok(());
    }
    Err(format!("{text:?}, {executed:?}, {status}").into())
}

fn options(harness: &Harness, approvals: &Approvals) -> Options {
    let policy = ApprovalPolicy::new(approvals.clone()).tools(["Bash"]).park_after(Duration::ZERO);
    let config = harness.root().join("home/.claude");
    harness
        .options()
        .env("CLAUDE_CONFIG_DIR", config.to_string_lossy())
        .allowed_tools(["Bash", "Agent"])
        .approvals(policy)
}
