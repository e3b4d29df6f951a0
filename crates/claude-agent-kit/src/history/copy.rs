//! Copies sessions between the disk and stores.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use claude_agent_core::session::MirrorLimits;
use claude_wire::transcript::{Index, IssueKind};

use super::source::{Source, Span, SpanReader};
use super::stored::StoredHistory;
use super::{CancelFlag, History, errors, transcript};
use crate::error::{Error, ErrorKind, Result};
use crate::id::SessionId;
use crate::session_files::open;
use crate::session_files::project::{Located, Projects};
use crate::sort;
#[cfg(doc)]
use crate::store::StoreOptions;
use crate::store::batch::BatchWriter;
use crate::store::pages::Pages;
use crate::store::position::is_mirrored;
use crate::store::write_session::{store_failed, write_session};
use crate::store::{Load, NewEntry, Occurrences, SessionKey, Subpath};

/// How deep folders of subagents are searched; the CLI uses three levels.
const MAX_DEPTH: usize = 8;

/// The result of [`History::copy_to`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionCopy {
    /// The project of the copy: the name of its folder below `projects`, or the project of its key.
    pub project: String,
    /// The number of entries that the target did not have.
    pub copied: u64,
    /// The number of entries that the target already had.
    pub present: u64,
    /// The number of lines and files that could not be copied, because they are damaged.
    pub damaged: u64,
}

impl History {
    /// Copies a session with its subagents into a store, out of one, or from one store to another. The ID
    /// stays the same.
    ///
    /// The project of the copy is that of the target, if [`for_directory`](Self::for_directory) or
    /// [`StoreOptions::project`] sets one, and otherwise that of the session.
    ///
    /// - **Into a store**, entries are appended in batches of at most 500 entries and 1 MiB. Entries that the
    ///   store has are skipped, so a copy that was interrupted continues when it is repeated. Not copied are
    ///   the records of API requests, which the CLI does not mirror either, damaged lines, a last line that is
    ///   not complete, and files that are not transcripts: tool results, checkpoints, the archive state.
    /// - **To disk**, transcripts appear when they are complete, and never replace a file: one with the same
    ///   contents is kept, another one is an error. The CLI can then resume the session in the directory of
    ///   the target.
    ///
    /// The original is not changed. The memory is bounded: one batch, and an index of 48 bytes per entry.
    ///
    /// ```no_run
    /// use claude_agent_kit::history::History;
    /// use claude_agent_kit::store::{MemoryStore, StoreOptions};
    ///
    /// # async fn example(id: claude_agent_kit::SessionId) -> claude_agent_kit::Result<()> {
    /// let disk = History::new()?.for_directory("/srv/project");
    /// let stored = History::in_store(&StoreOptions::new("tenant-1", MemoryStore::new()));
    /// let copy = disk.copy_to(&id, &stored).await?;
    /// println!("{} entries in the project {}", copy.copied, copy.project);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ConversationNotFound`](ErrorKind::ConversationNotFound), [`StoreFailed`](ErrorKind::StoreFailed),
    /// [`HistoryIo`](ErrorKind::HistoryIo) when a file cannot be read or written, and
    /// [`InvalidHistoryChange`](ErrorKind::InvalidHistoryChange) when a transcript exists with other contents,
    /// or both histories are on disk.
    ///
    /// # Cancel safety
    /// To disk, no transcript or all of them are written. In a store, the batches that were sent stay; repeat
    /// the copy to complete it.
    #[doc(alias = "importSessionToStore")]
    pub async fn copy_to(&self, session_id: &SessionId, target: &Self) -> Result<SessionCopy> {
        match (self.stored(), target.stored()) {
            (None, Some(stored)) => self.import(session_id, target, stored).await,
            (Some(stored), None) => self.export(session_id, stored, target).await,
            (Some(from), Some(to)) => self.transfer(session_id, from, target, to).await,
            (None, None) => Err(both_on_disk(session_id)),
        }
    }

    async fn import(
        &self,
        id: &SessionId,
        target: &Self,
        stored: &StoredHistory,
    ) -> Result<SessionCopy> {
        let session = id.clone();
        let (located, files) = self
            .run(move |projects, _| {
                let located = projects.require(&session)?;
                let files = SessionFiles::find(&located)?;
                Ok((located, files))
            })
            .await?;
        let key = target.copy_key(id, stored, project_of(&located)).await?;
        let mut copy = Import::new(self, stored, &key).await?;
        copy.damaged = files.damaged;
        copy.transcript(None, located).await?;
        for SubagentFile { subpath, path, metadata } in files.subagents {
            // First, because a list of subagents reads the start of their transcripts.
            if let Some(metadata) = metadata {
                copy.add(&mut Occurrences::new(), Some(&subpath), metadata).await?;
            }
            if let Some(path) = path {
                copy.transcript(Some(&subpath), Located { id: id.clone(), path }).await?;
            }
        }
        copy.finish().await
    }

