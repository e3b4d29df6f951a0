//! Tests of the history in temporary directories.

mod change;
mod follow;
mod list;
mod read;
mod robustness;
mod stored;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A config directory, and a working directory beside it.
pub(super) struct Fixture {
    root: TempDir,
    pub(super) history: History,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let history = History::at(root.path().join("config"));
        fs::create_dir(root.path().join("work")).unwrap();
        Self { root, history }
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn work(&self) -> PathBuf {
        fs::canonicalize(self.root.path().join("work")).unwrap()
    }

    /// The project folder of a working directory, created.
    pub(super) fn folder(&self, directory: &Path) -> PathBuf {
        let name = claude_wire::transcript::project_folder_name(directory.to_str().unwrap());
        let folder = self.history.config_dir().unwrap().join("projects").join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Writes a transcript for the working directory.
    pub(super) fn write(&self, number: u32, lines: &[Value]) -> PathBuf {
        let path = self.folder(&self.work()).join(format!("{}.jsonl", id(number)));
        fs::write(&path, text(lines)).unwrap();
        path
    }

    /// Writes a transcript with one prompt, last modified at this second.
    pub(super) fn write_at(&self, number: u32, second: u64) -> PathBuf {
        let path = self.write(number, &[prompt(&format!("u{number}"), None, "Hi", &self.work())]);
        set_modified(&path, second);
        path
    }
}

pub(super) fn set_modified(path: &Path, second: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
    File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

pub(super) fn id(number: u32) -> SessionId {
    SessionId::from(format!("00000000-0000-4000-8000-{number:012}"))
}

pub(super) fn text(lines: &[Value]) -> String {
    lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
}

pub(super) fn prompt(uuid: &str, parent: Option<&str>, text: &str, cwd: &Path) -> Value {
    json!({
        "parentUuid": parent, "type": "user", "uuid": uuid, "cwd": cwd, "isSidechain": false,
        "timestamp": "2026-01-31T12:00:00.000Z",
        "message": {"role": "user", "content": text},
    })
}

pub(super) fn response(uuid: &str, parent: &str, text: &str) -> Value {
    json!({
        "parentUuid": parent, "type": "assistant", "uuid": uuid, "isSidechain": false,
        "timestamp": "2026-01-31T12:00:01.000Z",
        "message": {"id": format!("m-{uuid}"), "role": "assistant", "model": "m", "type": "message",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}},
    })
}

/// A conversation of `turns` prompts and responses.
pub(super) fn conversation(turns: usize, cwd: &Path) -> Vec<Value> {
    let mut lines = Vec::new();
    for turn in 0..turns {
        let parent = (turn > 0).then(|| format!("a{}", turn - 1));
        let uuid = format!("u{turn}");
        lines.push(prompt(&uuid, parent.as_deref(), &format!("Question {turn}"), cwd));
        lines.push(response(&format!("a{turn}"), &uuid, &format!("Answer {turn}")));
    }
    lines
}

pub(super) async fn texts(mut messages: MessageStream) -> Vec<String> {
    let mut texts = Vec::new();
    while let Some(message) = messages.next().await {
        texts.push(message.unwrap().content().unwrap().to_text());
    }
    texts
}

pub(super) fn ids(page: &SessionPage) -> Vec<SessionId> {
    page.sessions.iter().map(|session| session.session_id.clone()).collect()
}

#[test]
fn a_relative_config_directory_is_that_of_the_run() {
    let options = Options::new().env("CLAUDE_CONFIG_DIR", "config").cwd("/srv");
    let history = History::from_options(&options).unwrap();
    assert_eq!(history.config_dir(), Some(Path::new("/srv/config")));
}

#[test]
fn calls_outside_of_a_runtime_are_errors() {
    let history = History::at("/none");
    let mut future = std::pin::pin!(history.list(ListFilter::new()));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(result) = future.as_mut().poll(&mut context) else {
        unreachable!("it does not wait");
    };
    assert_eq!(result.unwrap_err().kind(), ErrorKind::NoRuntime);
}
