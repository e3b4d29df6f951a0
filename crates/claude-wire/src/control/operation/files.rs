//! Files and directories.

use crate::id::MessageId;
use crate::json::{Extra, List, Number};

wire_struct! {
    /// Rewinds files to the checkpoint before a user message.
    pub struct RewindFiles ["subtype" = "rewind_files"] {
        /// The user message.
        user_message_id: MessageId,
        /// Whether to report the changes without making them.
        dry_run: Option<bool>,
    }
}

impl RewindFiles {
    /// Rewinds to the checkpoint before this user message.
    pub fn new(message: impl Into<MessageId>) -> Self {
        Self { user_message_id: message.into(), dry_run: None, extra: Extra::default() }
    }
}

wire_struct! {
    /// The outcome of the rewind.
    #[derive(Default)]
    pub struct RewindFilesResponse {
        /// Whether the files can be rewound.
        can_rewind: Option<bool> as "canRewind",
        /// The reason.
        error: Option<String>,
        /// The files.
        files_changed: List<String> as "filesChanged",
        /// Lines added.
        insertions: Option<Number>,
        /// Lines removed.
        deletions: Option<Number>,
        /// The symbolic links that were skipped.
        skipped_links: Option<Number> as "skippedLinks",
    }
}

request! {
    /// Reads a file in the file system of the CLI.
    ReadFile = "read_file" {
        /// The file.
        path: String,
        /// The maximum size in bytes.
        max_bytes: Option<Number>,
        /// `base64` for bytes; absent for text.
        encoding: Option<String>,
    }
}

request_by!(ReadFile.path);

wire_struct! {
    /// A file that was read.
    #[derive(Default)]
    pub struct ReadFileResponse {
        /// The content.
        contents: Option<String>,
        /// The path.
        abs_path: Option<String> as "absPath",
        /// The requested value.
        requested_path: Option<String>,
        /// Whether the content is truncated.
        truncated: Option<bool>,
        /// `base64` if the content is encoded.
        encoding: Option<String>,
        /// Whether invalid characters were replaced.
        lossy: Option<bool>,
    }
}

request! {
    /// Finds files whose path matches a query.
    FileSuggestions = "file_suggestions" {
        /// The query.
        query: String,
    }
}

request_by!(FileSuggestions.query);

wire_struct! {
    /// The files that match a query.
    #[derive(Default)]
    pub struct FileSuggestionsResponse {
        /// The matches, best first.
        suggestions: List<FileSuggestion>,
        /// The searched directory.
        cwd: Option<String>,
    }
}

wire_struct! {
    /// A file that matches a query.
    #[derive(Default)]
    pub struct FileSuggestion {
        /// The file.
        path: Option<String>,
        /// The score.
        score: Option<Number>,
    }
}

request! {
    /// Marks a file as already read, so that `Edit` is allowed without a `Read`.
    SeedReadState = "seed_read_state" {
        /// The file.
        path: String,
        /// The modification time in milliseconds since 1970.
        mtime: Option<Number>,
    }
}

request! {
    /// Adds a directory to the session.
    RegisterRepoRoot = "register_repo_root" {
        /// The directory.
        directory: String,
        /// Whether its instructions are loaded.
        reload_claude_md: Option<bool>,
        /// Whether its plugins are loaded.
        reload_plugins: Option<bool>,
        /// Whether its skills are loaded.
        reload_skills: Option<bool>,
    }
}

request_by!(RegisterRepoRoot.directory);

wire_struct! {
    /// The added directory.
    #[derive(Default)]
    pub struct RegisterRepoRootResponse {
        /// The path.
        directory: Option<String>,
    }
}
