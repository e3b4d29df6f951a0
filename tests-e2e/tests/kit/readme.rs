//! What the README promises to those who try it.

use std::process::Command;

use tests_e2e::snippets;
use tests_e2e::workspace::root;

#[test]
fn the_first_run_prints_what_the_readme_shows() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, shown) = readme.split_once("cargo run --example quickstart\n```").unwrap();
    let shown = shown.split_once("```text\n").unwrap().1.split_once("```").unwrap().0;
    let run = Command::new(env!("CARGO_BIN_EXE_quickstart")).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let printed = String::from_utf8(run.stdout).unwrap();
    assert_eq!(without_session_id(&printed), without_session_id(shown));
}

/// Each run has its own session.
fn without_session_id(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| if line.starts_with("session: ") { "session: …" } else { line })
        .collect()
}

/// `cargo xtask outside` compiles the snippets in a project of their own. Here they are checked for
/// what such a project does not have.
#[test]
fn snippets_use_the_kit_alone() {
    let snippets = snippets::all().unwrap();
    assert!(snippets.len() > 20, "{}", snippets.len());
    for snippet in snippets {
        for internal in ["claude_wire", "claude_agent_testkit", "tests_e2e", "include!", "#[path"] {
            assert!(!snippet.code.contains(internal), "{}: {internal}", snippet.name);
        }
    }
}

#[test]
fn the_readme_starts_with_cargo_add_a_program_and_its_output() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let places = ["cargo add claude-agent-kit", "```rust", "```text"]
        .map(|part| readme.find(part).unwrap_or_else(|| panic!("README.md has no {part}")));
    assert!(places.is_sorted(), "{places:?}");
}
