//! The simulated CLI, spoken to as a client would.

use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::recording::Exit;
use claude_agent_testkit::sim::Sim;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::client::{Client, LIMIT, SESSION};

fn kinds(lines: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    lines
        .iter()
        .map(|line| match line["type"].as_str() {
            Some("system") => text(&line["subtype"]),
            Some("command_lifecycle") => text(&line["state"]),
            _ => text(&line["type"]),
        })
        .collect()
}

#[tokio::test]
async fn the_handshake_is_answered_with_what_there_is() {
    let mut client = Client::start(Sim::new().version("9.8.7"));
    let answer = client.initialize(json!({})).await;
    assert_eq!(answer["subtype"], "success");
    let payload = &answer["response"];
    assert_eq!(payload["claude_code_version"], "9.8.7");
    for list in ["commands", "agents", "models"] {
        assert!(payload[list].as_array().is_some_and(|list| !list.is_empty()), "{list}");
    }
    let (rest, stderr, exit) = client.finish().await;
    assert_eq!((rest.len(), stderr.as_str(), exit), (0, "", Exit::Code(0)));
}

#[tokio::test]
async fn a_turn_is_told_in_the_order_of_the_real_one() {
    let mut client = Client::scripted([Reply::text("Hello.")], &[]);
    client.initialize(json!({})).await;
    client.seen.clear();
    client.say("hi", "6d3f0c2e-0000-4000-8000-000000000001").await;
    let result = client.result().await;
    assert_eq!(result["result"], "Hello.");
    assert_eq!(result["user_message_uuids"], json!(["6d3f0c2e-0000-4000-8000-000000000001"]));
    client.until(|line| line["state"] == "completed").await;
    assert_eq!(
        kinds(&client.seen),
        ["queued", "started", "init", "assistant", "result", "completed"]
    );
    let (.., exit) = client.finish().await;
    assert_eq!(exit, Exit::Code(0));
}

#[tokio::test]
async fn without_a_script_the_model_says_what_it_heard() {
    let mut client = Client::start(Sim::new());
    client.say("good morning", "a").await;
    assert!(client.result().await["result"].as_str().unwrap().contains("good morning"));
}

