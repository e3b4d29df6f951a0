//! Files.

use claude_wire::control::{ReadFile, ReadFileResponse, RewindFiles, RewindFilesResponse};
use claude_wire::id::MessageId;

use crate::error::Result;
use crate::session::Session;

operations! { Session:
    /// Reads a file where the CLI is: its path, or a [`ReadFile`] that says more. The CLI refuses
    /// what its tools may not read.
    fn read_file(file: impl Into<ReadFile>) -> ReadFileResponse { file.into() }
}

impl Session {
    /// Restores files to their state before a user message. Needs
    /// [`file_checkpointing`](crate::Options::file_checkpointing).
    ///
    /// # Errors
    /// Those of [`Self::request`], and
    /// [`CheckpointingNotEnabled`](crate::ErrorKind::CheckpointingNotEnabled).
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn rewind_files(&self, message: impl Into<MessageId>) -> Result<RewindFilesResponse> {
        self.operate(RewindFiles::new(message).into()).await
    }

    /// Returns what [`rewind_files`](Self::rewind_files) would change, and changes nothing.
    ///
    /// # Errors
    /// Those of [`Self::rewind_files`].
    ///
    /// # Cancel safety
    /// That of [`Self::request`].
    pub async fn preview_rewind(
        &self,
        message: impl Into<MessageId>,
    ) -> Result<RewindFilesResponse> {
        let mut rewind = RewindFiles::new(message);
        rewind.dry_run = Some(true);
        self.operate(rewind.into()).await
    }
}
