//! What the newest has and this one has not: what happens there to who asks for it.

use claude_agent_kit::hook::{PreToolUse, PreToolUseAnswer};
use claude_agent_kit::{ErrorKind, Session};
use claude_wire::control::HostRequest;
use tests_e2e::parity::{Source, flags, stored};
use tests_e2e::places;
use tests_e2e::prove::deferred;

use crate::play::{start, turn};
use crate::support::{ask, error_of, hello, in_time};
use crate::{minimum, on_minimum};

/// Published operations that the minimum does not support.
const OPERATIONS: [&str; 6] = [
    r#"{"subtype":"get_hooks_listing"}"#,
    r#"{"subtype":"get_task_output","task_id":"nothing"}"#,
    r#"{"subtype":"list_permission_rules"}"#,
    r#"{"subtype":"mcp_read_resource","serverName":"nobody","uri":"ui://nothing"}"#,
    r#"{"subtype":"set_color","color":"red"}"#,
    r#"{"subtype":"set_has_subscribers","has_subscribers":true}"#,
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
fn a_flag_that_it_does_not_know_is_an_error_that_names_it() {
    on_minimum(hello(), async |stage| {
        let options = stage.options().extra_arg("desktop", None::<&str>);
        let collected = ask("hello", options).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert!(error.to_string().contains("--desktop"), "{error}");
        assert!(error.suggestion().is_some_and(|hint| hint.contains("update the CLI")));
        assert!(stage.api().requests().is_empty());
    });
}

#[test]
fn a_fail_closed_hook_is_refused_at_the_start() {
    on_minimum(hello(), async |stage| {
        let options = stage.options().on(PreToolUse.fail_closed(), |_, _| async {});
        let error = in_time(Session::start(options)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InitializeRejected, "{error}");
        assert!(error.to_string().contains("PreToolUse"), "{error}");
        assert!(stage.api().requests().is_empty());
    });
}

#[test]
fn a_denied_deferred_call_is_not_executed_on_resume() {
    on_minimum(hello(), async |stage| {
        let id = in_time(deferred::defer(&stage)).await.unwrap();
        let options = deferred::options(&stage);
        let deny = || PreToolUseAnswer::deny("not approved");
        let denied = deferred::resume(&stage, options, id, deny);
        assert_eq!(in_time(denied).await.unwrap(), 1);
        assert!(!stage.project().join(deferred::MARK).exists());
    });
}

/// Flags of the newest that it does not tell of.
const FLAGS: [&str; 1] = ["--desktop"];

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
