//! Agents and shells that the model starts.

use claude_agent_testkit::mock_api::{Reply, Script};
use serde_json::{Value, json};

use super::{Fixture, Outcome, Plan};

/// Scripts a model that delegates once to an agent that answers like this.
fn delegating(agent: Reply, background: bool) -> Script {
    Script::new().when("greet the world", [agent]).otherwise([
        Reply::tool(
            "Agent",
            json!({"description": "Greet", "prompt": "greet the world",
                   "subagent_type": "general-purpose", "run_in_background": background}),
        ),
        Reply::text("Done."),
    ])
}

fn is_task(line: &Value, subtype: &str) -> bool {
    line["type"] == "system" && line["subtype"] == subtype
}

pub(super) async fn subagent(fixture: &Fixture) -> Outcome {
    let mut cli = fixture.start(Plan::session(delegating(Reply::text("Greeted."), false))).await?;
    cli.operation("initialize", json!({"forwardSubagentText": true})).await?;
    cli.turn("delegate").await?;
    cli.check(
        cli.saw(|line| line["parent_tool_use_id"].is_string()),
        "messages of the agent name their parent",
    )?;
    cli.check(cli.saw(|line| is_task(line, "task_started")), "the agent is reported as started")?;
    cli.finish(0).await
}

pub(super) async fn subagent_with_tool(fixture: &Fixture) -> Outcome {
    let script = Script::new()
        .when(
            "list the files",
            [Reply::tool("Bash", json!({"command": "echo files"})), Reply::text("Listed.")],
        )
        .otherwise([
            Reply::tool(
                "Agent",
                json!({"description": "List", "prompt": "list the files",
                       "subagent_type": "lister", "run_in_background": false}),
            ),
            Reply::text("Done."),
        ]);
    let mut cli = fixture.start(Plan::session(script).args(&["--allowedTools", "Bash"])).await?;
    let agents = json!({"lister": {"description": "Lists files", "prompt": "You list files."}});
    cli.operation("initialize", json!({"agents": agents})).await?;
    cli.turn("delegate").await?;
    cli.check(
        cli.saw(|line| {
            line["parent_tool_use_id"].is_string()
                && line["message"]["content"][0]["type"] == "tool_use"
        }),
        "the tool call of the agent is reported",
    )?;
    cli.finish(0).await
}

pub(super) async fn background_agent(fixture: &Fixture) -> Outcome {
    let script = delegating(Reply::text("Greeted.").hold(), true);
    let mut cli = fixture.start(Plan::session(script)).await?;
    cli.initialize().await?;
    cli.send_prompt("delegate").await?;
    cli.result().await?;
    // The agent continues only now, so that it ends after the turn that started it.
    cli.model_is_asked("greet the world").await?;
    cli.api()?.release_held();
    let second = cli.result().await?;
    cli.check(second["origin"]["kind"] == "task-notification", "the agent's end starts a turn")?;
    let idle = |line: &Value| line["state"] == "idle";
    cli.check(!cli.saw(idle), "the CLI is not idle while the agent works")?;
    cli.idle().await?;
    cli.check(
        cli.saw(|line| is_task(line, "task_notification")),
        "the agent is reported as ended",
    )?;
    cli.finish(0).await
}

pub(super) async fn background_shell(fixture: &Fixture) -> Outcome {
    let command = "until [ -e go ]; do sleep 0.05; done; echo finished";
    let script = Script::new().when(
        "start it",
        [
            Reply::tool("Bash", json!({"command": command, "run_in_background": true})),
            Reply::text("Started."),
        ],
    );
    let script = script.otherwise([Reply::text("It is done.")]);
    let mut cli = fixture.start(Plan::session(script).args(&["--allowedTools", "Bash"])).await?;
    cli.initialize().await?;
    cli.turn("start it").await?;
    cli.check(cli.saw(|line| is_task(line, "task_started")), "the shell is reported as started")?;
    fixture.file("go", "")?;
    let second = cli.result().await?;
    cli.check(second["origin"]["kind"] == "task-notification", "the shell's end starts a turn")?;
    cli.idle().await?;
    cli.finish(0).await
}

pub(super) async fn background_shell_stopped(fixture: &Fixture) -> Outcome {
    let script = Script::new().when(
        "start it",
        [
            Reply::tool("Bash", json!({"command": "sleep 60", "run_in_background": true})),
            Reply::text("Started."),
        ],
    );
    let script = script.otherwise([Reply::text("It was stopped.")]);
    let mut cli = fixture.start(Plan::session(script).args(&["--allowedTools", "Bash"])).await?;
    cli.initialize().await?;
    cli.turn("start it").await?;
    let started = cli.history().iter().find(|line| is_task(line, "task_started"));
    let task = started.map(|line| line["task_id"].clone()).unwrap_or_default();
    cli.check(task.is_string(), "the task has an id")?;
    cli.operation("stop_task", json!({"task_id": task})).await?;
    cli.check(
        cli.saw(|line| is_task(line, "task_notification") && line["status"] == "stopped"),
        "the end of the task is reported before the answer",
    )?;
    cli.finish(0).await
}