#[tokio::test]
async fn type_stands_first_except_in_a_result() {
    let (mut stdin, mut stdout, _stderr, handle) = Sim::new().args(SESSION).start().into_parts();
    let frame = json!({"type": "user", "message": {"role": "user", "content": "hi"}});
    stdin.write_all(format!("{frame}\n").as_bytes()).await.unwrap();
    drop(stdin);
    let mut text = String::new();
    timeout(LIMIT, stdout.read_to_string(&mut text)).await.unwrap().unwrap();
    for line in text.lines() {
        let first = line.starts_with(r#"{"type":"#);
        assert_eq!(first, !line.contains(r#""type":"result""#), "{line}");
    }
    assert_eq!(timeout(LIMIT, handle.wait()).await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn a_tool_waits_for_its_hook_and_for_permission() {
    let folder = tempfile::tempdir().unwrap();
    let replies =
        [Reply::tool("Bash", json!({"command": "echo done > made"})), Reply::text("Done.")];
    let sim = Sim::new()
        .script(Script::new().otherwise(replies))
        .args(["--permission-prompt-tool", "stdio"])
        .cwd(folder.path());
    let mut client = Client::start(sim);
    let hooks = json!({"PreToolUse": [{"matcher": "Bash|Edit", "hookCallbackIds": ["hook_0"]}]});
    client.initialize(json!({"hooks": hooks})).await;
    client.say("do it", "a").await;

    let hook = client.asked("hook_callback").await;
    assert_eq!(hook["request"]["callback_id"], "hook_0");
    assert_eq!(hook["request"]["input"]["tool_input"]["command"], "echo done > made");
    client.answer(&hook, json!({})).await;
    let question = client.asked("can_use_tool").await;
    assert!(!folder.path().join("made").exists());
    let input = json!({"command": "echo changed > made"});
    client.answer(&question, json!({"behavior": "allow", "updatedInput": input})).await;

    assert_eq!(client.result().await["result"], "Done.");
    assert_eq!(std::fs::read_to_string(folder.path().join("made")).unwrap(), "changed\n");
}

#[tokio::test]
async fn a_hook_that_is_never_answered_is_withdrawn_and_the_tool_is_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let replies = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let sim = Sim::new()
        .script(Script::new().otherwise(replies))
        .args(["--allowedTools", "Bash"])
        .cwd(folder.path());
    let mut client = Client::start(sim);
    let matcher = json!({"matcher": null, "hookCallbackIds": ["hook_0"], "timeout": 0.05});
    client.initialize(json!({"hooks": {"PreToolUse": [matcher]}})).await;
    client.say("do it", "a").await;
    let hook = client.asked("hook_callback").await;
    let cancel = client.until(|line| line["type"] == "control_cancel_request").await;
    assert_eq!(cancel["request_id"], hook["request_id"]);
    assert_eq!(client.result().await["subtype"], "success");
    assert!(!folder.path().join("made").exists());
}

#[tokio::test]
async fn a_hook_that_blocks_on_failure_blocks_when_it_fails() {
    let replies = [Reply::tool("Bash", json!({"command": "true"})), Reply::text("Done.")];
    let mut client = Client::scripted(replies, &["--allowedTools", "Bash"]);
    let matcher = json!({"matcher": null, "hookCallbackIds": ["hook_0"], "onFailure": "block"});
    client.initialize(json!({"hooks": {"PreToolUse": [matcher]}})).await;
    client.say("do it", "a").await;
    let hook = client.asked("hook_callback").await;
    let response = json!({"subtype": "error", "request_id": hook["request_id"], "error": "oops"});
    client.send(&json!({"type": "control_response", "response": response})).await;
    let result = client.result().await;
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
}

#[tokio::test]
async fn an_interrupt_withdraws_the_question_and_ends_the_turn() {
    let replies = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let mut client = Client::scripted(replies, &["--permission-prompt-tool", "stdio"]);
    client.say("do it", "a").await;
    let question = client.asked("can_use_tool").await;
    client.request("stop", json!({"subtype": "interrupt"})).await;
    let cancel = client.until(|line| line["type"] == "control_cancel_request").await;
    assert_eq!(cancel["request_id"], question["request_id"]);
    assert_eq!(client.answer_to("stop").await["response"], json!({"still_queued": []}));
    let result = client.result().await;
    assert_eq!(result["terminal_reason"], "aborted_tools");
    let (.., exit) = client.finish().await;
    assert_eq!(exit, Exit::Code(1));
}

#[tokio::test]
async fn a_held_answer_goes_on_when_it_is_released() {
    let mut client = Client::scripted([Reply::text("Hello.").hold()], &[]);
    client.say("hi", "a").await;
    client.until(|line| line["subtype"] == "init").await;
    let model = client.handle.model().clone();
    timeout(LIMIT, model.wait_for_request(|_| true)).await.expect("the model is asked");
    model.release_held();
    assert_eq!(client.result().await["result"], "Hello.");
    assert_eq!(model.requests()[0].last_prompt().as_deref(), Some("hi"));
}

#[tokio::test]
async fn an_in_process_server_is_greeted_listed_and_called() {
    let config = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;
    let replies = [Reply::tool("mcp__calc__add", json!({"a": 2, "b": 3})), Reply::text("Five.")];
    let mut client =
        Client::scripted(replies, &["--mcp-config", config, "--allowedTools", "mcp__calc"]);
    client.request("init", json!({"subtype": "initialize"})).await;
    let result = |request: &Value, result: Value| {
        let id = &request["request"]["message"]["id"];
        json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}})
    };
    let hello = client.asked("mcp_message").await;
    assert_eq!(hello["request"]["message"]["method"], "initialize");
    let info = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}});
    client.answer(&hello, result(&hello, info)).await;
    client.answer_to("init").await;
    let confirmed = client.asked("mcp_message").await;
    assert_eq!(confirmed["request"]["message"]["method"], "notifications/initialized");
    client.say("add", "a").await;
    let list = client.asked("mcp_message").await;
    assert_eq!(list["request"]["message"]["method"], "tools/list");
    client.answer(&list, result(&list, json!({"tools": [{"name": "add"}]}))).await;
    let call = client.asked("mcp_message").await;
    assert_eq!(call["request"]["message"]["params"]["arguments"], json!({"a": 2, "b": 3}));
    let sum = json!({"content": [{"type": "text", "text": "5"}]});
    client.answer(&call, result(&call, sum)).await;
    assert_eq!(client.result().await["result"], "Five.");
}

