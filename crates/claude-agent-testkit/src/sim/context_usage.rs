//! The response to `get_context_usage`.

use super::engine::Engine;
use super::json::{Object, array};
use super::state::lock;
use super::usage::TokenUsage;

/// The assumed sizes of the system prompt and the tools, in tokens.
const PROMPT: usize = 1000;
const TOOLS: usize = 4000;
const MAXIMUM: usize = 1_000_000;

impl Engine {
    /// Returns the context usage, estimated from the length of the conversation.
    pub(super) fn context_usage(&self) -> Object {
        let state = self.state();
        let messages = lock(&state.conversation).to_json().to_string().len() / 4;
        let total = PROMPT + TOOLS + messages;
        let spent = state.usage.total.values().fold(TokenUsage::default(), |all, one| TokenUsage {
            input: all.input + one.input,
            output: all.output + one.output,
        });
        let usage = crate::mock_api::message::usage_json(spent.input, spent.output);
        Object::new()
            .raw("categories", &categories(messages))
            .plain("totalTokens", total)
            .plain("maxTokens", MAXIMUM)
            .plain("rawMaxTokens", MAXIMUM)
            .str("autocompactSource", "model-default")
            .plain("percentage", total * 100 / MAXIMUM)
            .raw("gridRows", &array([array([square()])]))
            .str("model", &state.model)
            .raw("memoryFiles", "[]")
            .raw("mcpTools", "[]")
            .raw("mcpInstructions", "[]")
            .raw("agents", "[]")
            .raw("slashCommands", r#"{"totalCommands":9,"includedCommands":9,"tokens":0}"#)
            .raw(
                "skills",
                r#"{"totalSkills":3,"includedSkills":3,"tokens":0,"skillFrontmatter":[]}"#,
            )
            .plain("autoCompactThreshold", 967_000)
            .plain("isAutoCompactEnabled", true)
            .raw("messageBreakdown", &breakdown(messages))
            .raw("apiUsage", &usage)
    }
}

fn categories(messages: usize) -> String {
    let free = MAXIMUM.saturating_sub(PROMPT + TOOLS + messages);
    let categories = [
        ("system_prompt", "System prompt", PROMPT, "used"),
        ("system_tools", "System tools", TOOLS, "used"),
        ("messages", "Messages", messages, "used"),
        ("free_space", "Free space", free, "free"),
    ];
    array(categories.map(|(id, name, tokens, kind)| {
        Object::new()
            .str("id", id)
            .str("name", name)
            .plain("tokens", tokens)
            .str("color", "inactive")
            .str("kind", kind)
            .done()
    }))
}

/// Returns one square of the usage grid.
fn square() -> String {
    Object::new()
        .str("color", "inactive")
        .plain("isFilled", true)
        .str("categoryName", "System prompt")
        .plain("tokens", PROMPT)
        .plain("percentage", 0)
        .plain("squareFullness", 0.5)
        .done()
}

fn breakdown(messages: usize) -> String {
    Object::new()
        .plain("toolCallTokens", 0)
        .plain("toolResultTokens", 0)
        .plain("attachmentTokens", 0)
        .plain("assistantMessageTokens", messages / 2)
        .plain("userMessageTokens", messages - messages / 2)
        .plain("redirectedContextTokens", 0)
        .plain("unattributedTokens", 0)
        .raw("toolCallsByType", "[]")
        .raw("attachmentsByType", "[]")
        .done()
}
