//! Every hook event that can be provoked: all events are registered, one callback each.

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_wire::hook_input::HookInput;
use serde_json::{Map, Value, json};

use super::response::{Response, default_response};
use super::tools::bash;
use super::{Cli, Failure, Fixture, Outcome, Plan};

/// Starts the CLI and registers a callback for every event.
async fn listening(fixture: &Fixture, plan: Plan) -> Result<Cli, Failure> {
    let mut cli = fixture.start(plan).await?;
    let hooks: Map<String, Value> = HookInput::KNOWN
        .iter()
        .enumerate()
        .map(|(number, event)| {
            let id = format!("hook_{number}");
            ((*event).to_owned(), json!([{"matcher": null, "hookCallbackIds": [id]}]))
        })
        .collect();
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    Ok(cli)
}

fn is_event(line: &Value, event: &str) -> bool {
    line["request"]["subtype"] == "hook_callback"
        && line["request"]["input"]["hook_event_name"] == event
}

fn check_seen(cli: &Cli, events: &[&str]) -> Result<(), Failure> {
    events.iter().try_for_each(|event| {
        cli.check(cli.saw(|line| is_event(line, event)), &format!("a callback for {event}"))
    })
}

pub(super) async fn hooks_tool_round(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("echo hi")).args(&["--allowedTools", "Bash"]);
    let mut cli = listening(fixture, plan).await?;
    cli.turn("run it").await?;
    check_seen(
        &cli,
        &[
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolBatch",
            "MessageDisplay",
            "Stop",
        ],
    )?;
    cli.finish(0).await
}

