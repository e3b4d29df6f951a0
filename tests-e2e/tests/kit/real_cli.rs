//! Queries on the real CLI, and on the simulated CLI where it can do the same.

use std::fs;
use std::time::Duration;

use claude_agent_kit::{Conversation, Error, ErrorKind, Include, Json, Options, Session, query};
use claude_agent_testkit::mock_api::{ApiRequest, Reply, Script};
use claude_wire::message::{Accumulator, ResultSubtype, TerminalReason, Update};
use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use crate::support::{SIM, ask, codes, count, error_of, hello, in_time, on_all, real, run};

/// Asserts that the run itself had no error or warning, whatever its result.
fn assert_clean(collected: &claude_agent_kit::Collected) {
    assert!(collected.error.is_none(), "{:?}", collected.error);
    assert_eq!(codes(collected), []);
    for message in collected.messages() {
        assert!(message.undecodable().is_none(), "{:?}", message.raw());
    }
}

fn bash(command: &str) -> Script {
    let input = json!({"command": command, "description": "Does it"});
    Script::new().otherwise([Reply::tool("Bash", input), Reply::text("Done.")])
}

#[test]
fn allowed_tool_runs() {
    on_all(
        || bash("echo effect > made"),
        async |harness| {
            let collected = ask("run it", harness.options().allowed_tools(["Bash"])).await;
            assert_clean(&collected);
            assert_eq!(collected.text(), "Done.");
            assert_eq!(fs::read_to_string(harness.project().join("made")).unwrap(), "effect\n");
            assert!(count(&collected, "user") >= 1, "the tool result is delivered");
        },
    );
}

#[test]
fn tool_that_is_not_allowed_does_not_run() {
    on_all(
        || bash("echo effect > made"),
        async |harness| {
            let options = harness.options().allowed_tools(["Bash"]).disallowed_tools(["Bash"]);
            let collected = ask("run it", options).await;
            assert_clean(&collected);
            assert!(!harness.project().join("made").exists());
        },
    );
}

#[test]
fn query_can_be_resumed_by_session_id() {
    run(async {
        for harness in [
            Harness::sim_process(hello(), SIM).await.unwrap(),
            Harness::real(hello(), real()).await.unwrap(),
        ] {
            let mut first = query("remember the number 7", harness.options()).await.unwrap();
            while let Some(item) = first.next().await {
                item.unwrap();
            }
            let session = first.session_id().unwrap().clone();
            let collected = ask(
                "which number?",
                harness.options().conversation(Conversation::resume(session.clone())),
            )
            .await;
            assert_clean(&collected);
            assert_eq!(collected.result().unwrap().session_id.as_ref(), Some(&session));
            let requests = harness.api().requests();
            let prompts = requests.last().unwrap().prompts();
            assert!(prompts.iter().any(|prompt| prompt.contains("number 7")), "{prompts:?}");
        }
    });
}

#[test]
fn resuming_a_missing_session_is_an_error() {
    run(async {
        for harness in [
            Harness::sim_process(hello(), SIM).await.unwrap(),
            Harness::real(hello(), real()).await.unwrap(),
        ] {
            let options = harness
                .options()
                .conversation(Conversation::resume("00000000-0000-4000-8000-000000000000"));
            let collected = ask("hello", options).await;
            let error = collected.into_result().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConversationNotFound, "{error}");
        }
    });
}

/// Runs a query with an API that always replies like this, and checks its error.
fn with_api_error(reply: impl Fn() -> Reply, check: impl Fn(&Error)) {
    let script = || Script::new().otherwise([reply()]);
    on_all(script, async |harness| {
        let options = harness.options().env("CLAUDE_CODE_MAX_RETRIES", "1");
        let collected = ask("hello", options).await;
        assert_clean(&collected);
        assert!(collected.result().unwrap().is_error());
        let session = harness.options().env("CLAUDE_CODE_MAX_RETRIES", "1");
        let session = Session::start(session).await.unwrap();
        let outcome = in_time(session.send("hello").await.unwrap().finish()).await.unwrap();
        session.stop().await.unwrap();
        for error in [collected.into_result().unwrap_err(), outcome.into_result().unwrap_err()] {
            check(&error);
        }
    });
}

#[test]
fn missing_model_gives_an_error_result() {
    let reply = || Reply::error(404, "not_found_error", "model: no-such-model");
    with_api_error(reply, |error| {
        assert_eq!((error.kind(), error.api_status()), (ErrorKind::ModelNotFound, Some(404)));
        assert!(!error.is_retryable(), "{error}");
    });
}

