//! Transcripts, from which `--resume` and `--continue` restore a conversation.
//!
//! They are only written if `CLAUDE_CONFIG_DIR` is set, so that a simulated CLI never writes to the
//! home directory.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::deferred;
use super::engine::Engine;
use super::ids::timestamp;
use super::json::{Object, array, text};
use super::scope::Scope;
use super::state::{Conversation, ConversationEntry, lock};

/// Resumes the session from the command line. Returns an error if it does not exist.
pub(super) fn resume(engine: &Engine) -> Result<(), String> {
    let id = match (&engine.launch.resume, engine.launch.continues) {
        (Some(id), _) => id.clone(),
        // Without an earlier session, `--continue` starts a new one.
        (None, true) => match latest_session(&engine.on_disk(&engine.project_directory())) {
            Some(id) => id,
            None => return Ok(()),
        },
        (None, false) => return Ok(()),
    };
    let not_found = || format!("No conversation found with session ID: {id}");
    let file = fs::read_to_string(engine.on_disk(&engine.transcript_path(&id)))
        .map_err(|_| not_found())?;
    let lines = file.lines().filter_map(|line| serde_json::from_str(line).ok());
    let entries: Vec<Value> = lines.collect();
    // A CLI that is killed during its start leaves a transcript without messages.
    if !entries.iter().any(|entry| matches!(text(&entry["type"]), "user" | "assistant")) {
        return Err(not_found());
    }
    let deferred = deferred::find_pending_call(&entries).filter(|_| engine.launch.session);
    let mut conversation = to_conversation(&entries);
    deferred::remove_dangling(&mut conversation, deferred.as_ref());
    let mut state = engine.state();
    state.known = answered_messages(&entries);
    if engine.launch.cli_version.restores_totals() {
        state.usage.restore(&entries);
    }
    *lock(&state.conversation) = conversation;
    state.replay = deferred.map(|call| engine.new_replay(call));
    // A fork writes the whole conversation to its own file.
    if !engine.launch.fork {
        let mut conversation = lock(&state.conversation);
        conversation.sealed = conversation.entries.len();
        let last = entries.iter().rev().find_map(|entry| entry["uuid"].as_str());
        conversation.last_uuid = last.map(str::to_owned);
        drop(conversation);
        state.session_id = engine.launch.session_id.clone().unwrap_or(id);
    }
    Ok(())
}

/// Returns the IDs of the messages that an entry of the model follows. The CLI processes a message again that comes
/// with the ID of another one.
fn answered_messages(entries: &[Value]) -> BTreeSet<String> {
    let last_answer = entries.iter().rposition(|entry| entry["type"] == "assistant");
    let before = entries.iter().take(last_answer.unwrap_or_default());
    let messages = before.filter(|entry| entry["type"] == "user");
    messages.map(|entry| text(&entry["uuid"]).to_owned()).collect()
}

fn latest_session(directory: &Path) -> Option<String> {
    let files = fs::read_dir(directory).ok()?.flatten();
    let newest = files
        .filter(|file| file.path().extension().is_some_and(|extension| extension == "jsonl"))
        .max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok())?;
    Some(newest.path().file_stem()?.to_str()?.to_owned())
}

fn to_conversation(entries: &[Value]) -> Conversation {
    let mut conversation = Conversation::default();
    for entry in entries {
        let blocks = super::state::content_blocks(&entry["message"]["content"]);
        match text(&entry["type"]) {
            "user" => conversation.user(blocks),
            "assistant" => {
                let id = text(&entry["message"]["id"]).to_owned();
                for block in blocks {
                    conversation.assistant(&id, block);
                }
            }
            _ => {}
        }
    }
    conversation
}

