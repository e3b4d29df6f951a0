//! The conversations that the CLI keeps on disk: list, read, follow and change them.
//!
//! A [`History`] reads the config directory of the CLI, normally `~/.claude`. It needs no CLI and no
//! login, and never starts a process. Transcripts can have gigabytes, so every function has bounded
//! memory: lists read 64 KiB of either end of a transcript, and reading a conversation keeps an index
//! of 48 bytes per entry and decodes messages while they are consumed.
//!
//! ```no_run
//! use claude_agent_kit::history::{History, ListFilter, MessageFilter};
//!
//! # async fn example() -> claude_agent_kit::Result<()> {
//! let history = History::new()?.for_directory("/srv/project");
//! let page = history.list(ListFilter::new().limit(20)).await?;
//! for session in &page.sessions {
//!     println!("{} {}", session.session_id, session.summary);
//! }
//! if let Some(newest) = page.sessions.first() {
//!     let mut messages = history.messages(&newest.session_id, MessageFilter::default()).await?;
//!     while let Some(message) = messages.next().await {
//!         println!("{:?}", message?.entry.timestamp());
//!     }
//!     history.rename(&newest.session_id, "Release notes").await?;
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Files that are not sessions
//! A session is a regular, non-empty file `<uuid>.jsonl` in a project folder. Directories, pipes,
//! devices and symbolic links with such a name are never opened for reading, so that no call blocks
//! on them: lists leave them out, and other calls fail with
//! [`HistoryIo`](crate::ErrorKind::HistoryIo). Files that cannot be read are reported in
//! [`SessionPage::skipped`].
//!
//! # Changes beside a running CLI
//! The CLI does not lock its transcripts. Changes are appended as whole lines in one write, with a
//! line break first if the file ends within a line. Afterwards they are verified, and written again if
//! the CLI rewrote the file meanwhile. A change is lost if the CLI has read the file before the change
//! and rewrites it after the verification. The CLI also writes the title and the tag of its session
//! again from time to time: one that it read just before a change can replace the change.
//!
//! # Deviations from the TypeScript SDK
//! - Symbolic links to transcripts are not followed by any function.
//! - Without [`for_directory`](History::for_directory), the newest of several copies of a session is
//!   used, not the first one found.
//! - Git worktrees are read from the files of the repository instead of running `git`.
//! - Tags and paths are not converted to a Unicode normalization form.
//! - An empty `CLAUDE_CONFIG_DIR` counts as unset.
//! - Deleting a session that is in use is refused, see [`History::delete`].
//!
//! `docs/history-deviations.md` in the repository lists all of them, with the differences that the
//! test run finds.

mod change;
mod copy;
pub(crate) mod errors;
mod follow;
mod fork;
mod indexing;
mod list;
mod session_info;
mod source;
mod stored;
mod stream;
mod subagents;
#[cfg(test)]
mod tests;
pub(crate) mod time;
mod transcript;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use claude_wire::transcript::Tree;
pub use claude_wire::transcript::{
    Entry, EntryBody, EntryKind, EntryRef, Index, Issue, IssueKind, MessageFilter, MessageRole,
};
pub use copy::SessionCopy;
#[cfg(test)]
pub(crate) use copy::both_on_disk;
pub use follow::{Follow, FollowEvent};
pub use fork::ForkOptions;
pub use list::{ListFilter, SessionPage, SkippedFile};
pub use session_info::SessionInfo;
pub use stream::{EntryStream, HistoryMessage, MessageStream};
pub use subagents::SubagentInfo;
use tokio::sync::Semaphore;
pub use transcript::Transcript;

use crate::driver::require_runtime;
use crate::error::{Error, ErrorKind, Result};
use crate::id::SessionId;
use crate::options::Options;
use crate::session_files::config::ConfigDir;
use crate::session_files::project::Projects;
use crate::tasks::{self, BoxFuture, Boxed, Unboxing};

/// How many calls of one handle and its clones read or write files at a time.
const CONCURRENCY_LIMIT: usize = 8;

/// The conversations in a config directory of the CLI. Cloning is cheap.
///
/// File operations run on Tokio's blocking threads, at most 8 at a time for a handle and its clones.
#[derive(Clone)]
pub struct History {
    /// Where sessions are looked for on disk.
    projects: Arc<Projects>,
    /// The store that has the sessions instead of the disk.
    stored: Option<Arc<stored::StoredHistory>>,
    permits: Arc<Semaphore>,
}

impl History {
    /// Opens the history in the config directory that a CLI started by this process would use:
    /// `CLAUDE_CONFIG_DIR`, or `.claude` in the home directory. The directory need not exist.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] when neither variable is set.
    pub fn new() -> Result<Self> {
        Self::from_options(&Options::new())
    }

