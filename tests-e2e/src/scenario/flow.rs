//! The lifecycle messages with which a CLI reports the start and end of each user message.
//!
//! Versions differ here more than anywhere else, and a turn that waits for a message that never comes hangs. Each
//! flow is run and reduced to a short text, so that versions and the simulated CLI can be compared.

use std::sync::Arc;
use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::recording::{EntryKind, Recording};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::cli::user_frame;
use super::response::{Response, default_response};
use super::tools::bash;
use super::{Backend, BoxFuture, Cli, Failure, Fixture, Plan, line};

/// Longer than any message takes to complete.
const NEVER: Duration = Duration::from_secs(30);

/// A conversation that shows how messages start and end.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Flow {
    /// The name.
    pub name: &'static str,
    run: for<'a> fn(&'a Fixture) -> BoxFuture<'a, Result<Recording, Failure>>,
}

impl Flow {
    /// Runs the flow and returns the recording.
    ///
    /// # Errors
    ///
    /// Returns a failure when the CLI does not support what the flow exercises.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the CLI.
    pub async fn record(&self, backend: Arc<dyn Backend>) -> Result<Recording, Failure> {
        let fixture = Fixture::new(backend, self.name, "", "")?;
        (self.run)(&fixture).await
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
            $(Flow { name: stringify!($name), run: |fixture| Box::pin($name(fixture)) },)*
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

/// Reduces a recording to the lifecycle of its messages, numbered as they were sent: `q1 s1 r[1] c1` is a first
/// message that is queued, started, named by a result, and completed. `x` is cancelled, `e` an error result, `(1)` a
/// result that names one message instead of a list, `*` a turn that the CLI started.
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

/// Reads until each of these messages has ended, or the time limit is reached.
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

async fn started(fixture: &Fixture, plan: Plan) -> Result<Cli, Failure> {
    let mut cli = fixture.start(plan).await?;
    cli.initialize().await?;
    Ok(cli)
}

/// Sends one prompt to a new CLI and waits for its end.
async fn prompt(fixture: &Fixture, plan: Plan, text: &str) -> Result<Recording, Failure> {
    let cli = started(fixture, plan).await?;
    send_and_end(cli, &[text]).await
}

/// Sends prompts one after the other.
async fn send_and_end(mut cli: Cli, prompts: &[&str]) -> Result<Recording, Failure> {
    for prompt in prompts {
        let id = cli.send_prompt(prompt).await?;
        settled(&mut cli, &[&id]).await?;
    }
    Ok(cli.end().await)
}

/// Sends one prompt to a CLI whose hook for this event responds like this.
async fn hooked(
    fixture: &Fixture,
    event: &'static str,
    answer: Value,
) -> Result<Recording, Failure> {
    let plan = Plan::session(bash("touch made")).args(&["--allowedTools", "Bash"]);
    let mut cli = fixture.start(plan).await?;
    cli.on_request(move |request| match request["subtype"].as_str() {
        Some("hook_callback") => Response::Success(answer.clone()),
        _ => default_response(request),
    });
    let hooks = json!({event: [{"matcher": null, "hookCallbackIds": ["hook_0"]}]});
    cli.operation("initialize", json!({"hooks": hooks})).await?;
    send_and_end(cli, &["run it"]).await
}

async fn one_message(fixture: &Fixture) -> Result<Recording, Failure> {
    let cli = started(fixture, Plan::hello()).await?;
    send_and_end(cli, &["hello", "again"]).await
}

async fn four_messages_at_once(fixture: &Fixture) -> Result<Recording, Failure> {
    let mut cli = started(fixture, Plan::hello()).await?;
    let ids: Vec<String> = (0..4).map(|_| cli.message_id()).collect();
    let frames: Vec<String> = ids.iter().map(|id| user_frame(&json!("hello"), Some(id))).collect();
    cli.send_lines(&frames.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    settled(&mut cli, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    Ok(cli.end().await)
}

/// Starts a CLI whose tool runs until the file `go` exists, and returns it with the ID of the message.
async fn busy(fixture: &Fixture) -> Result<(Cli, String), Failure> {
    let plan = Plan::session(bash("touch begun; until [ -e go ]; do sleep 0.05; done"))
        .args(&["--allowedTools", "Bash"]);
    let mut cli = started(fixture, plan).await?;
    let first = cli.send_prompt("run it").await?;
    cli.wait("the tool runs", fixture.appears("begun")).await?;
    Ok((cli, first))
}

async fn queued(cli: &mut Cli, text: &str) -> Result<String, Failure> {
    let id = cli.send_prompt(text).await?;
    cli.until("the message is queued", |line| {
        line["type"] == "command_lifecycle" && line["command_uuid"] == *id
    })
    .await?;
    Ok(id)
}

async fn message_joins_a_turn(fixture: &Fixture) -> Result<Recording, Failure> {
    let (mut cli, first) = busy(fixture).await?;
    let second = queued(&mut cli, "and hurry").await?;
    fixture.file("go", "")?;
    settled(&mut cli, &[&first, &second]).await?;
    Ok(cli.end().await)
}

async fn same_message_twice(fixture: &Fixture) -> Result<Recording, Failure> {
    let mut cli = started(fixture, Plan::hello()).await?;
    let id = cli.send_prompt("hello").await?;
    settled(&mut cli, &[&id]).await?;
    cli.send(&user_frame(&json!("hello"), Some(&id))).await?;
    let other = cli.send_prompt("another").await?;
    settled(&mut cli, &[&other]).await?;
    Ok(cli.end().await)
}

/// Runs a process with one prompt and returns the IDs of the message and of the session.
async fn first_process(fixture: &Fixture) -> Result<(String, String), Failure> {
    let mut cli = started(fixture, Plan::hello()).await?;
    let id = cli.send_prompt("hello").await?;
    settled(&mut cli, &[&id]).await?;
    let init = cli.history().iter().find(|line| line["subtype"] == "init");
    let session = init.and_then(|line| line["session_id"].as_str()).unwrap_or_default().to_owned();
    cli.end().await;
    Ok((id, session))
}

async fn same_message_resumed(fixture: &Fixture) -> Result<Recording, Failure> {
    let (id, session) = first_process(fixture).await?;
    let mut cli = started(fixture, Plan::hello().args(&["--resume", &session])).await?;
    cli.send(&user_frame(&json!("hello"), Some(&id))).await?;
    settled(&mut cli, &[&id]).await?;
    Ok(cli.end().await)
}

/// Sends two prompts to a process that resumes a conversation with one prompt.
async fn resumed(fixture: &Fixture) -> Result<Recording, Failure> {
    let (_, session) = first_process(fixture).await?;
    let cli = started(fixture, Plan::hello().args(&["--resume", &session])).await?;
    send_and_end(cli, &["again", "and again"]).await
}

async fn prompt_blocked(fixture: &Fixture) -> Result<Recording, Failure> {
    hooked(fixture, "UserPromptSubmit", json!({"decision": "block", "reason": "not here"})).await
}

async fn prompt_stopped(fixture: &Fixture) -> Result<Recording, Failure> {
    hooked(fixture, "UserPromptSubmit", json!({"continue": false, "stopReason": "enough"})).await
}

async fn call_deferred(fixture: &Fixture) -> Result<Recording, Failure> {
    let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "defer"});
    hooked(fixture, "PreToolUse", json!({"hookSpecificOutput": output})).await
}

async fn turn_stopped_by_hook(fixture: &Fixture) -> Result<Recording, Failure> {
    hooked(fixture, "PostToolUse", json!({"continue": false, "stopReason": "enough"})).await
}

/// Starts a CLI in the middle of an answer that does not end, and returns it with the ID of the message.
async fn answering(fixture: &Fixture) -> Result<(Cli, String), Failure> {
    let script = Script::new().when("second", [Reply::text("Two.")]).otherwise([Reply::text(
        "A long answer.",
    )
    .deltas_of(3)
    .hold()]);
    let plan = Plan::session(script).args(&["--include-partial-messages"]);
    let mut cli = started(fixture, plan).await?;
    let first = cli.send_prompt("first").await?;
    cli.until("the first piece", |line| line["event"]["type"] == "content_block_delta").await?;
    Ok((cli, first))
}

async fn interrupted_answer(fixture: &Fixture) -> Result<Recording, Failure> {
    let (mut cli, first) = answering(fixture).await?;
    cli.operation("interrupt", json!({})).await?;
    settled(&mut cli, &[&first]).await?;
    Ok(cli.end().await)
}

async fn interrupted_tool(fixture: &Fixture) -> Result<Recording, Failure> {
    let (mut cli, first) = busy(fixture).await?;
    cli.operation("interrupt", json!({})).await?;
    settled(&mut cli, &[&first]).await?;
    Ok(cli.end().await)
}

async fn queued_then_interrupted(fixture: &Fixture) -> Result<Recording, Failure> {
    let (mut cli, first) = answering(fixture).await?;
    let second = queued(&mut cli, "second").await?;
    cli.operation("interrupt", json!({})).await?;
    settled(&mut cli, &[&first, &second]).await?;
    Ok(cli.end().await)
}

async fn queued_then_cancelled(fixture: &Fixture) -> Result<Recording, Failure> {
    let (mut cli, first) = busy(fixture).await?;
    let second = queued(&mut cli, "never mind").await?;
    cli.operation("cancel_async_message", json!({"message_uuid": second})).await?;
    fixture.file("go", "")?;
    settled(&mut cli, &[&first, &second]).await?;
    Ok(cli.end().await)
}

async fn queued_then_dropped(fixture: &Fixture) -> Result<Recording, Failure> {
    let (mut cli, first) = answering(fixture).await?;
    let second = queued(&mut cli, "second").await?;
    cli.operation("interrupt", json!({"cancel_queued": true})).await?;
    settled(&mut cli, &[&first, &second]).await?;
    Ok(cli.end().await)
}

async fn local_command(fixture: &Fixture) -> Result<Recording, Failure> {
    prompt(fixture, Plan::hello(), "/cost").await
}

async fn unknown_command(fixture: &Fixture) -> Result<Recording, Failure> {
    prompt(fixture, Plan::hello(), "/no-such-command").await
}

async fn cleared(fixture: &Fixture) -> Result<Recording, Failure> {
    let cli = started(fixture, Plan::hello()).await?;
    send_and_end(cli, &["hello", "/clear", "again"]).await
}

async fn compacted(fixture: &Fixture) -> Result<Recording, Failure> {
    let cli = started(fixture, Plan::hello()).await?;
    send_and_end(cli, &["hello", "/compact", "again"]).await
}

async fn api_error(fixture: &Fixture) -> Result<Recording, Failure> {
    let script = Script::new().otherwise([Reply::error(400, "invalid_request_error", "not right")]);
    prompt(fixture, Plan::session(script), "hello").await
}

async fn too_many_turns(fixture: &Fixture) -> Result<Recording, Failure> {
    let plan = Plan::session(bash("true")).args(&["--allowedTools", "Bash", "--max-turns", "1"]);
    prompt(fixture, plan, "run it").await
}

fn until_there_is(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.05; done")
}

async fn background_shell(fixture: &Fixture) -> Result<Recording, Failure> {
    let command = json!({"command": until_there_is("go"), "run_in_background": true});
    let script = Script::new()
        .when("start it", [Reply::tool("Bash", command), Reply::text("Started.")])
        .otherwise([Reply::text("It is done.")]);
    let mut cli = started(fixture, Plan::session(script).args(&["--allowedTools", "Bash"])).await?;
    let first = cli.send_prompt("start it").await?;
    settled(&mut cli, &[&first]).await?;
    fixture.file("go", "")?;
    cli.result().await?;
    Ok(cli.end().await)
}

async fn message_joins_a_turn_of_the_cli(fixture: &Fixture) -> Result<Recording, Failure> {
    let background = json!({"command": until_there_is("end"), "run_in_background": true});
    let tool = json!({"command": format!("touch begun; {}", until_there_is("go"))});
    let script = Script::new().when("and hurry", [Reply::text("Hurried.")]).otherwise([
        Reply::tool("Bash", background),
        Reply::text("Started."),
        Reply::tool("Bash", tool),
        Reply::text("It is done."),
    ]);
    let mut cli = started(fixture, Plan::session(script).args(&["--allowedTools", "Bash"])).await?;
    let first = cli.send_prompt("start it").await?;
    settled(&mut cli, &[&first]).await?;
    fixture.file("end", "")?;
    cli.wait("the tool of the CLI's own turn runs", fixture.appears("begun")).await?;
    let joined = queued(&mut cli, "and hurry").await?;
    fixture.file("go", "")?;
    settled(&mut cli, &[&joined]).await?;
    Ok(cli.end().await)
}
