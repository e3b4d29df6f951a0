//! The published hook events for which the real CLI calls typed hooks.

use std::collections::BTreeSet;

use claude_agent_kit::hook::{
    ConfigChange, CwdChanged, DirectoryAdded, Elicitation, ElicitationResult, FileChanged,
    HookResponse, InstructionsLoaded, MessageDisplay, Notification, PermissionDenied,
    PermissionRequest, PostCompact, PostModelSwitch, PostToolBatch, PostToolUse,
    PostToolUseFailure, PreCompact, PreModelSwitch, PreToolUse, SessionEnd, SessionStart, Setup,
    Stop, StopFailure, SubagentStart, SubagentStop, TaskCompleted, TaskCreated, TeammateIdle,
    UserPromptExpansion, UserPromptSubmit, WorktreeCreate, WorktreeRemove,
};
use claude_agent_kit::{Options, PermissionMode};
use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::control::RegisterRepoRoot;
use claude_wire::hook_input::HookInput;
use serde_json::json;
use tests_e2e::external_mcp::ELICITATION_SERVER;
use tests_e2e::harness::Harness;

use crate::helpers::{Notes, bash, model_received, repeat_until, start, turn};
use crate::support::{hello, in_time, real, run, until};

/// Registers a hook for each of these events that records the call.
macro_rules! recording_hooks {
    ($options:expr, $notes:expr; $($event:ident)+) => {{
        let options: Options = $options;
        let notes: &Notes<&'static str> = $notes;
        options$( .on($event, {
            let notes = notes.clone();
            move |_, _| {
                notes.add(stringify!($event));
                async {}
            }
        }) )+
    }};
}

/// Returns options with hooks for all events except the three whose responses have an effect here.
fn with_all_hooks(options: Options, notes: &Notes<&'static str>, harness: &Harness) -> Options {
    let options = recording_hooks!(options, notes;
        PreToolUse PostToolUse PostToolUseFailure PostToolBatch PermissionRequest PermissionDenied
        UserPromptSubmit UserPromptExpansion Stop StopFailure Notification MessageDisplay
        ElicitationResult SessionEnd Setup PreCompact PostCompact PreModelSwitch PostModelSwitch
        SubagentStart SubagentStop TaskCreated TaskCompleted TeammateIdle ConfigChange
        InstructionsLoaded CwdChanged FileChanged DirectoryAdded WorktreeRemove);
    let (path, watched) = (path(harness, "side"), path(harness, "watched.txt"));
    let (starts, creates, asks) = (notes.clone(), notes.clone(), notes.clone());
    options
        .on(SessionStart, move |_, _| {
            starts.add("SessionStart");
            let answer = HookResponse::new().watch_paths([watched.clone()]);
            async { answer }
        })
        .on(WorktreeCreate, move |_, _| {
            creates.add("WorktreeCreate");
            let answer = HookResponse::new().worktree_path(path.clone());
            async { answer }
        })
        .on(Elicitation, move |_, _| {
            asks.add("Elicitation");
            async { HookResponse::accept(json!({"name": "Ada"})) }
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

/// Returns a model that performs one action per prompt. The prompts use words that the CLI does not
/// use itself.
fn script(harness: &Harness) -> Script {
    let done = || Reply::text("Done.");
    Script::new()
        .when("greet the world", [Reply::text("Greeted.")])
        .when("now succeed", [bash_call("echo hi"), done()])
        .when("now fail", [bash_call("exit 3"), done()])
        .when(
            "now read",
            [Reply::tool("Read", json!({"file_path": path(harness, "below/notes.txt")})), done()],
        )
        .when(
            "now delegate",
            [
                Reply::tool(
                    "Agent",
                    json!({"description": "Greet", "prompt": "greet the world",
                "subagent_type": "general-purpose", "run_in_background": false}),
                ),
                done(),
            ],
        )
        .when(
            "now plan",
            [
                Reply::tool("TaskCreate", json!({"subject": "Greet", "description": "Greet all"})),
                Reply::tool("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
                done(),
            ],
        )
        .when(
            "now worktree",
            [
                Reply::tool("EnterWorktree", json!({"name": "side"})),
                Reply::tool("ExitWorktree", json!({"action": "remove", "discard_changes": true})),
                done(),
            ],
        )
        .when("now ask me", [Reply::tool("mcp__asker__greet", json!({})), done()])
        .when("now break", [Reply::error(400, "invalid_request_error", "that is not right")])
        .otherwise([Reply::text("Hello.")])
}

fn bash_call(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command, "description": "Run it"}))
}

/// Runs one session in which nearly every event occurs.
async fn long_session() -> Notes<&'static str> {
    let notes = &Notes::new();
    let harness = Harness::real(hello(), real()).await.unwrap();
    harness.api().set_script(script(&harness));
    write(&harness, ".claude/settings.json", "{}\n");
    write(&harness, ".claude/commands/greet.md", "Greet $ARGUMENTS.\n");
    write(&harness, "below/CLAUDE.md", "Be brief.\n");
    write(&harness, "below/notes.txt", "one\n");
    write(&harness, "side/file", "x\n");
    write(&harness, "watched.txt", "one\n");
    write(&harness, "library/README.md", "A library.\n");
    write(&harness, "server.sh", ELICITATION_SERVER);
    let server = json!({"command": "sh", "args": [path(&harness, "server.sh")]});
    let allowed =
        ["Bash", "EnterWorktree", "ExitWorktree", "mcp__asker__greet", "TaskCreate", "TaskUpdate"];
    let options = with_all_hooks(harness.options(), notes, &harness)
        .allowed_tools(allowed)
        .mcp("asker", server);
    let session = start(options).await;
    for prompt in [
        "now succeed",
        "now fail",
        "now read",
        "now delegate",
        "now plan",
        "now worktree",
        "now ask me",
        "/greet everybody",
        "now break",
    ] {
        turn(&session, prompt).await;
    }
    session.set_model("claude-haiku-5-5").await.unwrap();
    session.request(RegisterRepoRoot::from(path(&harness, "library"))).await.unwrap();
    for prompt in ["hello", "/clear", "hello again"] {
        turn(&session, prompt).await;
    }
    let is_told = |name| notes.all().contains(&name);
    let changes = |round: usize| write(&harness, "watched.txt", &"two\n".repeat(round + 1));
    repeat_until("a watched file", changes, || is_told("FileChanged")).await;
    let settings = |round: usize| json!({"env": {"GREETING": format!("hello {round}")}});
    let changes = |round| write(&harness, ".claude/settings.json", &settings(round).to_string());
    repeat_until("settings", changes, || is_told("ConfigChange")).await;
    session.stop().await.unwrap();
    notes.clone()
}