    async fn export(
        &self,
        id: &SessionId,
        stored: &StoredHistory,
        target: &Self,
    ) -> Result<SessionCopy> {
        let key = self.stored_key(stored, id).await?;
        let project = key.project().to_owned();
        let (project, folder) =
            target.run(move |projects, _| target_folder(projects, project)).await?;
        let written = write_session(stored.store(), &key, &folder).await?;
        if written.entries == 0 {
            return Err(errors::not_in_store(&key));
        }
        Ok(SessionCopy { project, copied: written.entries, present: 0, damaged: 0 })
    }

    async fn transfer(
        &self,
        id: &SessionId,
        from: &StoredHistory,
        target: &Self,
        to: &StoredHistory,
    ) -> Result<SessionCopy> {
        let source = self.stored_key(from, id).await?;
        from.require(&source).await?;
        let key = target.copy_key(id, to, source.project().to_owned()).await?;
        let mut copy = Import::new(self, to, &key).await?;
        let mut pages = Pages::new();
        loop {
            let page = pages.next(from.store(), &source, Load::all()).await;
            let page = page.map_err(|error| store_failed("load", &source, error))?;
            let Some(page) = page else { return copy.finish().await };
            for entry in page.entries {
                let entry = NewEntry::with_id(entry.subpath, entry.id, entry.text)
                    .map_err(|error| store_failed("load", &source, error))?;
                copy.push(entry).await?;
            }
        }
    }

    /// Returns the key of a copy in this store.
    async fn copy_key(
        &self,
        id: &SessionId,
        stored: &StoredHistory,
        project: String,
    ) -> Result<SessionKey> {
        let is_set = stored.project.is_some() || self.projects.directory.is_some();
        let project = if is_set { self.project_name(stored).await? } else { project };
        stored.key(&project, id)
    }
}

/// A copy into a store.
struct Import<'a> {
    history: &'a History,
    key: &'a SessionKey,
    writer: BatchWriter<'a>,
    damaged: u64,
}

impl<'a> Import<'a> {
    async fn new(
        history: &'a History,
        stored: &'a StoredHistory,
        key: &'a SessionKey,
    ) -> Result<Self> {
        let writer = BatchWriter::new(stored.store(), key).await;
        let writer = writer.map_err(|error| store_failed("copy", key, error))?;
        Ok(Self { history, key, writer, damaged: 0 })
    }

    /// Copies the entries of a file.
    async fn transcript(&mut self, subpath: Option<&Subpath>, located: Located) -> Result<()> {
        let path = located.path.clone();
        let read = self.history.run(move |_, cancel| {
            let (source, index) = transcript::read(&located, cancel)?;
            Ok((Arc::new(source), Arc::new(index)))
        });
        let (source, index) = read.await?;
        self.damaged += index.issues().iter().filter(|issue| is_lost(issue.kind)).count() as u64;
        let mut occurrences = Occurrences::new();
        let mut position = 0;
        while position < index.len() {
            let (source, index) = (source.clone(), index.clone());
            let read =
                self.history.run(move |_, cancel| read_texts(&source, &index, position, cancel));
            let (texts, next) = read.await?;
            for text in texts {
                let entry = occurrences.entry(subpath.cloned(), text);
                let entry = entry.map_err(|error| errors::changed(&path).caused_by(error))?;
                self.push(entry).await?;
            }
            position = next;
        }
        Ok(())
    }

    async fn add(
        &mut self,
        occurrences: &mut Occurrences,
        subpath: Option<&Subpath>,
        text: String,
    ) -> Result<()> {
        let entry = occurrences.entry(subpath.cloned(), text);
        let entry = entry.map_err(|error| store_failed("copy", self.key, error))?;
        self.push(entry).await
    }

    async fn push(&mut self, entry: NewEntry) -> Result<()> {
        let pushed = self.writer.push(entry).await;
        pushed.map_err(|error| store_failed("copy", self.key, error))
    }

    async fn finish(mut self) -> Result<SessionCopy> {
        let flushed = self.writer.flush().await;
        flushed.map_err(|error| store_failed("copy", self.key, error))?;
        Ok(SessionCopy {
            project: self.key.project().to_owned(),
            copied: self.writer.appended,
            present: self.writer.present,
            damaged: self.damaged,
        })
    }
}

/// Copies the main transcript of a session that is not one of the history.
pub(super) async fn import_file(
    history: &History,
    stored: &StoredHistory,
    key: &SessionKey,
    path: PathBuf,
) -> Result<()> {
    let mut copy = Import::new(history, stored, key).await?;
    copy.transcript(None, Located { id: key.session().clone(), path }).await?;
    copy.finish().await.map(drop)
}

