//! Files and directories.

use crate::id::MessageId;
use crate::json::{Extra, List, Number};

wire_struct! {
    /// Put files back to where they were before a user message.
    pub struct RewindFiles ["subtype" = "rewind_files"] {
        /// The user message.
        user_message_id: MessageId,
        /// Whether only to say what would be done.
        dry_run: Option<bool>,
    }
}

impl RewindFiles {
    /// To before this user message.
    pub fn new(message: impl Into<MessageId>) -> Self {
        Self { user_message_id: message.into(), dry_run: None, extra: Extra::default() }
    }
}

wire_struct! {
    /// What became of the files.
    #[derive(Default)]
    pub struct RewindFilesResponse {
        /// Whether they could be put back.
        can_rewind: Option<bool> as "canRewind",
        /// Why not.
        error: Option<String>,
        /// The files.
        files_changed: List<String> as "filesChanged",
        /// Lines added.
        insertions: Option<Number>,
        /// Lines removed.
        deletions: Option<Number>,
        /// Links that were left alone.
        skipped_links: Option<Number> as "skippedLinks",
    }
}

request! {
    /// Read a file where the CLI is.
    ReadFile = "read_file" {
        /// The file.
        path: String,
        /// How much of it at most.
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
        /// What is in it.
        contents: Option<String>,
        /// Where it is.
        abs_path: Option<String> as "absPath",
        /// What was asked for.
        requested_path: Option<String>,
        /// Whether there is more.
        truncated: Option<bool>,
        /// `base64`, if it is.
        encoding: Option<String>,
        /// Whether characters had to be replaced.
        lossy: Option<bool>,
    }
}

request! {
    /// Which files are called like this?
    FileSuggestions = "file_suggestions" {
        /// A part of the name.
        query: String,
    }
}

request_by!(FileSuggestions.query);

wire_struct! {
    /// Files that are called like what was asked for.
    #[derive(Default)]
    pub struct FileSuggestionsResponse {
        /// The best first.
        suggestions: List<FileSuggestion>,
        /// Where they are looked for.
        cwd: Option<String>,
    }
}

wire_struct! {
    /// A file that is called like what was asked for.
    #[derive(Default)]
    pub struct FileSuggestion {
        /// The file.
        path: Option<String>,
        /// How well it fits.
        score: Option<Number>,
    }
}

request! {
    /// Take a file as read by the model, so that it may be edited.
    SeedReadState = "seed_read_state" {
        /// The file.
        path: String,
        /// When it was last changed, in milliseconds since 1970.
        mtime: Option<Number>,
    }
}

request! {
    /// Make another directory part of the session.
    RegisterRepoRoot = "register_repo_root" {
        /// The directory.
        directory: String,
        /// Whether its instructions are read.
        reload_claude_md: Option<bool>,
        /// Whether its plugins are read.
        reload_plugins: Option<bool>,
        /// Whether its skills are read.
        reload_skills: Option<bool>,
    }
}

request_by!(RegisterRepoRoot.directory);

wire_struct! {
    /// The directory that became part of the session.
    #[derive(Default)]
    pub struct RegisterRepoRootResponse {
        /// Where it is.
        directory: Option<String>,
    }
}
