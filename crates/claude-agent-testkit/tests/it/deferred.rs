//! Deferred tool calls, replayed when their session is resumed.

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::recording::Exit;
use claude_agent_testkit::sim::{Model, Sim};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::Client;

const SESSION_ID: &str = "11111111-2222-4333-8444-555555555555";

/// A sandbox directory with a project and a config directory, and the model of all its sessions.
struct Sandbox {
    root: TempDir,
    script: fn() -> Script,
}

impl Sandbox {
    /// Runs a session that ends with its calls deferred.
    async fn with_deferred(script: fn() -> Script) -> Self {
        let sandbox = Self { root: tempfile::tempdir().unwrap(), script };
        let (mut client, _) = sandbox.start(&["--session-id", SESSION_ID]);
        client.initialize(hooks()).await;
        client.prompt("run it", "a").await;
        let result = client.result_after(&decision("defer")).await;
        assert_eq!(result["stop_reason"], "tool_deferred");
        assert_eq!(result["terminal_reason"], "tool_deferred");
        let (.., exit) = client.finish().await;
        assert_eq!(exit, Exit::Code(0));
        sandbox
    }

    fn start(&self, arguments: &[&str]) -> (Client, Model) {
        let sim = Sim::new()
            .script((self.script)())
            .args(arguments.iter().copied())
            .env("CLAUDE_CONFIG_DIR", self.root.path().join("config").to_string_lossy())
            .cwd(self.root.path());
        let model = sim.model();
        (Client::start(sim), model)
    }

    /// Resumes without a prompt; the hook responds with `answer`.
    async fn resume(&self, answer: &str) -> (Client, Model, Value) {
        let (mut client, model) = self.start(&["--resume", SESSION_ID, "--await-initialize"]);
        client.initialize(hooks()).await;
        let result = client.result_after(&decision(answer)).await;
        (client, model, result)
    }

    /// Resumes without a prompt and returns the lines until the CLI exits.
    async fn resume_in_vain(&self) -> Vec<Value> {
        let (mut client, model) = self.start(&["--resume", SESSION_ID, "--await-initialize"]);
        client.initialize(hooks()).await;
        let (rest, ..) = client.finish().await;
        assert!(model.requests().is_empty());
        rest
    }

    fn has(&self, file: &str) -> bool {
        self.root.path().join(file).exists()
    }
}

impl Client {
    /// Responds to every hook callback with `answer` until the result.
    async fn result_after(&mut self, answer: &Value) -> Value {
        loop {
            let line = self.next().await.expect("there is a result");
            if line["request"]["subtype"] == "hook_callback" {
                self.respond(&line, answer.clone()).await;
            }
            if line["type"] == "result" {
                return line;
            }
        }
    }

    fn hook_calls(&self) -> Vec<&Value> {
        let is_call = |line: &&Value| line["request"]["subtype"] == "hook_callback";
        self.seen.iter().filter(is_call).map(|line| &line["request"]["input"]).collect()
    }
}

fn hooks() -> Value {
    json!({"hooks": {"PreToolUse": [{"hookCallbackIds": ["hook_0"]}]}})
}

fn decision(decision: &str) -> Value {
    json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
        "permissionDecisionReason": "so it is"}})
}

fn calls(commands: &[&str]) -> Reply {
    let call = |reply: Reply, command: &&str| reply.and_tool("Bash", json!({"command": command}));
    commands.iter().fold(Reply::new(), call)
}

/// Returns a model that calls Bash for the prompt "run it" and otherwise answers with text.
fn one_call() -> Script {
    script(&["echo run >> made"])
}

fn two_calls() -> Script {
    script(&["touch first", "touch second"])
}

fn script(commands: &'static [&'static str]) -> Script {
    Script::respond_with(move |request| match request.last_prompt().as_deref() {
        Some("run it") => calls(commands),
        _ => Reply::text("Done."),
    })
}

#[tokio::test]
async fn an_allowed_call_runs_once_and_the_model_continues() {
    let sandbox = Sandbox::with_deferred(one_call).await;
    assert!(!sandbox.has("made"));
    let (client, model, result) = sandbox.resume("allow").await;
    assert_eq!(
        (&result["result"], &result["terminal_reason"]),
        (&json!("Done."), &json!("completed"))
    );
    assert_eq!(result["num_turns"], 1);
    assert!(result.get("user_message_uuid").is_none() && result.get("origin").is_none());
    let calls = client.hook_calls();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].get("prompt_id").is_none());
    let request = model.requests().pop().unwrap();
    assert!(request.body.to_string().contains("Continue from where you left off."));
    assert_eq!(request.tool_results().len(), 1);
    client.finish().await;
    assert_eq!(sandbox.resume_in_vain().await, Vec::<Value>::new());
    let made = std::fs::read_to_string(sandbox.root.path().join("made")).unwrap();
    assert_eq!(made, "run\n");
}

