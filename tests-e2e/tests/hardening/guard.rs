//! What the guard of the example, the guide and the README denies.

use std::fs;
use std::path::Path;

use claude_agent_kit::{Json, ToolInput};
use serde_json::{Value, json};

#[path = "../../../crates/claude-agent-kit/examples/guard.rs"]
#[allow(dead_code, clippy::print_stdout, reason = "only the guard is tested; an example prints")]
mod example;

fn allows(tool: &str, input: &Json) -> bool {
    example::is_allowed(&ToolInput::new(tool, input))
}

fn allows_command(command: &str) -> bool {
    allows("Bash", &Json::from(json!({"command": command})))
}

#[test]
fn guard_allows_the_listed_calls() {
    for command in ["cargo check", "cargo test", "git status"] {
        assert!(allows_command(command), "{command}");
    }
    // The description does not matter.
    let input = json!({"command": "cargo test", "description": "Perform rm -rf / ; $(x)"});
    assert!(allows("Bash", &Json::from(input)));
    assert!(allows("Read", &Json::from(json!({"file_path": "Cargo.toml"}))));
}

#[test]
fn guard_denies_every_other_command() {
    let commands = [
        "",
        " ",
        "rm -rf /",
        "rm\t-rf /",
        "cargo",
        "cargo  test",
        "cargo\ttest",
        "cargo\ntest",
        " cargo test",
        "cargo test ",
        "cargo test\n",
        "cargo test\r",
        "cargo test\0",
        "cargo test\nrm -rf /",
        "cargo test; rm -rf /",
        "cargo test & rm -rf /",
        "cargo test && rm -rf /",
        "cargo test | sh",
        "cargo test || rm -rf /",
        "cargo test > /etc/passwd",
        "cargo test >> log",
        "cargo test < input",
        "cargo test 2>&1",
        "cargo test <<EOF\nEOF",
        "cargo test $(rm -rf /)",
        "cargo test `rm -rf /`",
        "cargo test ${IFS}x",
        "cargo test *",
        "cargo test ?",
        "cargo test ~",
        "cargo test {a,b}",
        "cargo test !!",
        "cargo test # rm",
        "cargo test \\\nrm",
        "cargo 'test'",
        "cargo \"test\"",
        "'cargo' test",
        "cargo te\\st",
        "(cargo test)",
        "{ cargo test; }",
        "PATH=. cargo test",
        "env cargo test",
        "/tmp/cargo test",
        "./cargo test",
        "../cargo test",
        "cargo test --config x",
        "cargo test -- --nocapture",
        "cargo\u{a0}test",
        "cargo\u{2003}test",
        "cargo\u{3000}test",
        "cargo test\u{200b}",
        "сargo test",
        "CARGO TEST",
        "cargo test\u{fffd}",
    ];
    for command in commands {
        assert!(!allows_command(command), "{command:?}");
    }
}

#[test]
fn guard_denies_every_other_tool() {
    let command = Json::from(json!({"command": "cargo test"}));
    for tool in ["", "bash", "BASH", "Bash ", "BashTool", "PowerShell", "mcp__x__Bash"] {
        assert!(!allows(tool, &command), "{tool}");
    }
    let monitor = json!({"description": "d", "timeout_ms": 1, "command": "cargo test"});
    assert!(!allows("Monitor", &Json::from(monitor)));
    let write = json!({"file_path": "x", "content": "cargo test"});
    assert!(!allows("Write", &Json::from(write)));
    assert!(!allows("WebFetch", &Json::from(json!({"url": "http://x", "prompt": "p"}))));
}

#[test]
fn guard_denies_malformed_inputs() {
    let inputs: [Value; 10] = [
        json!(null),
        json!({}),
        json!("cargo test"),
        json!(["cargo test"]),
        json!({"command": null}),
        json!({"command": ["cargo test"]}),
        json!({"Command": "cargo test"}),
        json!({"command": "cargo test", "timeout": "long"}),
        json!({"command": "cargo test", "dangerouslyDisableSandbox": true}),
        json!({"command": "cargo test", "interpreter": "python"}),
    ];
    for input in inputs {
        assert!(!allows("Bash", &Json::from(input.clone())), "{input}");
    }
    assert!(!allows("Read", &Json::from(json!({"path": "x"}))));
}

#[test]
fn guard_uses_the_last_duplicate_key_like_the_cli() {
    let check = |text: &str| allows("Bash", &Json::from_text(text).unwrap());
    assert!(!check(r#"{"command":"cargo test","command":"rm -rf /"}"#));
    assert!(!check(r#"{"command":"cargo test","c\u006fmmand":"rm -rf /"}"#));
    assert!(check(r#"{"command":"rm -rf /","command":"cargo test"}"#));
    assert!(!check(r#"{"command":"cargo test\ud800"}"#));
}

/// Returns the function in a text, from its doc comment to its last brace.
fn guard_in(text: &str) -> &str {
    let start = text.find("/// Decides whether a tool call may run").unwrap();
    let end = text[start..].find("\n}\n").unwrap();
    &text[start..start + end]
}

#[test]
fn guide_and_readme_contain_the_example_guard() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let example = read("crates/claude-agent-kit/examples/guard.rs").replace("pub(crate) fn", "fn");
    let guide = read("crates/claude-agent-kit/src/guide/hooks.md");
    assert_eq!(guard_in(&example), guard_in(&guide));
    for path in ["README.md", "crates/claude-agent-kit/src/options/callbacks.rs"] {
        assert!(!read(path).contains("contains(\"rm "), "{path}");
    }
}
