//! File checkpoints: the contents of files before a message changed them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::engine::Engine;
use super::file_tools::changed_lines;
use super::json::{Object, text};
use super::scope::Scope;

/// The checkpoints of all messages, oldest first.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    list: Vec<Checkpoint>,
}

#[derive(Debug)]
struct Checkpoint {
    message: String,
    /// The original contents; `None` if the file did not exist.
    files: BTreeMap<PathBuf, Option<Vec<u8>>>,
}

impl Engine {
    fn checkpoints_enabled(&self) -> bool {
        self.launch.is_enabled("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING")
    }

    pub(super) fn begin_checkpoint(&self, scope: &Scope) {
        if let Some(message) = scope.first_prompt().filter(|_| self.checkpoints_enabled()) {
            let checkpoint = Checkpoint { message, files: BTreeMap::new() };
            self.state().checkpoints.list.push(checkpoint);
        }
    }

    /// Saves a file that is about to be changed.
    pub(super) fn checkpoint(&self, path: &Path) {
        let mut state = self.state();
        if let Some(checkpoint) = state.checkpoints.list.last_mut() {
            let before = || fs::read(path).ok();
            checkpoint.files.entry(path.to_owned()).or_insert_with(before);
        }
    }

    /// Restores the files to their state before a message.
    pub(super) fn rewind(&self, request: &Value) -> Result<Object, String> {
        if !self.checkpoints_enabled() {
            return Err("File rewinding is not enabled.".to_owned());
        }
        let message = text(&request["user_message_id"]);
        let files = {
            let state = self.state();
            let list = &state.checkpoints.list;
            let from = list.iter().position(|checkpoint| checkpoint.message == message);
            let from = from.ok_or("No file checkpoint found for this message.")?;
            // The oldest saved state of each file since that message.
            let mut files = BTreeMap::new();
            for checkpoint in &list[from..] {
                for (path, before) in &checkpoint.files {
                    files.entry(path.clone()).or_insert_with(|| before.clone());
                }
            }
            files
        };
        if request["dry_run"] == true {
            return Ok(describe(&files));
        }
        for (path, before) in &files {
            let restored = match before {
                Some(bytes) => fs::write(path, bytes),
                None if path.exists() => fs::remove_file(path),
                None => Ok(()),
            };
            restored.map_err(|error| format!("{} cannot be restored: {error}", path.display()))?;
        }
        Ok(Object::new().plain("canRewind", true).plain("skippedLinks", 0))
    }
}

fn describe(files: &BTreeMap<PathBuf, Option<Vec<u8>>>) -> Object {
    let (mut added, mut removed) = (0, 0);
    let mut changed = Vec::new();
    for (path, before) in files {
        let now = fs::read(path).ok();
        if now == *before {
            continue;
        }
        let text = |bytes: Option<&Vec<u8>>| {
            bytes.map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
        };
        let (come, gone) = changed_lines(&text(now.as_ref()), &text(before.as_ref()));
        added += come;
        removed += gone;
        changed.push(path.to_string_lossy().into_owned());
    }
    Object::new()
        .plain("canRewind", true)
        .strings("filesChanged", &changed)
        .plain("insertions", added)
        .plain("deletions", removed)
}
