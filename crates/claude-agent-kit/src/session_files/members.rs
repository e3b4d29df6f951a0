//! The files of one session. The [module](super) describes which ones belong to it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{errors, open};
use crate::error::Result;
use crate::id::SessionId;
use crate::sort;

/// The folder of a session with the transcripts of subagents.
const SUBAGENTS: &str = "subagents";

/// How deep the folders below that folder are searched; the CLI uses three levels.
const MAX_DEPTH: usize = 8;

/// A session on disk.
#[derive(Clone, Debug)]
pub(crate) struct SessionFiles {
    pub(crate) id: SessionId,
    /// The main transcript.
    pub(crate) path: PathBuf,
}

/// The transcripts of the subagents of a session.
#[derive(Debug, Default)]
pub(crate) struct Subagents {
    /// Sorted by path.
    pub(crate) files: Vec<SubagentFiles>,
    /// The number of files whose names are not Unicode.
    pub(crate) unnamed: u64,
}

/// A transcript below the folder of a session, and its metadata. Either may be absent.
#[derive(Debug)]
pub(crate) struct SubagentFiles {
    /// The path below the folder of the session, with `/` and without an extension.
    pub(crate) subpath: String,
    /// The path of the transcript.
    pub(crate) path: PathBuf,
    pub(crate) has_transcript: bool,
    pub(crate) has_metadata: bool,
}

impl SessionFiles {
    pub(crate) fn in_folder(folder: &Path, id: SessionId) -> Self {
        Self { path: folder.join(format!("{id}.jsonl")), id }
    }

    /// Returns the folder for the other files of the session.
    pub(crate) fn folder(&self) -> PathBuf {
        self.path.with_extension("")
    }

    /// Returns the file with the title, which only the CLI writes.
    pub(crate) fn title_file(&self) -> PathBuf {
        self.folder().join("custom-title.json")
    }

    /// Returns the file that says whether the session is archived.
    pub(crate) fn archive_file(&self) -> PathBuf {
        self.folder().join("archived.json")
    }

    pub(crate) fn subagents(&self) -> io::Result<Subagents> {
        let mut found = Subagents::default();
        let folder = self.folder();
        let subagents = folder.join(SUBAGENTS);
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if is_folder(&folder) && is_folder(&subagents) {
            found.collect(&subagents, SUBAGENTS, 0)?;
        }
        sort::sort_by(&mut found.files, |one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Removes the transcript, then everything else.
    pub(crate) fn remove(&self) -> Result<()> {
        fs::remove_file(&self.path)
            .map_err(|error| errors::io("remove the transcript", &self.path, error))?;
        let folder = self.folder();
        let removed = match folder.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&folder),
            Ok(_) => fs::remove_file(&folder),
            Err(error) => Err(error),
        };
        match removed {
            Err(error) if !open::is_absent(&error) => {
                Err(errors::io("remove, after its transcript, the folder", &folder, error))
            }
            _ => Ok(()),
        }
    }
}

impl SubagentFiles {
    /// Returns the file with the metadata.
    pub(crate) fn metadata_path(&self) -> PathBuf {
        self.path.with_extension("meta.json")
    }
}

/// Returns the subagent whose transcript a subpath names. A workflow has others, such as its journal.
pub(crate) fn agent_of(subpath: &str) -> Option<&str> {
    let (folder, name) = subpath.rsplit_once('/')?;
    let is_below = folder.split('/').next() == Some(SUBAGENTS);
    name.strip_prefix("agent-").filter(|agent| is_below && !agent.is_empty())
}

impl Subagents {
    /// Links are not followed: they could lead anywhere, or in circles.
    fn collect(&mut self, folder: &Path, prefix: &str, depth: usize) -> io::Result<()> {
        let mut named = BTreeMap::new();
        for entry in open::entries(folder)? {
            let kind = entry.file_type()?;
            let Ok(name) = entry.file_name().into_string() else {
                self.unnamed += 1;
                continue;
            };
            if kind.is_dir() {
                if depth < MAX_DEPTH {
                    self.collect(&entry.path(), &format!("{prefix}/{name}"), depth + 1)?;
                }
                continue;
            }
            let transcript = name.strip_suffix(".jsonl").filter(|_| kind.is_file());
            let stem = transcript.or_else(|| name.strip_suffix(".meta.json"));
            let Some(stem) = stem.filter(|stem| !stem.is_empty()) else { continue };
            let files = named.entry(stem.to_owned()).or_insert_with(|| SubagentFiles {
                subpath: format!("{prefix}/{stem}"),
                path: folder.join(format!("{stem}.jsonl")),
                has_transcript: false,
                has_metadata: false,
            });
            files.has_transcript |= transcript.is_some();
            files.has_metadata |= transcript.is_none();
        }
        self.files.extend(named.into_values());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use claude_wire::transcript::TranscriptPath;

    use super::*;

    const ID: &str = "0b0e4b1c-5d5e-4d5e-9a67-3f1c2a9f7e11";

    /// The files that the CLI writes for a session, and others; which of them are transcripts.
    #[test]
    fn the_files_of_a_session_are_those_that_the_cli_reports() {
        let projects = tempfile::tempdir().unwrap();
        let projects = projects.path().join("projects");
        let deep = |folders: usize| format!("{ID}/subagents/{}agent-d.jsonl", "x/".repeat(folders));
        let (deepest, too_deep) = (deep(MAX_DEPTH), deep(MAX_DEPTH + 1));
        for (name, is_transcript) in [
            (&*format!("{ID}.jsonl"), true),
            (&*format!("{ID}/subagents/agent-a.jsonl"), true),
            (&*format!("{ID}/subagents/workflows/run/agent-b.jsonl"), true),
            (&*format!("{ID}/subagents/workflows/run/journal.jsonl"), true),
            (&*deepest, true),
            (&*too_deep, false),
            (&*format!("{ID}/subagents/agent-a.txt"), false),
            (&*format!("{ID}/subagents/.jsonl"), false),
            (&*format!("{ID}/resume-head.jsonl"), false),
            (&*format!("{ID}/tool-results/x.jsonl"), false),
            (&*format!("{ID}/remote-agents/remote-agent-a.meta.json"), false),
            (&*format!("{ID}/custom-title.json"), false),
        ] {
            let path = projects.join("-work").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "{}\n").unwrap();
            let found = TranscriptPath::read(path.to_str().unwrap());
            assert_eq!(found.is_some(), is_transcript, "{name}");
            let session = SessionFiles::in_folder(&projects.join("-work"), SessionId::from(ID));
            let subagents = session.subagents().unwrap().files;
            let subpath = found.and_then(|found| found.subpath);
            let is_listed = subagents.iter().any(|files| Some(&files.subpath) == subpath.as_ref());
            assert_eq!(is_listed, is_transcript && subpath.is_some(), "{name}");
        }
    }
}