impl Engine {
    pub(super) fn config_directory(&self) -> String {
        let named = self.launch.var("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let directory = named.unwrap_or_else(|| std::env::temp_dir().join("claude-sim"));
        directory.to_string_lossy().into_owned()
    }

    /// Returns the directory with the transcripts of this project.
    pub(super) fn project_directory(&self) -> String {
        let key = self.chosen_folder().unwrap_or_else(|| {
            let cwd = self.launch.cwd.to_string_lossy();
            cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect()
        });
        format!("{}/projects/{key}", self.config_directory())
    }

    /// Returns the name of the project folder that a variable sets. The CLI uses it only if the config
    /// directory is set as well, and ignores names that not every system accepts.
    fn chosen_folder(&self) -> Option<String> {
        self.launch.var("CLAUDE_CONFIG_DIR")?;
        let name = self.launch.var("CLAUDE_CODE_PROJECT_DIR_NAME")?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let is_valid = (1..=64).contains(&name.len()) && name.chars().all(is_plain);
        is_valid.then(|| name.to_owned())
    }

    /// Returns where a path is that the CLI reports: those below a relative config directory are relative to the working
    /// directory.
    fn on_disk(&self, path: &str) -> PathBuf {
        self.launch.cwd.join(path)
    }

    pub(super) fn transcript_path(&self, session: &str) -> String {
        format!("{}/{session}.jsonl", self.project_directory())
    }

    pub(super) fn agent_transcript(&self, agent: &str) -> String {
        let session = self.session_id();
        format!("{}/{session}/subagents/agent-{agent}.jsonl", self.project_directory())
    }

    /// Writes the new entries of a turn to the transcript, and sends them to a host that mirrors
    /// it.
    pub(super) async fn save_transcript(&self, scope: &Scope) {
        let kept = self.launch.var("CLAUDE_CONFIG_DIR").is_some();
        if scope.is_agent() || !(kept || self.launch.mirror) {
            return;
        }
        let (session, entries, mut parent) = {
            let state = self.state();
            let mut conversation = lock(&state.conversation);
            let new = conversation.entries[conversation.sealed..].to_vec();
            conversation.sealed = conversation.entries.len();
            (state.session_id.clone(), new, conversation.last_uuid.clone())
        };
        // The prompt is the first entry of a turn.
        let mut prompt = scope.first_prompt();
        let mut line = |kind: &str, key: &str, value: &str| {
            let uuid = prompt.take().unwrap_or_else(|| self.ids.uuid());
            let before = parent.replace(uuid.clone());
            Object::new()
                .str_or_null("parentUuid", before.as_deref())
                .plain("isSidechain", false)
                .str("type", kind)
                .raw(key, value)
                .str("uuid", &uuid)
                .str("timestamp", &timestamp())
                .str("cwd", &self.launch.cwd.to_string_lossy())
                .str("sessionId", &session)
                .str("version", &self.launch.version)
                .done()
        };
        let messages = entries.iter();
        let mut lines: Vec<String> = messages
            .map(|entry| line(entry.role, "message", &message_of(entry).to_string()))
            .collect();
        let deferred = lock(&scope.deferred).clone();
        if let Some(call) = deferred {
            lines.push(line("attachment", "attachment", &self.deferred_marker(&call).done()));
        }
        lock(&self.state().conversation).last_uuid = parent;
        if kept {
            // If writing fails, the session cannot be resumed, but it continues.
            drop(append(&self.on_disk(&self.transcript_path(&session)), &lines));
        }
        self.emit_mirror(&session, &array(&lines)).await;
    }

    async fn emit_mirror(&self, session: &str, entries: &str) {
        if self.launch.mirror {
            let line = Object::typed("transcript_mirror")
                .str("filePath", &self.transcript_path(session))
                .raw("entries", entries);
            self.emit("transcript_mirror", line).await;
        }
    }

    /// Writes the cost of the conversation to the transcript, for later runs that resume it. Not
    /// called if the process is killed.
    pub(super) async fn save_cost(&self) {
        // Without a transcript there is nothing to resume.
        if lock(&self.state().conversation).last_uuid.is_none() {
            return;
        }
        let session = self.session_id();
        let duration = self.started.elapsed().as_millis();
        let entry = self.state().usage.cost_state(&session, duration);
        let path = self.on_disk(&self.transcript_path(&session));
        if self.launch.var("CLAUDE_CONFIG_DIR").is_some() && path.exists() {
            // If writing fails, the totals are lost, but the session continues.
            drop(append(&path, std::slice::from_ref(&entry)));
        }
        self.emit_mirror(&session, &array([entry])).await;
    }
}

fn append(path: &Path, lines: &[String]) -> std::io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    let text: String = lines.iter().flat_map(|line| [line, "\n"]).collect();
    file.write_all(text.as_bytes())
}

/// Returns a message in the format of a transcript: a prompt with one text is a plain string.
fn message_of(entry: &ConversationEntry) -> Value {
    if entry.role == "assistant" {
        return json!({"role": entry.role, "id": entry.id, "content": entry.blocks});
    }
    match entry.blocks.as_slice() {
        [block] if block["type"] == "text" => json!({"role": "user", "content": block["text"]}),
        blocks => json!({"role": "user", "content": blocks}),
    }
}
