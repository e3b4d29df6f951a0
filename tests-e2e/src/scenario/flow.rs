//! How a CLI reports the life of a message: the lines that turns begin and end by, in their order.
//!
//! Versions differ here more than anywhere else, and a turn that waits for a line that never comes
//! hangs. Each flow is played to its end and reduced to a short text, so that versions, and the
//! simulated CLI, can be compared.

use std::{sync::Arc, time::Duration};

use claude_agent_testkit::{
    mock_api::{Reply, Script},
    recording::{EntryKind, Recording},
};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    Backend, BoxFuture, Cli, Failure, Plan, Stage,
    answer::{Answer, agreeable},
    cli::user_frame,
    line,
    tools::bash,
};

/// A message that has not come to its end by now never will: nothing here takes this long.
const NEVER: Duration = Duration::from_secs(30);

/// A conversation that shows how messages begin and end.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Flow {
    /// Its name.
    pub name: &'static str,
    play: for<'a> fn(&'a Stage) -> BoxFuture<'a, Result<Recording, Failure>>,
}

impl Flow {
    /// Plays it, and returns what was said.
    ///
    /// # Errors
    ///
    /// When the CLI does not do what the flow is about at all.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the CLI.
    pub async fn record(&self, backend: Arc<dyn Backend>) -> Result<Recording, Failure> {
        let stage = Stage::new(backend, self.name, "", "")?;
        (self.play)(&stage).await
    }
}

impl std::fmt::Debug for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! flows {
    ($($name:ident,)*) => {
        /// Every flow.
        pub const FLOWS: &[Flow] = &[
            $(Flow { name: stringify!($name), play: |stage| Box::pin($name(stage)) },)*
        ];
    };
}

flows![
    one_message,
    four_messages_at_once,
    message_joins_a_turn,
    same_message_twice,
    same_message_resumed,
    resumed,
    prompt_blocked,
    prompt_stopped,
    call_deferred,
    turn_stopped_by_hook,
    interrupted_answer,
    interrupted_tool,
    queued_then_interrupted,
    queued_then_cancelled,
    queued_then_dropped,
    local_command,
    unknown_command,
    cleared,
    compacted,
    api_error,
    too_many_turns,
    background_shell,
    message_joins_a_turn_of_the_cli,
];

/// The lines that begin and end messages, numbered as they were sent: `q1 s1 r[1] c1` for a first
/// message that is queued, started, named by a result, and completed. `x` is cancelled, `e` an error
/// result, `(1)` a result that names one message and has no list, `*` a turn that the CLI began.
pub fn reduced(recording: &Recording) -> String {
    let mut sent: Vec<String> = Vec::new();
    let mut tokens: Vec<String> = Vec::new();
    for entry in &recording.entries {
        match &entry.kind {
            EntryKind::Sent(bytes) => {
                let uuid = line::read(bytes)["uuid"].as_str().map(str::to_owned);
                sent.extend(uuid.filter(|uuid| !sent.contains(uuid)));
            }
            EntryKind::Received(bytes) => tokens.extend(token(&line::read(bytes), &sent)),
            _ => {}
        }
    }
    tokens.join(" ")
}

fn token(line: &Value, sent: &[String]) -> Option<String> {
    let number = |uuid: &Value| {
        let place = sent.iter().position(|sent| Some(sent.as_str()) == uuid.as_str());
        place.map_or_else(|| "?".to_owned(), |place| (place + 1).to_string())
    };
    match line["type"].as_str()? {
        "command_lifecycle" => {
            let letter = match line["state"].as_str()? {
                "queued" => "q",
                "started" => "s",
                "completed" => "c",
                "cancelled" => "x",
                other => other,
            };
            Some(format!("{letter}{}", number(&line["command_uuid"])))
        }
        "result" => {
            let letter = if line["is_error"] == true { "e" } else { "r" };
            let own = if line["origin"].is_object() { "*" } else { "" };
            let names = match (&line["user_message_uuids"], &line["user_message_uuid"]) {
                (Value::Array(names), _) => {
                    format!("[{}]", names.iter().map(number).collect::<Vec<_>>().join(","))
                }
                (_, one @ Value::String(_)) => format!("({})", number(one)),
                _ => "[]".to_owned(),
            };
            Some(format!("{letter}{own}{names}"))
        }
        _ => None,
    }
}

