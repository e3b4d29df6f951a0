//! Files, directories and settings.

use claude_wire::control::{CwdChangedOutput, FileChangedOutput, WorktreeCreateOutput};

use super::Nothing;

specific!(CwdChangedOutput, FileChangedOutput, WorktreeCreateOutput);

answer! {
    /// What a hook for [`ConfigChange`](crate::hook::ConfigChange) answers. Blocked, the session goes
    /// on with the settings that it had.
    ConfigChange(ConfigChangeInput) => ConfigChangeAnswer(Nothing) [block] {}
}

answer! {
    /// What a hook for [`InstructionsLoaded`](crate::hook::InstructionsLoaded) answers.
    InstructionsLoaded(InstructionsLoadedInput) => InstructionsLoadedAnswer(Nothing) {}
}

answer! {
    /// What a hook for [`CwdChanged`](crate::hook::CwdChanged) answers.
    CwdChanged(CwdChangedInput) => CwdChangedAnswer(CwdChangedOutput) [watch_paths] {}
}

answer! {
    /// What a hook for [`FileChanged`](crate::hook::FileChanged) answers.
    FileChanged(FileChangedInput) => FileChangedAnswer(FileChangedOutput) [watch_paths] {}
}

answer! {
    /// What a hook for [`DirectoryAdded`](crate::hook::DirectoryAdded) answers.
    DirectoryAdded(DirectoryAddedInput) => DirectoryAddedAnswer(Nothing) {}
}

answer! {
    /// What a hook for [`WorktreeCreate`](crate::hook::WorktreeCreate) answers: where the worktree
    /// is that the hook has made. The CLI makes none itself where there is such a hook, so that
    /// without a path there is none.
    WorktreeCreate(WorktreeCreateInput) => WorktreeCreateAnswer(WorktreeCreateOutput) {
        /// Where it is.
        worktree_path: String,
    }
}

answer! {
    /// What a hook for [`WorktreeRemove`](crate::hook::WorktreeRemove) answers.
    WorktreeRemove(WorktreeRemoveInput) => WorktreeRemoveAnswer(Nothing) {}
}