/// Runs a session in which a permission request stays pending for a while.
async fn waiting_session() -> Notes<&'static str> {
    let notes = &Notes::new();
    let harness = Harness::real(bash(&["touch made"]), real()).await.unwrap();
    let options = with_all_hooks(harness.options(), notes, &harness)
        .can_use_tool(|_, _| std::future::pending::<claude_agent_kit::Permission>());
    let session = start(options).await;
    let waiting = session.send("run it").await.unwrap();
    until("the notification hook is called", || notes.all().contains(&"Notification")).await;
    session.interrupt().await.unwrap();
    in_time(waiting.finish()).await.unwrap();
    session.stop().await.unwrap();
    notes.clone()
}

/// Runs a session that compacts its context.
async fn compacting_session() -> Notes<&'static str> {
    let notes = &Notes::new();
    let harness = Harness::real(hello(), real()).await.unwrap();
    let session = start(with_all_hooks(harness.options(), notes, &harness)).await;
    for prompt in ["hello", "/compact"] {
        turn(&session, prompt).await;
    }
    session.stop().await.unwrap();
    notes.clone()
}

/// Runs a session in which a model denies a permission.
async fn refusing_session() -> Notes<&'static str> {
    let notes = &Notes::new();
    let harness = Harness::real(bash(&["touch ../outside"]), real()).await.unwrap();
    let session = start(
        with_all_hooks(harness.options(), notes, &harness).permission_mode(PermissionMode::Auto),
    )
    .await;
    turn(&session, "run it").await;
    session.stop().await.unwrap();
    notes.clone()
}

#[test]
fn typed_hooks_are_called_for_thirty_published_events() {
    run(async {
        let notes = [
            long_session().await,
            waiting_session().await,
            compacting_session().await,
            refusing_session().await,
        ];
        let seen: BTreeSet<&str> = notes.iter().flat_map(Notes::all).collect();
        let unseen: Vec<&str> =
            HookInput::KNOWN.iter().copied().filter(|event| !seen.contains(event)).collect();
        println!("{} events were seen: {seen:?}", seen.len());
        assert_eq!(unseen, ["Setup", "TeammateIdle", "CwdChanged"], "seen: {seen:?}");
    });
}

/// Returns how many requests the model received.
fn requests(harness: &Harness) -> usize {
    harness.api().requests().len()
}

#[test]
fn real_cli_applies_responses_for_models_commands_and_batches() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        harness.api().set_script(script(&harness));
        write(&harness, ".claude/commands/greet.md", "Greet $ARGUMENTS.\n");
        let options = harness
            .options()
            .allowed_tools(["Bash"])
            .on(PreModelSwitch, |_, _| async { HookResponse::deny("it stays") })
            .on(UserPromptExpansion, |_, _| async { HookResponse::block("no greetings") })
            .on(PostToolBatch, |batch, _| async move {
                let failed = batch.tool_calls.iter().any(|call| {
                    call.input.as_ref().is_some_and(|input| input.text().contains("exit 3"))
                });
                if failed {
                    HookResponse::block("that will do")
                } else {
                    HookResponse::new().additional_context("the batch was fine")
                }
            });
        let session = start(options).await;
        turn(&session, "now succeed").await;
        assert!(model_received(&harness, "the batch was fine"));
        let model = || harness.api().requests().last().unwrap().model().to_owned();
        let before = model();
        let switched = session.set_model("claude-haiku-5-5").await;
        assert_eq!(switched.unwrap_err().code(), Some("blocked_by_hook"));
        turn(&session, "hello").await;
        assert_eq!(model(), before, "the model was not changed");
        let count = requests(&harness);
        turn(&session, "/greet everybody").await;
        assert_eq!(requests(&harness), count, "the command did not reach the model");
        let outcome = turn(&session, "now fail").await;
        assert_eq!(outcome.result.terminal_reason.as_ref().unwrap().as_str(), "hook_stopped");
        assert_eq!(requests(&harness), count + 1, "the turn ended after the tool");
        session.stop().await.unwrap();
    });
}
