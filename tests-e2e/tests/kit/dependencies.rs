//! The number of dependencies of the SDK.

use std::collections::BTreeSet;
use std::process::Command;

/// Returns the crates that a host builds with these features, including those of the SDK.
fn crates(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "claude-agent-kit", "--edges", "normal,build"])
        .args(["--prefix", "none", "--format", "{p}", "--offline", "--locked"])
        .args(["--target", "x86_64-unknown-linux-gnu"])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let names = tree.lines().filter_map(|line| line.split_whitespace().next());
    names.map(str::to_owned).collect()
}

#[test]
fn dependency_count_is_bounded() {
    let (bare, default) = (crates(&["--no-default-features"]), crates(&[]));
    assert!(bare.contains("claude-agent-kit") && bare.contains("tokio"), "{bare:?}");
    assert!(!bare.contains("schemars") && default.contains("schemars"), "{default:?}");
    assert!(!default.contains("rmcp"), "{default:?}");
    assert!(bare.len() <= 30, "{} without features: {bare:?}", bare.len());
    assert!(default.len() <= 60, "{} with the default: {default:?}", default.len());
}