#[tokio::test]
async fn a_denied_call_does_not_run_and_the_model_sees_the_reason() {
    let sandbox = Sandbox::with_deferred(one_call).await;
    let (client, model, result) = sandbox.resume("deny").await;
    assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1);
    let results = model.requests().pop().unwrap().tool_results();
    assert!(results[0]["content"].to_string().contains("so it is"), "{results:?}");
    client.finish().await;
    assert_eq!(sandbox.resume_in_vain().await, Vec::<Value>::new());
    assert!(!sandbox.has("made"));
}

#[tokio::test]
async fn a_call_deferred_again_stays_pending_without_a_request_to_the_model() {
    let sandbox = Sandbox::with_deferred(one_call).await;
    for _ in 0..2 {
        let (client, model, result) = sandbox.resume("defer").await;
        assert_eq!(result["deferred_tool_use"]["name"], "Bash");
        assert!(result.get("terminal_reason").is_none());
        assert!(model.requests().is_empty());
        assert!(!client.seen.iter().any(|line| line["subtype"] == "init"));
        client.finish().await;
    }
    assert!(!sandbox.has("made"));
    sandbox.resume("allow").await;
    assert!(sandbox.has("made"));
}

#[tokio::test]
async fn of_two_deferred_calls_only_the_last_is_replayed() {
    let sandbox = Sandbox::with_deferred(two_calls).await;
    let (client, model, _) = sandbox.resume("allow").await;
    assert_eq!(client.hook_calls().len(), 1);
    assert_eq!((sandbox.has("first"), sandbox.has("second")), (false, true));
    let request = model.requests().pop().unwrap().body.to_string();
    assert!(request.contains("touch second") && !request.contains("touch first"), "{request}");
}

#[tokio::test]
async fn without_await_initialize_the_replay_precedes_the_hooks_of_the_host() {
    let sandbox = Sandbox::with_deferred(one_call).await;
    let arguments = ["--resume", SESSION_ID, "--allowedTools", "Bash"];
    let (mut client, _) = sandbox.start(&arguments);
    client.initialize(hooks()).await;
    let seen = client.seen.iter().any(|line| line["type"] == "result");
    if !seen {
        client.result_after(&decision("deny")).await;
    }
    assert!(client.hook_calls().is_empty());
    assert!(sandbox.has("made"));
}

#[tokio::test]
async fn with_await_initialize_nothing_is_replayed_before_initialize() {
    let sandbox = Sandbox::with_deferred(one_call).await;
    let arguments = ["--continue", "--allowedTools", "Bash", "--await-initialize"];
    let (client, model) = sandbox.start(&arguments);
    let (rest, _, exit) = client.finish().await;
    assert_eq!((rest, exit), (Vec::new(), Exit::Code(0)));
    assert!(model.requests().is_empty() && !sandbox.has("made"));
    let (mut client, _) = sandbox.start(&arguments);
    client.initialize(hooks()).await;
    client.result_after(&decision("deny")).await;
    assert_eq!(client.hook_calls().len(), 1);
    assert!(!sandbox.has("made"));
}

#[tokio::test]
async fn a_prompt_waits_for_the_replay() {
    let sandbox = Sandbox::with_deferred(one_call).await;
    let (mut client, _) = sandbox.start(&["--resume", SESSION_ID, "--await-initialize"]);
    client.initialize(hooks()).await;
    client.prompt("next", "b").await;
    let first = client.result_after(&decision("allow")).await;
    assert!(sandbox.has("made"));
    let second = client.result_after(&decision("allow")).await;
    let prompts = [first, second].map(|result| result["user_message_uuid"].clone());
    assert_eq!(prompts, [Value::Null, json!("b")]);
}

#[tokio::test]
async fn a_call_that_another_prompt_followed_is_not_replayed() {
    let sandbox = Sandbox { root: tempfile::tempdir().unwrap(), script: one_call };
    let (mut client, model) = sandbox.start(&["--session-id", SESSION_ID]);
    client.initialize(hooks()).await;
    for (prompt, uuid) in [("run it", "a"), ("never mind", "b")] {
        client.prompt(prompt, uuid).await;
        client.result_after(&decision("defer")).await;
    }
    assert_eq!(model.requests().len(), 2);
    client.finish().await;
    assert_eq!(sandbox.resume_in_vain().await, Vec::<Value>::new());
    assert!(!sandbox.has("made"));
}
