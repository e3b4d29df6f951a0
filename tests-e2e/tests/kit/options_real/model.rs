//! Options for the model and its prompts.

use claude_agent_kit::settings::ThinkingDisplay;
use claude_agent_kit::{Effort, Include, SystemPrompt, Thinking};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::message::ResultSubtype;
use serde_json::json;

use super::{Row, RunOutput, run_rows};

fn betas(output: &RunOutput) -> String {
    output.request().headers.get("anthropic-beta").unwrap_or_default().to_owned()
}

/// Returns whether the system prompt contains a directory of this machine, the memory directory.
fn names_a_directory(output: &RunOutput) -> bool {
    let root = output.harness.root().to_string_lossy().into_owned();
    output.request().system_text().contains(&root)
}

#[test]
fn thinking_reaches_the_api() {
    run_rows([
        Row::new(
            "thinking disabled",
            |_, options| options.thinking(Thinking::disabled()).model("claude-opus-4-6"),
            |output| {
                output.assert_success();
                assert_ne!(output.request().body["thinking"]["type"], "adaptive");
                assert_ne!(output.request().body["thinking"]["type"], "enabled");
            },
        ),
        Row::new(
            "thinking adaptive",
            |_, options| {
                let thinking = Thinking::adaptive().display(ThinkingDisplay::Summarized);
                options.thinking(thinking).model("claude-opus-4-6")
            },
            |output| {
                output.assert_success();
                let thinking = &output.request().body["thinking"];
                assert_eq!(thinking["type"], "adaptive", "{thinking}");
                assert_eq!(thinking["display"], "summarized", "{thinking}");
            },
        ),
        Row::new(
            "thinking budget",
            |_, options| options.thinking(Thinking::budget(2000)).model("claude-sonnet-4-5"),
            |output| {
                output.assert_success();
                assert_eq!(output.request().body["thinking"]["budget_tokens"], 2000);
            },
        ),
        Row::new(
            "thinking: a budget",
            |_, options| options.thinking(Thinking::budget(3000)).model("claude-sonnet-4-5"),
            |output| {
                output.assert_success();
                assert_eq!(output.request().body["thinking"]["budget_tokens"], 3000);
            },
        ),
    ]);
}

#[test]
fn effort_betas_and_budgets_reach_the_api() {
    run_rows([
        Row::new(
            "effort",
            |_, options| options.effort(Effort::Low).model("claude-opus-4-6"),
            |output| {
                output.assert_success();
                assert_eq!(output.request().body["output_config"]["effort"], "low");
            },
        ),
        Row::new(
            "betas",
            |_, options| options.betas(["context-1m-2025-08-07"]).model("claude-sonnet-4-5"),
            |output| {
                output.assert_success();
                assert!(betas(output).contains("context-1m-2025-08-07"), "{}", betas(output));
            },
        ),
        Row::new(
            "task_budget",
            |_, options| options.task_budget(64_000).model("claude-opus-4-6"),
            |output| {
                output.assert_success();
                assert!(betas(output).contains("task-budgets"), "{}", betas(output));
                let config = &output.request().body["output_config"];
                assert_eq!(config["task_budget"]["total"], 64_000, "{config}");
            },
        ),
    ]);
}

#[test]
fn models_budgets_and_streams_reach_the_cli() {
    run_rows([
        Row::new(
            "model, fallback_model",
            |_, options| options.model("claude-opus-4-6").fallback_model("claude-sonnet-4-5"),
            |output| {
                output.assert_success();
                assert_eq!(output.request().model(), "claude-opus-4-6");
            },
        ),
        Row::new(
            "max_budget_usd",
            |_, options| options.max_budget_usd(0.000_001).allowed_tools(["Bash"]),
            |output| {
                let result = output.collected.result().unwrap();
                assert_eq!(result.subtype, Some(ResultSubtype::ErrorMaxBudgetUsd), "{result:?}");
            },
        )
        .script(|| {
            let input = json!({"command": "true", "description": "Does it"});
            Script::new().otherwise([Reply::tool("Bash", input), Reply::text("Done.")])
        }),
        Row::new(
            "include: partial messages, output_schema, max_turns",
            |_, options| {
                options
                    .include(Include::PARTIAL_MESSAGES)
                    .max_turns(5)
                    .output_schema(json!({"type": "object", "properties": {}}))
            },
            |output| {
                output.assert_success();
                assert!(output.messages().contains("\"stream_event\""));
                assert!(output.request().tool_names().contains(&"StructuredOutput".to_owned()));
            },
        )
        .script(|| {
            let answer = Reply::tool("StructuredOutput", json!({}));
            Script::new().otherwise([answer, Reply::text("Done.")])
        }),
    ]);
}

#[test]
fn system_prompts_reach_the_model_in_every_form() {
    run_rows([
        Row::new(
            "system_prompt in parts, system_prompt_snapshot",
            |_, options| {
                let prompt = SystemPrompt::cached("The same marker.", "The changing marker.");
                options.system_prompt(prompt).system_prompt(SystemPrompt::default().snapshot(false))
            },
            |output| {
                output.assert_success();
                let system = output.request().body["system"].to_string();
                assert!(system.contains("The same marker."), "{system}");
                assert!(system.contains("The changing marker."), "{system}");
                assert!(!system.contains("BOUNDARY"), "{system}");
            },
        ),
        Row::new(
            "system_prompt as a file, append_system_prompt",
            |harness, options| {
                super::write(harness.root(), "prompt.txt", "The marker of the file.");
                options
                    .system_prompt(SystemPrompt::file(harness.root().join("prompt.txt")))
                    .system_prompt(SystemPrompt::default().append("The other marker."))
            },
            |output| {
                output.assert_success();
                let system = output.request().system_text();
                assert!(system.contains("The marker of the file."), "{system}");
                assert!(system.contains("The other marker."), "{system}");
            },
        ),
        Row::new(
            "the CLI's own system prompt, for the next row to differ from",
            |_, options| options.model("claude-sonnet-4-5"),
            |output| {
                output.assert_success();
                assert!(names_a_directory(output), "{}", output.request().system_text());
            },
        ),
        Row::new(
            "exclude_dynamic_sections",
            |_, options| {
                options
                    .model("claude-sonnet-4-5")
                    .system_prompt(SystemPrompt::default().exclude_dynamic_sections(true))
            },
            |output| {
                output.assert_success();
                assert!(!names_a_directory(output), "{}", output.request().system_text());
                let root = output.harness.root().to_string_lossy().into_owned();
                assert!(output.body().contains(&root), "the directory is in a message");
            },
        ),
    ]);
}

#[test]
fn instructions_and_prompts_reach_the_model_unchanged() {
    run_rows([
        Row::new(
            "plan_mode_instructions",
            |_, options| options.permission_mode("plan").plan_mode_instructions("The plan marker."),
            |output| {
                output.assert_success();
                assert!(output.body().contains("The plan marker."));
            },
        ),
        Row::new(
            "verbatim_prompts",
            |_, options| options.verbatim_prompts(true),
            |output| {
                output.assert_success();
                let prompt = output.request().last_prompt().unwrap();
                assert!(prompt.contains("/cost of living"), "{prompt}");
            },
        )
        .prompt("/cost of living"),
        Row::new(
            "include: prompt suggestions",
            |_, options| options.include(Include::PROMPT_SUGGESTIONS),
            RunOutput::assert_success,
        ),
    ]);
}
