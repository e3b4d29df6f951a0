//! Files and directories.

use claude_wire::control::{
    FileSuggestions, FileSuggestionsAnswer, ReadFile, ReadFileAnswer, RegisterRepoRoot,
    RegisterRepoRootAnswer, RewindFiles, RewindFilesAnswer, SeedReadState,
};
use claude_wire::id::MessageId;

use crate::error::Result;
use crate::session::Session;

operations! {
    /// Reads a file where the CLI is: its path, or a [`ReadFile`] that says more. The CLI refuses
    /// what its tools may not read.
    fn read_file(file: impl Into<ReadFile>) -> ReadFileAnswer { file.into() }

    /// Returns the files below the working directory whose path matches `query`.
    fn file_suggestions(query: impl Into<String>) -> FileSuggestionsAnswer {
        let mut request = FileSuggestions::default();
        request.query = query.into();
        request
    }

    /// Marks a file as already read, so that `Edit` is allowed without a `Read`. Holds if the file
    /// was last changed at `mtime`, in milliseconds since 1970.
    fn seed_read_state(path: impl Into<String>, mtime: u64) {
        let mut request = SeedReadState::default();
        (request.path, request.mtime) = (path.into(), Some(mtime.into()));
        request
    }

    /// Adds another directory to the session: its path, or a [`RegisterRepoRoot`] that says what of
    /// it is read.
    fn register_repo_root(directory: impl Into<RegisterRepoRoot>) -> RegisterRepoRootAnswer {
        directory.into()
    }
}

impl Session {
    /// Restores files to their state before a user message; with `dry_run` it only returns what
    /// would change. Needs [`file_checkpointing`](crate::Options::file_checkpointing).
    ///
    /// # Errors
    /// Those of [`Self::request`], and
    /// [`CheckpointingNotEnabled`](crate::ErrorKind::CheckpointingNotEnabled).
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn rewind_files(
        &self,
        message: impl Into<MessageId>,
        dry_run: bool,
    ) -> Result<RewindFilesAnswer> {
        let mut rewind = RewindFiles::new(message);
        rewind.dry_run = dry_run.then_some(true);
        self.operate(rewind.into()).await
    }
}
