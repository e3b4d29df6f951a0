//! What the newest has and this one has not: what happens there to who asks for it.

use claude_agent_kit::{ErrorKind, query};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::control::HostRequest;
use tests_e2e::parity::{Source, flags, stored};
use tests_e2e::places;

use crate::play::{start, turn};
use crate::support::{ask, error_of, hello};
use crate::{minimum, on_minimum};

/// Published operations that it does not know.
const OPERATIONS: [&str; 20] = [
    r#"{"subtype":"background_tasks"}"#,
    r#"{"subtype":"file_suggestions","query":"a"}"#,
    r#"{"subtype":"get_binary_version"}"#,
    r#"{"subtype":"get_hooks_listing"}"#,
    r#"{"subtype":"get_session_cost"}"#,
    r#"{"subtype":"get_task_output","task_id":"nothing"}"#,
    r#"{"subtype":"get_usage","skip_behaviors":true}"#,
    r#"{"subtype":"list_models"}"#,
    r#"{"subtype":"list_permission_rules"}"#,
    r#"{"subtype":"mcp_call","tool":"mcp__nobody__nothing"}"#,
    r#"{"subtype":"mcp_read_resource","serverName":"nobody","uri":"ui://nothing"}"#,
    r#"{"subtype":"read_file","path":"nothing"}"#,
    r#"{"subtype":"register_repo_root","directory":"nowhere"}"#,
    r#"{"subtype":"reload_output_styles"}"#,
    r#"{"subtype":"reload_skills"}"#,
    r#"{"subtype":"rename_session","title":"A title"}"#,
    r#"{"subtype":"set_color","color":"red"}"#,
    r#"{"subtype":"set_has_subscribers","has_subscribers":true}"#,
    r#"{"subtype":"set_mcp_permission_mode_override","serverName":"nobody","mode":null}"#,
    r#"{"subtype":"update_settings","source":"localSettings","settings":{"outputStyle":"default"}}"#,
];

#[test]
fn an_operation_that_it_does_not_know_is_an_error_that_says_so() {
    on_minimum(hello(), async |stage| {
        let session = start(stage.options()).await;
        for operation in OPERATIONS {
            let request: HostRequest = serde_json::from_str(operation).unwrap();
            let error = session.request(request).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{operation}: {error}");
        }
        // And it goes on.
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}

#[test]
fn an_option_that_it_would_ignore_is_refused_before_it_is_started() {
    on_minimum(hello(), async |stage| {
        let error = query("/cost", stage.options().verbatim_prompts(true)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert_eq!(error.needs(), Some("2.1.248"));
        assert!(stage.api().requests().is_empty());
    });
}

#[test]
fn a_flag_that_it_does_not_know_is_an_error_that_names_it() {
    on_minimum(hello(), async |stage| {
        let options = stage.options().extra_arg("permission-prompts", Some("none"));
        let collected = ask("hello", options).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert!(error.to_string().contains("--permission-prompts"), "{error}");
        assert!(error.suggestion().is_some_and(|hint| hint.contains("update the CLI")));
        assert!(stage.api().requests().is_empty());
    });
}

#[test]
fn its_results_do_not_say_which_message_they_answer() {
    let script = Script::new().when("one", [Reply::text("1")]).when("two", [Reply::text("2")]);
    on_minimum(script, async |stage| {
        let session = start(stage.options()).await;
        // Turns end in the order in which they were sent, as long as one is sent after the other.
        for (prompt, answer) in [("one", "1"), ("two", "2")] {
            let outcome = turn(&session, prompt).await;
            assert_eq!((outcome.text.as_str(), outcome.named), (answer, false));
        }
        let receipt = session.interrupt().await.unwrap();
        assert!(receipt.still_queued.is_absent(), "{receipt:?}");
        session.stop().await.unwrap();
    });
}

/// Flags of the newest that it does not tell of.
const FLAGS: [&str; 15] = [
    "--autocompact",
    "--ax-screen-reader",
    "--bg",
    "--cloud",
    "--desktop",
    "--environment",
    "--forward-subagent-text",
    "--permission-prompts",
    "--plugin-url",
    "--prompt-suggestions",
    "--remote-control",
    "--restricted",
    "--safe-mode",
    "--system-prompt-snapshot",
    "--teleport",
];

#[test]
fn what_it_lacks_is_written_down() {
    let known = flags::of(minimum()).unwrap();
    let newest = stored::load(Source::Cli).unwrap();
    let lacking: Vec<&str> =
        newest.difference(&known).filter_map(|flag| flag.strip_prefix("flag ")).collect();
    assert_eq!(lacking, FLAGS);
    let document = std::fs::read_to_string(places::root().join("docs/cli-versions.md")).unwrap();
    let operations = OPERATIONS.iter().map(|request| request.split('"').nth(3).unwrap());
    for name in operations.chain(FLAGS) {
        assert!(
            document.contains(&format!("`{name}`")),
            "docs/cli-versions.md does not tell of {name}"
        );
    }
}
