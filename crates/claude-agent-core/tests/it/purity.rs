//! The crate does no I/O and has no clock, no threads and no randomness of its own.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What the crate may depend on, itself and through others. A new name needs a reason in
/// `docs/dependencies.md`, and must not bring a runtime or I/O.
const ALLOWED: &[&str] = &[
    "bytes",
    "claude-agent-core",
    "claude-wire",
    "itoa",
    "memchr",
    "serde",
    "serde_core",
    "serde_json",
    "zmij",
];

#[test]
fn the_dependency_tree_holds_no_runtime_and_no_io() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--package", "claude-agent-core", "--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}", "--offline", "--locked", "--all-features"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let found: BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let strangers: Vec<_> = found.iter().filter(|name| !ALLOWED.contains(name)).collect();
    assert!(found.contains("serde_json"), "{tree}");
    assert!(strangers.is_empty(), "not allowed in a pure crate: {strangers:?}");
}

#[test]
fn the_source_names_no_io_no_clock_and_no_threads() {
    const FORBIDDEN: &[&str] = &[
        "std::fs",
        "std::io",
        "std::net",
        "std::process",
        "std::env",
        "std::thread::",
        "std::time::Instant",
        "std::time::SystemTime",
        "::now()",
        "RandomState",
        "HashMap",
        "HashSet",
        "println!",
        "eprintln!",
    ];
    let mut files = Vec::new();
    collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 20, "{files:?}");
    for (file, text) in files {
        for word in FORBIDDEN {
            assert!(!text.contains(word), "{file} names {word}");
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}
