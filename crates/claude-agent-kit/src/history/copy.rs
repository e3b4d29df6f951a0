//! Copies sessions between the disk and stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use claude_agent_core::session::{MirrorLimits, metadata_entry};
use claude_wire::transcript::{Index, IssueKind};

use super::source::{Source, Span, SpanReader};
use super::stored::StoredHistory;
use super::{CancelFlag, History, errors, transcript};
use crate::error::{Error, ErrorKind, Result};
use crate::id::SessionId;
use crate::session_files::members::{SessionFiles, SubagentFiles};
use crate::session_files::open;
use crate::session_files::project::Projects;
#[cfg(doc)]
use crate::store::StoreOptions;
use crate::store::batch::BatchWriter;
use crate::store::pages::Pages;
use crate::store::position::is_mirrored;
use crate::store::write_session::{store_failed, write_session};
use crate::store::{Load, NewEntry, Occurrences, SessionKey, Subpath};

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
        let (located, subagents) = self
            .run(move |projects, _| {
                let located = projects.require(&session)?;
                let listed = |error| errors::io("list", &located.folder(), error);
                let subagents = located.subagents().map_err(listed)?;
                Ok((located, subagents))
            })
            .await?;
        let key = target.copy_key(id, stored, project_of(&located)).await?;
        let mut copy = Import::new(self, stored, &key).await?;
        copy.damaged = subagents.unnamed;
        copy.transcript(None, located).await?;
        for files in subagents.files {
            copy.subagent(files).await?;
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
    async fn transcript(&mut self, subpath: Option<&Subpath>, located: SessionFiles) -> Result<()> {
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

    /// Copies a transcript of a subagent and its metadata.
    async fn subagent(&mut self, files: SubagentFiles) -> Result<()> {
        let Ok(subpath) = Subpath::new(&files.subpath) else {
            self.damaged += 1;
            return Ok(());
        };
        // First, because a list of subagents reads the start of their transcripts.
        if files.has_metadata {
            let path = files.metadata_path();
            let read = move |_: &Projects, _: &CancelFlag| Ok(open::read(&path));
            let bytes = self.history.run(read).await?;
            let text = bytes.ok().and_then(|bytes| metadata_entry(&bytes));
            match text.map(|text| NewEntry::new(Some(subpath.clone()), text, 0)) {
                Some(Ok(entry)) => self.push(entry).await?,
                _ => self.damaged += 1,
            }
        }
        if files.has_transcript {
            let located = SessionFiles { id: self.key.session().clone(), path: files.path };
            self.transcript(Some(&subpath), located).await?;
        }
        Ok(())
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
    copy.transcript(None, SessionFiles { id: key.session().clone(), path }).await?;
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

/// Returns the project of a session on disk.
fn project_of(located: &SessionFiles) -> String {
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
