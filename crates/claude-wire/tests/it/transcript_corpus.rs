//! Transcripts that the real CLI wrote. `cargo xtask record-transcripts` records them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use claude_wire::transcript::{Entry, Index, IssueKind, MessageFilter, MessageRef};
use expect_test::expect_file;

use super::transcript_lines::bytes_of;

fn transcripts() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/transcripts")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "jsonl") {
                found.push(path);
            }
        }
    }
    found.sort();
    assert!(found.len() >= 14, "{found:?}");
    found
}

fn read(path: &Path) -> (Vec<u8>, Index) {
    let bytes = fs::read(path).unwrap();
    let mut index = Index::new();
    index.feed(&bytes);
    index.finish();
    (bytes, index)
}

fn is_subagent(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "subagents")
}

/// The text of a message, or what its blocks are.
fn describe(bytes: &[u8], message: &MessageRef) -> String {
    let entry = Entry::decode(bytes_of(bytes, message.entry).to_vec()).unwrap();
    let raw: serde_json::Value = serde_json::from_slice(entry.raw().unwrap()).unwrap();
    let content = match &raw["attachment"]["prompt"] {
        serde_json::Value::Null => &raw["message"]["content"],
        prompt => prompt,
    };
    let blocks = content.as_array().into_iter().flatten().map(|block| {
        let text = block["text"].as_str().or(block["name"].as_str()).unwrap_or_default();
        format!("{} {text}", block["type"].as_str().unwrap_or("?"))
    });
    let text =
        content.as_str().map_or_else(|| blocks.collect::<Vec<_>>().join(", "), str::to_owned);
    text.replace('\n', " ").chars().take(60).collect::<String>().trim_end().to_owned()
}

#[test]
fn recorded_transcripts_have_the_expected_conversations() {
    let mut text = String::new();
    let mut last = String::new();
    for path in transcripts() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/transcripts");
        let name = path.strip_prefix(&root).unwrap();
        let scenario = name.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
        if scenario != last {
            writeln!(text, "{scenario}").unwrap();
            last = scenario;
        }
        let (bytes, index) = read(&path);
        let tree = index.tree();
        let messages = if is_subagent(&path) {
            writeln!(text, "  subagent").unwrap();
            tree.subagent_messages()
        } else {
            writeln!(text, "  session, {} branches", tree.branches().len()).unwrap();
            tree.messages(MessageFilter::default())
        };
        for message in &messages {
            let role = format!("{:?}", message.role);
            writeln!(text, "    {role}: {}", describe(&bytes, message)).unwrap();
        }
    }
    // An absolute path does not depend on a variable of the environment.
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/transcripts/conversations.txt");
    expect_file![file].assert_eq(&text);
}

#[test]
fn recorded_transcripts_have_no_damaged_lines() {
    for path in transcripts() {
        let (bytes, index) = read(&path);
        assert_eq!(index.issues(), [], "{}", path.display());
        // What is not part of the conversation was left by a rewind or a compaction.
        let tree = index.tree();
        let issues = tree.issues();
        let is_left = |kind| matches!(kind, IssueKind::OtherBranch | IssueKind::BeforeCompaction);
        assert!(issues.iter().all(|issue| is_left(issue.kind)), "{}: {issues:?}", path.display());
        for entry in index.entries() {
            Entry::decode(bytes_of(&bytes, entry).to_vec()).unwrap();
        }
    }
}
