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
    /// An instruction file was loaded.
    InstructionsLoadedInput = "InstructionsLoaded" {
        /// The file.
        file_path: Option<String>,
        /// The scope of the instructions.
        memory_type: Option<String>,
        /// The reason why they were loaded.
        load_reason: Option<String>,
        /// The matching patterns.
        globs: List<String>,
        /// The file that triggered it.
        trigger_file_path: Option<String>,
        /// The file that includes it.
        parent_file_path: Option<String>,
    }
}

hook_input! {
    /// The working directory changed.
    CwdChangedInput = "CwdChanged" {
        /// The previous directory.
        old_cwd: Option<String>,
        /// The path.
        new_cwd: Option<String>,
    }
}

hook_output! {
    /// The output for a changed working directory.
    CwdChangedOutput = "CwdChanged" {
        /// The files to watch for changes.
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
    /// The output for a changed file.
    FileChangedOutput = "FileChanged" {
        /// The files to watch for changes.
        watch_paths: List<String> as "watchPaths",
    }
}

hook_input! {
    /// A directory was added to the session.
    DirectoryAddedInput = "DirectoryAdded" {
        /// The directory.
        directory: Option<String>,
        /// The source.
        source: Option<String>,
    }
}

hook_input! {
    /// A worktree is about to be created.
    WorktreeCreateInput = "WorktreeCreate" {
        /// Its name.
        name: Option<String>,
    }
}

hook_output! {
    /// The output for a worktree that is created.
    WorktreeCreateOutput = "WorktreeCreate" {
        /// The path.
        worktree_path: Option<String> as "worktreePath",
    }
}

hook_input! {
    /// A worktree is about to be removed.
    WorktreeRemoveInput = "WorktreeRemove" {
        /// The path.
        worktree_path: Option<String>,
    }
}
