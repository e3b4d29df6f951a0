//! The transcripts of a session on the local disk, beside those in its store.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use claude_agent_core::session::metadata_entry;
use claude_wire::transcript::has_chain_entry;
use serde_json::Value;

use super::pages::Pages;
use super::position::LineReader;
use super::upload::{LocalFile, read_files};
use crate::session_files::own_files::OwnFiles;
use crate::session_files::project;
use crate::sort;
use claude_session_store::{Load, Occurrences, SessionKey, SessionStore, StoreFuture, Subpath};

/// How many entries are loaded together to find the first message, which has few entries before it.
const FIRST_ENTRIES: usize = 16;

/// How a local transcript and a stored one differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// Whether there is a local transcript.
    pub(super) is_local: bool,
    /// Whether the store has entries of the transcript.
    pub(super) is_stored: bool,
    /// Whether only the local transcript has some entries.
    pub(super) has_local_only: bool,
    /// Whether only the store has some entries.
    pub(super) has_stored_only: bool,
    /// Whether one of them has a message. The CLI does not resume a transcript without messages.
    pub(super) has_messages: bool,
}

impl Difference {
    /// Compares the main transcript in a file with that in a store.
    pub(super) fn of<'a>(
        store: &'a dyn SessionStore,
        key: &'a SessionKey,
        files: &'a OwnFiles,
        path: &'a Path,
        lines: Lines,
    ) -> StoreFuture<'a, Self> {
        Box::pin(async move {
            let (files, read) = (files.clone(), path.to_owned());
            let local = read_files(path, move || local_entries(&files, &read, lines)).await?;
            let is_local = local.is_some();
            let LocalEntries { ids: mut missing, has_messages } = local.unwrap_or_default();
            let mut found = Self { is_local, has_messages, ..Self::default() };
            // Without a local transcript the first message tells enough.
            let load = if is_local { Load::main() } else { Load::main().limit(FIRST_ENTRIES) };
            let mut pages = Pages::new();
            while let Some(page) = pages.next(store, key, load).await? {
                for entry in &page.entries {
                    found.is_stored = true;
                    found.has_stored_only |= !missing.remove(entry.id.as_str());
                    found.has_messages = found.has_messages || is_message(&entry.text);
                }
                if !is_local && found.has_messages {
                    break;
                }
            }
            found.has_local_only = !missing.is_empty();
            Ok(found)
        })
    }
}