#[test]
fn rejected_api_key_gives_an_error_result_about_login() {
    let reply = || Reply::error(401, "authentication_error", "invalid x-api-key");
    with_api_error(reply, |error| {
        assert_eq!((error.kind(), error.api_status()), (ErrorKind::LoginMissing, Some(401)));
        assert!(error.to_string().contains("Invalid API key"), "{error}");
        assert!(!error.is_retryable() && !error.is_resumable(), "{error}");
    });
}

#[test]
fn broken_api_gives_an_error_result() {
    let reply = || Reply::error(500, "api_error", "it broke");
    with_api_error(reply, |error| {
        assert_eq!((error.kind(), error.api_status()), (ErrorKind::ApiError, Some(500)));
        assert!(error.is_retryable() && error.is_resumable(), "{error}");
    });
}

#[test]
fn overload_and_rate_limit_errors_say_when_to_retry() {
    let reply = || Reply::error(529, "overloaded_error", "Overloaded");
    with_api_error(reply, |error| {
        assert_eq!(error.kind(), ErrorKind::Overloaded, "{error}");
        assert!(error.is_retryable() && error.retry_after().is_some(), "{error}");
    });
    let reply = || Reply::error(429, "rate_limit_error", "slow down").retry_after(1);
    with_api_error(reply, |error| {
        assert_eq!(error.kind(), ErrorKind::RateLimited, "{error}");
        // CLI 2.1.326 and newer add a random part.
        let delay = error.retry_after().unwrap();
        let expected = Duration::from_secs(1)..Duration::from_secs(2);
        assert!(expected.contains(&delay), "{delay:?}: {error}");
    });
}

#[test]
fn cli_retries_a_rate_limited_request() {
    let script = || {
        let slow_down = Reply::error(429, "rate_limit_error", "slow down").retry_after(1);
        Script::new().when_attempts("hello", [slow_down, Reply::text("Now.")])
    };
    on_all(script, async |harness| {
        let collected = ask("hello", harness.options()).await;
        assert_clean(&collected);
        assert_eq!(collected.text(), "Now.");
        assert!(!collected.result().unwrap().is_error());
        let retried =
            collected.messages().any(|message| message.raw_str().unwrap().contains("api_retry"));
        assert!(retried, "the host receives the retry");
    });
}

#[test]
fn exceeding_max_turns_gives_an_error_result() {
    on_all(
        || bash("echo hi"),
        async |harness| {
            let options = harness.options().allowed_tools(["Bash"]).max_turns(1);
            let collected = ask("run it", options).await;
            assert_clean(&collected);
            let result = collected.result().unwrap();
            assert_eq!(result.subtype, Some(ResultSubtype::ErrorMaxTurns));
            let error = collected.into_result().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::MaxTurns, "{error}");
            assert!(error.is_resumable() && !error.is_retryable(), "{error}");
        },
    );
}

#[test]
fn missing_api_key_gives_an_error_result() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let collected = ask("hello", harness.options().env("ANTHROPIC_API_KEY", "")).await;
        assert_clean(&collected);
        assert_eq!(collected.into_result().unwrap_err().kind(), ErrorKind::LoginMissing);
        for harness in [
            Harness::in_memory(hello()).await.unwrap(),
            Harness::sim_process(hello(), SIM).await.unwrap(),
        ] {
            let collected = ask("hello", harness.options().env("CLAUDE_SIM_LOGIN", "none")).await;
            assert_clean(&collected);
            assert_eq!(collected.into_result().unwrap_err().kind(), ErrorKind::LoginMissing);
        }
    });
}

#[test]
fn print_mode_gives_the_same_answer() {
    on_all(
        || bash("echo effect > made"),
        async |harness| {
            let options = harness.options().print_mode(true).allowed_tools(["Bash"]);
            let collected = ask("-starts with a dash", options).await;
            assert_clean(&collected);
            assert_eq!(collected.text(), "Done.");
            assert_eq!(fs::read_to_string(harness.project().join("made")).unwrap(), "effect\n");
            let prompt = harness.api().requests().last().unwrap().prompts().join(" ");
            assert!(prompt.contains("-starts with a dash"), "{prompt}");
        },
    );
}

#[test]
fn print_mode_rejects_a_prompt_that_is_too_long_for_the_command_line() {
    run(async {
        let harness = Harness::sim_process(hello(), SIM).await.unwrap();
        for prompt in ["x".repeat(200_000), "nul \0 inside".to_owned()] {
            let options = harness.options().print_mode(true);
            let error = crate::support::start_error(prompt, options).await;
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
            assert!(error.to_string().contains("prompt"), "{error}");
        }
    });
}

