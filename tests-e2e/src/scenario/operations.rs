//! Operations that the host sends.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::json;

use super::{Fixture, Outcome, Plan};

pub(super) async fn set_model(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let answer = cli.operation("set_model", json!({"model": "claude-haiku-5-5"})).await?;
    cli.check(answer["model"] == "claude-haiku-5-5", "the new model is confirmed")?;
    cli.turn("hello").await?;
    let last = cli.api()?.requests().last().map(|request| request.model().to_owned());
    cli.check(last.as_deref() == Some("claude-haiku-5-5"), "the new model is used")?;
    let answer = cli.operation("set_model", json!({"model": null})).await?;
    cli.check(answer["model"] != "claude-haiku-5-5", "null takes the model back")?;
    cli.turn("hello again").await?;
    cli.finish(0).await
}

pub(super) async fn set_permission_mode(fixture: &Fixture) -> Outcome {
    let notes = fixture.path("notes.txt");
    let script = Script::new().otherwise([
        Reply::tool("Write", json!({"file_path": notes, "content": "one\n"})),
        Reply::text("Done."),
    ]);
    let mut cli = fixture.start(Plan::session(script)).await?;
    cli.initialize().await?;
    let answer = cli.operation("set_permission_mode", json!({"mode": "acceptEdits"})).await?;
    cli.check(answer["mode"] == "acceptEdits", "the mode is confirmed")?;
    cli.turn("write it").await?;
    cli.check(fixture.text_of("notes.txt").is_some(), "edits are accepted")?;
    let refusal =
        cli.rejected_operation("set_permission_mode", json!({"mode": "nonsense"})).await?;
    cli.check(refusal["error_code"] == "invalid_mode", "an unknown mode is rejected")?;
    for mode in ["plan", "dontAsk", "auto", "default"] {
        let id = cli.request("set_permission_mode", json!({"mode": mode})).await?;
        cli.response_to(&id).await?;
    }
    cli.finish(0).await
}

pub(super) async fn questions(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    let status = cli.operation("mcp_status", json!({})).await?;
    cli.check(status["mcpServers"] == json!([]), "an empty list of servers")?;
    let usage = cli.operation("get_context_usage", json!({})).await?;
    cli.check(usage["totalTokens"].is_number(), "the context is counted")?;
    for subtype in [
        "list_models",
        "get_binary_version",
        "get_session_cost",
        "get_settings",
        "get_usage",
        "get_hooks_listing",
        "list_permission_rules",
    ] {
        let id = cli.request(subtype, json!({})).await?;
        cli.response_to(&id).await?;
    }
    cli.finish(0).await
}

pub(super) async fn more_operations(fixture: &Fixture) -> Outcome {
    fixture.file("notes.txt", "one\n")?;
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    cli.turn("hello").await?;
    let asked = [
        ("set_max_thinking_tokens", json!({"max_thinking_tokens": 2000})),
        ("read_file", json!({"path": fixture.path("notes.txt")})),
        ("file_suggestions", json!({"query": "notes"})),
        ("seed_read_state", json!({"path": fixture.path("notes.txt"), "mtime": 1})),
        ("apply_flag_settings", json!({"settings": {"effortLevel": "low"}})),
        ("rename_session", json!({"title": "Greetings"})),
        ("mcp_set_servers", json!({"servers": {}})),
        ("reload_skills", json!({})),
        ("reload_output_styles", json!({})),
        ("background_tasks", json!({})),
        ("get_task_output", json!({"task_id": "none"})),
    ];
    for (subtype, fields) in asked {
        let id = cli.request(subtype, fields).await?;
        cli.response_to(&id).await?;
    }
    cli.finish(0).await
}

pub(super) async fn refusals(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::hello()).await?;
    cli.initialize().await?;
    let refusal = cli.rejected_operation("make_coffee", json!({})).await?;
    cli.check(refusal["error_code"] == "unsupported_request", "an unknown subtype is rejected")?;
    cli.rejected_operation("mcp_reconnect", json!({"serverName": "nobody"})).await?;
    cli.rejected_operation("mcp_toggle", json!({"serverName": "nobody", "enabled": true})).await?;
    cli.operation("stop_task", json!({"task_id": "nothing"})).await?;
    cli.rejected_operation("rewind_files", json!({"user_message_id": cli.message_id()})).await?;
    let id = cli.request("set_model", json!({"model": 7})).await?;
    cli.response_to(&id).await?;
    cli.finish(0).await
}

pub(super) async fn rewind_files(fixture: &Fixture) -> Outcome {
    fixture.file("notes.txt", "before\n")?;
    let notes = fixture.path("notes.txt");
    let script = Script::new().when(
        "change",
        [
            Reply::tool("Read", json!({"file_path": notes})),
            Reply::tool("Write", json!({"file_path": notes, "content": "after\n"})),
            Reply::text("Done."),
        ],
    );
    let plan = Plan::session(script)
        .args(&["--permission-mode", "acceptEdits", "--replay-user-messages"])
        .env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    let uuid = cli.send_prompt("change the notes").await?;
    cli.result().await?;
    cli.idle().await?;
    cli.check(fixture.text_of("notes.txt").as_deref() == Some("after\n"), "the file is changed")?;
    let dry = json!({"user_message_id": uuid, "dry_run": true});
    let answer = cli.operation("rewind_files", dry).await?;
    cli.check(answer["canRewind"] == true, "the file can be restored")?;
    cli.check(
        fixture.text_of("notes.txt").as_deref() == Some("after\n"),
        "a dry run changes nothing",
    )?;
    cli.operation("rewind_files", json!({"user_message_id": uuid})).await?;
    cli.check(fixture.text_of("notes.txt").as_deref() == Some("before\n"), "the file is restored")?;
    let unknown = json!({"user_message_id": cli.message_id()});
    let refusal = cli.rejected_operation("rewind_files", unknown).await?;
    cli.check(
        refusal["error"] == "No file checkpoint found for this message.",
        "an unknown message is refused",
    )?;
    cli.finish(0).await
}