/// Returns whether the store has a message of a session. Reads as far as the first one.
pub(super) fn has_messages<'a>(
    store: &'a dyn SessionStore,
    key: &'a SessionKey,
) -> StoreFuture<'a, bool> {
    Box::pin(async move {
        let mut pages = Pages::new();
        while let Some(page) = pages.next(store, key, Load::main().limit(FIRST_ENTRIES)).await? {
            if page.entries.iter().any(|entry| is_message(&entry.text)) {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// Returns whether an entry of a main transcript is a prompt or a response, as for the messages of a local transcript.
/// Queued prompts, modes and titles are none.
fn is_message(text: &str) -> bool {
    // Most other entries have no parent.
    if !has_chain_entry(text.as_bytes()) && !text.contains("\"uuid\"") {
        return false;
    }
    let entry: Value = serde_json::from_str(text).unwrap_or_default();
    matches!(entry["type"].as_str(), Some("user" | "assistant"))
        && entry["uuid"].is_string()
        && entry["isSidechain"] != true
}

/// The lines of a local transcript that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    All,
    /// Those with a UUID.
    Messages,
}

/// What a local transcript has.
#[derive(Debug, Default)]
struct LocalEntries {
    ids: HashSet<String>,
    has_messages: bool,
}

/// Returns the entries of a transcript; `None` if there is none.
fn local_entries(files: &OwnFiles, path: &Path, lines: Lines) -> io::Result<Option<LocalEntries>> {
    let mut reader = match LineReader::open(files, path, 0) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut occurrences = Occurrences::new();
    let mut local = LocalEntries::default();
    while let Some(line) = reader.next_mirrored()? {
        local.has_messages = local.has_messages || is_message(&line);
        // A damaged line is not an entry.
        if let Ok(entry) = occurrences.entry(None, line)
            && (lines == Lines::All || entry.id().has_uuid())
        {
            local.ids.insert(entry.id().to_string());
        }
    }
    Ok(Some(local).filter(|local| !local.ids.is_empty()))
}

/// Returns the transcripts of the sessions in a project folder: of this session, or of all.
pub(super) fn transcripts(
    own: &OwnFiles,
    folder: &Path,
    scope: &str,
    project: &str,
    session: Option<&str>,
) -> io::Result<Vec<LocalFile>> {
    let mut sessions = project::sessions(folder)?;
    sort::sort_by(&mut sessions, |(one, _), (other, _)| one.path.cmp(&other.path));
    let mut files = Vec::new();
    for (found, _) in sessions {
        if session.is_some_and(|session| session != found.id.as_str()) {
            continue;
        }
        let key = SessionKey::new(scope, project, found.id.as_str()).map_err(io::Error::other)?;
        let subagents = found.subagents()?;
        let main = LocalFile {
            key: key.clone(),
            subpath: None,
            path: found.path,
            has_lines: true,
            metadata: None,
        };
        files.push(main);
        for subagent in subagents.files {
            let Ok(subpath) = Subpath::new(&subagent.subpath) else { continue };
            let metadata = own.read(&subagent.metadata_path()).ok();
            files.push(LocalFile {
                key: key.clone(),
                subpath: Some(subpath),
                path: subagent.path,
                has_lines: subagent.has_transcript,
                metadata: metadata.and_then(|bytes| metadata_entry(&bytes)).map(Arc::from),
            });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::{Append, MemoryStore, NewEntry, OwnedSessions, StoreOptions, Target};

    const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

    async fn difference(stored: &[&str], local: Option<&[&str]>) -> Difference {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.jsonl");
        if let Some(lines) = local {
            fs::write(&path, lines.concat()).unwrap();
        }
        let store = MemoryStore::new();
        let key = SessionKey::new("s", "p", ID).unwrap();
        let mut occurrences = Occurrences::new();
        let entries: Vec<NewEntry> =
            stored.iter().map(|text| occurrences.entry(None, *text).unwrap()).collect();
        store.append(&key, Append::new(&entries)).await.unwrap();
        let files = OwnFiles::of_host(folder.path());
        Difference::of(&store, &key, &files, &path, Lines::All).await.unwrap()
    }

    #[tokio::test]
    async fn transcripts_are_compared_by_their_entries() {
        let of = |is_local, is_stored, has_local_only, has_stored_only| Difference {
            is_local,
            is_stored,
            has_local_only,
            has_stored_only,
            has_messages: false,
        };
        let request = "{\"type\":\"api-request\"}\n";
        assert_eq!(difference(&[], None).await, Difference::default());
        assert_eq!(difference(&[], Some(&[])).await, Difference::default());
        assert_eq!(difference(&["1"], None).await, of(false, true, false, true));
        assert_eq!(difference(&[], Some(&["1\n"])).await, of(true, false, true, false));
        // Equal: not every line is mirrored, and one without an end is incomplete.
        let local: &[&str] = &["1\n", request, "1\n", "\n", "{\"x\":"];
        assert_eq!(difference(&["1", "1"], Some(local)).await, of(true, true, false, false));
        assert_eq!(difference(&["1"], Some(&["1\n", "2\n"])).await, of(true, true, true, false));
        assert_eq!(difference(&["1", "1"], Some(&["1\n"])).await, of(true, true, false, true));
        assert_eq!(
            difference(&["1", "3"], Some(&["1\n", "2\n"])).await,
            of(true, true, true, true)
        );
    }

    #[tokio::test]
    async fn messages_are_found_on_either_side() {
        let queued = r#"{"type":"queue-operation","operation":"enqueue","content":"\"uuid\""}"#;
        let mode = r#"{"type":"mode","uuid":"00000000-0000-4000-8000-000000000001"}"#;
        let agent =
            r#"{"type":"user","uuid":"00000000-0000-4000-8000-000000000002","isSidechain":true}"#;
        let prompt =
            r#"{"parentUuid":null,"type":"user","uuid":"00000000-0000-4000-8000-000000000003"}"#;
        let response = r#"{"type":"assistant","uuid":"00000000-0000-4000-8000-000000000004","parentUuid":"x"}"#;
        let none = [queued, mode, agent, "1", "{}"];
        assert!(!difference(&none, None).await.has_messages);
        assert!(!difference(&none, Some(&[queued, "\n", mode, "\n"])).await.has_messages);
        // Not only in the first page.
        let mut many = vec![mode; 3 * FIRST_ENTRIES];
        many.push(prompt);
        assert!(difference(&many, None).await.has_messages);
        assert!(difference(&[mode, response], None).await.has_messages);
        assert!(difference(&[mode], Some(&[prompt, "\n"])).await.has_messages);
        assert!(difference(&[prompt], Some(&[mode, "\n"])).await.has_messages);
    }

    #[test]
    fn transcripts_of_subagents_are_found_with_their_metadata() {
        let folder = tempfile::tempdir().unwrap();
        let agents = folder.path().join(ID).join("subagents");
        fs::create_dir_all(&agents).unwrap();
        for (path, text) in [
            (folder.path().join(format!("{ID}.jsonl")), "1\n"),
            (folder.path().join("other.jsonl"), "1\n"),
            (agents.join("agent-a.jsonl"), "1\n"),
            (agents.join("agent-a.meta.json"), r#"{"agentType":"x"}"#),
            // The CLI writes such files, and an agent any other: they are not transcripts.
            (folder.path().join(ID).join("resume-head.jsonl"), "1\n"),
            (folder.path().join(ID).join("tool-results/x.jsonl"), "1\n"),
            (agents.join("agent-b.jsonl"), "1\n"),
            (agents.join("agent-b.meta.json"), "{broken"),
            (agents.join("agent-c.meta.json"), "{}"),
        ] {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let own = OwnFiles::of_host(folder.path());
        let files = transcripts(&own, folder.path(), "s", "p", None).unwrap();
        let found: Vec<_> = files
            .iter()
            .map(|file| (file.subpath.as_ref().map(Subpath::as_str), file.metadata.as_deref()))
            .collect();
        let metadata = r#"{"type":"agent_metadata","agentType":"x"}"#;
        assert_eq!(
            found,
            [
                (None, None),
                (Some("subagents/agent-a"), Some(metadata)),
                (Some("subagents/agent-b"), None),
                (Some("subagents/agent-c"), Some(r#"{"type":"agent_metadata"}"#)),
            ]
        );
    }

    #[tokio::test]
    async fn metadata_is_stored_before_its_transcript_exists() {
        let folder = tempfile::tempdir().unwrap();
        let agents = folder.path().join(ID).join("subagents");
        fs::create_dir_all(&agents).unwrap();
        fs::write(folder.path().join(format!("{ID}.jsonl")), "1\n").unwrap();
        fs::write(agents.join("agent-a.meta.json"), "{}").unwrap();
        let store = MemoryStore::new();
        let target = Target {
            options: StoreOptions::new("s", store.clone()),
            project: None,
            folder: None,
            files: OwnFiles::of_host(folder.path()),
        };
        let key = SessionKey::new("s", "p", ID).unwrap();
        for _ in 0..2 {
            let mut sessions = OwnedSessions::default();
            target.send_local(&mut sessions, folder.path(), &key).await.unwrap();
            let page = store.load(&key, Load::all()).await.unwrap();
            let texts: Vec<&str> = page.entries.iter().map(|entry| &*entry.text).collect();
            assert_eq!(texts, ["1", r#"{"type":"agent_metadata"}"#]);
        }
    }
}
