//! The effect of a failing fail-closed hook, for each event, on the real CLI.

use std::collections::BTreeSet;

use claude_agent_kit::hook::{HookRegistration, PreToolUse, RawHookResponse, SessionStart};
use claude_agent_kit::{BoxError, ErrorKind, Options, Session, TurnOutcome};
use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;
use tests_e2e::external_mcp::ELICITATION_SERVER;
use tests_e2e::harness::Harness;

use crate::helpers::{Notes, bash, has_file, model_received, on_both, one_turn, start, turn};
use crate::support::{hello, in_time, real, run};

/// Registers a fail-closed hook that fails.
fn with_failing_guard(options: Options, event: &str) -> Options {
    options.on(HookRegistration::named(event).fail_closed(), |_, _| async {
        Err::<RawHookResponse, BoxError>("the policy server is gone".into())
    })
}

fn path(harness: &Harness, name: &str) -> String {
    harness.project().join(name).to_string_lossy().into_owned()
}

fn write(harness: &Harness, name: &str, text: &str) {
    let path = harness.project().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Prepares a project in which every event can be triggered.
async fn prepare_project() -> (Harness, Options) {
    let done = || Reply::text("Done.");
    let harness = Harness::real(hello(), real()).await.unwrap();
    let delegate = json!({"description": "Greet", "prompt": "greet the world",
        "subagent_type": "general-purpose", "run_in_background": false});
    let call = json!({"command": "echo OUTPUT; touch made", "description": "Run it"});
    harness.api().set_script(
        Script::new()
            .when("greet the world", [Reply::text("Greeted.")])
            .when("now run", [Reply::tool("Bash", call), done()])
            .when("now delegate", [Reply::tool("Agent", delegate), done()])
            .when("now ask me", [Reply::tool("mcp__asker__greet", json!({})), done()])
            .when("now worktree", [Reply::tool("EnterWorktree", json!({"name": "side"})), done()])
            .otherwise([Reply::text("Hello.")]),
    );
    write(&harness, ".claude/commands/greet.md", "Greet $ARGUMENTS.\n");
    write(&harness, "server.sh", ELICITATION_SERVER);
    let server = json!({"command": "sh", "args": [path(&harness, "server.sh")]});
    let options = harness
        .options()
        .allowed_tools(["Bash", "EnterWorktree", "mcp__asker__greet", "Agent"])
        .mcp("asker", server);
    (harness, options)
}

/// Returns how many requests the model received.
fn model_calls(harness: &Harness) -> usize {
    harness.api().requests().len()
}

async fn run_turn(options: Options, prompt: &str) -> TurnOutcome {
    let session = start(options).await;
    let outcome = turn(&session, prompt).await;
    in_time(session.stop()).await.unwrap();
    outcome
}

fn terminal_reason(outcome: &TurnOutcome) -> &str {
    outcome.result.terminal_reason.as_ref().map(AsRef::as_ref).unwrap_or_default()
}

#[test]
fn failing_guard_denies_tools_permissions_and_model_switches() {
    run(async {
        for (event, allowed) in [("PreToolUse", "Bash"), ("PermissionRequest", "Read")] {
            let (harness, options) = prepare_project().await;
            run_turn(with_failing_guard(options.allowed_tools([allowed]), event), "now run").await;
            assert!(!has_file(&harness, "made"), "{event}");
            assert!(model_received(&harness, "the policy server is gone"), "{event}");
        }
        let (_stage, options) = prepare_project().await;
        let session = start(with_failing_guard(options, "PreModelSwitch")).await;
        let error = session.set_model("claude-haiku-5-5").await.unwrap_err();
        assert_eq!(error.code(), Some("blocked_by_hook"), "{error}");
        in_time(session.stop()).await.unwrap();
    });
}

#[test]
fn failing_guard_blocks_prompts_commands_compaction_and_worktrees() {
    run(async {
        for (event, prompt) in
            [("UserPromptSubmit", "now run"), ("UserPromptExpansion", "/greet everybody")]
        {
            let (harness, options) = prepare_project().await;
            run_turn(with_failing_guard(options, event), prompt).await;
            assert_eq!(model_calls(&harness), 0, "{event}");
        }
        let (harness, options) = prepare_project().await;
        let session = start(with_failing_guard(options, "PreCompact")).await;
        turn(&session, "hello").await;
        let before = model_calls(&harness);
        turn(&session, "/compact").await;
        assert_eq!(model_calls(&harness), before, "the context was compacted");
        in_time(session.stop()).await.unwrap();
        let (harness, options) = prepare_project().await;
        run_turn(with_failing_guard(options, "WorktreeCreate"), "now worktree").await;
        assert!(!has_file(&harness, ".claude/worktrees"), "a worktree was created");
    });
}

#[test]
fn failing_guard_ends_the_turn_before_the_next_model_request() {
    run(async {
        for (event, prompt, calls, reason) in [
            ("PostToolUse", "now run", 1, "hook_stopped"),
            ("PostToolBatch", "now run", 1, "hook_stopped"),
            ("Stop", "hello", 1, "stop_hook_prevented"),
            // The subagent ends; its caller continues.
            ("SubagentStop", "now delegate", 3, "completed"),
        ] {
            let (harness, options) = prepare_project().await;
            let outcome = run_turn(with_failing_guard(options, event), prompt).await;
            assert_eq!(terminal_reason(&outcome), reason, "{event}");
            assert_eq!(model_calls(&harness), calls, "{event}");
            assert!(!model_received(&harness, "OUTPUT"), "{event}");
        }
    });
}

#[test]
fn failing_guard_declines_elicitations_and_hides_text() {
    run(async {
        let (harness, options) = prepare_project().await;
        run_turn(with_failing_guard(options, "Elicitation"), "now ask me").await;
        assert!(!model_received(&harness, "Ada") && model_received(&harness, "decline"));
        let (harness, options) = prepare_project().await;
        let accept = json!({"hookSpecificOutput": {"hookEventName": "Elicitation",
            "action": "accept", "content": {"name": "Ada"}}});
        let options = options.on(HookRegistration::named("Elicitation"), move |_, _| {
            let accept = RawHookResponse::from(accept.clone());
            async { accept }
        });
        run_turn(with_failing_guard(options, "ElicitationResult"), "now ask me").await;
        assert!(!model_received(&harness, "Ada") && model_received(&harness, "decline"));
        let (_stage, options) = prepare_project().await;
        assert_eq!(run_turn(with_failing_guard(options, "MessageDisplay"), "hello").await.text, "");
    });
}

#[test]
fn failing_stop_guard_never_prolongs_a_turn() {
    on_both(hello, async |harness| {
        let options = harness.options().hooks_fail_closed(true);
        let options = options.on(HookRegistration::named("Stop"), |_, _| async {
            Err::<RawHookResponse, BoxError>("the policy server is gone".into())
        });
        assert_eq!(one_turn(options).await.text, "Hello.");
        assert_eq!(model_calls(&harness), 1);
    });
}

#[test]
fn guard_that_cannot_take_effect_fails_the_start() {
    run(async {
        let harness = Harness::real(bash(&["touch made"]), real()).await.unwrap();
        let options = harness.options();
        let invalid =
            options.clone().on(PreToolUse.matching("Bash(").fail_closed(), |_, _| async {});
        let impossible = options.on(SessionStart.fail_closed(), |_, _| async {});
        for (options, named) in [(invalid, "Bash("), (impossible, "SessionStart")] {
            let error = in_time(Session::start(options)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidOptions, "{error}");
            assert!(error.to_string().contains(named), "{error}");
        }
    });
}

#[test]
fn matchers_of_the_cli_behave_as_documented() {
    const MATCHING: [&str; 17] = [
        "",
        "*",
        "Bash",
        "Edit|Bash",
        "Bash, Edit",
        " Bash",
        ".*",
        "^Ba",
        "B*",
        "(?:Bash)",
        "(?!Edit)",
        "(?<n>Bash)",
        "(?i:bash)",
        "\\w+",
        "[^E]",
        "\\u0042ash",
        "Bash$",
    ];
    const OTHERS: [&str; 6] = ["bash", "Ba", "Edit", "mcp__.*", "!Edit", "Bash]"];
    on_both(
        || bash(&["true"]),
        async |harness| {
            let called = Notes::new();
            let mut options = harness.options().allowed_tools(["Bash"]);
            for pattern in MATCHING.into_iter().chain(OTHERS) {
                let called = called.clone();
                options = options.on(PreToolUse.matching(pattern), move |_, _| {
                    called.add(pattern);
                    async {}
                });
            }
            one_turn(options).await;
            let called: BTreeSet<&str> = called.all().into_iter().collect();
            assert_eq!(called, BTreeSet::from(MATCHING));
        },
    );
}
