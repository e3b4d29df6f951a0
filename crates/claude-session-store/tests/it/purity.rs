//! Without features, the crate has no runtime, no I/O and no randomness: machines that decide about stores depend on it.

use std::collections::BTreeSet;
use std::process::Command;

/// What the crate may depend on without features, itself and through others. A new name needs a reason in
/// `docs/dependencies.md`, and must not bring a runtime or I/O.
const ALLOWED: &[&str] = &[
    "bytes",
    "claude-session-store",
    "claude-wire",
    "itoa",
    "memchr",
    "serde",
    "serde_core",
    "serde_json",
    "sha1_smol",
    "uuid",
    "zmij",
];

#[test]
fn the_dependency_tree_holds_no_runtime_and_no_io() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "claude-session-store", "--edges", "normal"])
        .args(["--prefix", "none", "--format", "{p}", "--offline", "--locked"])
        .arg("--no-default-features")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let found: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let strangers: Vec<_> = found.iter().filter(|name| !ALLOWED.contains(name)).collect();
    assert!(found.contains("serde_json"), "{tree}");
    assert!(strangers.is_empty(), "not allowed without features: {strangers:?}");
}
