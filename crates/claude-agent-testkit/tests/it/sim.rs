//! The simulated CLI, as a client sees it.

use std::time::Duration;

use claude_agent_testkit::mock_api::{Reply, Script};
use claude_agent_testkit::recording::Exit;
use claude_agent_testkit::sim::Sim;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::client::{Client, SESSION, TIMEOUT};

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
async fn the_handshake_response_lists_commands_models_and_agents() {
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
async fn a_turn_has_the_message_order_of_the_real_cli() {
    let mut client = Client::scripted([Reply::text("Hello.")], &[]);
    client.initialize(json!({})).await;
    client.seen.clear();
    client.prompt("hi", "6d3f0c2e-0000-4000-8000-000000000001").await;
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
async fn without_a_script_the_model_repeats_the_prompt() {
    let mut client = Client::start(Sim::new());
    client.prompt("good morning", "a").await;
    assert!(client.result().await["result"].as_str().unwrap().contains("good morning"));
}

#[tokio::test]
async fn type_is_the_first_key_except_in_a_result() {
    let (mut stdin, mut stdout, _stderr, handle) = Sim::new().args(SESSION).start().into_parts();
    let frame = json!({"type": "user", "message": {"role": "user", "content": "hi"}});
    stdin.write_all(format!("{frame}\n").as_bytes()).await.unwrap();
    drop(stdin);
    let mut text = String::new();
    timeout(TIMEOUT, stdout.read_to_string(&mut text)).await.unwrap().unwrap();
    for line in text.lines() {
        let first = line.starts_with(r#"{"type":"#);
        assert_eq!(first, !line.contains(r#""type":"result""#), "{line}");
    }
    assert_eq!(timeout(TIMEOUT, handle.wait()).await.unwrap(), Exit::Code(0));
}

#[tokio::test]
async fn a_tool_waits_for_its_hook_and_its_permission() {
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
    client.prompt("do it", "a").await;

    let hook = client.next_request("hook_callback").await;
    assert_eq!(hook["request"]["callback_id"], "hook_0");
    assert_eq!(hook["request"]["input"]["tool_input"]["command"], "echo done > made");
    client.respond(&hook, json!({})).await;
    let request = client.next_request("can_use_tool").await;
    assert!(!folder.path().join("made").exists());
    let input = json!({"command": "echo changed > made"});
    client.respond(&request, json!({"behavior": "allow", "updatedInput": input})).await;

    assert_eq!(client.result().await["result"], "Done.");
    assert_eq!(std::fs::read_to_string(folder.path().join("made")).unwrap(), "changed\n");
}

#[tokio::test]
async fn a_hook_timeout_cancels_the_request_and_the_tool_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let replies = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let sim = Sim::new()
        .script(Script::new().otherwise(replies))
        .args(["--allowedTools", "Bash"])
        .cwd(folder.path());
    let mut client = Client::start(sim);
    let matcher = json!({"matcher": null, "hookCallbackIds": ["hook_0"], "timeout": 0.05});
    client.initialize(json!({"hooks": {"PreToolUse": [matcher]}})).await;
    client.prompt("do it", "a").await;
    let hook = client.next_request("hook_callback").await;
    let cancel = client.until(|line| line["type"] == "control_cancel_request").await;
    assert_eq!(cancel["request_id"], hook["request_id"]);
    assert_eq!(client.result().await["subtype"], "success");
    assert!(!folder.path().join("made").exists());
}

#[tokio::test]
async fn a_failing_hook_blocks_if_registered_to_block() {
    let replies = [Reply::tool("Bash", json!({"command": "true"})), Reply::text("Done.")];
    let mut client = Client::scripted(replies, &["--allowedTools", "Bash"]);
    let matcher = json!({"matcher": null, "hookCallbackIds": ["hook_0"], "onFailure": "block"});
    client.initialize(json!({"hooks": {"PreToolUse": [matcher]}})).await;
    client.prompt("do it", "a").await;
    let hook = client.next_request("hook_callback").await;
    let response = json!({"subtype": "error", "request_id": hook["request_id"], "error": "oops"});
    client.send(&json!({"type": "control_response", "response": response})).await;
    let result = client.result().await;
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
}

#[tokio::test]
async fn an_interrupt_cancels_pending_requests_and_ends_the_turn() {
    let replies = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let mut client = Client::scripted(replies, &["--permission-prompt-tool", "stdio"]);
    client.prompt("do it", "a").await;
    let request = client.next_request("can_use_tool").await;
    client.request("stop", json!({"subtype": "interrupt"})).await;
    let cancel = client.until(|line| line["type"] == "control_cancel_request").await;
    assert_eq!(cancel["request_id"], request["request_id"]);
    assert_eq!(client.response_to("stop").await["response"], json!({"still_queued": []}));
    let result = client.result().await;
    assert_eq!(result["terminal_reason"], "aborted_tools");
    let (.., exit) = client.finish().await;
    assert_eq!(exit, Exit::Code(1));
}

#[tokio::test]
async fn a_held_reply_continues_after_its_release() {
    let mut client = Client::scripted([Reply::text("Hello.").hold()], &[]);
    client.prompt("hi", "a").await;
    client.until(|line| line["subtype"] == "init").await;
    let model = client.handle.model().clone();
    timeout(TIMEOUT, model.wait_for_request(|_| true)).await.expect("the model is asked");
    model.release_held();
    assert_eq!(client.result().await["result"], "Hello.");
    assert_eq!(model.requests()[0].last_prompt().as_deref(), Some("hi"));
}

#[tokio::test]
async fn an_in_process_server_is_initialized_listed_and_called() {
    let config = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;
    let replies = [Reply::tool("mcp__calc__add", json!({"a": 2, "b": 3})), Reply::text("Five.")];
    let mut client =
        Client::scripted(replies, &["--mcp-config", config, "--allowedTools", "mcp__calc"]);
    client.request("init", json!({"subtype": "initialize"})).await;
    let result = |request: &Value, result: Value| {
        let id = &request["request"]["message"]["id"];
        json!({"mcp_response": {"jsonrpc": "2.0", "id": id, "result": result}})
    };
    let hello = client.next_request("mcp_message").await;
    assert_eq!(hello["request"]["message"]["method"], "initialize");
    let info = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}});
    client.respond(&hello, result(&hello, info)).await;
    client.response_to("init").await;
    let confirmed = client.next_request("mcp_message").await;
    assert_eq!(confirmed["request"]["message"]["method"], "notifications/initialized");
    client.prompt("add", "a").await;
    let list = client.next_request("mcp_message").await;
    assert_eq!(list["request"]["message"]["method"], "tools/list");
    client.respond(&list, result(&list, json!({"tools": [{"name": "add"}]}))).await;
    let call = client.next_request("mcp_message").await;
    assert_eq!(call["request"]["message"]["params"]["arguments"], json!({"a": 2, "b": 3}));
    let sum = json!({"content": [{"type": "text", "text": "5"}]});
    client.respond(&call, result(&call, sum)).await;
    assert_eq!(client.result().await["result"], "Five.");
}

#[tokio::test]
async fn a_protocol_violation_ends_the_cli_with_an_error() {
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
async fn unknown_requests_are_rejected_and_unknown_messages_ignored() {
    let mut client = Client::start(Sim::new());
    client.send(&json!({"type": "weather", "sunny": true})).await;
    client.request("coffee", json!({"subtype": "make_coffee"})).await;
    let answer = client.response_to("coffee").await;
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
async fn closing_stdin_early_still_produces_a_result() {
    let replies = [Reply::tool("Bash", json!({"command": "touch made"})), Reply::text("Done.")];
    let mut client = Client::scripted(replies, &["--permission-prompt-tool", "stdio"]);
    client.prompt("do it", "a").await;
    client.next_request("can_use_tool").await;
    let (rest, _, exit) = client.finish().await;
    let result = rest.iter().find(|line| line["type"] == "result").expect("a result");
    assert_eq!(result["permission_denials"][0]["tool_name"], "Bash");
    assert_eq!(exit, Exit::Code(0));
}

/// Streams enough deltas to fill every pipe many times, while tools write as well.
#[tokio::test]
async fn a_slow_client_receives_everything() {
    let reply = Reply::text("x".repeat(2_000)).deltas_of(1);
    let reply = (0..10).fold(reply, |reply, _| reply.and_tool("Read", json!({"file_path": "no"})));
    let mut client = Client::scripted(
        [reply, Reply::text("Done.")],
        &["--include-partial-messages", "--allowedTools", "Read"],
    );
    client.prompt("hi", "a").await;
    // On a single thread, the CLI runs whenever the client waits, until its pipes are full.
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
async fn shells_end_with_the_cli() {
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
        client.prompt("go", "a").await;
        let begun = async {
            while !folder.path().join("begun").exists() || !lives(&marker) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(TIMEOUT, begun).await.expect("the shell runs");
        match way {
            "terminate" => {
                client.handle.terminate();
                let exit =
                    timeout(TIMEOUT, client.handle.wait()).await.expect("the CLI does not exit");
                assert_eq!(exit, Exit::Code(143));
            }
            "kill" => {
                client.handle.kill();
                let exit =
                    timeout(TIMEOUT, client.handle.wait()).await.expect("the CLI does not exit");
                assert_eq!(exit, Exit::Signal(9));
            }
            _ => drop(client),
        }
        let gone = async {
            while lives(&marker) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(TIMEOUT, gone).await.unwrap_or_else(|_| panic!("the shell is left after {way}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_instances_run_in_one_process() {
    let mut turns = tokio::task::JoinSet::new();
    for number in 0..1_000 {
        turns.spawn(async move {
            let mut client = Client::start(Sim::new());
            client.prompt(&format!("I am {number}"), "a").await;
            let result = client.result().await;
            assert!(result["result"].as_str().unwrap().contains(&format!("I am {number}")));
            let (.., exit) = client.finish().await;
            assert_eq!(exit, Exit::Code(0));
        });
    }
    while let Some(turn) = timeout(TIMEOUT, turns.join_next()).await.expect("all end") {
        turn.unwrap();
    }
}

/// Runs the program with real pipes.
#[test]
fn the_program_works_with_real_pipes() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let program = env!("CARGO_BIN_EXE_claude-sim");
    let version = Command::new(program).arg("--version").output().unwrap();
    assert_eq!(version.stdout, b"2.1.326 (Claude Code)\n");

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