/// Runs a query with both system prompts, and checks what reached the model.
async fn assert_system_prompts(harness: Harness, print_mode: bool) {
    let options = harness
        .options()
        .print_mode(print_mode)
        .system_prompt("You are the first marker.")
        .system_prompt(claude_agent_kit::SystemPrompt::default().append("And the second marker."));
    assert_clean(&ask("hello", options).await);
    let requests = harness.api().requests();
    let system = requests.iter().rev().find(|request| request.stream()).unwrap().system_text();
    assert!(system.contains("the first marker"), "{system}");
    assert!(system.contains("the second marker"), "{system}");
}

#[test]
fn both_system_prompts_reach_the_model() {
    for print_mode in [true, false] {
        on_all(hello, async |harness| assert_system_prompts(harness, print_mode).await);
    }
}

#[test]
fn concatenated_partial_messages_are_the_text() {
    let text = "One, two, three, four and five.";
    on_all(
        || Script::new().otherwise([Reply::text(text).deltas_of(3)]),
        async |harness| {
            let options = harness.options().include(Include::PARTIAL_MESSAGES);
            let collected = ask("count", options).await;
            assert_clean(&collected);
            let mut pieces = Vec::new();
            let mut accumulator = Accumulator::new();
            for message in collected.messages() {
                for update in accumulator.push(&message.body) {
                    if let Update::Text(_, piece) = update {
                        pieces.push(piece);
                    }
                }
            }
            assert_eq!(pieces.concat(), text);
            assert!(pieces.len() > 3, "{pieces:?}");
        },
    );
}

#[test]
fn structured_output_is_in_the_result() {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    let script = || {
        let answer = Reply::tool("StructuredOutput", json!({"city": "Paris"}));
        Script::new().otherwise([answer, Reply::text("Done.")])
    };
    let assert_structured = async |harness: Harness, print_mode| {
        let schema = Json::from_text(schema).unwrap();
        let options = harness.options().output_schema(schema).print_mode(print_mode);
        let collected = ask("which city?", options).await;
        assert_clean(&collected);
        let output = collected.result().unwrap().structured_output.clone().unwrap();
        assert_eq!(output.deserialize::<Value>().unwrap(), json!({"city": "Paris"}));
    };
    for print_mode in [true, false] {
        on_all(script, async |harness| assert_structured(harness, print_mode).await);
    }
}

#[test]
fn prompt_of_8_mib_arrives_completely() {
    let prompt = format!("begin {} end", "x".repeat(8 * 1024 * 1024));
    on_all(hello, async |harness| {
        // The real CLI itself rejects prompts that are too long for any model.
        let options = harness.options().env("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "100000000");
        let collected = ask(prompt.as_str(), options).await;
        assert_clean(&collected);
        let requests = harness.api().requests();
        let prompts: Vec<String> = requests.iter().flat_map(ApiRequest::prompts).collect();
        let arrived = prompts.iter().any(|text| text.contains(&prompt));
        assert!(arrived, "{:?}", collected.result().unwrap().result);
    });
}

#[test]
fn overlong_prompt_gives_an_error_result_on_the_real_cli() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let collected = ask("x".repeat(8 * 1024 * 1024), harness.options()).await;
        assert_clean(&collected);
        let result = collected.result().unwrap();
        assert_eq!(result.terminal_reason, Some(TerminalReason::BlockingLimit));
        assert_eq!(collected.into_result().unwrap_err().kind(), ErrorKind::PromptTooLong);
    });
}

#[test]
fn prompt_with_a_nul_byte_arrives_unchanged() {
    on_all(hello, async |harness| {
        let collected = ask("before \0 after", harness.options()).await;
        assert_clean(&collected);
        let prompt = harness.api().requests().last().unwrap().last_prompt().unwrap();
        assert!(prompt.contains("before \0 after"), "{prompt:?}");
    });
}

#[test]
fn extra_flag_reaches_the_cli_and_an_unknown_one_is_an_options_error() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        let options = harness.options().add_arg(("--no-such-flag", "some-value"));
        let collected = ask("hello", options).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert_eq!(error.flag(), Some("--no-such-flag"));
        assert!(!error.to_string().contains("some-value"), "{error}");
        let options: Options = harness.options().add_arg("disable-slash-commands");
        assert_clean(&ask("hello", options).await);
    });
}
