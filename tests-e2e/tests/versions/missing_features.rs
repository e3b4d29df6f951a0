//! Features that the newest version has and the oldest does not, when they are used on the oldest.

use std::future::Future;
use std::sync::OnceLock;

use claude_agent_kit::hook::{PostToolUse, PreToolUse, Stop};
use claude_agent_kit::{ErrorKind, Session};
use claude_agent_testkit::mock_api::Script;
use claude_wire::control::HostRequest;
use tests_e2e::harness::Harness;
use tests_e2e::parity::{Source, flags, stored};
use tests_e2e::real_cli::{self, InstalledCli};
use tests_e2e::versions::LATER_OPERATIONS;
use tests_e2e::workspace;

use crate::helpers::{start, turn};
use crate::support::{ask, cache_version, error_of, hello, in_time, run};

/// Returns the oldest supported CLI.
fn minimum() -> &'static InstalledCli {
    static CLI: OnceLock<InstalledCli> = OnceLock::new();
    CLI.get_or_init(|| {
        let oldest = &real_cli::pinned_versions()[0];
        let cli = real_cli::install_version(oldest).unwrap_or_else(|error| panic!("{error}"));
        cache_version(&cli);
        cli
    })
}

pub(crate) fn on_minimum<F: Future<Output = ()>>(script: Script, play: impl FnOnce(Harness) -> F) {
    run(async { play(Harness::real(script, minimum()).await.unwrap()).await });
}

#[test]
fn operation_missing_in_the_oldest_cli_is_unsupported() {
    on_minimum(hello(), async |harness| {
        let session = start(harness.options()).await;
        for (operation, fields) in LATER_OPERATIONS {
            let request = fields.replacen('{', &format!(r#"{{"subtype":"{operation}","#), 1);
            let request: HostRequest = serde_json::from_str(&request.replace(",}", "}")).unwrap();
            let error = session.request(request).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{operation}: {error}");
        }
        // The session still works.
        assert_eq!(turn(&session, "hello").await.text, "Hello.");
        session.stop().await.unwrap();
    });
}

#[test]
fn flag_missing_in_the_oldest_cli_is_named_in_the_error() {
    on_minimum(hello(), async |harness| {
        let options = harness.options().add_arg("desktop");
        let collected = ask("hello", options).await;
        let error = error_of(&collected);
        assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
        assert!(error.to_string().contains("--desktop"), "{error}");
        assert!(error.help().is_some_and(|hint| hint.contains("update the CLI")));
        assert!(harness.api().requests().is_empty());
    });
}

#[test]
fn fail_closed_hook_is_rejected_at_startup_on_the_oldest_cli() {
    on_minimum(hello(), async |harness| {
        let events = ["PreToolUse", "Stop", "PostToolUse"];
        for (event, options) in events.into_iter().zip([
            harness.options().on(PreToolUse.fail_closed(), |_, _| async {}),
            harness.options().on(Stop.fail_closed(), |_, _| async {}),
            harness.options().on(PostToolUse.fail_closed(), |_, _| async {}),
        ]) {
            let error = in_time(Session::start(options)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InitializeRejected, "{error}");
            let text = error.to_string();
            // Whole words: "PostToolUse" is not in an error about "PreToolUse".
            let words = text.split(|letter: char| !letter.is_ascii_alphanumeric());
            let named: Vec<&str> = words.filter(|word| events.contains(word)).collect();
            assert!(!named.is_empty() && named.iter().all(|word| *word == event), "{error}");
        }
        assert!(harness.api().requests().is_empty());
    });
}

/// Flags of the newest version that the oldest one does not have.
const FLAGS: [&str; 1] = ["--desktop"];

#[test]
fn missing_features_of_the_oldest_cli_are_documented() {
    let known = flags::of(minimum()).unwrap();
    let newest = stored::load(Source::Cli).unwrap();
    let lacking: Vec<&str> =
        newest.difference(&known).filter_map(|flag| flag.strip_prefix("flag ")).collect();
    assert_eq!(lacking, FLAGS);
    let document = std::fs::read_to_string(workspace::root().join("docs/cli-versions.md")).unwrap();
    let operations = LATER_OPERATIONS.iter().map(|(operation, _)| *operation);
    for name in operations.chain(FLAGS) {
        assert!(
            document.contains(&format!("`{name}`")),
            "docs/cli-versions.md does not list {name}"
        );
    }
}
