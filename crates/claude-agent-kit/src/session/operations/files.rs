//! Files.

use claude_wire::control::{RewindFiles, RewindFilesResponse};
use claude_wire::id::MessageId;

operations! { Session:
    /// Restores files to their state before a user message. Needs
    /// [`file_checkpointing`](crate::Options::file_checkpointing); without it the error is
    /// [`CheckpointingNotEnabled`](crate::ErrorKind::CheckpointingNotEnabled).
    fn rewind_files(message: impl Into<MessageId>) -> RewindFilesResponse {
        RewindFiles::new(message)
    }

    /// Returns what [`rewind_files`](Self::rewind_files) would change, and changes nothing.
    fn preview_rewind(message: impl Into<MessageId>) -> RewindFilesResponse {
        let mut rewind = RewindFiles::new(message);
        rewind.dry_run = Some(true);
        rewind
    }
}
