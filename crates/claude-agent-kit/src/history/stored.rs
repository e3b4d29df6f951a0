//! The history of a project in a session store.
//!
//! Lists come from the summaries that a store keeps beside its entries. A conversation is written to a private
//! temporary file and read from there, so that both kinds of histories share one reader, with its bounds.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use claude_agent_core::session::metadata_file;
use claude_wire::Json;
use claude_wire::transcript::{MessageFilter, SummaryData, is_uuid, tag_line, title_line};

use super::list::SkippedFile;
use super::stream::{HistoryMessage, Parents};
use super::{
    ForkOptions, History, ListFilter, SessionInfo, SessionPage, SubagentInfo, Transcript, copy,
    errors, fork, subagents, time, transcript,
};
use crate::error::Result;
use crate::id::{AgentId, SessionId};
use crate::session_files::members::SessionFiles;
use crate::session_files::members::agent_of;
use crate::session_files::write::TemporaryFolder;
use crate::store::pages::{Bounds, Pages, list_after, list_page};
use crate::store::upload::limited;
use crate::store::write_session::{load_page, spool, store_failed};
use crate::store::{
    Append, EntryId, Load, LoadScope, NewEntry, ProjectKey, SessionKey, SessionRow, SessionStore,
    StoreError, StoreErrorKind, StoreOptions, Subpath, Summary,
};
use crate::tasks::BoxFuture;

/// How many sessions are listed with one request.
const LIST_PAGE: usize = 100;
/// How many entries of a subagent are searched for its metadata, which the CLI reports first.
const METADATA_ENTRIES: usize = 16;

/// The store of a history.
pub(super) struct StoredHistory {
    store: Arc<dyn SessionStore>,
    scope: Arc<str>,
    /// The project; `None` for that of the working directory.
    pub(super) project: Option<Arc<str>>,
}