    /// Opens the history in the config directory that a CLI with these options would use, including
    /// [`Options::env`] and [`Options::environment`]. A relative `CLAUDE_CONFIG_DIR` is resolved from
    /// [`Options::cwd`]. All projects are searched, whatever that directory is.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidOptions`] when the CLI would have neither `CLAUDE_CONFIG_DIR` nor a home
    /// directory.
    pub fn from_options(options: &Options) -> Result<Self> {
        ConfigDir::of_run(&options.settings).map(Self::with_config)
    }

    /// Opens the history in a config directory. The directory need not exist.
    pub fn at(config_dir: impl Into<PathBuf>) -> Self {
        Self::with_config(ConfigDir::at(config_dir.into()))
    }

    fn with_config(config: ConfigDir) -> Self {
        let permits = Arc::new(Semaphore::new(CONCURRENCY_LIMIT));
        let projects = Arc::new(Projects { config, directory: None });
        Self { projects, stored: None, permits }
    }

    /// Restricts the handle to the sessions of a working directory, and of the other worktrees of its
    /// Git repository.
    #[must_use]
    pub fn for_directory(&self, directory: impl Into<PathBuf>) -> Self {
        let config = self.projects.config.clone();
        let projects = Projects { config, directory: Some(directory.into()) };
        Self { projects: Arc::new(projects), ..self.clone() }
    }

    /// Returns the config directory; `None` for a history in a store.
    pub fn config_dir(&self) -> Option<&Path> {
        self.stored.is_none().then_some(&self.projects.config.path)
    }

    /// Returns what a list shows of a session. `None` if there is no such session, or nothing to show
    /// of it: a subagent's transcript, or one without a prompt and a title.
    ///
    /// # Errors
    /// [`ErrorKind::HistoryIo`] when the transcript cannot be read.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn info(&self, session_id: &SessionId) -> Result<Option<SessionInfo>> {
        if let Some(stored) = self.stored() {
            return self.stored_info(stored, session_id).await;
        }
        let id = session_id.clone();
        self.run(move |projects, _| {
            let Some(located) = projects.find(&id)? else { return Ok(None) };
            session_info::read(projects, &located)
        })
        .await
    }

    /// Returns the transcript of a session; `None` if there is none.
    pub(crate) async fn session_path(&self, session_id: &SessionId) -> Result<Option<PathBuf>> {
        let id = session_id.clone();
        self.run(move |projects, _| Ok(projects.find(&id)?.map(|located| located.path))).await
    }

    /// Runs file operations on a blocking thread. Dropping the future sets the flag, so that long
    /// reads stop.
    fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Projects, &CancelFlag) -> Result<T> + Send + 'static,
    ) -> Unboxing<BoxFuture<'_, Result<Boxed>>, T> {
        let boxed = |value| Box::new(value) as Boxed;
        Unboxing::new(
            self.run_boxed(Box::new(move |projects, flag| work(projects, flag).map(boxed))),
        )
    }

    fn run_boxed(&self, work: BoxedWork) -> BoxFuture<'_, Result<Boxed>> {
        Box::pin(async move {
            let runtime = require_runtime()?;
            let permit = self.permits.clone().acquire_owned().await;
            let flag = CancelFlag::default();
            let guard = CancelGuard(flag.clone());
            let projects = self.projects.clone();
            let task = tasks::spawn_blocking(&runtime, move || {
                let _permit = permit;
                work(&projects, &flag)
            });
            let result = tasks::joined(task.await);
            drop(guard);
            result?
        })
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("History")
            .field("config_dir", &self.projects.config.path)
            .field("directory", &self.projects.directory)
            .field("is_in_store", &self.stored.is_some())
            .finish_non_exhaustive()
    }
}

/// File operations with a result of any type.
type BoxedWork = Box<dyn FnOnce(&Projects, &CancelFlag) -> Result<Boxed> + Send>;

/// Whether the caller of an operation is gone.
#[derive(Clone, Debug, Default)]
struct CancelFlag(Arc<AtomicBool>);

impl CancelFlag {
    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if the caller is gone, who then does not see the error.
    fn check(&self) -> Result<()> {
        if self.is_set() {
            return Err(Error::new(ErrorKind::HistoryIo, "the call was cancelled"));
        }
        Ok(())
    }

    /// Chooses entries of a transcript. Ends soon after the caller is gone, whatever its shape.
    fn choose<T>(&self, index: &Index, choose: impl FnOnce(&Tree<'_>) -> T) -> Result<T> {
        let is_set = || self.is_set();
        let chosen = choose(&index.cancellable_tree(&is_set));
        // What was chosen for nobody is not complete.
        self.check()?;
        Ok(chosen)
    }
}

/// Sets the flag when the future is dropped.
struct CancelGuard(CancelFlag);

impl Drop for CancelGuard {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}
