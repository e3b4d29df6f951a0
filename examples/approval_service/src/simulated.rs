//! A simulated model, for trying the service without an account.

use claude_agent_kit::testing::{ApiRequest, Reply, Script};
use serde_json::json;

/// The beginning of the prompt with which the CLI continues after a call that it deferred.
const REPLAYED: &str = "Continue from where you left off";

/// Runs the first prompt of each conversation as a shell command, and answers with its output.
pub(crate) fn script() -> Script {
    Script::respond_with(|request: &ApiRequest| {
        let is_replayed = request.last_prompt().is_some_and(|prompt| prompt.starts_with(REPLAYED));
        let prompts = request.prompts();
        match prompts.first() {
            Some(command) if !is_replayed && request.assistant_turns_after_last_prompt() == 0 => {
                Reply::tool("Bash", json!({"command": command, "description": "Run the prompt"}))
            }
            _ => {
                let results = request.tool_results();
                let result = results.last().and_then(|result| result["content"].as_str());
                Reply::text(format!("The command returned: {}", result.unwrap_or_default()))
            }
        }
    })
}