/// Reads until each of these messages has come to its end, or never will.
async fn settled(cli: &mut Cli, ids: &[&str]) -> Result<(), Failure> {
    let all = timeout(NEVER, async {
        while !ids.iter().all(|id| has_ended(cli.history(), id)) {
            if cli.next().await?.is_none() {
                break;
            }
        }
        Ok(())
    });
    all.await.unwrap_or(Ok(()))
}

fn has_ended(history: &[Value], id: &str) -> bool {
    history.iter().any(|line| {
        line["type"] == "command_lifecycle"
            && line["command_uuid"] == id
            && matches!(line["state"].as_str(), Some("completed" | "cancelled"))
    })
}

async fn started(stage: &Stage, plan: Plan) -> Result<Cli, Failure> {
    let mut cli = stage.start(plan).await?;
    cli.initialize().await?;
    Ok(cli)
}

/// One prompt to a CLI of this plan, and its end.
async fn prompt(stage: &Stage, plan: Plan, text: &str) -> Result<Recording, Failure> {
    let cli = started(stage, plan).await?;
    say_and_end(cli, &[text]).await
}

/// One prompt after the other.
async fn say_and_end(mut cli: Cli, prompts: &[&str]) -> Result<Recording, Failure> {
    for prompt in prompts {
        let id = cli.say(prompt).await?;
        settled(&mut cli, &[&id]).await?;
    }
    Ok(cli.end().await)
}

