//! Lists sessions, page by page.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use claude_wire::transcript::{Ends, has_chain_entry};
use claude_wire::visible::visible_message;

use super::session_info::{self, SessionInfo};
use super::{CancelFlag, History, errors};
use crate::error::Result;
use crate::lock::lock;
use crate::session_files::members::SessionFiles;
use crate::session_files::open::{self, EndBuffers};
use crate::session_files::project::{Folders, Projects, sessions};
use crate::sort;
use crate::tasks;

/// How many threads read transcripts at most.
const MAX_THREADS: usize = 8;
/// How far a transcript is searched for its first entry of a conversation.
const MAX_SCAN: u64 = 16 * 1024 * 1024;

/// Which sessions a list has. Default: all, the newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a filter does nothing until it is given to `History::list`"]
pub struct ListFilter {
    pub(super) limit: Option<usize>,
    pub(super) offset: usize,
    include_worktrees: bool,
    include_programmatic: bool,
}

impl Default for ListFilter {
    fn default() -> Self {
        Self::new()
    }
}

impl ListFilter {
    /// Creates a filter that keeps every session.
    pub fn new() -> Self {
        Self { limit: None, offset: 0, include_worktrees: true, include_programmatic: true }
    }

    /// Sets how many sessions are returned at most. Default: all.
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Sets how many sessions are skipped, for the next page. Default: 0.
    pub fn offset(mut self, offset: usize) -> Self {
        self.offset = offset;
        self
    }

    /// Sets whether [`History::for_directory`] includes the other worktrees of the directory's Git
    /// repository. Default: true.
    pub fn include_worktrees(mut self, include: bool) -> Self {
        self.include_worktrees = include;
        self
    }

    /// Sets whether sessions that a program started, through an SDK or as a daemon, are included.
    /// Default: true.
    pub fn include_programmatic(mut self, include: bool) -> Self {
        self.include_programmatic = include;
        self
    }
}

/// A page of sessions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions, the most recently modified first.
    pub sessions: Vec<SessionInfo>,
    /// The transcripts that could not be read. Files are read as far as the page needs them.
    pub skipped: Vec<SkippedFile>,
    /// Whether there may be more sessions after this page.
    pub has_more: bool,
}

/// A transcript that could not be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SkippedFile {
    /// The transcript.
    pub path: PathBuf,
    /// Why it could not be read.
    pub error: Arc<io::Error>,
}

impl fmt::Display for SkippedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            format!("cannot read the transcript \"{}\": {}", self.path.display(), self.error);
        visible_message(&text).fmt(f)
    }
}

impl History {
    /// Lists sessions, the most recently modified first.
    ///
    /// Reads at most 128 KiB of each transcript, and only of those that the page needs: the files are
    /// sorted by their modification times before any is read. A missing config directory is an empty
    /// history. Sessions that continue in another one are left out; to find that out, up to 16 MiB of the
    /// other transcript are read, until its first message.
    ///
    /// # Errors
    /// [`ErrorKind::HistoryIo`](crate::ErrorKind::HistoryIo) when a folder cannot be read.
    /// Transcripts that cannot be read are in [`SessionPage::skipped`].
    ///
    /// # Cancel safety
    /// Cancel safe. Threads that read files stop after the file that they are reading.
    pub async fn list(&self, filter: ListFilter) -> Result<SessionPage> {
        if let Some(stored) = self.stored() {
            return self.list_stored(stored, filter).await;
        }
        self.run(move |projects, cancel| list(projects, filter, cancel)).await
    }
}

/// What became of one transcript.
enum Reading {
    Shown(Box<SessionInfo>),
    Hidden,
    Failed(SkippedFile),
}

