//! Files, directories and settings.

use crate::json::List;

hook_input! {
    /// A settings file changed.
    ConfigChangeInput = "ConfigChange" {
        /// Which settings.
        source: Option<String>,
        /// The file.
        file_path: Option<String>,
    }
}

hook_input! {
    /// A file of instructions was read.
    InstructionsLoadedInput = "InstructionsLoaded" {
        /// The file.
        file_path: Option<String>,
        /// Whose instructions they are.
        memory_type: Option<String>,
        /// Why they were read.
        load_reason: Option<String>,
        /// The patterns that asked for it.
        globs: List<String>,
        /// The file that asked for it.
        trigger_file_path: Option<String>,
        /// The file that includes it.
        parent_file_path: Option<String>,
    }
}

hook_input! {
    /// The working directory changed.
    CwdChangedInput = "CwdChanged" {
        /// Where it was.
        old_cwd: Option<String>,
        /// Where it is.
        new_cwd: Option<String>,
    }
}

hook_output! {
    /// For a working directory that changed.
    CwdChangedOutput = "CwdChanged" {
        /// Files whose changes are told.
        watch_paths: List<String> as "watchPaths",
    }
}

hook_input! {
    /// A watched file changed.
    FileChangedInput = "FileChanged" {
        /// The file.
        file_path: Option<String>,
        /// `change`, `add` or `unlink`.
        event: Option<String>,
    }
}

hook_output! {
    /// For a watched file that changed.
    FileChangedOutput = "FileChanged" {
        /// Files whose changes are told.
        watch_paths: List<String> as "watchPaths",
    }
}

hook_input! {
    /// A directory became part of the session.
    DirectoryAddedInput = "DirectoryAdded" {
        /// The directory.
        directory: Option<String>,
        /// Who added it.
        source: Option<String>,
    }
}

hook_input! {
    /// A worktree is to be made.
    WorktreeCreateInput = "WorktreeCreate" {
        /// Its name.
        name: Option<String>,
    }
}

hook_output! {
    /// For a worktree that is to be made.
    WorktreeCreateOutput = "WorktreeCreate" {
        /// Where it is.
        worktree_path: Option<String> as "worktreePath",
    }
}

hook_input! {
    /// A worktree is to be removed.
    WorktreeRemoveInput = "WorktreeRemove" {
        /// Where it is.
        worktree_path: Option<String>,
    }
}