/// Reads the entries of one batch, and returns the position after them.
fn read_texts(
    source: &Source,
    index: &Index,
    start: usize,
    cancel: &CancelFlag,
) -> Result<(Vec<String>, usize)> {
    let limits = MirrorLimits::default();
    let mut reader = SpanReader::default();
    let (mut texts, mut bytes, mut position) = (Vec::new(), 0, start);
    while let Some(entry) = index.get(position)
        && texts.len() < limits.batch_entries
        && bytes < limits.batch_bytes
    {
        cancel.check()?;
        let text = String::from_utf8_lossy(reader.read(source, Span::from(entry))?);
        if is_mirrored(&text) {
            bytes += text.len();
            texts.push(text.into_owned());
        }
        position += 1;
    }
    Ok((texts, position))
}

/// Returns whether an issue means that bytes of the file are not part of an entry.
fn is_lost(kind: IssueKind) -> bool {
    matches!(kind, IssueKind::Malformed | IssueKind::Torn | IssueKind::Oversized | IssueKind::Nul)
}

/// The files of a session beside its main transcript.
#[derive(Default)]
struct SessionFiles {
    /// Sorted by path.
    subagents: Vec<SubagentFile>,
    damaged: u64,
}

struct SubagentFile {
    subpath: Subpath,
    path: Option<PathBuf>,
    /// The metadata as an entry.
    metadata: Option<String>,
}

impl SessionFiles {
    fn find(located: &Located) -> Result<Self> {
        let mut files = Self::default();
        let folder = located.session_dir();
        let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
        if is_folder(&folder) && is_folder(&folder.join("subagents")) {
            files.collect(&folder.join("subagents"), "subagents", 0)?;
        }
        sort::sort_by(&mut files.subagents, |one, other| one.subpath.cmp(&other.subpath));
        Ok(files)
    }

    /// Links are not followed: they could lead anywhere.
    fn collect(&mut self, folder: &Path, prefix: &str, depth: usize) -> Result<()> {
        let failed = |error| errors::io("list", folder, error);
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if open::is_absent(&error) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                self.damaged += 1;
                continue;
            };
            if kind.is_dir() && depth < MAX_DEPTH {
                self.collect(&entry.path(), &format!("{prefix}/{name}"), depth + 1)?;
            } else if kind.is_file() {
                self.add_file(prefix, name, entry.path());
            }
        }
        Ok(())
    }

    fn add_file(&mut self, prefix: &str, name: &str, path: PathBuf) {
        if let Some(stem) = name.strip_suffix(".jsonl") {
            match Subpath::new(&format!("{prefix}/{stem}")) {
                Ok(subpath) => {
                    let sidecar = path.with_extension("meta.json");
                    let metadata = self.metadata(&sidecar);
                    self.subagents.push(SubagentFile { subpath, path: Some(path), metadata });
                }
                Err(_) => self.damaged += 1,
            }
        } else if let Some(stem) = name.strip_suffix(".meta.json")
            && !path.with_file_name(format!("{stem}.jsonl")).exists()
            && let Ok(subpath) = Subpath::new(&format!("{prefix}/{stem}"))
            && let Some(metadata) = self.metadata(&path)
        {
            self.subagents.push(SubagentFile { subpath, path: None, metadata: Some(metadata) });
        }
    }

    /// Returns the metadata of a subagent in the form in which the CLI mirrors it.
    fn metadata(&mut self, path: &Path) -> Option<String> {
        let bytes = open::read_sidecar(path).transpose()?;
        let entry = bytes.ok().and_then(|bytes| metadata_entry(&bytes));
        self.damaged += u64::from(entry.is_none());
        entry
    }
}

fn metadata_entry(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?.trim();
    let members = text.strip_prefix('{')?.trim_start();
    let separator = if members.starts_with('}') { "" } else { "," };
    let entry = format!(r#"{{"type":"agent_metadata"{separator}{members}"#);
    NewEntry::new(None, entry.as_str(), 0).ok().map(|_| entry)
}

/// Returns the project of a session on disk.
fn project_of(located: &Located) -> String {
    let name = located.path.parent().and_then(Path::file_name).unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Returns the project folder for a copy, and its name.
fn target_folder(projects: &Projects, project: String) -> Result<(String, PathBuf)> {
    let config = &projects.config;
    let name = match &projects.directory {
        Some(directory) => config.folder_name(directory),
        None => config.folder_override.clone().unwrap_or(project),
    };
    // The project of a key can be any text.
    let is_name = Subpath::new(&name).is_ok() && !name.contains('/');
    if !is_name {
        return Err(errors::no_project_folder(&name));
    }
    let folder = config.projects().join(&name);
    Ok((name, folder))
}

pub(crate) fn both_on_disk(id: &SessionId) -> Error {
    let message = format!("cannot copy session {id}: both histories are on disk");
    Error::new(ErrorKind::InvalidHistoryChange, message)
        .with_help("use `History::in_store` for one of them")
        .with(|facts| facts.session_id = Some(id.clone()))
}
