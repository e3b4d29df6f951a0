//! The README: its first run and its snippets.

use std::process::Command;

use tests_e2e::snippets;
use tests_e2e::workspace::root;

#[test]
fn first_run_prints_the_output_in_the_readme() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let (_, shown) = readme.split_once("cargo run --example quickstart\n```").unwrap();
    let shown = shown.split_once("```text\n").unwrap().1.split_once("```").unwrap().0;
    let command = ["run", "--quiet", "--example", "quickstart"];
    let run = Command::new(env!("CARGO")).args(command).current_dir(root()).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let printed = String::from_utf8(run.stdout).unwrap();
    assert_eq!(without_session_id(&printed), without_session_id(shown));
}

/// Masks the session ID, which differs between runs.
fn without_session_id(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| if line.starts_with("session: ") { "session: …" } else { line })
        .collect()
}

/// `cargo xtask outside` compiles the snippets in a project outside the workspace. This test checks that they
/// use nothing that such a project does not have.
#[test]
fn snippets_use_the_kit_alone() {
    let snippets = snippets::all().unwrap();
    assert!(snippets.len() > 20, "{}", snippets.len());
    for snippet in snippets {
        for internal in [
            "claude_wire",
            "claude_agent_core",
            "claude_session_store",
            "claude_agent_testkit",
            "tests_e2e",
            "include!",
            "#[path",
        ] {
            assert!(!snippet.code.contains(internal), "{}: {internal}", snippet.name);
        }
    }
}

#[test]
fn readme_starts_with_cargo_add_a_program_and_its_output() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let places = ["cargo add claude-agent-kit", "```rust", "```text"]
        .map(|part| readme.find(part).unwrap_or_else(|| panic!("README.md has no {part}")));
    assert!(places.is_sorted(), "{places:?}");
}