impl History {
    /// Opens the history of a project in a session store: [`StoreOptions::project`], or else the one of the
    /// directory that [`for_directory`](Self::for_directory) sets, or of the current directory of this process.
    ///
    /// All functions work as they do on disk, except for these:
    /// - [`list`](Self::list) and [`info`](Self::info) use the summaries that the mirror and
    ///   [`copy_to`](Self::copy_to) write, and load the entries of a session only where its summary is missing
    ///   or old. The filters for worktrees and for sessions of programs have no effect, and sessions that
    ///   continue in another one are listed.
    /// - [`open`](Self::open) and all functions that read messages load the transcript into a private
    ///   temporary file, which is deleted at once and takes space until the result is dropped.
    /// - [`delete`](Self::delete) claims the session first: a host that runs it is superseded.
    /// - [`archive`](Self::archive), [`unarchive`](Self::unarchive), [`follow`](Self::follow) and
    ///   [`is_live`](Self::is_live) are errors, because a store does not keep what they need.
    ///
    /// ```no_run
    /// use claude_agent_kit::history::{History, ListFilter};
    /// use claude_agent_kit::store::{MemoryStore, StoreOptions};
    ///
    /// # async fn example() -> claude_agent_kit::Result<()> {
    /// let options = StoreOptions::new("tenant-1", MemoryStore::new());
    /// let history = History::in_store(&options).for_directory("/srv/project");
    /// for session in history.list(ListFilter::new().limit(20)).await?.sessions {
    ///     println!("{} {}", session.session_id, session.summary);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn in_store(options: &StoreOptions) -> Self {
        let mut history = Self::at("");
        history.stored = Some(Arc::new(StoredHistory {
            store: options.store.clone(),
            scope: options.scope.clone(),
            project: options.project.clone(),
        }));
        history
    }

    pub(super) fn stored(&self) -> Option<&StoredHistory> {
        self.stored.as_deref()
    }

    /// Fails if the history is in a store, which does not have what the call needs.
    pub(super) fn require_disk(&self, call: &str) -> Result<()> {
        if self.stored.is_some() { Err(errors::not_on_disk(call)) } else { Ok(()) }
    }

    /// Returns the name of the project.
    pub(super) async fn project_name(&self, stored: &StoredHistory) -> Result<String> {
        if let Some(project) = &stored.project {
            return Ok(project.as_ref().to_owned());
        }
        self.run(|projects, _| {
            let directory = projects.directory.as_deref().unwrap_or(Path::new("."));
            Ok(projects.config.folder_name(directory))
        })
        .await
    }

    pub(super) async fn stored_key(
        &self,
        stored: &StoredHistory,
        id: &SessionId,
    ) -> Result<SessionKey> {
        stored.key(&self.project_name(stored).await?, id)
    }

    pub(super) async fn list_stored(
        &self,
        stored: &StoredHistory,
        filter: ListFilter,
    ) -> Result<SessionPage> {
        let project = stored.project_key(&self.project_name(stored).await?)?;
        let wanted = filter.limit.map_or(usize::MAX, |limit| filter.offset.saturating_add(limit));
        let mut page = SessionPage::default();
        let (mut shown, mut cursor): (usize, Option<String>) = (0, None);
        let mut bounds = Bounds::list();
        while shown < wanted {
            let limit = LIST_PAGE.min(wanted - shown);
            let list = list_after(cursor.as_deref(), limit);
            let listed = list_page(&mut bounds, &*stored.store, &project, list).await;
            let listed = listed.map_err(errors::list_failed)?;
            for row in &listed.sessions {
                match stored.info(&project, row).await {
                    Ok(Some(info)) => {
                        shown += 1;
                        if shown > filter.offset {
                            page.sessions.push(info);
                        }
                    }
                    Ok(None) => {}
                    // Other sessions are not affected.
                    Err(error) if error.kind() == StoreErrorKind::Corrupt => {
                        page.skipped.push(SkippedFile::stored(&row.session, error));
                    }
                    Err(error) => return Err(errors::list_failed(error)),
                }
            }
            cursor = listed.next;
            if cursor.is_none() {
                return Ok(page);
            }
        }
        page.has_more = true;
        Ok(page)
    }

    pub(super) fn stored_info<'a>(
        &'a self,
        stored: &'a StoredHistory,
        id: &'a SessionId,
    ) -> BoxFuture<'a, Result<Option<SessionInfo>>> {
        Box::pin(async move {
            if !is_uuid(id.as_str()) {
                return Ok(None);
            }
            let key = self.stored_key(stored, id).await?;
            let Some(row) = stored.row(&key).await? else { return Ok(None) };
            let info = stored.info(key.project_key(), &row).await;
            info.map_err(|error| store_failed("load", &key, error))
        })
    }

    /// Opens the main transcript, or that of a subagent.
    pub(super) async fn open_stored(
        &self,
        stored: &StoredHistory,
        id: &SessionId,
        agent: Option<&AgentId>,
    ) -> Result<Transcript> {
        let key = self.stored_key(stored, id).await?;
        let (scope, parents) = match agent {
            None => (None, None),
            Some(agent) => {
                let found = self.stored_subagents_of(stored, &key).await?;
                let found = found.into_iter().find(|(_, info)| info.agent_id == *agent);
                let Some((subpath, info)) = found else {
                    return Err(errors::subagent_not_found(id, agent.as_str()));
                };
                let parents = Parents { tool_use: info.tool_use_id, agent: info.parent_agent_id };
                (Some(subpath), Some(parents))
            }
        };
        let (folder, located) = stored.spool(&key, scope.as_ref()).await?;
        let read = self.run(move |_, cancel| {
            let read = transcript::read(&located, cancel);
            // The open file stays readable.
            drop(folder);
            read
        });
        let (source, index) = read.await?;
        Ok(Transcript::new(self, id, source, index, parents))
    }

    pub(super) async fn last_stored_messages(
        &self,
        stored: &StoredHistory,
        id: &SessionId,
        count: usize,
        filter: MessageFilter,
    ) -> Result<Vec<HistoryMessage>> {
        let messages = self.open_stored(stored, id, None).await?.messages(filter).await?;
        let skipped = messages.len().saturating_sub(count);
        let mut messages = messages.skip(skipped);
        let mut last = Vec::with_capacity(messages.len());
        while let Some(message) = messages.next().await {
            last.push(message?);
        }
        Ok(last)
    }

    pub(super) async fn stored_subagents(
        &self,
        stored: &StoredHistory,
        id: &SessionId,
    ) -> Result<Vec<SubagentInfo>> {
        let key = self.stored_key(stored, id).await?;
        let found = self.stored_subagents_of(stored, &key).await?;
        Ok(found.into_iter().map(|(_, info)| info).collect())
    }

    async fn stored_subagents_of(
        &self,
        stored: &StoredHistory,
        key: &SessionKey,
    ) -> Result<Vec<(Subpath, SubagentInfo)>> {
        let failed = |error| store_failed("load", key, error);
        stored.require(key).await?;
        let subpaths = limited(&*stored.store, stored.store.subpaths(key)).await.map_err(failed)?;
        let mut found = Vec::new();
        for subpath in subpaths {
            let Some(agent) = agent_of(subpath.as_str()) else { continue };
            let load = Load::subpath(&subpath).limit(METADATA_ENTRIES);
            let page = load_page(&*stored.store, key, load).await.map_err(failed)?;
            let mut texts = page.entries.iter().map(|entry| metadata_file(&entry.text));
            let has_lines = page.more || texts.any(|metadata| metadata.is_none());
            let metadata = page.entries.iter().rev().find_map(|entry| metadata_file(&entry.text));
            let metadata = metadata.and_then(|text| serde_json::from_str(&text).ok());
            // As on disk, where metadata without a transcript is no subagent.
            if has_lines {
                let info = subagents::info(agent, &metadata.unwrap_or_default(), None);
                found.push((subpath, info));
            }
        }
        Ok(found)
    }

    pub(super) async fn change_stored(
        &self,
        stored: &StoredHistory,
        id: &SessionId,
        change: StoredChange<'_>,
    ) -> Result<()> {
        let line = match change {
            StoredChange::Title(title) => title_line(id.as_str(), title),
            StoredChange::Tag(tag) => tag_line(id.as_str(), tag),
        };
        let line = line.map_err(|error| errors::invalid_change(id, error))?;
        let key = self.stored_key(stored, id).await?;
        let Some(row) = stored.row(&key).await? else { return Err(errors::not_in_store(&key)) };
        let failed = |error| store_failed("change", &key, error);
        let text = String::from_utf8_lossy(&line);
        // Renaming back to an earlier title is a change, too.
        let entry = NewEntry::with_id(None, EntryId::unique(), text.trim_end()).map_err(failed)?;
        let summary = row.summary.filter(|summary| summary.through >= row.last);
        let summary = summary.and_then(|summary| {
            let mut data = summary_data(&summary)?;
            data.add(text.trim_end().as_bytes());
            Some((summary.through, data.to_json()))
        });
        let entries = [entry];
        let mut append = Append::new(&entries);
        if let Some((after, data)) = &summary {
            append = append.summary(*after, data.text());
        }
        limited(&*stored.store, stored.store.append(&key, append)).await.map_err(failed)?;
        Ok(())
    }

    pub(super) async fn fork_stored(
        &self,
        stored: &StoredHistory,
        id: &SessionId,
        options: ForkOptions,
    ) -> Result<SessionId> {
        let key = self.stored_key(stored, id).await?;
        let (folder, located) = stored.spool(&key, None).await?;
        let (folder, path, new_id) = self
            .run(move |_, cancel| {
                let new_id = fork::fork(&located, &options, cancel)?;
                let path = located.path.with_file_name(format!("{new_id}.jsonl"));
                Ok((folder, path, new_id))
            })
            .await?;
        let new_key = stored.key(key.project(), &new_id)?;
        let copied = copy::import_file(self, stored, &new_key, path).await;
        // Deletes files.
        let cleanup = self.run(move |_, _| {
            drop(folder);
            Ok(())
        });
        cleanup.await?;
        if let Err(error) = copied {
            // A part of a copy is of no use. The error is the one to report.
            drop(limited(&*stored.store, stored.store.delete(&new_key, None)).await);
            return Err(error);
        }
        Ok(new_id)
    }

    pub(super) async fn delete_stored(&self, stored: &StoredHistory, id: &SessionId) -> Result<()> {
        let key = self.stored_key(stored, id).await?;
        stored.require(&key).await?;
        let failed = |error| store_failed("delete", &key, error);
        // Otherwise a host that runs the session would store the rest of it again.
        limited(&*stored.store, stored.store.claim(&key)).await.map_err(failed)?;
        limited(&*stored.store, stored.store.delete(&key, None)).await.map_err(failed)
    }
}