/// One prompt to a CLI whose hook of this event answers like this.
async fn hooked(stage: &Stage, event: &'static str, answer: Value) -> Result<Recording, Failure> {
    let plan = Plan::session(bash("touch made")).args(&["--allowedTools", "Bash"]);
    let mut cli = stage.start(plan).await?;
    cli.on_request(move |request| match request["subtype"].as_str() {
        Some("hook_callback") => Answer::Success(answer.clone()),
        _ => agreeable(request),
    });
    let hooks = json!({event: [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
    cli.ask("initialize", json!({"hooks": hooks})).await?;
    say_and_end(cli, &["run it"]).await
}

async fn one_message(stage: &Stage) -> Result<Recording, Failure> {
    let cli = started(stage, Plan::hello()).await?;
    say_and_end(cli, &["hello", "again"]).await
}

async fn four_messages_at_once(stage: &Stage) -> Result<Recording, Failure> {
    let mut cli = started(stage, Plan::hello()).await?;
    let ids: Vec<String> = (0..4).map(|_| cli.message_id()).collect();
    let frames: Vec<String> = ids.iter().map(|id| user_frame(&json!("hello"), Some(id))).collect();
    cli.send_lines(&frames.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    settled(&mut cli, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    Ok(cli.end().await)
}

/// A CLI whose tool runs until there is the file `go`, and the message that began it.
async fn busy(stage: &Stage) -> Result<(Cli, String), Failure> {
    let plan = Plan::session(bash("touch begun; until [ -e go ]; do sleep 0.05; done"))
        .args(&["--allowedTools", "Bash"]);
    let mut cli = started(stage, plan).await?;
    let first = cli.say("run it").await?;
    cli.wait("the tool runs", stage.appears("begun")).await?;
    Ok((cli, first))
}

async fn queued(cli: &mut Cli, text: &str) -> Result<String, Failure> {
    let id = cli.say(text).await?;
    cli.until("the message is queued", |line| {
        line["type"] == "command_lifecycle" && line["command_uuid"] == *id
    })
    .await?;
    Ok(id)
}

async fn message_joins_a_turn(stage: &Stage) -> Result<Recording, Failure> {
    let (mut cli, first) = busy(stage).await?;
    let second = queued(&mut cli, "and hurry").await?;
    stage.file("go", "")?;
    settled(&mut cli, &[&first, &second]).await?;
    Ok(cli.end().await)
}

async fn same_message_twice(stage: &Stage) -> Result<Recording, Failure> {
    let mut cli = started(stage, Plan::hello()).await?;
    let id = cli.say("hello").await?;
    settled(&mut cli, &[&id]).await?;
    cli.send(&user_frame(&json!("hello"), Some(&id))).await?;
    let other = cli.say("another").await?;
    settled(&mut cli, &[&other]).await?;
    Ok(cli.end().await)
}

/// A process with one prompt: the id of the message, and that of the session.
async fn first_process(stage: &Stage) -> Result<(String, String), Failure> {
    let mut cli = started(stage, Plan::hello()).await?;
    let id = cli.say("hello").await?;
    settled(&mut cli, &[&id]).await?;
    let init = cli.history().iter().find(|line| line["subtype"] == "init");
    let session = init.and_then(|line| line["session_id"].as_str()).unwrap_or_default().to_owned();
    cli.end().await;
    Ok((id, session))
}

async fn same_message_resumed(stage: &Stage) -> Result<Recording, Failure> {
    let (id, session) = first_process(stage).await?;
    let mut cli = started(stage, Plan::hello().args(&["--resume", &session])).await?;
    cli.send(&user_frame(&json!("hello"), Some(&id))).await?;
    settled(&mut cli, &[&id]).await?;
    Ok(cli.end().await)
}

/// Two prompts to a process that resumes a conversation of one.
async fn resumed(stage: &Stage) -> Result<Recording, Failure> {
    let (_, session) = first_process(stage).await?;
    let cli = started(stage, Plan::hello().args(&["--resume", &session])).await?;
    say_and_end(cli, &["again", "and again"]).await
}

async fn prompt_blocked(stage: &Stage) -> Result<Recording, Failure> {
    hooked(stage, "UserPromptSubmit", json!({"decision": "block", "reason": "not here"})).await
}

async fn prompt_stopped(stage: &Stage) -> Result<Recording, Failure> {
    hooked(stage, "UserPromptSubmit", json!({"continue": false, "stopReason": "enough"})).await
}

async fn call_deferred(stage: &Stage) -> Result<Recording, Failure> {
    let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "defer"});
    hooked(stage, "PreToolUse", json!({"hookSpecificOutput": output})).await
}

async fn turn_stopped_by_hook(stage: &Stage) -> Result<Recording, Failure> {
    hooked(stage, "PostToolUse", json!({"continue": false, "stopReason": "enough"})).await
}

/// A CLI in the middle of an answer that does not end, and the message that began it.
async fn answering(stage: &Stage) -> Result<(Cli, String), Failure> {
    let script = Script::new().when("second", [Reply::text("Two.")]).otherwise([Reply::text(
        "A long answer.",
    )
    .deltas_of(3)
    .hold()]);
    let plan = Plan::session(script).args(&["--include-partial-messages"]);
    let mut cli = started(stage, plan).await?;
    let first = cli.say("first").await?;
    cli.until("the first piece", |line| line["event"]["type"] == "content_block_delta").await?;
    Ok((cli, first))
}

async fn interrupted_answer(stage: &Stage) -> Result<Recording, Failure> {
    let (mut cli, first) = answering(stage).await?;
    cli.ask("interrupt", json!({})).await?;
    settled(&mut cli, &[&first]).await?;
    Ok(cli.end().await)
}

async fn interrupted_tool(stage: &Stage) -> Result<Recording, Failure> {
    let (mut cli, first) = busy(stage).await?;
    cli.ask("interrupt", json!({})).await?;
    settled(&mut cli, &[&first]).await?;
    Ok(cli.end().await)
}

async fn queued_then_interrupted(stage: &Stage) -> Result<Recording, Failure> {
    let (mut cli, first) = answering(stage).await?;
    let second = queued(&mut cli, "second").await?;
    cli.ask("interrupt", json!({})).await?;
    settled(&mut cli, &[&first, &second]).await?;
    Ok(cli.end().await)
}

async fn queued_then_cancelled(stage: &Stage) -> Result<Recording, Failure> {
    let (mut cli, first) = busy(stage).await?;
    let second = queued(&mut cli, "never mind").await?;
    cli.ask("cancel_async_message", json!({"message_uuid": second})).await?;
    stage.file("go", "")?;
    settled(&mut cli, &[&first, &second]).await?;
    Ok(cli.end().await)
}

async fn queued_then_dropped(stage: &Stage) -> Result<Recording, Failure> {
    let (mut cli, first) = answering(stage).await?;
    let second = queued(&mut cli, "second").await?;
    cli.ask("interrupt", json!({"cancel_queued": true})).await?;
    settled(&mut cli, &[&first, &second]).await?;
    Ok(cli.end().await)
}

async fn local_command(stage: &Stage) -> Result<Recording, Failure> {
    prompt(stage, Plan::hello(), "/cost").await
}

async fn unknown_command(stage: &Stage) -> Result<Recording, Failure> {
    prompt(stage, Plan::hello(), "/no-such-command").await
}

async fn cleared(stage: &Stage) -> Result<Recording, Failure> {
    let cli = started(stage, Plan::hello()).await?;
    say_and_end(cli, &["hello", "/clear", "again"]).await
}

async fn compacted(stage: &Stage) -> Result<Recording, Failure> {
    let cli = started(stage, Plan::hello()).await?;
    say_and_end(cli, &["hello", "/compact", "again"]).await
}

async fn api_error(stage: &Stage) -> Result<Recording, Failure> {
    let script = Script::new().otherwise([Reply::error(400, "invalid_request_error", "not right")]);
    prompt(stage, Plan::session(script), "hello").await
}

async fn too_many_turns(stage: &Stage) -> Result<Recording, Failure> {
    let plan = Plan::session(bash("true")).args(&["--allowedTools", "Bash", "--max-turns", "1"]);
    prompt(stage, plan, "run it").await
}

fn until_there_is(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.05; done")
}

async fn background_shell(stage: &Stage) -> Result<Recording, Failure> {
    let command = json!({"command": until_there_is("go"), "run_in_background": true});
    let script = Script::new()
        .when("start it", [Reply::tool("Bash", command), Reply::text("Started.")])
        .otherwise([Reply::text("It is done.")]);
    let mut cli = started(stage, Plan::session(script).args(&["--allowedTools", "Bash"])).await?;
    let first = cli.say("start it").await?;
    settled(&mut cli, &[&first]).await?;
    stage.file("go", "")?;
    cli.result().await?;
    Ok(cli.end().await)
}

async fn message_joins_a_turn_of_the_cli(stage: &Stage) -> Result<Recording, Failure> {
    let background = json!({"command": until_there_is("end"), "run_in_background": true});
    let tool = json!({"command": format!("touch begun; {}", until_there_is("go"))});
    let script = Script::new().when("and hurry", [Reply::text("Hurried.")]).otherwise([
        Reply::tool("Bash", background),
        Reply::text("Started."),
        Reply::tool("Bash", tool),
        Reply::text("It is done."),
    ]);
    let mut cli = started(stage, Plan::session(script).args(&["--allowedTools", "Bash"])).await?;
    let first = cli.say("start it").await?;
    settled(&mut cli, &[&first]).await?;
    stage.file("end", "")?;
    cli.wait("the tool of the CLI's own turn runs", stage.appears("begun")).await?;
    let joined = queued(&mut cli, "and hurry").await?;
    stage.file("go", "")?;
    settled(&mut cli, &[&joined]).await?;
    Ok(cli.end().await)
}
