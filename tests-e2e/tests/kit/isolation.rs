//! What an isolated session on the real CLI uses of a machine that is full of configuration.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tests_e2e::harness::Harness;

use crate::support::{HOST, hello, real, run};

/// A mark that is in all of the configuration.
const MARK: &str = "m4rk";

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns settings with a hook that creates a file and a variable that reaches the API.
fn settings(ran: &Path, who: &str) -> String {
    let hook = format!("touch {}/{MARK}-{who}", ran.display());
    let hooks = json!([{"hooks": [{"type": "command", "command": hook}]}]);
    json!({
        "hooks": {"SessionStart": hooks, "UserPromptSubmit": hooks},
        "env": {"ANTHROPIC_CUSTOM_HEADERS": format!("x-{MARK}-{who}: 1")},
        "outputStyle": format!("{MARK}-{who}"),
        "enableAllProjectMcpServers": true,
    })
    .to_string()
}

/// Creates agents, skills, commands, output styles and rules in a settings directory.
fn write_extensions(root: &Path, who: &str) {
    let described = format!("---\nname: {MARK}-{who}\ndescription: {MARK}-{who}\n---\n{MARK}\n");
    write(root, &format!("agents/{MARK}-{who}.md"), &described);
    write(root, &format!("skills/{MARK}-{who}/SKILL.md"), &described);
    write(root, &format!("commands/{MARK}-{who}.md"), &described);
    write(root, &format!("output-styles/{MARK}-{who}.md"), &described);
    write(root, &format!("rules/{MARK}-{who}.md"), &format!("Say {MARK}-rule-{who}."));
    write(root, "CLAUDE.md", &format!("Say {MARK}-dotted-{who}."));
}

/// Creates every kind of configuration in the home directory, the project and its parent directory.
fn create_configuration(harness: &Harness) {
    let (root, project) = (harness.root(), harness.project());
    let (home, ran) = (root.join("home"), root.join("ran"));
    fs::create_dir_all(&ran).unwrap();
    let servers = |who: &str| {
        json!({"mcpServers": {format!("{MARK}-{who}"): {"command": "/missing"}}}).to_string()
    };
    write(&home, ".claude/settings.json", &settings(&ran, "user"));
    write_extensions(&home.join(".claude"), "user");
    write(&home, ".claude.json", &servers("user"));
    write(&home, ".claude/.claude.json", &servers("config"));
    write(&home, ".gitconfig", &format!("[user]\n\tname = {MARK}-git\n\temail = a@b.invalid\n"));
    write(root, "CLAUDE.md", &format!("Say {MARK}-above."));
    write(&project, "CLAUDE.md", &format!("Say {MARK}-project."));
    write(&project, "CLAUDE.local.md", &format!("Say {MARK}-local."));
    write(&project, "AGENTS.md", &format!("Say {MARK}-agents."));
    write(&project, ".mcp.json", &servers("project"));
    write(&project, ".claude/settings.json", &settings(&ran, "project"));
    write(&project, ".claude/settings.local.json", &settings(&ran, "local"));
    write_extensions(&project.join(".claude"), "project");
}

/// Runs a host on this machine and returns its stdout and what reached the model.
fn run_host(harness: &Harness, arguments: &[&str]) -> (String, String) {
    let output = Command::new(HOST)
        .args(arguments)
        .env_clear()
        .envs(harness.variables())
        .env("CLAUDE_CLI_PATH", harness.program().unwrap())
        .env("CLAUDE_AGENT_SDK_CLIENT_APP", format!("{MARK}-app"))
        .current_dir(harness.project())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let requests = harness.api().requests();
    assert!(!requests.is_empty(), "the model received no request");
    let sent = requests.iter().map(|request| format!("{:?} {}", request.headers, request.body));
    (String::from_utf8(output.stdout).unwrap(), sent.collect::<Vec<_>>().join("\n"))
}

/// Returns the hooks that ran.
fn hooks_that_ran(harness: &Harness) -> Vec<String> {
    let entries = fs::read_dir(harness.root().join("ran")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn init_message(messages: &str) -> Value {
    let mut values = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    values.find(|value| value["subtype"] == "init").unwrap()
}

#[test]
fn session_without_isolation_uses_the_configuration() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        create_configuration(&harness);
        let (messages, requests) = run_host(&harness, &["open"]);
        assert_eq!(hooks_that_ran(&harness), ["m4rk-local", "m4rk-project", "m4rk-user"]);
        for part in ["above", "project", "local", "dotted-user", "rule-user", "app"] {
            assert!(requests.contains(&format!("{MARK}-{part}")), "{part} did not reach the model");
        }
        let init = init_message(&messages);
        for (list, part) in [
            ("agents", "user"),
            ("agents", "project"),
            ("slash_commands", "user"),
            ("slash_commands", "project"),
            ("skills", "user"),
            ("mcp_servers", "project"),
        ] {
            assert!(init[list].to_string().contains(&format!("{MARK}-{part}")), "{list}: {init}");
        }
    });
}

#[test]
fn isolated_session_ignores_the_configuration_of_the_machine() {
    run(async {
        let harness = Harness::real(hello(), real()).await.unwrap();
        create_configuration(&harness);
        let own = harness.root().join("own");
        fs::create_dir(&own).unwrap();
        let (messages, requests) = run_host(&harness, &["isolated", &own.to_string_lossy()]);
        assert_eq!(hooks_that_ran(&harness), [""; 0], "a hook ran");
        for (what, text) in [("the model", &requests), ("the host", &messages)] {
            let found: Vec<_> = text
                .match_indices(MARK)
                .map(|(at, _)| {
                    text.get(at.saturating_sub(60)..(at + 40).min(text.len())).unwrap_or_default()
                })
                .collect();
            assert!(found.is_empty(), "{what} was sent of {found:?}");
        }
        let init = init_message(&messages);
        assert_eq!(init["mcp_servers"], json!([]));
        assert!(own.join(".claude").exists(), "the session has its own home");
    });
}