pub(super) async fn hooks_tool_failure(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("exit 3")).args(&["--allowedTools", "Bash"]);
    let mut cli = listening(fixture, plan).await?;
    cli.turn("run it").await?;
    check_seen(&cli, &["PostToolUseFailure"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_permission(fixture: &Fixture) -> Outcome {
    let mut cli =
        listening(fixture, Plan::session(bash("touch made")).with_permission_prompts()).await?;
    cli.on_request(|request| match request["subtype"].as_str() {
        Some("can_use_tool") => {
            Response::Success(json!({"behavior": "deny", "message": "not here"}))
        }
        _ => default_response(request),
    });
    cli.turn("run it").await?;
    check_seen(&cli, &["PermissionRequest"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_subagent(fixture: &Fixture) -> Outcome {
    let script = Script::new().when("greet the world", [Reply::text("Greeted.")]).otherwise([
        Reply::tool(
            "Agent",
            json!({"description": "Greet", "prompt": "greet the world",
                       "subagent_type": "general-purpose", "run_in_background": false}),
        ),
        Reply::text("Done."),
    ]);
    let mut cli = listening(fixture, Plan::session(script)).await?;
    cli.turn("delegate").await?;
    check_seen(&cli, &["SubagentStart", "SubagentStop"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_compact(fixture: &Fixture) -> Outcome {
    let mut cli = listening(fixture, Plan::hello()).await?;
    cli.turn("hello").await?;
    cli.turn("/compact").await?;
    check_seen(&cli, &["PreCompact", "PostCompact"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_model_switch(fixture: &Fixture) -> Outcome {
    let mut cli = listening(fixture, Plan::hello()).await?;
    cli.turn("hello").await?;
    cli.operation("set_model", json!({"model": "claude-haiku-5-5"})).await?;
    cli.turn("hello again").await?;
    check_seen(&cli, &["PreModelSwitch", "PostModelSwitch"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_instructions(fixture: &Fixture) -> Outcome {
    // The callback is called for the file in the subdirectory, not for the one at the top level.
    fixture.file("CLAUDE.md", "Be brief.\n")?;
    fixture.file("below/CLAUDE.md", "Be briefer.\n")?;
    fixture.file("below/notes.txt", "one\n")?;
    let script = Script::new().otherwise([
        Reply::tool("Read", json!({"file_path": fixture.path("below/notes.txt")})),
        Reply::text("Done."),
    ]);
    let mut cli = listening(fixture, Plan::session(script)).await?;
    cli.turn("read it").await?;
    check_seen(&cli, &["InstructionsLoaded"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_expansion(fixture: &Fixture) -> Outcome {
    fixture.file(".claude/commands/greet.md", "Greet $ARGUMENTS.\n")?;
    let mut cli = listening(fixture, Plan::hello()).await?;
    cli.turn("/greet everybody").await?;
    check_seen(&cli, &["UserPromptExpansion"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_directory(fixture: &Fixture) -> Outcome {
    fixture.file("library/README.md", "A library.\n")?;
    let mut cli = listening(fixture, Plan::hello()).await?;
    cli.turn("hello").await?;
    cli.operation("register_repo_root", json!({"directory": fixture.path("library")})).await?;
    cli.turn("hello again").await?;
    check_seen(&cli, &["DirectoryAdded"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_stop_failure(fixture: &Fixture) -> Outcome {
    let script =
        Script::new().otherwise([Reply::error(400, "invalid_request_error", "that is not right")]);
    let mut cli = listening(fixture, Plan::session(script)).await?;
    cli.turn("hello").await?;
    check_seen(&cli, &["StopFailure"])?;
    cli.finish(1).await
}

pub(super) async fn hooks_tasks(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::tool("TaskCreate", json!({"subject": "Greet", "description": "Greet everybody"})),
        Reply::tool("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        Reply::text("Done."),
    ]);
    let mut cli = listening(
        fixture,
        Plan::session(script).args(&["--tools", "TaskCreate,TaskUpdate,TaskList,Bash"]),
    )
    .await?;
    cli.turn("plan it").await?;
    check_seen(&cli, &["TaskCreated", "TaskCompleted"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_clear(fixture: &Fixture) -> Outcome {
    let mut cli = listening(fixture, Plan::hello()).await?;
    cli.turn("hello").await?;
    cli.turn("/clear").await?;
    check_seen(&cli, &["SessionEnd", "SessionStart"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_notification(fixture: &Fixture) -> Outcome {
    let mut cli =
        listening(fixture, Plan::session(bash("touch made")).with_permission_prompts()).await?;
    cli.on_request(|request| match request["subtype"].as_str() {
        Some("can_use_tool") => Response::Ignore,
        _ => default_response(request),
    });
    cli.send_prompt("run it").await?;
    cli.until("Notification", |line| is_event(line, "Notification")).await?;
    cli.finish(0).await
}

pub(super) async fn hooks_permission_denied(fixture: &Fixture) -> Outcome {
    let plan = Plan::session(bash("touch ../outside")).args(&["--permission-mode", "auto"]);
    let mut cli = listening(fixture, plan).await?;
    cli.turn("run it").await?;
    check_seen(&cli, &["PermissionDenied"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_config_change(fixture: &Fixture) -> Outcome {
    fixture.file(".claude/settings.json", "{}\n")?;
    let mut cli = listening(fixture, Plan::hello()).await?;
    cli.turn("hello").await?;
    fixture.file(".claude/settings.json", "{\"env\":{\"GREETING\":\"hello\"}}\n")?;
    cli.until("ConfigChange", |line| is_event(line, "ConfigChange")).await?;
    cli.finish(0).await
}

pub(super) async fn hooks_worktree(fixture: &Fixture) -> Outcome {
    let script = Script::new().otherwise([
        Reply::tool("EnterWorktree", json!({"name": "side"})),
        Reply::tool("ExitWorktree", json!({"action": "remove", "discard_changes": true})),
        Reply::text("Done."),
    ]);
    fixture.file("side/file", "x\n")?;
    let path = fixture.path("side");
    let plan = Plan::session(script).args(&["--allowedTools", "EnterWorktree,ExitWorktree"]);
    let mut cli = listening(fixture, plan).await?;
    cli.on_request(move |request| {
        if request["input"]["hook_event_name"] == "WorktreeCreate" {
            let output = json!({"hookEventName": "WorktreeCreate", "worktreePath": path});
            return Response::Success(json!({"hookSpecificOutput": output}));
        }
        default_response(request)
    });
    cli.turn("use a worktree").await?;
    check_seen(&cli, &["WorktreeCreate", "WorktreeRemove"])?;
    cli.finish(0).await
}

pub(super) async fn hooks_file_changed(fixture: &Fixture) -> Outcome {
    fixture.file("watched.txt", "one\n")?;
    let mut cli = listening(fixture, Plan::hello()).await?;
    let watched = fixture.path("watched.txt");
    cli.on_request(move |request| {
        if request["input"]["hook_event_name"] == "SessionStart" {
            let output = json!({"hookEventName": "SessionStart", "watchPaths": [watched]});
            return Response::Success(json!({"hookSpecificOutput": output}));
        }
        default_response(request)
    });
    cli.turn("hello").await?;
    cli.turn("/clear").await?;
    cli.turn("hello again").await?;
    fixture.file("watched.txt", "two\n")?;
    cli.until("FileChanged", |line| is_event(line, "FileChanged")).await?;
    cli.finish(0).await
}