fn list(projects: &Projects, filter: ListFilter, cancel: &CancelFlag) -> Result<SessionPage> {
    let folders = projects.folders(filter.include_worktrees)?;
    let mut found = Vec::new();
    for folder in &folders.paths {
        cancel.check()?;
        let found_here = sessions(folder).map_err(|error| errors::io("list", folder, error))?;
        for (located, metadata) in found_here {
            found.push((open::modified_millis(&metadata), located));
        }
    }
    sort::sort_by(&mut found, |(one, one_at), (other, other_at)| {
        (other, other_at.id.as_str()).cmp(&(one, one_at.id.as_str()))
    });
    let wanted = filter.limit.map_or(usize::MAX, |limit| filter.offset.saturating_add(limit));
    let context = Context { projects, folders: &folders, filter };
    let mut page = SessionPage::default();
    let mut seen: HashSet<String> = HashSet::new();
    let mut rest = &found[..];
    while seen.len() < wanted && !rest.is_empty() {
        let (group, after) = rest.split_at((wanted - seen.len()).min(rest.len()));
        rest = after;
        for reading in
            in_parallel(group, cancel, |(_, located), buffers| context.read(located, buffers))
        {
            match reading {
                Reading::Shown(info) => {
                    // The newest of several copies is shown.
                    let is_new = seen.insert(info.session_id.to_string());
                    if is_new && seen.len() > filter.offset {
                        page.sessions.push(*info);
                    }
                }
                Reading::Hidden => {}
                Reading::Failed(skipped) => page.skipped.push(skipped),
            }
        }
        cancel.check()?;
    }
    page.has_more = !rest.is_empty();
    Ok(page)
}

struct Context<'a> {
    projects: &'a Projects,
    folders: &'a Folders,
    filter: ListFilter,
}

impl Context<'_> {
    fn read(&self, located: &SessionFiles, buffers: &mut EndBuffers) -> Reading {
        match self.try_read(located, buffers) {
            Ok(Some(info)) => Reading::Shown(Box::new(info)),
            Ok(None) => Reading::Hidden,
            Err(error) if open::is_absent(&error) => Reading::Hidden,
            Err(error) => {
                Reading::Failed(SkippedFile { path: located.path.clone(), error: Arc::new(error) })
            }
        }
    }

    fn try_read(
        &self,
        located: &SessionFiles,
        buffers: &mut EndBuffers,
    ) -> io::Result<Option<SessionInfo>> {
        let (ends, metadata) = buffers.open(&located.path)?;
        let is_hidden = (!self.filter.include_programmatic && ends.is_programmatic())
            || is_continued(located, &ends)
            || (!self.folders.directories.is_empty()
                && !self.folders.includes(ends.recorded_cwd().as_deref()));
        if is_hidden {
            return Ok(None);
        }
        Ok(session_info::from_ends(self.projects, located, &ends, &metadata))
    }
}

/// Returns whether the conversation continues in another session, which is in the list instead.
fn is_continued(located: &SessionFiles, ends: &Ends<'_>) -> bool {
    ends.continued_in().is_some_and(|next| {
        next != located.id.as_str()
            && has_conversation(&located.path.with_file_name(format!("{next}.jsonl")))
    })
}

fn has_conversation(path: &Path) -> bool {
    let Ok((file, metadata)) = open::open(path) else { return false };
    let mut chunk = vec![0; 1024 * 1024];
    let mut offset = 0;
    while offset < metadata.len().min(MAX_SCAN) {
        match open::read_at(&file, &mut chunk, offset) {
            Ok(length) if length > 0 => {
                if has_chain_entry(&chunk[..length]) {
                    return true;
                }
                offset += length as u64;
            }
            _ => return false,
        }
    }
    false
}

/// Applies a function to every item on a few threads, each with its own buffers, and returns the
/// results in order. Stops early if the caller is gone.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    cancel: &CancelFlag,
    work: impl Fn(&T, &mut EndBuffers) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    let run = || {
        let mut buffers = EndBuffers::default();
        while !cancel.is_set() {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { break };
            let result = work(item, &mut buffers);
            lock(&results).push((at, result));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.min(MAX_THREADS).min(items.len().div_ceil(16));
    std::thread::scope(|scope| {
        let mut helpers = Vec::new();
        for _ in 1..threads {
            // A thread that cannot be started only costs time: this one works too.
            let helper = std::thread::Builder::new();
            if let Ok(helper) = helper.spawn_scoped(scope, tasks::scoped(run)) {
                helpers.push(helper);
            }
        }
        run();
        helpers.into_iter().for_each(tasks::join);
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    sort::sort_by_key(&mut results, |(at, _)| *at);
    let mut ordered = Vec::with_capacity(results.len());
    for (_, result) in results {
        ordered.push(result);
    }
    ordered
}
