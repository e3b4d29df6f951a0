//! A host that runs an agent whose tool calls need approval, and may be killed at any time.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_kit::approval::{self, Approval, ApprovalPolicy, Approvals};
use claude_agent_kit::{Conversation, ErrorKind, query};
use claude_agent_store::SqliteStore;
use serde_json::{Value, json};
use tests_e2e::harness::tool_server;

use crate::Outcome;
use crate::stores::{options, text};

/// Sends a prompt, or without one continues the conversation, and prints the outcome as JSON.
#[expect(clippy::print_stdout, reason = "the test reads stdout")]
pub(crate) fn run(task: &str) -> Outcome {
    let task: Value = serde_json::from_str(task)?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let path = text(&task, "store")?.strip_prefix("sqlite:").ok_or("not a SQLite store")?;
        let approvals = Approvals::new("tenant", Arc::new(SqliteStore::open(path).await?));
        let millis = |name: &str| task[name].as_u64().map(Duration::from_millis);
        let mut policy = ApprovalPolicy::new(approvals).tools(["Bash"]);
        if let Some(time) = millis("park_after_ms") {
            policy = policy.park_after(time);
        }
        if let Some(time) = millis("expires_after_ms") {
            policy = policy.expires_after(time);
        }
        let (mut options, id) = (options(&task).await?.approvals(policy), text(&task, "session")?);
        if task["tools"] == true {
            options = options.mcp("harness", tool_server());
        }
        let left: Option<Vec<Approval>> = match task["prompt"].as_str() {
            Some(prompt) => {
                let output = query(prompt, options).await?.collect().await.into_result()?;
                Some(output.approvals)
            }
            None => match approval::resume(options.conversation(Conversation::resume(id))).await {
                Ok(Some(outcome)) => Some(outcome.into_result()?.approvals),
                Ok(None) => None,
                // The first host was killed before anything was stored.
                Err(error) if error.kind() == ErrorKind::ConversationNotFound => None,
                Err(error) => return Err(error.into()),
            },
        };
        println!("{}", json!({"approvals": left}));
        Ok(())
    })
}