#[tokio::test]
async fn a_breach_of_the_protocol_ends_it_loudly() {
    for (line, complaint) in [
        ("this is not JSON", "SyntaxError"),
        (r#"{"type":"user","content":"flat"}"#, "Expected message role 'user'"),
    ] {
        let mut client = Client::start(Sim::new());
        client.send_text(line).await;
        while client.next().await.is_some() {}
        let (_, stderr, exit) = client.finish().await;
        assert!(stderr.contains(complaint), "{stderr}");
        assert_eq!(exit, Exit::Code(1), "{line}");
    }
}

#[tokio::test]
async fn what_it_does_not_know_is_refused_or_passed_over() {
    let mut client = Client::start(Sim::new());
    client.send(&json!({"type": "weather", "sunny": true})).await;
    client.request("coffee", json!({"subtype": "make_coffee"})).await;
    let answer = client.answer_to("coffee").await;
    assert_eq!(answer["error"], "Unsupported control request subtype: make_coffee");
    assert_eq!(answer["error_code"], "unsupported_request");
    let (.., exit) = client.finish().await;
    assert_eq!(exit, Exit::Code(0));

    let client = Client::start(Sim::new().args(["--no-such-flag"]));
    let (rest, stderr, exit) = client.finish().await;
    assert!(rest.is_empty() && stderr.contains("unknown option '--no-such-flag'"), "{stderr}");
    assert_eq!(exit, Exit::Code(1));
}

#[tokio::test]
async fn a_client_that_closes_stdin_early_still_gets_its_result() {
    let replies = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let mut client = Client::scripted(replies, &["--permission-prompt-tool", "stdio"]);
    client.say("do it", "a").await;
    client.asked("can_use_tool").await;
    let (rest, _, exit) = client.finish().await;
    let result = rest.iter().find(|line| line["type"] == "result").expect("a result");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    assert_eq!(exit, Exit::Code(0));
}

/// Deltas enough to fill every pipe many times, while tools want to write as well.
#[tokio::test]
async fn a_client_that_reads_slowly_gets_everything() {
    let reply = Reply::text("x".repeat(2_000)).deltas_of(1);
    let reply = (0..10).fold(reply, |reply, _| reply.and_tool("Read", json!({"file_path": "no"})));
    let mut client = Client::scripted(
        [reply, Reply::text("Done.")],
        &["--include-partial-messages", "--allowedTools", "Read"],
    );
    client.say("hi", "a").await;
    // On this one thread the simulation runs whenever the client does not, until its pipes are full.
    for _ in 0..10_000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.result().await["result"], "Done.");
    let deltas = client.seen.iter().filter(|line| line["event"]["delta"]["text"] == "x").count();
    assert_eq!(deltas, 2_000);
}

#[cfg(target_os = "linux")]
fn lives(marker: &str) -> bool {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .map(|process| std::fs::read(process.path().join("cmdline")).unwrap_or_default())
        .any(|command| String::from_utf8_lossy(&command).contains(marker))
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn shells_end_with_it_however_it_ends() {
    for (number, way) in ["terminate", "kill", "drop"].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let marker = format!("98765.{number}");
        let command = format!("touch begun; sleep {marker} & sleep {marker}");
        let reply = Reply::tool("Bash", json!({"command": command}));
        let sim = Sim::new()
            .script(Script::new().otherwise([reply]))
            .args(["--allowedTools", "Bash"])
            .cwd(folder.path());
        let mut client = Client::start(sim);
        client.say("go", "a").await;
        let begun = async {
            while !folder.path().join("begun").exists() || !lives(&marker) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, begun).await.expect("the shell runs");
        match way {
            "terminate" => {
                client.handle.terminate();
                let exit = timeout(LIMIT, client.handle.wait()).await.expect("it ends");
                assert_eq!(exit, Exit::Code(143));
            }
            "kill" => {
                client.handle.kill();
                let exit = timeout(LIMIT, client.handle.wait()).await.expect("it ends");
                assert_eq!(exit, Exit::Signal(9));
            }
            _ => drop(client),
        }
        let gone = async {
            while lives(&marker) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, gone).await.unwrap_or_else(|_| panic!("the shell is left after {way}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_instances_live_in_one_process() {
    let mut turns = tokio::task::JoinSet::new();
    for number in 0..1_000 {
        turns.spawn(async move {
            let mut client = Client::start(Sim::new());
            client.say(&format!("I am {number}"), "a").await;
            let result = client.result().await;
            assert!(result["result"].as_str().unwrap().contains(&format!("I am {number}")));
            let (.., exit) = client.finish().await;
            assert_eq!(exit, Exit::Code(0));
        });
    }
    while let Some(turn) = timeout(LIMIT, turns.join_next()).await.expect("all end") {
        turn.unwrap();
    }
}

/// The program is the same thing with real pipes.
#[test]
fn the_program_speaks_through_real_pipes() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let program = env!("CARGO_BIN_EXE_claude-sim");
    let version = Command::new(program).arg("--version").output().unwrap();
    assert_eq!(version.stdout, b"2.1.325 (Claude Code)\n");

    let mut child = Command::new(program)
        .args(SESSION)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let frame = json!({"type": "user", "message": {"role": "user", "content": "hello"}});
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{frame}\n").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("You said: hello"));

    let output = Command::new(program)
        .args(["--print", "--", "good evening"])
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.stdout, b"You said: good evening\n");

    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("bad.sim");
    std::fs::write(&script, "otherwise\n  shout \"hi\"\n").unwrap();
    let output = Command::new(program)
        .env("CLAUDE_SIM_SCRIPT", &script)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("bad.sim"));
}