/// A change that is one entry.
pub(super) enum StoredChange<'a> {
    Title(&'a str),
    Tag(Option<&'a str>),
}

impl StoredHistory {
    pub(super) fn store(&self) -> &dyn SessionStore {
        &*self.store
    }

    fn project_key(&self, project: &str) -> Result<ProjectKey> {
        ProjectKey::new(&self.scope, project).map_err(errors::invalid_key)
    }

    pub(super) fn key(&self, project: &str, id: &SessionId) -> Result<SessionKey> {
        let project = self.project_key(project)?;
        project.session(id.clone()).map_err(|_| errors::not_a_session_id(id))
    }

    /// Fails if the store has no main transcript of the session.
    pub(super) async fn require(&self, key: &SessionKey) -> Result<()> {
        let page = load_page(&*self.store, key, Load::main().limit(1)).await;
        let page = page.map_err(|error| store_failed("load", key, error))?;
        if page.entries.is_empty() { Err(errors::not_in_store(key)) } else { Ok(()) }
    }

    /// Returns the row of a session in the list.
    fn row<'a>(&'a self, key: &'a SessionKey) -> BoxFuture<'a, Result<Option<SessionRow>>> {
        Box::pin(async move {
            let found = limited(&*self.store, self.store.get(key)).await;
            found.map_err(|error| store_failed("find", key, error))
        })
    }

    /// Returns what a list shows of a session.
    fn info<'a>(
        &'a self,
        project: &'a ProjectKey,
        row: &'a SessionRow,
    ) -> BoxFuture<'a, std::result::Result<Option<SessionInfo>, StoreError>> {
        Box::pin(async move {
            let summary = row.summary.as_ref();
            let known = summary.and_then(|summary| Some((summary_data(summary)?, summary.through)));
            let (mut data, after) = known.unwrap_or_default();
            if after < row.last {
                let key = project.session(row.session.clone())?;
                let mut pages = Pages::after(after);
                while let Some(page) = pages.next(&*self.store, &key, Load::main()).await? {
                    for entry in &page.entries {
                        data.add(entry.text.as_bytes());
                    }
                }
            }
            let modified = i64::try_from(row.modified_ms).ok().and_then(time::from_millis);
            Ok(data.info().map(|info| SessionInfo {
                session_id: row.session.clone(),
                summary: info.summary,
                last_modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
                file_size: None,
                custom_title: info.custom_title,
                first_prompt: info.first_prompt,
                git_branch: info.git_branch,
                cwd: info.cwd,
                tag: info.tag,
                created_at: info.created_at.and_then(time::from_millis),
                archived: None,
                path: None,
            }))
        })
    }

    /// Writes a transcript into a temporary folder.
    async fn spool(
        &self,
        key: &SessionKey,
        subpath: Option<&Subpath>,
    ) -> Result<(TemporaryFolder, SessionFiles)> {
        let scope = subpath.map_or(LoadScope::Main, LoadScope::Subpath);
        let spooled = spool(&*self.store, key, scope).await?;
        let (folder, path) = spooled.ok_or_else(|| errors::not_in_store(key))?;
        Ok((folder, SessionFiles { id: key.session().clone(), path }))
    }
}

impl SkippedFile {
    fn stored(id: &SessionId, error: StoreError) -> Self {
        let path = format!("{id}.jsonl").into();
        Self { path, error: Arc::new(std::io::Error::other(error)) }
    }
}

/// Returns the data of a summary; `None` if it is not a JSON object.
fn summary_data(summary: &Summary) -> Option<SummaryData> {
    let data = Json::from_text(summary.data.as_str()).ok()?;
    data.is_object().then(|| SummaryData::from_json(&data))
}
